"""The optimal policy of the continuous class: crawl each page when it reaches its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.evidence import signal_time
from crawl_envs.types import (
    Compiled,
    CompiledThresholds,
    FloatArray,
    IntArray,
    Problem,
    ThresholdRule,
    Tracker,
)
from policies import solvers
from policies.binding import CrawlPolicy
from policies.greedy import SIGNAL_MODEL

WHOLE = 1e-12
"""Share by which a number of signals may miss a whole one through rounding."""


@dataclass
class ThresholdSeat:
    """One lane's episode, and its rules."""

    episode: int
    compiled: CompiledThresholds


class ThresholdNCIS(CrawlPolicy[ThresholdSeat]):
    """pi(iota): crawl a page at the instant its effective elapsed time reaches its threshold.

    The thresholds are those of Theorem 1 (:func:`policies.solvers.ncis`), so that in the long run
    no policy that crawls as much is fresher, whatever the times of its crawls. It belongs to the
    paper's continuous class: it keeps to the bandwidth on average and crawls when pages are due,
    not slot by slot. ``simulate`` and ``evaluate`` play it so in any environment. When the
    bandwidth steps, the thresholds are those of the new one, and pages beyond theirs are crawled at
    once.

    Where time tells nothing of a page, because signals show every change or the last of the budget
    is spent on its signals alone, it is crawled by every so many signals: the n-th of a cycle, or
    the next one by the toss of a coin, so that its rate is the solver's. Signals that travel count
    when they arrive; the thresholds are those of signals that do not.

    The bandwidth is kept where changes and signals are Poisson, of the rates that it is told. On
    recorded histories signals come in bursts, and pages are born and die while the bandwidth is
    shared out among all that ever exist: there it may spend more or less, and freshness is to be
    read beside the crawl rate.

    Args:
        env: a crawl environment, single or vector, wrapped or not; None to be simulated only.
        floor: least crawl rate of each page, in crawls per unit time.

    Raises:
        ValueError: ``env`` is no crawl environment; a floor that is not finite and >= 0; when an
            episode starts, as for :func:`policies.solvers.ncis`, or where parameters are not
            revealed; at ``predict``, an environment whose actions are not thresholds.
    """

    needs = SIGNAL_MODEL
    acts = ("thresholds",)

    def __init__(self, env: Any = None, *, floor: float = 0.0) -> None:
        super().__init__(env, features=None if env is not None else ())
        if not (np.isfinite(floor) and floor >= 0.0):
            raise ValueError(f"floor must be finite and >= 0, got {floor!r}")
        self.floor = float(floor)

    def compile(
        self, problem: Problem, slots: int, coins: np.random.Generator
    ) -> CompiledThresholds:
        """The rules of ``problem``, one per step of its bandwidth; ``slots`` does not matter.

        Raises ValueError where the problem lacks parameters, and as :func:`policies.solvers.ncis`.
        """
        self._require(problem)
        steps = ((0.0, problem.bandwidth), *problem.bandwidth_steps)
        return CompiledThresholds(
            rules=tuple(self._rule(problem, start, bandwidth) for start, bandwidth in steps),
            coins=int(coins.integers(2**64, dtype=np.uint64)),
        )

    def _rule(self, problem: Problem, start: float, bandwidth: float) -> ThresholdRule:
        found = solvers.ncis(problem, bandwidth, floor=self.floor)
        assert found.thresholds is not None
        assert found.signals is not None
        return threshold_rule(problem, start, found.thresholds, found.signals, found.rates)

    def _sit(self, compiled: Compiled, tracker: Tracker) -> ThresholdSeat:
        assert isinstance(compiled, CompiledThresholds)
        return ThresholdSeat(tracker.episode, compiled)

    def _check_form(self) -> None:
        """It can be bound to any environment, since it is not bound to act there."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The thresholds of every page, float64 of shape (m,) or (N, m), and ``state`` unchanged.

        A page that its signals alone have crawled is let go by the signal that is to do it; where
        that takes a coin, by the nearer of the two, since an action cannot toss one.

        Raises:
            ValueError: it is bound to no environment whose actions are thresholds; as for
                :meth:`policies.binding.CrawlPolicy.predict`.
        """
        if self.core is None or self.action_form not in self.acts:
            raise ValueError(
                f"{self.name} crawls at instants of its own: to predict it needs an environment "
                f"with action='thresholds', got {self.action_form!r}; simulate and evaluate play "
                "it in any"
            )
        return super().predict(observation, state, episode_start, deterministic)

    def _choose(self, seat: ThresholdSeat, tracker: Tracker, lane: int) -> FloatArray:
        rule = [rule for rule in seat.compiled.rules if rule.start <= tracker.time][-1]
        nearer = np.where(rule.later_share > 0.5, rule.later_threshold, rule.threshold)
        received = np.atleast_2d(tracker.signals).sum(0)
        let_go = np.where(received + 1 >= nearer, np.finfo(np.float64).max, np.inf)
        return np.where(rule.timed, nearer, let_go)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError("predict refuses what is not bound")

    def _encode(self, pages: NDArray[Any], num_pages: int) -> NDArray[Any]:
        return pages


def threshold_rule(
    problem: Problem,
    start: float,
    thresholds: FloatArray,
    signals: FloatArray,
    rates: FloatArray,
) -> ThresholdRule:
    """The rule of an allocation of :func:`policies.solvers.ncis`, whose arrays have shape (m,).

    A page of threshold inf and a rate > 0 is crawled by every n-th signal, with n the number of
    signals per crawl; a number between two whole ones is their mean over a coin's two sides. Fewer
    than one, where a floor asks for more crawls than there are signals, is one, or a time tau with
    ``(1 - exp(-gamma tau)) / gamma = 1 / rate`` if that comes first.
    """
    change_rate, recall, false_rate = (
        problem.change_rate,
        problem.recall,
        problem.false_signal_rate,
    )
    assert change_rate is not None
    assert recall is not None
    assert false_rate is not None
    unsignalled = (1.0 - np.minimum(np.atleast_2d(recall).sum(0), 1.0)) * change_rate
    beta = np.atleast_2d(signal_time(change_rate, recall, false_rate, unsignalled))
    gamma = np.atleast_2d(recall * change_rate + false_rate).sum(0)
    by_signals = np.isinf(thresholds) & (rates > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.where(by_signals, gamma / rates, 1.0)
        number = np.where(
            np.abs(number - np.rint(number)) <= WHOLE * number, np.rint(number), number
        )
        hasty = by_signals & (number < 1.0)
        sooner = -np.log1p(-gamma / rates) / gamma
    counted = by_signals & ~hasty
    whole = np.floor(number)
    threshold = np.where(counted, whole, np.where(hasty, sooner, thresholds))
    ignored = np.isinf(signals) & ~by_signals
    weight = np.where(ignored, 0.0, np.where(counted, 1.0, np.where(hasty, np.inf, beta)))
    return ThresholdRule(
        start=start,
        threshold=threshold,
        later_threshold=np.where(counted, whole + 1.0, threshold),
        later_share=np.where(counted, number - whole, 0.0),
        signal_weight=np.ascontiguousarray(weight),
        timed=~counted,
    )
