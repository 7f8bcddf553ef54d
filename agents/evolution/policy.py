"""The policies of learned indices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.evolution.outcomes.inputs import outcome_table
from agents.evolution.outcomes.kernels import outcome_value
from agents.evolution.stored import BELIEF, StoredIndex, read_index
from crawl_envs.types import FloatArray, Problem
from policies.base.index import SignalPolicy
from policies.ncis.greedy import SIGNAL_MODEL

if TYPE_CHECKING:
    from agents.evolution.corrected_belief import CorrectedBelief


class LearnedIndex(SignalPolicy):
    """Crawls the page of the largest index, which small networks compute page by page.

    The same networks serve any number of pages. Several sources of signals are pooled into one.
    The parameters of pages are their inputs, so the environment must reveal them.

    Args:
        env: a crawl environment, or None with ``features``.
        index: the weights, learned from outcomes of crawls.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: an index of another base; as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, env: Any = None, *, index: StoredIndex, **binding: Any) -> None:
        if index.base == BELIEF:
            raise ValueError(f"index must have another base than {BELIEF}: load it by load_index")
        super().__init__(env, **binding)
        self.index, self._networks = index, index.networks

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        return outcome_value, outcome_table(problem.pooled(), self._networks)


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
        folder: the output folder of a training.
        env: the environment to bind it to; without one it reads the columns ``features``, those
            of ``CrawlNCIS-v0`` unless ``binding`` says otherwise. An index of base ``BeliefNCIS``
            needs one.
        **binding: as for :class:`LearnedIndex`, or for
            :class:`agents.evolution.corrected_belief.CorrectedBelief`.

    Raises:
        ValueError: there is no index, its file is damaged or foreign, or it does not fit ``env``.
    """
    return policy_of(read_index(folder), env, **binding)


def policy_of(index: StoredIndex, env: Any, **binding: Any) -> LearnedIndex | CorrectedBelief:
    """Return the policy of an index; see :func:`load_index`."""
    if index.base == BELIEF:
        from agents.evolution.corrected_belief import CorrectedBelief

        return CorrectedBelief(env, index=index, **binding)
    if env is None:
        binding = {"features": FEATURES, **binding}
    return LearnedIndex(env, index=index, **binding)
