"""Generators of the NCIS paper (Busa-Fekete et al., sections 6.3 to 6.6 and Appendix C).

All draw importance and change rate from U(0, 1); each adds to the one before, from the same
stream, so that on one seed instances share what they have in common. The events do not: a tape
is drawn from all rates together, and delays are drawn from its stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.arguments import bandwidth_function, real, whole
from crawl_envs.types import Delay, Instance

RECALL_BETA = (0.25, 0.25)
FALSE_SIGNAL_RANGE = (0.1, 0.6)
MOST_PAGES = 2**28 - 1
"""Numbers of pages fit into the 32 bits of an event's code, with its kind."""

DELAY_SLOTS = 6.0
"""Mean delay of ``delayed``, in slots of 1 / bandwidth; the paper states no unit."""

SIGNALS = {
    "uniform": (False, False),
    "partial": (True, False),
    "noisy": (True, True),
    "delayed": (True, True),
}
"""Named instances, and whether their signals are partial and noisy."""


@dataclass(frozen=True)
class Synthetic:
    """A named generator with its arguments; call it with a NumPy generator for an instance.

    Args:
        name: ``uniform`` (no signals), ``partial`` (recall from Beta(1/4, 1/4)), ``noisy`` (and
            false signals at rates from U(0.1, 0.6)) or ``delayed`` (and a Poisson delay of
            DELAY_SLOTS slots).
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per unit time, > 0.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.
        delay: how long signals travel; None takes that of the named instance.

    Raises:
        ValueError: an unknown name, fewer than one page, a bad bandwidth.
    """

    name: str
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None

    def __post_init__(self) -> None:
        if self.name not in SIGNALS:
            raise ValueError(f"instance must be one of {tuple(SIGNALS)}, got {self.name!r}")
        whole("num_pages", self.num_pages, 1, MOST_PAGES)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance."""
        partial, noisy = SIGNALS[self.name]
        importance, change_rate = rng.random(self.num_pages), rng.random(self.num_pages)
        recall = rng.beta(*RECALL_BETA, self.num_pages) if partial else 0.0
        false_rate = rng.uniform(*FALSE_SIGNAL_RANGE, self.num_pages) if noisy else 0.0
        return Instance(
            importance,
            change_rate,
            recall,
            false_rate,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            delay=self._delay(),
        )

    def _delay(self) -> Delay | None:
        if self.delay is None and self.name == "delayed":
            return Delay("poisson", DELAY_SLOTS / self.bandwidth, 1.0 / self.bandwidth)
        return self.delay


def delay_of(spec: Mapping[str, Any] | Delay | None, bandwidth: float) -> Delay | None:
    """Read a delay from plain values: ``{"kind": ..., "mean": ..., "unit": "time" or "slots"}``.

    In slots, the mean counts slots of 1 / ``bandwidth``; a Poisson delay is then a whole number
    of slots, and otherwise a whole number of units of time.

    Raises:
        ValueError: unknown keys or values.
    """
    if spec is None or isinstance(spec, Delay):
        return spec
    if not isinstance(spec, Mapping) or not {"kind", "mean"} <= set(spec) <= {
        "kind",
        "mean",
        "unit",
    }:
        raise ValueError(f"delay must have the keys kind, mean and maybe unit, got {spec!r}")
    unit = spec.get("unit", "time")
    if unit not in ("time", "slots"):
        raise ValueError(f"delay unit must be 'time' or 'slots', got {unit!r}")
    quantum = 1.0 / bandwidth if unit == "slots" else 1.0
    return Delay(spec["kind"], real("delay mean", spec["mean"], least=0.0) * quantum, quantum)
