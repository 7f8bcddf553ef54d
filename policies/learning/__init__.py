"""Policies that learn the change model of the pages while they crawl, or do without one."""

from policies.learning.explore import ExploreThenCommit
from policies.learning.greedy import LearningGreedyNCIS
from policies.learning.lambda_learn import (
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
)
from policies.learning.sync_bandits import AsyncMirrorSync, AsyncPSGDSync, MirrorSync

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
