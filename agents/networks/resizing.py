"""Use a trained ``pages`` network with another number of pages, or another unit of time.

The weights fit any number of pages, but a policy of Stable-Baselines3 is tied to its spaces. The
network measures time in units of the T = m / R of its training.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from agents.networks.gumbel import GumbelTop
from agents.networks.scaling import POWERS, base_name


def resized(policy: Any, observation_space: Box, action_space: Space[Any], batch: int) -> Any:
    """Return a policy with the same weights for another number of pages, m.

    Args:
        policy: a policy of Stable-Baselines3, for the action page, scores or refresh.
        observation_space: the new space, (m, F).
        action_space: the new space, of the same form of actions.
        batch: pages per action of the form ``scores``, in [1, m].
    """
    policy, num_pages = copy.copy(policy), observation_space.shape[0]
    policy.observation_space, policy.action_space = observation_space, action_space
    if hasattr(policy, "lstm_actor"):  # a state per page
        layers, _, _ = policy.lstm_hidden_state_shape
        size = num_pages * policy.lstm_actor.lstm.hidden_size
        policy.lstm_hidden_state_shape = layers, 1, size
    drawn = getattr(policy, "action_dist", None)
    if isinstance(drawn, GumbelTop):
        policy.action_dist = GumbelTop(num_pages, batch)
    elif hasattr(drawn, "action_dim"):
        policy.action_dist = copy.copy(drawn)
        policy.action_dist.action_dim = num_pages
    return policy


def in_units(
    rows: NDArray[Any], features: Sequence[str], ratios: NDArray[np.float64]
) -> NDArray[Any]:
    """Return observations, (N, m, F), with times multiplied by each lane's ratio, (N,).

    Rates are divided by the ratio.
    """
    if np.all(ratios == 1.0):
        return rows
    powers = np.array([POWERS.get(base_name(name), 0) for name in features])
    scaled: NDArray[Any] = rows * (ratios[:, None, None] ** powers).astype(np.float32)
    return scaled


def scores_of(policy: Any, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of an actor-critic's actor, (N, m), for observations (N, m, F)."""
    with torch.no_grad():
        encoded = policy.pi_features_extractor(torch.from_numpy(np.ascontiguousarray(rows)))
        scores: NDArray[np.float32] = policy.mlp_extractor.forward_actor(encoded).numpy()
    return scores
