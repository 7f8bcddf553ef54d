"""The policy that crawls by a learned index."""

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
    """Crawl the page with the largest index, which small networks compute for each page.

    The networks read the parameters of a page, so the environment must reveal them. The number of
    pages may be any. A signal counts by the evidence of its source.

    Args:
        index: the weights, learned from outcomes of crawls.
        **settings: arguments of :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, *, index: StoredIndex, **settings: Any) -> None:
        super().__init__(**settings)
        self.stored, self._networks = index, networks_of(index.weights, index.hidden)

    def _signal_weight(self, problem: Problem) -> Any:
        return signal_evidence

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        return outcome_value, outcome_table(problem, self._networks)


FEATURES = (
    *("elapsed", "signals", "changed"),
    *("importance", "change_rate", "recall", "false_signal_rate"),
)
"""Columns of the observation in ``CrawlNCIS-v0`` by default."""


def load_index(folder: str | Path) -> LearnedIndex:
    """Return the policy of the index in a folder, the output folder of a training.

    Raises:
        ValueError: there is no index, or its file is damaged or foreign.
    """
    return LearnedIndex(index=StoredIndex.read(folder))
