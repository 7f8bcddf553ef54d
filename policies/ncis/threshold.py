"""The optimal policy of the continuous class: crawl each page when it reaches its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.compiled_policies import Compiled, CompiledThresholds, ThresholdRule
from crawl_envs.types.evidence import signal_evidence, signal_time
from policies import solvers
from policies.base.binding import CrawlPolicy
from policies.ncis.greedy import SIGNAL_MODEL
from policies.solvers.allocation import Allocation
from policies.solvers.ncis.pages import evidence_margin

WHOLE = 1e-12
"""Share by which a number of signals may miss a whole one through rounding."""


@dataclass
class ThresholdState:
    """One lane's episode, and its rules."""

    episode: int
    compiled: CompiledThresholds


class ThresholdNCIS(CrawlPolicy[ThresholdState]):
    """pi(iota): crawl a page at the instant its effective elapsed time reaches its threshold.

    The thresholds are those of Theorem 1 (:func:`policies.solvers.ncis`), so that in the long run
    no policy that crawls as much is fresher, whatever the times of its crawls. It belongs to the
    paper's continuous class: it keeps to the bandwidth on average and crawls when pages are due,
    not slot by slot. ``simulate`` and ``evaluate`` play it so in any environment. When the
    bandwidth steps, the thresholds are those of the new one, and pages beyond theirs are crawled at
    once.

    Where time tells nothing of a page, because signals show every change or the last of the budget
    is spent on its signals alone, it is crawled as soon as they tell enough: at some level of
    evidence, or above it by the toss of a coin, so that its rate is the solver's. Signals that
    travel count when they arrive; the thresholds are those of signals that do not.

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
            revealed; at ``predict``, always.
    """

    needs = SIGNAL_MODEL
    acts = ()

    def __init__(self, env: Any = None, *, floor: float = 0.0) -> None:
        super().__init__(env, features=None if env is not None else ())
        if not (np.isfinite(floor) and floor >= 0.0):
            raise ValueError(f"floor must be finite and >= 0, got {floor!r}")
        self.floor = float(floor)

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledThresholds:
        """The rules of ``problem``, one per step of its bandwidth; ``slots`` does not matter.

        Raises ValueError where the problem lacks parameters, and as :func:`policies.solvers.ncis`.
        """
        self._require(problem)
        steps = ((0.0, problem.bandwidth), *problem.bandwidth_steps)
        return CompiledThresholds(
            rules=tuple(self._rule(problem, start, bandwidth) for start, bandwidth in steps),
            rng=int(rng.integers(2**64, dtype=np.uint64)),
        )

    def _rule(self, problem: Problem, start: float, bandwidth: float) -> ThresholdRule:
        found = solvers.ncis(problem, bandwidth, floor=self.floor)
        return threshold_rule(problem, start, found)

    def _start(self, compiled: Compiled, tracker: Tracker) -> ThresholdState:
        assert isinstance(compiled, CompiledThresholds)
        return ThresholdState(tracker.episode, compiled)

    def _check_form(self) -> None:
        """It can be bound to any environment, since it is not bound to act there."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Raise ValueError: no action form of an environment says when, only which pages."""
        raise ValueError(
            f"{self.name} crawls at instants of its own and has no actions to predict; simulate "
            "and evaluate play it"
        )

    def _choose(self, lane_state: ThresholdState, tracker: Tracker, lane: int) -> IntArray:
        raise AssertionError("predict refuses")

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError("predict refuses")


def _signals(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Change rates, (m,), and recalls and false signal rates, (S, m), of a problem with both."""
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    recall, false_rate = np.atleast_2d(problem.recall), np.atleast_2d(problem.false_signal_rate)
    return problem.change_rate, recall, false_rate


def _unsignalled(problem: Problem) -> FloatArray:
    """The rates of changes without a signal, alpha, (m,)."""
    change_rate, recall, _ = _signals(problem)
    unsignalled: FloatArray = (1.0 - np.minimum(recall.sum(0), 1.0)) * change_rate
    return unsignalled


def threshold_rule(problem: Problem, start: float, found: Allocation) -> ThresholdRule:
    """The rule of an allocation of :func:`policies.solvers.ncis` for the pages of ``problem``.

    A page of threshold inf and a rate > 0 is crawled by its signals alone. The state that counts
    is then the evidence that they add up to; at the level of the allocation a coin decides between
    a crawl and waiting for more. Where nothing but certainty will do, the state is the number of
    certain signals: as many as there are per crawl, and a number between two whole ones is their
    mean over a coin's two sides. More crawls than there are signals, which a floor may ask for,
    come by any signal or at a time tau with ``(1 - exp(-gamma tau)) / gamma = 1 / rate``.
    """
    assert found.thresholds is not None
    assert found.evidence is not None
    assert found.signals is not None
    assert found.probabilities is not None
    change_rate, recall, false_rate = _signals(problem)
    evidence = signal_evidence(change_rate, recall, false_rate)
    beta = signal_time(change_rate, recall, false_rate, _unsignalled(problem))
    gamma = np.where(evidence > 0.0, recall * change_rate + false_rate, 0.0)
    every, rates = gamma.sum(0), found.rates
    by_signals = np.isinf(found.thresholds) & (rates > 0.0)
    hasty = by_signals & (rates > every * (1.0 + WHOLE))
    certain = by_signals & ~hasty & np.isinf(found.evidence)
    level = np.where(by_signals & ~hasty & ~certain, found.evidence, 0.0)
    margin = evidence_margin(level, evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.where(np.isinf(evidence), gamma, 0.0).sum(0) / rates
        number = np.where(
            np.abs(number - np.rint(number)) <= WHOLE * number, np.rint(number), number
        )
        sooner = -np.log1p(-every / rates) / every
    whole = np.floor(np.where(certain, number, 0.0))
    kinds = [hasty, certain, level > 0.0]
    ignored = np.isinf(found.signals) & ~by_signals
    later = [sooner, whole + 1.0, level + margin]
    share = [0.0 * level, np.where(certain, number, 0.0) - whole, 1.0 - found.probabilities]
    weights = [np.full(beta.shape, np.inf), np.where(np.isinf(evidence), 1.0, 0.0), evidence]
    return ThresholdRule(
        start=start,
        threshold=np.select(kinds, [sooner, whole, level - margin], found.thresholds),
        later_threshold=np.select(kinds, later, found.thresholds),
        later_share=np.select(kinds, share, 0.0),
        signal_weight=np.select(kinds, weights, np.where(ignored, 0.0, beta)),
        timed=~(by_signals & ~hasty),
    )
