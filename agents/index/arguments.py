"""The arguments of the training of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

import numpy as np

from agents.runs import RunArguments
from crawl_envs import instances
from crawl_envs.sim.streams import PageSets
from crawl_envs.types import Instance
from crawl_envs.types.arguments import real, whole

BANDWIDTH_STREAM = 1
"""Random stream of an episode's bandwidth."""
MAX_PAGES = 100
"""Maximal number of pages of an explored instance, unless it is pinned."""


@dataclass(frozen=True, kw_only=True)
class IndexArguments(RunArguments):
    """Arguments of the training of an index, as plain JSON values.

    Raises:
        ValueError: a value outside its range, or an instance that cannot be drawn.
    """

    instance: str = "noisy"
    """One of :func:`crawl_envs.instances.names`; drawn again for every episode."""
    pinned: Mapping[str, Any] | None = None
    """Arguments of :class:`crawl_envs.Instance`, to train on that one instance instead; it sets
    the number of pages and the bandwidth."""
    pages: PageSets = "any"
    """Stream of the seeds of all instances: ``any``, ``train`` or ``test``."""
    num_pages: int = 100
    """Pages of an instance, >= 1. Explored instances have at most MAX_PAGES, at the same bandwidth
    per page."""
    bandwidth: float = 100.0
    """Crawls per unit of time, > 0."""
    bandwidth_spread: float = 4.0
    """Factor f >= 1: the bandwidth of each explored episode is log-uniform in [``bandwidth`` / f,
    ``bandwidth`` · f]; validations use ``bandwidth``."""
    horizon: float = 10.0
    """Length of an episode in units of time; all pages are fresh at its start."""
    hidden: int = 32
    """Units of each of the two hidden layers, >= 1."""
    validation_episodes: int = 16
    """Episodes of a validation, always the same and never trained on, >= 1."""
    seed: int = 0
    """Seed of all random numbers of the training; in [0, 2**16)."""
    crawls: int = 600_000
    """Crawls to learn from, >= 1."""
    learning_rate: float = 0.003
    """Step size of Adam at the start, > 0; it falls linearly to 0."""

    def __post_init__(self) -> None:
        if self.pinned is not None:
            pinned = self.draw(0)
            object.__setattr__(self, "num_pages", pinned.num_pages)
            object.__setattr__(self, "bandwidth", pinned.bandwidth)
        check_numbers(self)
        real("bandwidth_spread", self.bandwidth_spread, least=1.0)
        if self.horizon * self.bandwidth / self.bandwidth_spread * (1.0 + 1e-12) < 1.0:
            raise ValueError(f"horizon must hold at least one crawl, got {self.horizon!r}")
        self.draw(0)

    def bandwidth_of(self, seed: int) -> float:
        """Draw the bandwidth of the episode with a seed."""
        if self.bandwidth_spread == 1.0:
            return self.bandwidth
        way = np.random.default_rng([seed, BANDWIDTH_STREAM]).uniform(-1.0, 1.0)
        return float(self.bandwidth * self.bandwidth_spread**way)

    def draw(self, seed: int) -> Instance:
        """Draw the instance of the episode with a seed, or return the pinned one.

        Raises:
            ValueError: there is no such instance.
        """
        if self.pinned is not None:
            try:
                return Instance(**self.pinned)
            except TypeError as error:
                raise ValueError(f"pinned must be arguments of Instance: {error}") from None
        return instances.make(
            self.instance,
            num_pages=self.num_pages,
            bandwidth=self.bandwidth_of(seed),
            seed=seed,
            pages=self.pages,
        )

    def of_exploration(self) -> IndexArguments:
        """Return the arguments of the explored episodes."""
        share = min(1.0, MAX_PAGES / self.num_pages) if self.pinned is None else 1.0
        num_pages = round(share * self.num_pages)
        return replace(self, num_pages=num_pages, bandwidth=share * self.bandwidth)


def check_numbers(arguments: RunArguments) -> None:
    """Check the numbers of a training: integers >= 1, floats > 0, a seed in [0, 2**16).

    Raises:
        ValueError: a value outside its range.
    """
    kinds = get_type_hints(type(arguments))
    for entry in fields(arguments):
        name, value = entry.name, getattr(arguments, entry.name)
        if name == "seed":
            whole(name, value, 0, 2**16 - 1)
        elif kinds[name] is int:
            whole(name, value, 1)
        elif kinds[name] is float:
            object.__setattr__(arguments, name, real(name, value, above=0.0))
