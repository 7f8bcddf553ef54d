"""Instances: generators of the papers, misspecified laws, and recorded data.

Public modules: longevity, market, synthetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawl_envs.instances.longevity import LAWS, LongevitySet, longevity_set
from crawl_envs.instances.misspecified.settings import STRESS, WORLDS, Stress
from crawl_envs.instances.synthetic import MOST_PAGES, SIGNALS, Synthetic, delay_of
from crawl_envs.instances.urls.bing import BingLike
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, LambdaCrawlSet
from crawl_envs.instances.urls.pool import SUFFIX, Subsample, UrlPool, url_pool
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import Instance
from crawl_envs.types.arguments import bandwidth_function, whole
from crawl_envs.types.delay import Delay

__all__ = ["STRESS", "UrlPool", "generator_of", "make", "names", "url_pool"]

BING_LIKE = "bing-like"
LAMBDACRAWL = "lambdacrawl"
OF_PAGES = (LAMBDACRAWL, "mixed")
"""Instances whose default bandwidth is proportional to the number of pages."""

BANDWIDTH = 100.0
"""Default crawls per unit time, except in the set-up of the LambdaCrawl paper."""


def names() -> tuple[str, ...]:
    """Return the names of the synthetic instances."""
    return (*SIGNALS, BING_LIKE, LAMBDACRAWL, *WORLDS, *LAWS)


def generator_of(
    name: str,
    *,
    num_pages: int = 100,
    bandwidth: float | None = None,
    bandwidth_steps: Sequence[Sequence[float]] = (),
    delay: Mapping[str, Any] | Delay | None = None,
    num_sources: int | None = None,
    corruption: float | None = None,
    signals: str | None = None,
) -> Synthetic | BingLike | LambdaCrawlSet | Subsample | Stress | LongevitySet:
    """Return the named generator.

    Its class is :class:`crawl_envs.instances.urls.bing.BingLike` for ``bing-like``,
    :class:`crawl_envs.instances.urls.lambdacrawl.LambdaCrawlSet` for ``lambdacrawl``,
    :class:`crawl_envs.instances.urls.pool.Subsample` for the path of a ``.parquet`` file of URLs,
    :class:`crawl_envs.instances.misspecified.settings.Stress` for a key of its WORLDS,
    :class:`crawl_envs.instances.longevity.LongevitySet` for a key of its LAWS, and
    :class:`crawl_envs.instances.synthetic.Synthetic` otherwise. The default bandwidth is 0.2 per
    page for ``lambdacrawl``, ``mixed`` and files, 0.1 per page for LAWS, and 100 otherwise. The
    default number of sources is 2 for ``sources``, and 1 otherwise. Only ``corrupted`` has a
    ``corruption``, by default 0.5, and only LAWS have ``signals``, by default none.

    Raises:
        ValueError: an argument is outside its range, or a file is not a complete set of URLs.
    """
    if num_sources is None:
        num_sources = 2 if name == "sources" else 1
    pages = whole("num_pages", num_pages, 1, MOST_PAGES)
    recorded = str(name).endswith(SUFFIX)
    if name in LAWS:
        whole(f"num_sources of instance {name!r}", num_sources, 1, 1)
        for other, value in (("delay", delay), ("corruption", corruption)):
            if value is not None:
                raise ValueError(f"{other} must be None for instance {name!r}, got {value!r}")
        return longevity_set(name, pages, bandwidth, bandwidth_steps, signals)
    if signals is not None:
        raise ValueError(f"signals must be None for instance {name!r}, got {signals!r}")
    if bandwidth is None:
        bandwidth = CRAWLS_PER_PAGE * pages if recorded or name in OF_PAGES else BANDWIDTH
    rate, steps = bandwidth_function(bandwidth, bandwidth_steps)
    travel = delay_of(delay, rate)
    if corruption is not None and name != "corrupted":
        raise ValueError(f"corruption must be None for instance {name!r}, got {corruption!r}")
    if name in SIGNALS:
        return Synthetic(name, pages, rate, steps, travel, num_sources)
    if not recorded and name not in names():
        raise ValueError(f"instance must be one of {names()} or a {SUFFIX} file, got {name!r}")
    whole(f"num_sources of instance {name!r}", num_sources, 1, 1)
    if name in WORLDS:
        return Stress(name, pages, rate, steps, travel, corruption)
    if recorded:
        return Subsample(url_pool(name), pages, rate, steps, travel)
    return (BingLike if name == BING_LIKE else LambdaCrawlSet)(pages, rate, steps, travel)


def make(name: str, *, seed: int = 0, **arguments: Any) -> Instance:
    """Draw the named instance that an environment draws on ``reset(seed=seed)``.

    Args:
        name: one of :func:`names`, or the path of a Parquet file of URLs.
        seed: an integer >= 0.
        **arguments: num_pages, bandwidth, bandwidth_steps, delay, num_sources, corruption,
            signals; see :func:`generator_of`.
    """
    root = roots(whole("seed", seed, 0)).instance
    return generator_of(name, **arguments)(generator(root, 0))
