"""The optimal policy of the continuous class: crawl each page when it reaches its threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import amounts
from crawl_envs.types.compiled_policies import CompiledThresholds, ThresholdRule
from crawl_envs.types.evidence import signal_evidence, signal_time
from policies import solvers
from policies.base.policy import CrawlPolicy
from policies.base.registry import registered
from policies.ncis.greedy import SIGNAL_MODEL
from policies.solvers.allocation import Allocation
from policies.solvers.noisy_signals.sources import evidence_margin

ROUNDING = 1e-12
"""Relative rounding error of a number of signals that counts as an integer."""


@registered(paper="NCIS")
class ThresholdNCIS(CrawlPolicy):
    """pi(iota): crawl a page at the instant its effective elapsed time reaches its threshold.

    The thresholds are those of Theorem 1 (:func:`policies.solvers.ncis`), so that no policy with as
    many crawls, or crawls of the same cost, has a higher freshness in the long run, whatever their
    times. It belongs to the paper's continuous class: it spends the bandwidth on average and crawls
    pages when they are due, not in slots. ``simulate`` and ``evaluate`` do so in any environment.
    When the bandwidth changes, the thresholds change too, and pages beyond theirs are crawled at
    once.

    A page is crawled by its signals alone where every change is signalled, or where the end of the
    budget is spent on its signals only: as soon as the evidence of its signals reaches a level, or
    at random a higher one, so that its rate is the solver's. Delayed signals count when they
    arrive; the thresholds are those without delay.

    The policy spends the bandwidth if changes and signals are Poisson with the revealed rates. On
    recorded histories signals come in bursts, and pages are born and die while the bandwidth is
    allocated to all pages that ever exist. There the policy may spend more or less, so compare
    freshness at the measured crawl rate.

    Args:
        floor: least crawl rate of each page, in crawls per unit time, >= 0, (m,), or a number.

    Raises:
        ValueError: when an episode starts, as for :func:`policies.solvers.ncis`, or where
            parameters are not revealed; at ``predict``, always.
    """

    needs = SIGNAL_MODEL
    acts = ()

    def __init__(self, *, floor: ArrayLike = 0.0) -> None:
        self.floor = amounts("floor", floor)

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledThresholds:
        """Return the rules of ``problem``, one per step of its bandwidth; ``slots`` is not used.

        Raises ValueError as :func:`policies.solvers.ncis`.
        """
        self.require(problem)
        steps = ((0.0, problem.bandwidth), *problem.bandwidth_steps)
        return CompiledThresholds(
            rules=tuple(
                threshold_rule(problem, start, solvers.ncis(problem, bandwidth, floor=self.floor))
                for start, bandwidth in steps
            ),
            seed=int(rng.integers(2**64, dtype=np.uint64)),
        )

    def choose(self, tracker: Tracker) -> IntArray:
        """Raise ValueError: the policy is simulated, and does not act in steps."""
        raise ValueError(
            f"{self.name} chooses the times of its crawls and has no actions to predict; simulate "
            "and evaluate play it"
        )


def _signals(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a problem's change rates, (m,), recalls and false-signal rates, (S, m) each."""
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    recall, false_rate = np.atleast_2d(problem.recall), np.atleast_2d(problem.false_signal_rate)
    return problem.change_rate, recall, false_rate


def threshold_rule(problem: Problem, start: float, allocation: Allocation) -> ThresholdRule:
    """Return the rule that crawls the pages of ``problem`` at an allocation's thresholds.

    The allocation is a result of :func:`policies.solvers.ncis`. A page of threshold inf and a rate
    > 0 is crawled by its signals alone. Its state is then the total evidence of its signals. At the
    level of the allocation a random draw decides between a crawl and waiting for more. Where the
    level is infinite, the state is the number of certain signals; their number per crawl is drawn
    from two integers with the right mean. A floor may require a rate above the rate of signals.
    Then the page is crawled at every signal and at the time tau with ``(1 - exp(-gamma tau)) /
    gamma = 1 / rate``.
    """
    assert allocation.thresholds is not None
    assert allocation.evidence is not None
    assert allocation.signals is not None
    assert allocation.probabilities is not None
    change_rate, recall, false_rate = _signals(problem)
    evidence = signal_evidence(change_rate, recall, false_rate)
    alpha = (1.0 - np.minimum(recall.sum(0), 1.0)) * change_rate
    beta = signal_time(change_rate, recall, false_rate, alpha)
    gamma = np.where(evidence > 0.0, recall * change_rate + false_rate, 0.0)
    signal_rate, rates = gamma.sum(0), allocation.rates
    by_signals = np.isinf(allocation.thresholds) & (rates > 0.0)
    hasty = by_signals & (rates > signal_rate * (1.0 + ROUNDING))
    certain = by_signals & ~hasty & np.isinf(allocation.evidence)
    level = np.where(by_signals & ~hasty & ~certain, allocation.evidence, 0.0)
    margin = evidence_margin(level, evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.where(np.isinf(evidence), gamma, 0.0).sum(0) / rates
        number = np.where(
            np.abs(number - np.rint(number)) <= ROUNDING * number, np.rint(number), number
        )
        sooner = -np.log1p(-signal_rate / rates) / signal_rate
    count = np.floor(np.where(certain, number, 0.0))
    kinds = [hasty, certain, level > 0.0]
    ignored = np.isinf(allocation.signals) & ~by_signals
    later = [sooner, count + 1.0, level + margin]
    share = [0.0 * level, np.where(certain, number, 0.0) - count, 1.0 - allocation.probabilities]
    weights = [np.full(beta.shape, np.inf), np.where(np.isinf(evidence), 1.0, 0.0), evidence]
    return ThresholdRule(
        start=start,
        threshold=np.select(kinds, [sooner, count, level - margin], allocation.thresholds),
        later_threshold=np.select(kinds, later, allocation.thresholds),
        later_share=np.select(kinds, share, 0.0),
        signal_weight=np.select(kinds, weights, np.where(ignored, 0.0, beta)),
        timed=~(by_signals & ~hasty),
    )
