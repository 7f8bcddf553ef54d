"""LambdaCrawl and its variants, and policies that learn change rates and crawl by them.

Public module: known_rates.
"""

from policies.lambdacrawl.known_rates import BinaryLambdaCrawl, LambdaCrawl, LambdaCrawlApprox
from policies.lambdacrawl.learned_rates import (
    ExploreThenCommit,
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
)

__all__ = [
    "BinaryLambdaCrawl",
    "ExploreThenCommit",
    "LambdaCrawl",
    "LambdaCrawlApprox",
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
]
