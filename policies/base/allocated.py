"""Policies that allocate crawl rates to pages, then crawl at random or follow a schedule."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import Compiled, CompiledRates, CompiledSequence, RateRule
from policies import solvers
from policies.base import schedules
from policies.base.bandwidths import epoch_bandwidths, slot_bandwidths
from policies.base.binders import PAGE_FORMS, RATE_FORMS, ActionForm
from policies.base.binding import CrawlPolicy
from policies.base.registry import registered
from policies.base.schedules import ResponseQueue, response_share

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
    (:class:`policies.base.schedules.ResponseQueue`). In the form ``rates`` it crawls pages at
    random instants, by Poisson processes, and responds to each signal with the given probability.

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
        env: a crawl environment or a description; None to be simulated only.
        action_form: without an environment, the form of the actions.
        schedule: how rates become crawls of slots: ``low_discrepancy``
            (:func:`policies.base.schedules.low_discrepancy`), or ``random``: independent draws.

    Raises:
        ValueError: as for :class:`policies.base.binding.ActingPolicy`; when an episode starts,
            parameters that the policy needs are not revealed; at ``predict``, there is no ``env``.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)
    shifts: ClassVar[bool] = True
    """Whether the pages' shares of all crawls depend on the bandwidth."""

    def __init__(
        self,
        env: Any = None,
        *,
        action_form: ActionForm | None = None,
        schedule: Schedule = "low_discrepancy",
    ) -> None:
        if env is None and action_form is None:
            raise ValueError(
                f"{self.name} plans its crawls, so env must be an environment or a description, or "
                "action_form the form in which it is simulated without one"
            )
        super().__init__(env, features=() if env is None else None, action_form=action_form)
        self.schedule = one_of("schedule", schedule, Schedule)

    @abstractmethod
    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return the crawls per unit time of each page, (m,), in sum at most ``bandwidth``."""

    def allocate(self, problem: Problem, bandwidth: float) -> PageRates:
        """Return the rates, without signal responses; subclasses may add them."""
        rates = self.rates(problem, bandwidth)
        return PageRates(rates, np.zeros_like(rates))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the rates, or the page of every slot; random ones are drawn from ``rng``."""
        self._require(problem)
        if self.action_form != "rates":
            return self._sequence(problem, slots, rng)
        epoch = None if self.core is None else self.core.epoch
        periods = epoch_bandwidths(problem, epoch)
        return CompiledRates(tuple(self._rule(problem, *period) for period in periods))

    def _rule(self, problem: Problem, start: float, bandwidth: float) -> RateRule:
        allocation = self.allocate(problem, bandwidth)
        rates, chances = np.minimum(allocation.rates, bandwidth), allocation.probabilities
        answering = chances > 0.0
        if self.core is not None:
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
            own = np.where(allocation.probabilities > 0.0, 0.0, allocation.rates)
            pages = self._crawls(own if own.any() else allocation.rates, slots, rng)
            return CompiledSequence(pages, allocation.probabilities)
        if len(periods) == 1:
            return CompiledSequence(self._crawls(allocation.rates, slots, rng))
        parts = [
            self._crawls(self.allocate(problem, rate).rates, count, rng) for rate, count in periods
        ]
        return CompiledSequence(np.concatenate(parts))

    def _crawls(self, rates: FloatArray, slots: int, rng: np.random.Generator) -> IntArray:
        rates = rates if rates.any() else np.ones_like(rates)
        if self.schedule == "random":
            return schedules.random(rates, slots, rng)
        return schedules.low_discrepancy(rates, slots)

    def _start(self, tracker: Tracker) -> None:
        assert self.core is not None
        slots, rng = self.core.num_slots(self.lane), self.core.rng(self.lane)
        form = self.compile(tracker.problem, slots, rng)
        self.reads_log = isinstance(form, CompiledSequence) and form.answered is not None
        if isinstance(form, CompiledRates):
            self.rules = form.rules
            return
        assert isinstance(form, CompiledSequence)
        self.pages, self.position = form.pages, 0
        self.distinct = np.unique(form.pages)
        self.responses = None if form.answered is None else ResponseQueue(form.answered)

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        assert self.responses is not None
        self.responses.on_signal(log.signal_page)

    def _choose(self, tracker: Tracker) -> NDArray[Any]:
        if self.action_form != "rates":
            return self._next_pages(self._count, tracker.alive)
        assert self.core is not None
        reached = tracker.time + 1e-6 * self.core.epoch
        rule = [rule for rule in self.rules if rule.start <= reached][-1]
        return np.where(complete_pages(tracker.problem), rule.chances, rule.rates)

    def _next_pages(self, count: int, alive: BoolArray) -> IntArray:
        """Return the next ``count`` distinct alive pages; the first alive page if none is left."""
        chosen: list[int] = []
        if self.responses is not None:
            first = [self.responses.take() for _ in range(min(count, len(self.responses)))]
            chosen = [page for page in first if alive[page]]
        if len(chosen) < count:
            left = alive[self.distinct].sum() - np.isin(chosen, self.distinct).sum()
            count = min(count, len(chosen) + int(left))
        while len(chosen) < count:
            page = int(self.pages[self.position])
            self.position = (self.position + 1) % self.pages.size
            if alive[page] and page not in chosen:
                chosen.append(page)
        return np.array(chosen or [int(np.argmax(alive))], dtype=np.int64)


@registered(paper="NCIS")
class LowDiscrepancy(AllocatedPolicy):
    """The optimal rates for evenly spaced crawls, without signals (NCIS, eq. 5).

    With its default schedule, the LDS of Busa-Fekete et al., section 6.4, after Algorithm 3 of
    Azar et al. When the bandwidth changes, it solves for the new one and starts a new schedule.
    Crawls at random instants are not evenly spaced, so it does not act in the form ``rates``.
    """

    acts = PAGE_FORMS
    needs = ("importance", "change_rate")

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return optimal rates, (m,); equal ones where no page needs any crawl."""
        assert problem.change_rate is not None
        if not problem.importance.any():
            return even_rates(problem, bandwidth)
        rates = solvers.binary_periodic(problem.importance, problem.change_rate, bandwidth).rates
        return rates if rates.any() else even_rates(problem, bandwidth)


@registered(kind="baseline")
class UniformCrawl(AllocatedPolicy):
    """Crawls every page at the same rate."""

    shifts = False

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return equal rates, (m,)."""
        return even_rates(problem, bandwidth)


@registered()
class ChangeRateCrawl(AllocatedPolicy):
    """Crawls every page in proportion to its change rate; at equal rates if none changes."""

    needs = ("change_rate",)
    shifts = False

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return rates in proportion to the change rates, (m,)."""
        assert problem.change_rate is not None
        largest = problem.change_rate.max()
        if largest <= 0.0:
            return even_rates(problem, bandwidth)
        shares: FloatArray = problem.change_rate / largest
        shares *= bandwidth / shares.sum()
        return shares


def even_rates(problem: Problem, bandwidth: float) -> FloatArray:
    """Return the bandwidth in equal parts, (m,)."""
    return np.full(problem.num_pages, bandwidth / problem.num_pages)


def complete_pages(problem: Problem) -> BoolArray:
    """Return whether each page has complete observation, (m,)."""
    if problem.complete is None:
        return np.zeros(problem.num_pages, np.bool_)
    return problem.complete


def response_shares(name: str, problem: Problem, rates: FloatArray) -> FloatArray:
    """Return the response shares of complete pages with as many crawls as ``rates``, (m,).

    It is 0 for the other pages.

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
