"""Types of the suite: problems, trackers, logs and ledgers, argument checks, compiled forms.

Public modules: arguments, compiled_policies, compiling, contents, copies, delay, evidence,
heap, ledgers, offer_features, regions, sketches.
"""

from __future__ import annotations

from crawl_envs.types.ledgers import FragmentLedger, Ledger, OfferLedger
from crawl_envs.types.problem import (
    MOST_SOURCES,
    REVEALS,
    BoolArray,
    CrawlLog,
    FloatArray,
    Instance,
    IntArray,
    Policy,
    Problem,
    Reveal,
    Tracker,
)

__all__ = [
    "MOST_SOURCES",
    "REVEALS",
    "BoolArray",
    "CrawlLog",
    "FloatArray",
    "FragmentLedger",
    "Instance",
    "IntArray",
    "Ledger",
    "OfferLedger",
    "Policy",
    "Problem",
    "Reveal",
    "Tracker",
]
