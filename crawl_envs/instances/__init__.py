"""Instances: laws of the papers, misspecified laws, and recorded data.

:data:`LAWS` holds the laws by name; a law of your own is ``LAWS["mine"] = Law(draw_mine)``, before
``gymnasium.make("CrawlNCIS-v0", instance="mine")``.

Public modules: longevity, market, synthetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crawl_envs.instances import longevity, misspecified, synthetic, urls
from crawl_envs.instances.laws import DELAY, Generator, Law
from crawl_envs.instances.misspecified import STRESS
from crawl_envs.instances.urls.pool import SUFFIX, pool_law, url_pool
from crawl_envs.sim.streams import PageSets, generator, roots
from crawl_envs.types import Instance
from crawl_envs.types.arguments import one_of, whole

__all__ = [
    "DELAY",
    "LAWS",
    "STRESS",
    "Generator",
    "Law",
    "generator_of",
    "make",
    "names",
    "url_pool",
]

LAWS: dict[str, Law] = {**synthetic.LAWS, **urls.LAWS, **misspecified.LAWS, **longevity.LAWS}
"""Laws of instances by name."""


def names() -> tuple[str, ...]:
    """Return the names of the laws of instances."""
    return tuple(LAWS)


def generator_of(name: str, *, num_pages: int = 100, **arguments: Any) -> Generator:
    """Return a generator that draws instances of a law; arguments of None have the law's defaults.

    Args:
        name: a key of LAWS, or the path of a ``.parquet`` file of URLs, for subsamples of it.
        num_pages: number of pages, m >= 1.
        **arguments: ``bandwidth``, ``bandwidth_steps``, ``cost_spread`` and the further arguments
            of the law, see :meth:`Law.generator`: ``delay`` of most laws, as read by
            :func:`crawl_envs.instances.laws.delay_of`, ``num_sources`` of ``sources``,
            ``corruption`` of ``corrupted``, ``signals`` of ``quality`` and ``random``.

    Raises:
        ValueError: an unknown name, an argument outside its range or not of the law, or a file that
            is not a complete set of URLs.
    """
    if isinstance(name, str | Path) and str(name).endswith(SUFFIX):
        law = pool_law(str(name))
    else:
        law = LAWS[one_of("instance", name, names(), f"a {SUFFIX} file")]
    return law.generator(name, num_pages, **arguments)


def make(name: str, *, seed: int = 0, pages: PageSets = "any", **arguments: Any) -> Instance:
    """Draw the instance of a law that an environment draws on ``reset(seed=seed)``.

    Args:
        name: a key of LAWS, or the path of a ``.parquet`` file of URLs.
        seed: an integer >= 0.
        pages: stream of the seed, as of the environment: ``any``, ``train`` or ``test``.
        **arguments: see :func:`generator_of`.
    """
    root = roots(whole("seed", seed, 0), one_of("pages", pages, PageSets)).instance
    return generator_of(name, **arguments)(generator(root, 0))
