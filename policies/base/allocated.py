"""Policies that allocate crawl rates to pages, then crawl at random or follow a schedule."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import Compiled, CompiledRates, CompiledSequence, RateRule
from policies.base import schedules
from policies.base.bandwidths import epoch_bandwidths, slot_bandwidths
from policies.base.policy import PAGE_FORMS, RATE_FORMS, CrawlPolicy, Pages
from policies.base.schedules import SLACK, ResponseQueue, response_share

Schedule = Literal["low_discrepancy", "random"]


class PageRates(NamedTuple):
    """How often each page is crawled.

    Attributes:
        rates: crawls per unit of time, >= 0, signal responses included, (m,).
        probabilities: share of the page's signals that get a crawl, in [0, 1], (m,); 0 where a
            page is crawled without regard to signals.
    """

    rates: FloatArray
    probabilities: FloatArray


class AllocatedPolicy(CrawlPolicy):
    """Crawls pages at given rates.

    In the forms that name pages it follows a schedule of the rates (*derandomised*), one page per
    slot; with a positive response share, every (1 / share)-th signal of the page gets a crawl
    (:class:`policies.base.schedules.ResponseQueue`). With costs of crawls, it is even in time, and
    decisions in ``scores`` and ``refresh`` crawl as many pages as the bandwidth so far pays. In the
    form ``rates`` it crawls pages at random instants, by Poisson processes, and responds to each
    signal with the given probability.

    Where the bandwidth changes, each bandwidth has its own allocation; a schedule with signal
    responses has a single one, for the mean bandwidth of the episode.

    An action in the form ``rates`` has no rate for a page with complete observation, only a share
    of its signals. A policy that ignores signals then uses the share ``rate / change_rate``, at
    most 1: as many crawls, but better timed. Simulated without an environment, it crawls such a
    page by a Poisson process like any other.

    Each decision of a schedule takes the next entry (in the form ``scores``, the next ``batch``
    different pages), and skips pages that do not exist; the schedule is cyclic. Pages with signal
    responses due come first.

    Args:
        schedule: how rates become crawls of slots: ``low_discrepancy``
            (:func:`policies.base.schedules.low_discrepancy`), or ``random``: independent draws.

    Raises:
        ValueError: an unknown schedule; when an episode starts, parameters that the policy needs
            are not revealed.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)
    shifts: ClassVar[bool] = True
    """Whether the pages' shares of all crawls depend on the bandwidth."""
    schedule: Schedule = "low_discrepancy"

    def __init__(self, *, schedule: Schedule = "low_discrepancy") -> None:
        self.schedule = one_of("schedule", schedule, Schedule)

    @abstractmethod
    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return the crawls per unit time of each page, (m,), of cost at most ``bandwidth``."""

    def allocate(self, problem: Problem, bandwidth: float) -> PageRates:
        """Return each page's crawl rate, without responses to signals; subclasses may add them."""
        rates = self.rates(problem, bandwidth)
        return PageRates(rates, np.zeros_like(rates))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return crawl rates, or the page of every slot; random pages are drawn from ``rng``."""
        self.require(problem)
        if self.form.action != "rates":
            return self._sequence(problem, slots, rng)
        periods = epoch_bandwidths(problem, self.form.epoch)
        return CompiledRates(tuple(self._rule(problem, *period) for period in periods))

    def _rule(self, problem: Problem, start: float, bandwidth: float) -> RateRule:
        allocation = self.allocate(problem, bandwidth)
        limit = bandwidth if problem.cost is None else bandwidth / problem.cost
        rates, chances = np.minimum(allocation.rates, limit), allocation.probabilities
        answering = chances > 0.0
        if self.form.epoch is not None:
            complete = complete_pages(problem)
            shares = response_shares(self.name, problem, rates)
            chances = np.where(complete & ~answering, shares, chances)
            answering |= complete
        return RateRule(start, np.where(answering, 0.0, rates), chances)

    def _sequence(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledSequence:
        periods = slot_bandwidths(problem, slots) if self.shifts else [(problem.bandwidth, slots)]
        span = sum(count / rate for rate, count in periods)
        allocation = self.allocate(problem, slots / span if slots else problem.bandwidth)
        if allocation.probabilities.any():
            rates = np.where(allocation.probabilities > 0.0, 0.0, allocation.rates)
            rates = rates if rates.any() else allocation.rates
            pages = self._crawls(rates, problem.cost, slots, rng)
            return CompiledSequence(pages, allocation.probabilities)
        if len(periods) == 1:
            return CompiledSequence(self._crawls(allocation.rates, problem.cost, slots, rng))
        parts = [
            self._crawls(self.allocate(problem, rate).rates, problem.cost, count, rng)
            for rate, count in periods
        ]
        return CompiledSequence(np.concatenate(parts))

    def _crawls(
        self, rates: FloatArray, cost: FloatArray | None, slots: int, rng: np.random.Generator
    ) -> IntArray:
        rates = rates if rates.any() else np.ones_like(rates)
        if self.schedule == "low_discrepancy":
            return schedules.low_discrepancy(rates, slots, cost)
        mean_cost = 1.0 if cost is None else float((rates * cost).sum() / rates.sum())
        return schedules.random(rates, math.ceil(slots / mean_cost), rng)

    def start(self, pages: Pages) -> None:
        """Compute the crawl rates of an episode, or its schedule of pages."""
        if self.form == ("rates", self.form.batch, None):
            raise ValueError(
                f"epoch must be the time between two decisions of {self.name} in the form "
                "'rates', got None: use in_form('rates', epoch=...)"
            )
        tracker = pages.tracker()
        form = self.compile(tracker.problem, pages.num_slots(self.form.epoch), pages.rng())
        self.reads_log = isinstance(form, CompiledSequence) and form.answered is not None
        if isinstance(form, CompiledRates):
            self.rules = form.rules
            return
        assert isinstance(form, CompiledSequence)
        self.pages, self.position, self.num_pages = form.pages, 0, tracker.elapsed.size
        self.distinct = np.unique(form.pages)
        self.slot, self.spend = 0, 0.0
        self.unpaid: int | None = None
        self.responses = None if form.answered is None else ResponseQueue(form.answered)
        if self.reads_log:
            self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the signals of a log to the queue of responses."""
        if self.reads_log:
            assert self.responses is not None
            self.responses.on_signal(log.signal_page)

    def choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the next pages of the schedule, or the rates of the epoch."""
        if self.form.action != "rates":
            self.check_pages(tracker, self.num_pages)
            if self.form.action != "page" and tracker.problem.cost is not None:
                return self._paid_pages(tracker.problem.cost, tracker.alive)
            return self._next_pages(self.form.num_chosen, tracker.alive)
        reached = tracker.time + 1e-6 * (self.form.epoch or 0.0)
        rule = [rule for rule in self.rules if rule.start <= reached][-1]
        return np.where(complete_pages(tracker.problem), rule.chances, rule.rates)

    def _next_pages(self, count: int, alive: BoolArray) -> IntArray:
        """Return the next ``count`` distinct alive pages; the first alive page if none is left."""
        pages: list[int] = []
        if self.responses is not None:
            first = [self.responses.take() for _ in range(min(count, len(self.responses)))]
            pages = [page for page in first if alive[page]]
        if len(pages) < count:
            taken = np.isin(pages, self.distinct).sum() if pages else 0
            count = min(count, len(pages) + int(alive[self.distinct].sum() - taken))
        while len(pages) < count:
            page = self._next_page()
            if alive[page] and page not in pages:
                pages.append(page)
        return np.array(pages or [int(np.argmax(alive))], dtype=np.int64)

    def _next_page(self) -> int:
        """Return the next page of the schedule."""
        page = int(self.pages[self.position])
        self.position = (self.position + 1) % self.pages.size
        return page

    def _paid_pages(self, cost: FloatArray, alive: BoolArray) -> IntArray:
        """Return the next pages that the bandwidth so far pays.

        In the form ``scores`` a page that it does not pay follows, where the batch ends.
        """
        self.slot += self.form.batch
        pages: list[int] = []
        for _ in range(self.pages.size + len(self.responses or ())):
            page, self.unpaid = self.unpaid, None
            if page is None:
                page = self.responses.take() if self.responses else self._next_page()
            if not alive[page]:
                continue
            if self.spend + cost[page] > self.slot + SLACK:
                stop_cost = np.where(alive, cost, 0.0)
                stop_cost[pages] = 0.0
                if self.spend + stop_cost.max() > self.slot + SLACK:
                    self.unpaid = page
                    stop = [int(stop_cost.argmax())] if self.form.action == "scores" else []
                    return np.array([*pages, *stop], np.int64)
            elif page not in pages:
                pages.append(page)
                self.spend += cost[page]
        return np.array(pages or [int(np.argmax(alive))], np.int64)


def even_rates(problem: Problem, bandwidth: float) -> FloatArray:
    """Return equal crawl rates that spend the bandwidth, (m,)."""
    spend = problem.num_pages if problem.cost is None else problem.cost.sum()
    return np.full(problem.num_pages, bandwidth / spend)


def complete_pages(problem: Problem) -> BoolArray:
    """Return which pages have complete observation, (m,); none where the problem names none."""
    if problem.complete is None:
        return np.zeros(problem.num_pages, np.bool_)
    return problem.complete


def response_shares(name: str, problem: Problem, rates: FloatArray) -> FloatArray:
    """Return shares of signals to respond to, (m,), that give as many crawls as ``rates``.

    The share is 0 for pages without complete observation.

    Raises:
        ValueError: change rates are not revealed; ``name`` is that of the policy.
    """
    complete, shares = complete_pages(problem), np.zeros_like(rates)
    if complete.any():
        if problem.change_rate is None:
            raise ValueError(
                f"{name} needs change_rate where pages have complete observation; make the "
                "environment with reveal='parameters'"
            )
        changes = problem.change_rate[complete]
        shares[complete] = response_share(rates[complete], changes)
    return shares
