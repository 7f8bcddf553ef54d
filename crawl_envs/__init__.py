"""Gymnasium environments for web re-crawling under a budget.

Importing the package registers its environments with Gymnasium::

    import crawl_envs, gymnasium
    env = gymnasium.make("CrawlNCIS-v0", instance="noisy")
"""

from __future__ import annotations

import gymnasium

from crawl_envs.types import Instance

__all__ = ["FAMILIES", "Instance", "register_envs"]

FAMILIES = {
    "CrawlHarmonic-v0": "crawl_envs.families.harmonic:CrawlHarmonic",
    "CrawlLongevity-v0": "crawl_envs.families.longevity:CrawlLongevity",
    "CrawlNCIS-v0": "crawl_envs.families.ncis:CrawlNCIS",
    "CrawlOffers-v1": "crawl_envs.families.offers:CrawlOffers",
    "CrawlTrace-v0": "crawl_envs.families.trace:CrawlTrace",
}
"""Registered ids and their classes; vector environments have the suffix Vector."""


def register_envs() -> None:
    """Register the environments with Gymnasium; calling it again changes nothing."""
    for name, entry_point in FAMILIES.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name, entry_point=entry_point, vector_entry_point=entry_point + "Vector"
            )


register_envs()
