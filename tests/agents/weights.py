"""Weights of models of Stable-Baselines3, compared."""

from __future__ import annotations

import torch
from stable_baselines3.common.base_class import BaseAlgorithm


def same_weights(one: BaseAlgorithm, other: BaseAlgorithm, tolerance: float = 0.0) -> bool:
    """Return whether two models have the same weights, by name, up to a tolerance."""
    mine, theirs = (model.policy.state_dict() for model in (one, other))
    assert mine.keys() == theirs.keys()
    return all(
        torch.allclose(value, theirs[name], rtol=0.0, atol=tolerance)
        for name, value in mine.items()
    )
