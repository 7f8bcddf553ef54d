"""The LambdaCrawl policies, and policies that learn change rates or do without them.

Public module: known_rates.
"""

from policies.lambdacrawl.known_rates import BinaryLambdaCrawl, LambdaCrawl, LambdaCrawlApprox
from policies.lambdacrawl.learned_rates import (
    ExploreThenCommit,
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
)
from policies.lambdacrawl.mirror_sync import AsyncMirrorSync, AsyncPSGDSync, MirrorSync

__all__ = [
    "AsyncMirrorSync",
    "AsyncPSGDSync",
    "BinaryLambdaCrawl",
    "ExploreThenCommit",
    "LambdaCrawl",
    "LambdaCrawlApprox",
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
    "MirrorSync",
]
