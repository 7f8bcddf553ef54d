"""Laws of instances by name, and the generators that draw from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.types import Delay, FloatArray, Instance
from crawl_envs.types.arguments import bandwidth_function, quantity, real, whole

MAX_PAGES = 2**28 - 1
"""Largest number of pages, since a pair of page and event kind must fit into 32 bits."""

MAX_COST_SPREAD = 3.0
MIN_COST_DEVIATION = -4.0
"""Least log cost, in standard deviations from the median; one page in 30,000 would lie below."""


@dataclass(frozen=True)
class Generator:
    """A generator of instances; call it with a NumPy generator for an instance.

    Attributes:
        draw: see :class:`Law`; its further arguments are bound.
        num_pages: number of pages, m.
        bandwidth: crawls per unit time.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.
        num_sources: number of sources of signals.
        cost_spread: standard deviation of log costs of crawls, with mean cost 1, at most
            MAX_COST_SPREAD; 0 for no costs.

    Raises:
        ValueError: ``cost_spread`` is outside its range.
    """

    draw: Callable[..., Instance]
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    num_sources: int = 1
    cost_spread: float = 0.0

    def __post_init__(self) -> None:
        spread = real("cost_spread", self.cost_spread, least=0.0)
        if spread > MAX_COST_SPREAD:
            raise ValueError(f"cost_spread must lie in [0, {MAX_COST_SPREAD:g}], got {spread:g}")

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance with the NumPy generator ``rng``; costs have their own stream of it."""
        instance = self.draw(
            rng, self.num_pages, bandwidth=self.bandwidth, bandwidth_steps=self.bandwidth_steps
        )
        if self.cost_spread == 0.0:
            return instance
        deviations = rng.spawn(1)[0].standard_normal(self.num_pages)
        return instance.with_cost(self._costs(np.maximum(deviations, MIN_COST_DEVIATION)))

    @property
    def least_cost(self) -> float | None:
        """Least possible cost of a crawl; None without costs."""
        if self.cost_spread == 0.0:
            return None
        return float(self._costs(np.array([MIN_COST_DEVIATION]))[0])

    def _costs(self, deviations: FloatArray) -> FloatArray:
        """Return log-normal costs by the standard deviations of their logarithms."""
        median = math.exp(-0.5 * self.cost_spread**2)
        costs: FloatArray = median * np.exp(self.cost_spread * deviations)
        return costs


@dataclass(frozen=True)
class Law:
    """A distribution of instances.

    Attributes:
        draw: ``draw(rng, num_pages, *, bandwidth, bandwidth_steps, **arguments)`` returns an
            :class:`crawl_envs.Instance` of ``num_pages`` pages, drawn with the NumPy generator
            ``rng``. Arguments of None are not passed.
        about: a line of documentation.
        bandwidth: default crawls per unit time; per page if ``per_page``.
        per_page: whether the default bandwidth is proportional to the number of pages.
        arguments: names of further arguments, with functions that convert a value for ``draw``,
            given the bandwidth, or raise ValueError.
        num_sources: number of sources of signals, unless it is an argument.
        most_pages: largest number of pages.
    """

    draw: Callable[..., Instance]
    about: str = ""
    bandwidth: float = 100.0
    per_page: bool = False
    arguments: Mapping[str, Callable[[Any, float], Any]] = field(default_factory=dict)
    num_sources: int = 1
    most_pages: int = MAX_PAGES

    def generator(
        self,
        name: str,
        num_pages: int,
        bandwidth: float | None = None,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        cost_spread: float = 0.0,
        **arguments: Any,
    ) -> Generator:
        """Return a generator of this law's instances; arguments of None have the law's defaults.

        ``name`` is the law's name, for errors. :class:`Generator` describes the other arguments.

        Raises:
            ValueError: an argument is outside its range, or the law does not have it.
        """
        pages = whole("num_pages", num_pages, 1, self.most_pages)
        default = self.bandwidth * pages if self.per_page else self.bandwidth
        rate, steps = bandwidth_function(
            default if bandwidth is None else bandwidth, bandwidth_steps
        )
        keywords = {}
        for key, value in arguments.items():
            if value is None:
                continue
            if key not in self.arguments:
                raise ValueError(f"{key} must be None for instance {name!r}, got {value!r}")
            keywords[key] = self.arguments[key](value, rate)
        sources = keywords.get("num_sources", self.num_sources)
        return Generator(partial(self.draw, **keywords), pages, rate, steps, sources, cost_spread)


def delay_of(spec: Mapping[str, Any] | Delay, bandwidth: float) -> Delay:
    """Read a delay from plain values: ``{"kind": ..., "mean": ..., "unit": "time" or "slots"}``.

    The unit of the mean is a slot of 1 / ``bandwidth``, or a unit of time; a Poisson delay is a
    whole number of units.

    Raises:
        ValueError: unknown keys or values.
    """
    if isinstance(spec, Delay):
        return spec
    keys = {"kind", "mean"}
    if not isinstance(spec, Mapping) or not keys <= set(spec) <= {*keys, "unit"}:
        raise ValueError(f"delay must have the keys kind, mean and maybe unit, got {spec!r}")
    unit = spec.get("unit", "time")
    if unit not in ("time", "slots"):
        raise ValueError(f"delay unit must be 'time' or 'slots', got {unit!r}")
    quantum = 1.0 / bandwidth if unit == "slots" else 1.0
    return Delay(spec["kind"], quantity("delay mean", spec["mean"], least=0.0) * quantum, quantum)


DELAY = {"delay": delay_of}
"""The argument of laws whose signals can have any delay."""
