"""Policies that learn the change model of the pages while they crawl, or do without one."""

from policies.lambdacrawl.explore_then_commit import ExploreThenCommit
from policies.lambdacrawl.learned_rates import (
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
)
from policies.lambdacrawl.mirror_sync import AsyncMirrorSync, AsyncPSGDSync, MirrorSync
from policies.ncis.learning import LearningGreedyNCIS

__all__ = [
    "AsyncMirrorSync",
    "AsyncPSGDSync",
    "ExploreThenCommit",
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
    "LearningGreedyNCIS",
    "MirrorSync",
]
