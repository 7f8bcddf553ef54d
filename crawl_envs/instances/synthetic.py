"""Generators of the NCIS paper (Busa-Fekete et al., sections 6.3 to 6.6 and Appendix C).

All draw importance and change rate from U(0, 1). Each extends the previous one from the same
random stream, so instances of one seed share their common parameters. They do not share events: a
tape is drawn from all rates together, and delays from its stream. ``mixed`` is not from the paper:
it has the two classes of pages of the LambdaCrawl paper (Kolobov et al. 2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import MOST_SOURCES, FloatArray, Instance
from crawl_envs.types.arguments import bandwidth_function, quantity, whole
from crawl_envs.types.delay import Delay

RECALL_BETA = (0.25, 0.25)
FALSE_SIGNAL_RANGE = (0.1, 0.6)
MOST_PAGES = 2**28 - 1
"""Largest number of pages: pairs of page and event kind have 32 bits."""

DELAY_SLOTS = 6.0
"""Mean delay of ``delayed``, in slots of 1 / bandwidth; the paper states no unit."""

SIGNALS = {
    "uniform": (False, False),
    "partial": (True, False),
    "noisy": (True, True),
    "delayed": (True, True),
    "sources": (True, True),
    "mixed": (False, False),
}
"""Named instances, and whether their signals are partial and noisy."""

SOURCES_RECALL = (0.5, 1.0)
SOURCES_SPREAD = 20.0
"""Ratio of the false-signal rates of the last and the first source of ``sources``."""


@dataclass(frozen=True)
class Synthetic:
    """A named generator with its arguments; call it with a NumPy generator for an instance.

    Args:
        name: ``uniform`` (no signals), ``partial`` (recall from Beta(1/4, 1/4)), ``noisy`` (and
            false signals at rates from U(0.1, 0.6)), ``delayed`` (and a Poisson delay of
            DELAY_SLOTS slots), ``sources`` (several sources, see :func:`draw_sources`) or ``mixed``
            (every change of half of the pages, rounded down, is signalled, and nothing else).
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per unit time, > 0.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.
        delay: delay of signals; None is that of the named instance.
        num_sources: sources of signals, 2 or more for ``sources``, 1 for the others.

    Raises:
        ValueError: the name is unknown, or an argument is outside its range or not an argument of
            the named instance.
    """

    name: str
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None
    num_sources: int = 1

    def __post_init__(self) -> None:
        if self.name not in SIGNALS:
            raise ValueError(f"instance must be one of {tuple(SIGNALS)}, got {self.name!r}")
        whole("num_pages", self.num_pages, 1, MOST_PAGES)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)
        if self.name == "sources":
            whole("num_sources of instance 'sources'", self.num_sources, 2, MOST_SOURCES)
        else:
            whole(f"num_sources of instance {self.name!r}", self.num_sources, 1, 1)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance."""
        partial, noisy = SIGNALS[self.name]
        importance, change_rate = rng.random(self.num_pages), rng.random(self.num_pages)
        recall: ArrayLike = 0.0
        false_rate: ArrayLike = 0.0
        if self.num_sources > 1:
            recall, false_rate = draw_sources(rng, self.num_sources, self.num_pages)
        elif partial:
            recall = rng.beta(*RECALL_BETA, self.num_pages)
            false_rate = rng.uniform(*FALSE_SIGNAL_RANGE, self.num_pages) if noisy else 0.0
        elif self.name == "mixed":
            recall = (rng.permutation(self.num_pages) < self.num_pages // 2).astype(np.float64)
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


def draw_sources(
    rng: np.random.Generator, num_sources: int, num_pages: int
) -> tuple[FloatArray, FloatArray]:
    """Draw recalls and false-signal rates of several sources, both (S, m).

    Sources range from precise ones of low recall to noisy ones of high recall. Source s of S has a
    recall from U(1/2, 1) times (s + 1) / (1 + ... + S), and a false-signal rate from U(0.1, 0.6)
    times SOURCES_SPREAD ** (s / (S - 1) - 1). For S = 2, recalls are from U(1/6, 1/3) and
    U(1/3, 2/3), false-signal rates from U(0.005, 0.03) and U(0.1, 0.6).
    """
    rank = np.arange(num_sources, dtype=np.float64)[:, None]
    share = (rank + 1.0) / (num_sources * (num_sources + 1) / 2)
    noise = SOURCES_SPREAD ** (rank / (num_sources - 1) - 1.0)
    shape = (num_sources, num_pages)
    return (
        share * rng.uniform(*SOURCES_RECALL, shape),
        noise * rng.uniform(*FALSE_SIGNAL_RANGE, shape),
    )


def delay_of(spec: Mapping[str, Any] | Delay | None, bandwidth: float) -> Delay | None:
    """Read a delay from plain values: ``{"kind": ..., "mean": ..., "unit": "time" or "slots"}``.

    The unit of the mean is a slot of 1 / ``bandwidth``, or a unit of time; a Poisson delay is a
    whole number of units.

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
    return Delay(spec["kind"], quantity("delay mean", spec["mean"], least=0.0) * quantum, quantum)
