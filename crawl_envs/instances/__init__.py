"""Where instances come from: the generators of the papers, and recorded data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawl_envs.arguments import bandwidth_function, whole
from crawl_envs.instances.bing_like import BingLike
from crawl_envs.instances.synthetic import MOST_PAGES, SIGNALS, Synthetic, delay_of
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import Delay, Instance

__all__ = ["generator_of", "make", "names"]

BING_LIKE = "bing-like"


def names() -> tuple[str, ...]:
    """Return the names of the synthetic instances."""
    return (*SIGNALS, BING_LIKE)


def generator_of(
    name: str,
    *,
    num_pages: int = 100,
    bandwidth: float = 100.0,
    bandwidth_steps: Sequence[Sequence[float]] = (),
    delay: Mapping[str, Any] | Delay | None = None,
    num_sources: int | None = None,
) -> Synthetic | BingLike:
    """Return the named generator.

    It is a :class:`crawl_envs.instances.bing_like.BingLike` for ``bing-like``, else a
    :class:`crawl_envs.instances.synthetic.Synthetic`. Without a number of sources, ``sources``
    has two, the others have one.
    """
    if num_sources is None:
        num_sources = 2 if name == "sources" else 1
    rate, steps = bandwidth_function(bandwidth, bandwidth_steps)
    pages = whole("num_pages", num_pages, 1, MOST_PAGES)
    travel = delay_of(delay, rate)
    if name == BING_LIKE:
        whole(f"num_sources of instance {name!r}", num_sources, 1, 1)
        return BingLike(pages, rate, steps, travel)
    if name not in SIGNALS:
        raise ValueError(f"instance must be one of {names()}, got {name!r}")
    return Synthetic(name, pages, rate, steps, travel, num_sources)


def make(name: str, *, seed: int = 0, **arguments: Any) -> Instance:
    """Draw the named instance that an environment draws on ``reset(seed=seed)``.

    Args:
        name: one of :func:`names`.
        seed: an integer >= 0.
        **arguments: num_pages, bandwidth, bandwidth_steps, delay, num_sources; see
            :func:`generator_of`.
    """
    root = roots(whole("seed", seed, 0)).instance
    return generator_of(name, **arguments)(generator(root, 0))
