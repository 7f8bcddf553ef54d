"""Ids with arguments, for tools that pass nothing but an id.

Observations are vectors; with the suffix ``Dict`` they are dictionaries with an action mask.
"""

from __future__ import annotations

from typing import Any

FLAT: dict[str, Any] = {"observation": "flat"}
DICT: dict[str, Any] = {"observation": "flat_dict"}
SCORES: dict[str, Any] = {"action": "scores"}
MISSPECIFIED = ("late", "bursty", "periodic", "deploys", "shifting", "corrupted")

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "CrawlNCIS-Uniform-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": "uniform"}),
    "CrawlNCIS-Partial-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": "partial"}),
    "CrawlNCIS-Noisy-10-v1": (
        "CrawlNCIS-v0",
        {**FLAT, "instance": "noisy", "num_pages": 10, "bandwidth": 10.0},
    ),
    "CrawlNCIS-Noisy-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": "noisy"}),
    "CrawlNCIS-Noisy-100-Dict-v0": ("CrawlNCIS-v0", {**DICT, "instance": "noisy"}),
    "CrawlNCIS-Noisy-100-Scores-v0": (
        "CrawlNCIS-v0",
        {**FLAT, **SCORES, "instance": "noisy", "batch": 10},
    ),
    "CrawlNCIS-Delayed-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": "delayed"}),
    "CrawlNCIS-Sources-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": "sources"}),
    **{
        f"CrawlNCIS-{law.capitalize()}-100-v0": ("CrawlNCIS-v0", {**FLAT, "instance": law})
        for law in MISSPECIFIED
    },
    "CrawlNCIS-Cold-100-v0": (
        "CrawlNCIS-v0",
        {**FLAT, "instance": "cold", "reveal": "importance"},
    ),
    "CrawlTrace-GardenHandbook-v0": ("CrawlTrace-v0", FLAT),
    "CrawlTrace-GardenHandbook-Dict-v0": ("CrawlTrace-v0", DICT),
    "CrawlHarmonic-Mixed-100-v0": ("CrawlHarmonic-v0", {**FLAT, "action": "page"}),
    "CrawlHarmonic-Mixed-100-Shares-v0": ("CrawlHarmonic-v0", {**FLAT, "action": "shares"}),
    "CrawlOffers-100-Scores-v1": ("CrawlOffers-v1", {**FLAT, **SCORES, "num_pages": 100}),
    "CrawlOffers-Month-100-Scores-v1": (
        "CrawlOffers-v1",
        {**FLAT, **SCORES, "num_pages": 100, "bandwidth": 3.0, "horizon": 28.0},
    ),
    "CrawlLongevity-Quality-100-v0": ("CrawlLongevity-v0", FLAT),
    "CrawlLongevity-Random-100-v0": ("CrawlLongevity-v0", {**FLAT, "instance": "random"}),
}
"""Preset ids, and the family and the arguments of each."""

HIDDEN_COSTS: dict[str, Any] = {"reveal": "importance", "reveal_cost": False}
COST_SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "noisy": ("CrawlNCIS-v0", {"instance": "noisy", "cost_spread": 1.0}),
    "wide": ("CrawlNCIS-v0", {"instance": "noisy", "cost_spread": 2.0}),
    "hidden": ("CrawlNCIS-v0", {"instance": "noisy", "cost_spread": 1.0, **HIDDEN_COSTS}),
    "site": ("CrawlTrace-v0", {"cost_spread": 1.0}),
    "hidden site": ("CrawlTrace-v0", {"cost_spread": 1.0, **HIDDEN_COSTS}),
    "fragments": ("CrawlLongevity-v0", {"cost_spread": 1.0}),
}
"""Settings with costs of crawls by name, which are no ids: the family and the arguments of each."""
