"""The learning schedule: waits that grow with every copy of a page.

Olston and Pandey (2008), section 4.2: at first the refresh period of a page is bounded by l n, with
n its refreshes so far. Here n counts the copies of the page, so that it starts at 1. In section 5.3
policies without such a rule warm up on that schedule.

Pages whose copies were all made at one time would always be refreshed together. So the first wait
of each may be shortened, as if they had been first seen one after the other before the start.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import quantity
from policies.estimators.divergence.profiles import at_first_copy

FIRST_SHARE = 0.5
"""With a budget, l as a share of the mean interval between refreshes of a page."""


def check_warm_up(
    learning: float | None, warm_up: float | None
) -> tuple[float | None, float | None]:
    """Return the learning parameter and the warm-up; raise ValueError unless they are > 0."""
    length = None if warm_up is None else quantity("warm_up", warm_up, above=0.0)
    return None if learning is None else quantity("learning", learning, above=0.0), length


def learning_period(
    learning: float | None, crawls: IntArray, problem: Problem, action_form: str
) -> FloatArray:
    """Return l n of each page, (m,); an l of None is 1, or set from the budget if there is one."""
    if learning is None:
        mean_interval = problem.num_pages / problem.bandwidth
        learning = 1.0 if action_form == "refresh" else FIRST_SHARE * mean_interval
    return learning * crawls.astype(np.float64)


def first_turns(tracker: Tracker) -> FloatArray:
    """Return the share of its wait after which the first refresh of each page is due, (m,).

    Page k of m, from 0, has (k + 1) / m, as in
    :class:`policies.longevity.offline.UniformRefresh`: equal waits end evenly spread over one wait.
    It is 1 for pages with a later copy.
    """
    num_pages = tracker.elapsed.size
    turns = np.arange(1, num_pages + 1) / num_pages
    return np.where(at_first_copy(tracker), turns, 1.0)
