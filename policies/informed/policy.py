"""The crawl value on the filter of a known law of changes and signals."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.compiled.promises import NO_PROMISES, put_due_first
from crawl_envs.types import CrawlLog, IntArray, Problem, Tracker
from policies.base.policy import Pages
from policies.base.promising import PromisingPolicy
from policies.informed.chains import SMALLEST, STEP, ChainFilter
from policies.informed.deploys import DeployFilter
from policies.ncis.delayed import evidence_value
from policies.ncis.greedy import SIGNAL_MODEL
from policies.values import tables
from policies.values.ranking import largest_pages, page_values

ROUNDING = 1e-12
"""Least value without signals, in mean gaps: that of a page that was just crawled."""


class Informed(PromisingPolicy):
    """Crawls the pages of the largest crawl values, at the probabilities of a filter.

    With D_t = mu P(stale at t | what is known then) and d its value now, the value of a page is
    U(d) = E int (d - D_t)^+ dt over the cycle after a crawl now, which ends when D_t reaches d. It
    is computed as the value of Theorem 1 at d and the long-run parameters, times the factor by
    which the law changes the integral of a cycle without signals. So it is exact for Poisson
    changes, and for cycles without signals; for other cycles the gain by signals is approximate.

    Args:
        truth: the true long-run parameters, with a single source of signals; costs are those that
            the problem of the episode has.
        law_filter: the filter at time 0, which is not changed.
    """

    oracle = learns = uses_signals = True

    def __init__(self, truth: Problem, law_filter: ChainFilter | DeployFilter) -> None:
        self.truth, self.law_filter = truth, law_filter

    def start(self, pages: Pages) -> None:
        """Begin with the filter at time 0, and read the log so far."""
        self.filter, self.steps = copy.deepcopy(self.law_filter), 0
        tracker = pages.tracker()
        truth = replace(self.truth, cost=tracker.problem.cost).per_cost()
        self.table = tables.greedy_ncis_table(**{it: getattr(truth, it) for it in SIGNAL_MODEL})
        self.due = self.promises(tracker.problem)
        self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Pass the crawls and signals of a log to the filter in order of time."""
        times, crawls = np.concatenate((log.time, log.signal_time)), log.page.size
        for k in np.argsort(times, kind="stable").tolist():
            self._wait(times[k])
            if k < crawls:
                self.filter.crawl(int(log.page[k]), bool(log.changed[k]))
            else:
                self.filter.signal(int(log.signal_page[k - crawls]), times[k])
        self._wait(tracker.time)

    def _wait(self, time: float) -> None:
        """Advance the filter to a time, if that is later."""
        steps = max(round(time / STEP) - self.steps, 0)
        self.filter.wait(steps)
        self.steps += steps

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages with the largest crawl values, best first."""
        fresh = np.clip(self.filter.fresh(), SMALLEST, 1.0)
        evidence = -np.log(fresh)
        state = np.zeros(fresh.size), evidence, tracker.alive
        value = ready(page_values)(ready(evidence_value), self.table, NO_PROMISES, *state)
        poisson = np.maximum(1.0 - (1.0 + evidence) * fresh, ROUNDING)
        values = value * self.filter.factor(poisson)
        put_due_first(self.due, tracker.elapsed, values)
        return largest_pages(values, tracker.alive, self.num_chosen(tracker))
