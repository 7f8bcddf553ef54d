"""Instances that violate the assumptions of the formulas, and settings to compare policies on them.

Importance and, except in ``deploys`` and ``cold``, change rates and signals are those of ``noisy``
on the same seed. Each law has its own module, which explains its constants, in
:mod:`crawl_envs.instances.misspecified`. Requests are Poisson.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from crawl_envs.instances.misspecified.bursty import bursty
from crawl_envs.instances.misspecified.cold import cold
from crawl_envs.instances.misspecified.corrupted import CORRUPTION, check_share, corrupted
from crawl_envs.instances.misspecified.deploys import deploys
from crawl_envs.instances.misspecified.late import late
from crawl_envs.instances.misspecified.periodic import periodic
from crawl_envs.instances.misspecified.shifting import shifting
from crawl_envs.instances.synthetic import Synthetic
from crawl_envs.types import Instance
from crawl_envs.types.delay import Delay

Generator: TypeAlias = Callable[[Instance, np.random.Generator], Instance]

WORLDS: Mapping[str, Generator] = MappingProxyType(
    {
        "late": late,
        "bursty": bursty,
        "periodic": periodic,
        "deploys": deploys,
        "shifting": shifting,
        "corrupted": corrupted,
        "cold": cold,
    }
)
"""Named instances, and the functions that derive them from the pages of ``noisy``."""

SIZES: Mapping[str, float] = {"num_pages": 100, "bandwidth": 100.0, "horizon": 20.0}
"""One crawl per page and unit of time; rates are redrawn four times on average."""


def _setting(instance: str, reveal: str = "parameters") -> Mapping[str, Any]:
    return {"instance": instance, "reveal": reveal, **SIZES}


STRESS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # No assumption is violated; parameters are hidden.
        "cold start": _setting("cold", "importance"),
        # Revealed parameters are true except the delay.
        "unknown delay": _setting("late"),
        # Revealed means are true; changes are not Poisson.
        "bursty": _setting("bursty"),
        "periodic": _setting("periodic"),
        # Revealed parameters are the fit of a model of independent signals.
        "deploys": _setting("deploys"),
        # Revealed change rates are true initially.
        "shifting habits": _setting("shifting"),
        "wrong signal quality": _setting("corrupted"),
    }
)
"""Settings to compare policies in: names, and arguments of ``gym.make("CrawlNCIS-v0", ...)``."""


@dataclass(frozen=True)
class Stress:
    """A generator of a named instance of WORLDS.

    Args:
        name: a key of WORLDS.
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per unit time, > 0.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: revealed delay of signals; None for ``late``.
        corruption: share of noise in the revealed quality of ``corrupted``, in [0, 1].

    Raises:
        ValueError: an argument is outside its range, or the named instance does not have it.
    """

    name: str
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None
    corruption: float | None = None

    def __post_init__(self) -> None:
        if self.name not in WORLDS:
            raise ValueError(f"instance must be one of {tuple(WORLDS)}, got {self.name!r}")
        self._pages()
        if self.name == "late" and self.delay is not None:
            raise ValueError(
                f"delay must be None for instance 'late', whose own is hidden, got {self.delay!r}"
            )
        if self.corruption is not None:
            if self.name != "corrupted":
                raise ValueError(
                    f"corruption must be None for instance {self.name!r}, got {self.corruption!r}"
                )
            check_share("corruption", self.corruption)

    def _pages(self) -> Synthetic:
        """Return the generator of the underlying pages."""
        return Synthetic("noisy", self.num_pages, self.bandwidth, self.bandwidth_steps, self.delay)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance: revealed parameters and a hidden law."""
        pages = self._pages()(rng)
        if self.name == "corrupted":
            return corrupted(pages, rng, CORRUPTION if self.corruption is None else self.corruption)
        return WORLDS[self.name](pages, rng)
