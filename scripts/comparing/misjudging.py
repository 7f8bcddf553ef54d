"""Problems as a policy with wrong estimates sees them."""

from __future__ import annotations

import dataclasses

import numpy as np

from crawl_envs.types import Problem


def corrupted(problem: Problem, share: float, seed: int) -> Problem:
    """Return the problem with noise mixed into precision and recall (NCIS paper, section 6.7).

    Each becomes (1 - share) times itself plus share times a draw from U(0, 1). (The paper's
    formula for recall lacks the last factor.) Change rates stay as they are, and false signals are
    believed to come at the rate that the two imply.

    Args:
        problem: one that reveals its parameters, of a single source of signals.
        share: the p of the paper, in [0, 1].
        seed: decides the noise, the same for every share.

    Raises:
        ValueError: the share is outside [0, 1], or the problem reveals no parameters.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must lie in [0, 1], got {share!r}")
    delta, recall, nu = problem.change_rate, problem.recall, problem.false_signal_rate
    if delta is None or recall is None or nu is None:
        raise ValueError("problem must reveal its parameters to be misjudged")
    noise = np.random.default_rng([seed, 67]).random((2, problem.num_pages))
    true = recall * delta
    precision = np.divide(true, true + nu, out=np.ones_like(true), where=true + nu > 0.0)
    precision, recall = (1.0 - share) * np.stack([precision, recall]) + share * noise
    return dataclasses.replace(
        problem,
        recall=recall,
        false_signal_rate=recall * delta * (1.0 - precision) / precision,
    )
