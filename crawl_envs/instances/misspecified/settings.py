"""Instances on which what the formulas assume fails, and settings to compare policies on them.

Importance and, but for ``deploys`` and ``cold``, change rates and signals are those of ``noisy`` on
the same seed; each law is a module of :mod:`crawl_envs.instances.misspecified`, with its constants
and the reasons for them. Requests are Poisson in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from crawl_envs.instances.misspecified.bursts import bursty
from crawl_envs.instances.misspecified.cold import cold
from crawl_envs.instances.misspecified.corrupted import CORRUPTION, check_share, corrupted
from crawl_envs.instances.misspecified.deploys import deploys
from crawl_envs.instances.misspecified.late import late
from crawl_envs.instances.misspecified.rhythms import periodic
from crawl_envs.instances.misspecified.shifts import shifting
from crawl_envs.instances.synthetic import Synthetic
from crawl_envs.types import Instance
from crawl_envs.types.delay import Delay

Teller: TypeAlias = Callable[[Instance, np.random.Generator], Instance]

WORLDS: Mapping[str, Teller] = MappingProxyType(
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
"""Named instances, and what makes each of the pages of ``noisy``."""

SIZES: Mapping[str, float] = {"num_pages": 100, "bandwidth": 100.0, "horizon": 20.0}
"""A crawl per page and unit of time, and long enough for habits to shift four times."""


def _setting(instance: str, reveal: str = "parameters") -> Mapping[str, Any]:
    return {"instance": instance, "reveal": reveal, **SIZES}


STRESS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # What is told would be true, and nothing else is wrong: so it is not told.
        "cold start": _setting("cold", "importance"),
        # All that is told is right but for the delay, so that only the delay can cost.
        "unknown delay": _setting("late"),
        # Told means are right; it is the Poisson law that is not.
        "bursty": _setting("bursty"),
        "periodic": _setting("periodic"),
        # Told is what a fit of independent signals would find: formulas are at their best.
        "deploys": _setting("deploys"),
        # True at first, so that trusting it is right for a while.
        "shifting habits": _setting("shifting"),
        # The lie is the point.
        "wrong signal quality": _setting("corrupted"),
    }
)
"""Settings to compare policies in: names, and arguments of ``gym.make("CrawlNCIS-v0", ...)``."""


@dataclass(frozen=True)
class Stress:
    """A generator of a named instance of WORLDS.

    Args:
        name: one of WORLDS.
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per unit time, > 0.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: how long signals travel, which is told; None for ``late``.
        corruption: of ``corrupted``: the share of noise in what is told, in [0, 1].

    Raises:
        ValueError: an argument outside its range, or one that the named instance does not have.
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
        """Return the generator of the pages that the named instance is made of."""
        return Synthetic("noisy", self.num_pages, self.bandwidth, self.bandwidth_steps, self.delay)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance: what is told of it and, hidden, the law that is played."""
        pages = self._pages()(rng)
        if self.name == "corrupted":
            return corrupted(pages, rng, CORRUPTION if self.corruption is None else self.corruption)
        return WORLDS[self.name](pages, rng)
