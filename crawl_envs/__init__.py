"""Gymnasium environments for web re-crawling under a budget.

Importing the package registers its environments with Gymnasium, where that is installed::

    import crawl_envs, gymnasium
    env = gymnasium.make("CrawlNCIS-v0", instance="noisy")
"""

from __future__ import annotations

from importlib.util import find_spec

from crawl_envs.presets import COST_SETTINGS, PRESETS
from crawl_envs.types import Instance

__all__ = ["COST_SETTINGS", "FAMILIES", "PRESETS", "Instance", "register_envs"]

FAMILIES = {
    "CrawlHarmonic-v0": "crawl_envs.families.harmonic:CrawlHarmonic",
    "CrawlLongevity-v0": "crawl_envs.families.longevity:CrawlLongevity",
    "CrawlNCIS-v0": "crawl_envs.families.ncis:CrawlNCIS",
    "CrawlOffers-v1": "crawl_envs.families.offers:CrawlOffers",
    "CrawlSites-v0": "crawl_envs.families.sites:CrawlSites",
    "CrawlTrace-v0": "crawl_envs.families.trace:CrawlTrace",
}
"""Ids of families and their classes; vector environments have the suffix Vector."""


def register_envs() -> None:
    """Register the environments with Gymnasium; calling it again changes nothing."""
    import gymnasium

    for name, (family, arguments) in ({name: (name, {}) for name in FAMILIES} | PRESETS).items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=FAMILIES[family],
                vector_entry_point=FAMILIES[family] + "Vector",
                kwargs=dict(arguments),
            )


if find_spec("gymnasium") is not None:
    register_envs()
