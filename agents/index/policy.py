"""The policy of a learned index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.index.inputs import networks_of, outcome_table
from agents.index.kernels import outcome_value, signal_evidence
from agents.index.stored import StoredIndex
from crawl_envs.types import FloatArray, Problem
from policies.base.index import SignalPolicy
from policies.ncis.greedy import SIGNAL_MODEL


class LearnedIndex(SignalPolicy):
    """Crawls the page of the largest index, which small networks compute page by page.

    The same networks serve any number of pages. A signal counts by the evidence of its source.
    The parameters of pages are their inputs, so the environment must reveal them.

    Args:
        env: a crawl environment, or None with ``features``.
        index: the weights, learned from outcomes of crawls.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, env: Any = None, *, index: StoredIndex, **binding: Any) -> None:
        super().__init__(env, **binding)
        self.index, self._networks = index, networks_of(index.weights, index.hidden)

    def _signal_weight(self, problem: Problem) -> Any:
        return signal_evidence

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        return outcome_value, outcome_table(problem, self._networks)


FEATURES = (
    *("elapsed", "signals", "changed"),
    *("importance", "change_rate", "recall", "false_signal_rate"),
)
"""Columns of the observation in ``CrawlNCIS-v0`` by default."""


def load_index(folder: str | Path, env: Any = None, **binding: Any) -> LearnedIndex:
    """Return the policy of the index in a folder.

    Args:
        folder: the output folder of a training.
        env: the environment to bind it to; without one it reads the columns ``features``, those
            of ``CrawlNCIS-v0`` unless ``binding`` says otherwise.
        **binding: as for :class:`LearnedIndex`.

    Raises:
        ValueError: there is no index, its file is damaged or foreign, or it does not fit ``env``.
    """
    if env is None:
        binding = {"features": FEATURES, **binding}
    return LearnedIndex(env, index=StoredIndex.read(folder), **binding)
