"""Scrapy with the rules of Nutch and StormCrawler for when a page is fetched again.

A rule gives each page its interval after each fetch; the page that is overdue by most of its
intervals is crawled, before it is due if there is time, so that all rules make as many fetches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scrapy.crawler import Crawler

import policies
from crawl_envs.compiled.compiling import VALUE, compiled
from crawl_envs.types import FloatArray, Problem
from policies import LivePages
from policies.base.index import IndexPolicy
from policies.baselines.crawlers import Revisits
from policies.live.fetches import Answer
from policies.live.scrapy_scheduler import NONE, RecrawlScheduler


@compiled(VALUE.signature)
def overdue(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return how many of its intervals have passed since a page's last fetch."""
    intervals: float = parameters[page, 0] * elapsed
    return intervals


class Overdue(IndexPolicy):
    """Crawls the page that is overdue by most intervals; importance is 1 over the interval."""

    needs = ("importance",)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        return overdue, problem.importance[:, None].copy()


class RuledScheduler(RecrawlScheduler):
    """The scheduler of a crawl in which a crawler's rule gives each page its interval."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        name, day = crawler.settings["REVISIT_RULE"], crawler.settings["RECORD_DAY"]
        one_page = LivePages(Problem(importance=np.ones(1), num_pages=1, bandwidth=1.0))
        self.policy: Any = policies.make(name, one_page, day=day)
        self.revisits: dict[str, Revisits] = {}

    def note(self, page: str, answer: Answer = NONE) -> str:
        """Take note of the end of a fetch, and of the page's interval from now on."""
        sent, outcome = self.sent[page], super().note(page, answer)
        if outcome in ("new", "changed", "unchanged", "not_modified"):
            days = self._interval(page, sent, outcome)
            self.pages.update([page], importance=[1.0 / days])
        return outcome

    def _interval(self, page: str, sent: float, outcome: str) -> float:
        """Return the interval that the rule gives a page, in days of the crawler."""
        length, unit = self.policy.first_interval
        if outcome == "new":
            self.revisits[page] = Revisits(
                due=np.array([sent]), interval=np.array([length]), modified=np.array([sent])
            )
        else:
            row, time, changed = np.zeros(1, np.int64), np.array([sent]), outcome == "changed"
            fetch = row, time, np.array([changed])
            self.policy.kernel(self.policy.rule, *fetch, self.revisits[page])
        return float(self.revisits[page].interval[0] * unit)
