"""Problems with corrupted estimates of signals."""

from __future__ import annotations

import dataclasses

import numpy as np

from crawl_envs.instances.misspecified import corrupted_quality
from crawl_envs.types import Problem


def corrupted(problem: Problem, share: float, seed: int) -> Problem:
    """Return the problem with noise mixed into precision and recall (NCIS paper, section 6.7).

    Change rates stay; see :func:`crawl_envs.instances.misspecified.corrupted_quality`.

    Args:
        problem: a problem that reveals its parameters, with a single source of signals.
        share: the p of the paper, in [0, 1].
        seed: of the noise, the same for every share.

    Raises:
        ValueError: the share is outside [0, 1], or the problem reveals no parameters.
    """
    delta, recall, nu = problem.change_rate, problem.recall, problem.false_signal_rate
    if delta is None or recall is None or nu is None:
        raise ValueError("problem must reveal its parameters to be corrupted")
    noise = np.random.default_rng([seed, 67]).random((2, problem.num_pages))
    recall, nu = corrupted_quality(delta, recall, nu, share, noise)
    return dataclasses.replace(problem, recall=recall, false_signal_rate=nu)
