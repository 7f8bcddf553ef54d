"""Sets of URLs drawn from published statistics, or read from a file.

Public modules: bing, lambdacrawl, pool.
"""

from __future__ import annotations

from crawl_envs.instances.laws import DELAY, Law
from crawl_envs.instances.urls.bing import draw_bing_like
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, draw_lambdacrawl

LAWS = {
    "bing-like": Law(draw_bing_like, "The set of the NCIS paper, section 6.7.", arguments=DELAY),
    "lambdacrawl": Law(
        draw_lambdacrawl,
        "The set of the LambdaCrawl paper.",
        bandwidth=CRAWLS_PER_PAGE,
        per_page=True,
        arguments=DELAY,
    ),
}
"""Laws by name."""
