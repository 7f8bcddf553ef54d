"""The policy of a learned index."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.evolution.index import kernels
from agents.evolution.outcomes.inputs import outcome_table
from agents.evolution.outcomes.kernels import outcome_value, signal_evidence
from agents.evolution.stored import BELIEF, OUTCOMES, StoredIndex, read_index
from crawl_envs.types import FloatArray, Problem
from policies.base.index import SignalPolicy
from policies.ncis.greedy import SIGNAL_MODEL

if TYPE_CHECKING:
    from agents.evolution.corrected_belief import CorrectedBelief


class LearnedIndex(SignalPolicy):
    """Crawls the page of the largest index, which a small network computes page by page.

    The same network serves any number of pages. An index learned from outcomes of
    crawls weighs signals by source, others pool all sources.
    The parameters of pages are its inputs, so the environment must reveal them.

    Args:
        env: a crawl environment, or None with ``features``.
        index: the weights, and the base that they correct.
        cycle: the time T = m / R in which every page could be crawled once, > 0; None takes the
            problem's, at its first bandwidth, or without an environment that of training. An index
            learned from outcomes of crawls does not depend on it.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: a cycle that is not finite and positive; as for
            :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(
        self, env: Any = None, *, index: StoredIndex, cycle: float | None = None, **binding: Any
    ) -> None:
        if index.base == BELIEF:
            raise ValueError(f"index must have another base than {BELIEF}: load it by load_index")
        super().__init__(env, **binding)
        if cycle is not None and not 0.0 < cycle < math.inf:
            raise ValueError(f"cycle must be finite and > 0, got {cycle!r}")
        self.index, self.cycle = index, cycle
        self._weights: Any = index.networks if index.base == OUTCOMES else index.weights

    def _signal_weight(self, problem: Problem) -> Any:
        return signal_evidence if self.index.base == OUTCOMES else None

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        if self.index.base == OUTCOMES:
            return outcome_value, outcome_table(problem, self._weights)
        cycle = self.cycle or problem.num_pages / problem.bandwidth
        if math.isnan(cycle):
            cycle = self.index.cycle
        if self.index.base == "none":
            table = kernels.learned_table(problem.pooled(), self._weights, cycle)
            return kernels.learned_value, table
        table = kernels.corrected_table(problem.pooled(), self._weights, cycle)
        return kernels.corrected_value, table


FEATURES = (
    *("elapsed", "signals", "changed"),
    *("importance", "change_rate", "recall", "false_signal_rate"),
)
"""Columns of the observation in ``CrawlNCIS-v0`` by default."""


def load_index(
    folder: str | Path, env: Any = None, **binding: Any
) -> LearnedIndex | CorrectedBelief:
    """Return the policy of the index in a folder.

    Args:
        folder: the output folder of :func:`agents.evolution.train.evolve`.
        env: the environment to bind it to; without one it reads the columns ``features``, those
            of ``CrawlNCIS-v0`` unless ``binding`` says otherwise. An index of base ``BeliefNCIS``
            needs one.
        **binding: as for :class:`LearnedIndex`, or for
            :class:`agents.evolution.corrected_belief.CorrectedBelief`.

    Raises:
        ValueError: there is no index, its file is damaged or foreign, or it does not fit ``env``.
    """
    index = read_index(folder)
    if index.base == BELIEF:
        from agents.evolution.corrected_belief import CorrectedBelief

        return CorrectedBelief(env, index=index, **binding)
    if env is None:
        binding = {"features": FEATURES, **binding}
    return LearnedIndex(env, index=index, **binding)
