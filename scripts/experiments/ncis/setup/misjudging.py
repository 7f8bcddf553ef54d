"""Problems as a policy with wrong estimates sees them."""

from __future__ import annotations

import dataclasses

import numpy as np

from crawl_envs.instances.misspecified.corrupted import misjudged
from crawl_envs.types import Problem


def corrupted(problem: Problem, share: float, seed: int) -> Problem:
    """Return the problem with noise mixed into precision and recall (NCIS paper, section 6.7).

    Change rates stay as they are; see :func:`crawl_envs.instances.misspecified.corrupted.misjudged`.

    Args:
        problem: one that reveals its parameters, of a single source of signals.
        share: the p of the paper, in [0, 1].
        seed: decides the noise, the same for every share.

    Raises:
        ValueError: the share is outside [0, 1], or the problem reveals no parameters.
    """
    delta, recall, nu = problem.change_rate, problem.recall, problem.false_signal_rate
    if delta is None or recall is None or nu is None:
        raise ValueError("problem must reveal its parameters to be misjudged")
    noise = np.random.default_rng([seed, 67]).random((2, problem.num_pages))
    recall, nu = misjudged(delta, recall, nu, share, noise)
    return dataclasses.replace(problem, recall=recall, false_signal_rate=nu)
