"""What the pages of a drawn set say, without an environment around them."""

from __future__ import annotations

from crawl_envs.contents import Contents
from crawl_envs.instances.longevity import RegionPages, longevity_set
from crawl_envs.sim.streams import generator, roots


def drawn_set(name: str, num_pages: int, days: float, seed: int) -> tuple[RegionPages, Contents]:
    """Return pages of the set of a name, and what they say up to some day, at least.

    They are those of an environment that is reset with that seed.

    Args:
        name: ``quality`` or ``random``.
        num_pages: m.
        days: > 0.
        seed: >= 0.
    """
    own = roots(seed)
    instance = longevity_set(name, num_pages)(generator(own.instance, 0))
    return instance, instance.draw(generator(own.tape, 0), days)[1]
