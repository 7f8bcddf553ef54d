"""Types of the suite: problems, trackers, logs and ledgers, argument checks, compiled policies.

Public modules: arguments, compiled_policies, contents, copies, evidence, ledgers,
offer_features.
"""

from __future__ import annotations

from crawl_envs.compiled import BoolArray, FloatArray, IntArray
from crawl_envs.types.ledgers import FragmentLedger, Ledger, OfferLedger
from crawl_envs.types.problem import (
    DELAY_KINDS,
    MAX_SOURCES,
    REVEALS,
    CrawlLog,
    Delay,
    Instance,
    Policy,
    Problem,
    Reveal,
    Tracker,
)

__all__ = [
    "DELAY_KINDS",
    "MAX_SOURCES",
    "REVEALS",
    "BoolArray",
    "CrawlLog",
    "Delay",
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
