"""The belief that a correction starts from: BELIEF-NCIS with a history."""

from __future__ import annotations

import numpy as np

from agents.generalist.belief import history
from agents.generalist.belief import layout as columns
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief import BeliefNCIS
from policies.ncis.belief.policy import places_of


class DescribedBelief(BeliefNCIS):
    """BELIEF-NCIS that keeps the history which the inputs of a correction are made of.

    Subclasses set ``weights``, a row of numbers for their kernels, and ``hidden``, a size of the
    networks in them. A unit of time counts as a day for the inputs of hours.
    """

    hidden: int = 0
    weights: FloatArray
    least: float = 0.0
    """Where one page is crawled per decision: the share of the largest value from which a page is
    corrected."""

    def first_memory(self, problem: Problem) -> Memory:
        """Return the arrays of the learner at the start of an episode.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        memory = super().first_memory(problem)
        at = places_of(problem)
        first = at.page_width
        pages = widened(memory.pages, columns.PAGE_WIDTH)
        mean = float(problem.importance.mean())
        relative = problem.importance / mean if mean > 0.0 else np.ones(problem.num_pages)
        pages[:, first + columns.IMPORTANCE] = relative / (1.0 + relative)
        evidence, signal_rate = (
            pages[:, at.scale + kind : at.scale + kind + at.sources]
            for kind in (1, 1 + at.channels)
        )
        signalled_rate = (signal_rate * -np.expm1(-evidence)).sum(axis=1)
        pages[:, first + columns.SIGNALLED_RATE] = signalled_rate
        pages[:, first + columns.PRECISION] = signalled_rate / signal_rate.sum(axis=1)
        groups = widened(memory.groups, columns.GROUP_WIDTH)
        for row in pages:
            history.begin(row, first, 0.0)
        shared = np.concatenate([memory.shared, np.zeros(columns.WEIGHTS - memory.shared.size)])
        shared[columns.CYCLE] = problem.num_pages / problem.bandwidth
        shared[columns.LEAST] = self.least if self._count == 1 else 0.0
        shared[columns.HIDDEN] = self.hidden
        shared = np.concatenate([shared, self.weights])
        return Memory(pages, groups, memory.events, shared, memory.group)


def widened(rows: FloatArray, columns: int) -> FloatArray:
    """Return the rows with ``columns`` more columns of zeros."""
    return np.concatenate([rows, np.zeros((rows.shape[0], columns))], axis=1)
