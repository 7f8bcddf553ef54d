"""Delays of signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crawl_envs.types.arguments import quantity

DELAY_KINDS = ("none", "constant", "exponential", "poisson")
MAX_POISSON_DELAY = 500.0
"""Largest mean, in quanta, of a Poisson delay: the draw is by inversion from exp(-mean)."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Distribution of the delay of signals, drawn for every signal, true or false.

    ``kind`` is one of ``none``, ``constant``, ``exponential`` or ``poisson``; ``mean`` is in time
    units. A Poisson delay is ``quantum`` times a Poisson count of mean ``mean / quantum``: in slots
    with ``quantum = 1 / bandwidth``, in units of time with ``quantum = 1``.
    """

    kind: Literal["none", "constant", "exponential", "poisson"] = "none"
    mean: float = 0.0
    quantum: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in DELAY_KINDS:
            raise ValueError(f"delay kind must be one of {DELAY_KINDS}, got {self.kind!r}")
        mean = quantity("delay mean", self.mean, least=0.0)
        quanta = mean / quantity("delay quantum", self.quantum, above=0.0)
        if self.kind == "none" and mean != 0.0:
            raise ValueError(f"delay mean must be 0 when its kind is 'none', got {mean!r}")
        if self.kind == "poisson" and quanta > MAX_POISSON_DELAY:
            raise ValueError(
                f"a poisson delay must have a mean of at most {MAX_POISSON_DELAY:g} quanta, "
                f"got {quanta:g}"
            )
