"""The policy of a belief whose index is corrected by a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.evolution.belief import history, kernels
from agents.evolution.belief import layout as columns
from agents.evolution.belief.inputs import INPUTS
from agents.evolution.network import hidden_units
from agents.evolution.stored import BELIEF, StoredIndex
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.compiled_policies import CompiledLearner, Memory
from policies.ncis.belief import BeliefNCIS
from policies.ncis.belief.policy import places_of


class DescribedBelief(BeliefNCIS):
    """BELIEF-NCIS that keeps the history which the inputs of a correction are made of.

    Subclasses set ``day``, the length of a day or 0; ``weights``, a row of numbers for their
    kernels; and ``hidden``, a size of the network in them.
    """

    day: float = 0.0
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
            history.begin(row, first, 0.0, self.day)
        shared = np.concatenate([memory.shared, np.zeros(columns.WEIGHTS - memory.shared.size)])
        shared[columns.CYCLE] = problem.num_pages / problem.bandwidth
        shared[columns.DAY] = self.day
        shared[columns.LEAST] = self.least if self._count == 1 else 0.0
        shared[columns.HIDDEN] = self.hidden
        shared = np.concatenate([shared, self.weights])
        return Memory(pages, groups, memory.events, shared, memory.group)


class CorrectedBelief(DescribedBelief):
    r"""BELIEF-NCIS, each crawl value times exp(L tanh(g / L)), with g of a network and L = ln 3.

    The inputs (:mod:`agents.evolution.belief.inputs`) are the belief about a page, the results of
    its crawls, the times of signals, how well the belief predicted the episode's crawls so far, and
    more. The network is the same for all pages, of any number. With zero weights the factors are 1.
    Where one page is crawled per decision, only pages of at least 1/9 of the largest value are
    corrected, since no other can come first.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        index: the weights, of base ``BeliefNCIS``.
        **belief: as for :class:`policies.ncis.belief.BeliefNCIS`.

    Raises:
        ValueError: no environment; an index of another base; as for the base class.
    """

    least = math.exp(-2.0 * kernels.LARGEST_LOG_FACTOR)

    def __init__(self, env: Any, *, index: StoredIndex, **belief: Any) -> None:
        if env is None:
            raise ValueError("env must be a crawl environment, got None")
        if index.base != BELIEF:
            raise ValueError(f"index must have the base {BELIEF}, got {index.base!r}")
        super().__init__(env, **belief)
        self.index, self.weights = index, spread(index)
        self.day = 0.0 if index.day is None else index.day
        self.hidden = hidden_units(self.weights.size, len(INPUTS))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the learner at the start of an episode; ``slots`` and ``rng`` are not used.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, self.first_memory(problem))


def widened(rows: FloatArray, columns: int) -> FloatArray:
    """Return the rows with ``columns`` more columns of zeros."""
    return np.concatenate([rows, np.zeros((rows.shape[0], columns))], axis=1)


def spread(index: StoredIndex) -> FloatArray:
    """Return an index's weights for a network of all inputs, 0 for inputs that it lacks."""
    count, seen = len(INPUTS), [INPUTS.index(name) for name in index.inputs]
    hidden = hidden_units(index.free.size, len(seen))
    inner, skip = np.zeros((hidden, count)), np.zeros(count)
    inner[:, seen] = index.free[: hidden * len(seen)].reshape(hidden, len(seen))
    skip[seen] = index.free[-len(seen) :]
    return np.concatenate([inner.ravel(), index.free[hidden * len(seen) : -len(seen)], skip])


def initial_correction(hidden: int, inputs: int, rng: np.random.Generator) -> FloatArray:
    """Return the weights of a network of K inputs that corrects nothing yet, (H (K + 2) + K,).

    Hidden units are random; the weights of their outputs and the direct ones of inputs are 0.
    """
    inner = rng.normal(0.0, 2.0 / math.sqrt(inputs), (hidden, inputs))
    bias = rng.normal(0.0, 0.5, hidden)
    return np.concatenate([inner.ravel(), bias, np.zeros(hidden + inputs)])
