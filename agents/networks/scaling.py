"""Observations free of units, for torch; :mod:`agents.networks.scaled_columns` has the table."""

from __future__ import annotations

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from agents.networks.scaled_columns import LEAST_WEIGHT, RECALL_BOUND, check_cycle, scaled_columns


class PageScaling(nn.Module):
    """Scales observations, (N, m, F) to (N, m, F); it has no weights.

    Args:
        features: names of the columns, ``env.unwrapped.features``.
        cycle: the time T = m / R.

    Raises:
        ValueError: ``cycle`` is not positive and finite, or there are no columns.
    """

    def __init__(self, features: tuple[str, ...], cycle: float) -> None:
        super().__init__()
        self.cycle, self.columns = check_cycle(cycle), scaled_columns(tuple(features))
        columns = self.columns
        gain = [g / cycle**p for g, p in zip(columns.gain, columns.cycle_power, strict=True)]
        self.gain: Tensor
        self.shift: Tensor
        self.keep: Tensor
        self.power: Tensor
        for name, values in (
            ("gain", gain),
            ("shift", columns.shift),
            ("keep", columns.keep),
            ("power", columns.cycle_power),
        ):
            tensor = torch.tensor(values, dtype=torch.float32)
            self.register_buffer(name, tensor, persistent=False)

    def alive(self, observations: Tensor) -> Tensor | None:
        """Return which pages exist, (N, m) in {0, 1}; None where all do."""
        column = self.columns.alive
        return None if column is None else (observations[..., column] > 0.5).float()

    def _gains(self, observations: Tensor) -> Tensor:
        """Return the factors under the logarithm in each lane, (N, F)."""
        columns, alive = self.columns, self.alive(observations)
        gains = self.gain.repeat(len(observations), 1)
        if alive is not None:
            share = alive.mean(-1, keepdim=True).clamp_min(1.0 / alive.shape[-1])
            gains /= share**self.power
        if columns.importance is not None:
            mean = mean_over(observations[..., columns.importance], alive)
            gains[:, columns.importance] /= mean.clamp_min(LEAST_WEIGHT)
        return gains

    def forward(self, observations: Tensor) -> Tensor:
        """Return the scaled observations."""
        columns = self.columns
        scaled = torch.addcmul(self.shift, observations, self.keep)
        scaled += torch.log1p_(observations * self._gains(observations)[:, None])
        for k in columns.recalls:
            odds = (2.0 / RECALL_BOUND) * observations[..., k] - 1.0 / RECALL_BOUND
            scaled[..., k] = torch.atanh_(odds)
        for k in columns.others:
            column = observations[..., k]
            scaled[..., k] = torch.sign(column) * torch.log1p(torch.abs(column))
        return scaled


def mean_over(values: Tensor, alive: Tensor | None) -> Tensor:
    """Return the mean of each lane over its pages that exist, (N, m, ...) to (N, ...)."""
    if alive is None:
        return values.mean(1)
    weight = alive.reshape(alive.shape + (1,) * (values.ndim - 2))
    total: Tensor = (values * weight).sum(1) / weight.sum(1).clamp_min(1.0)
    return total


class ScaledRows(BaseFeaturesExtractor):
    """The scaled observation, flattened, (N, m·F), for Stable-Baselines3's perceptrons."""

    def __init__(self, observation_space: Box, features: tuple[str, ...], cycle: float) -> None:
        super().__init__(observation_space, observation_space.shape[0] * observation_space.shape[1])
        self.scaling = PageScaling(features, cycle)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the scaled and flattened observations."""
        return torch.flatten(self.scaling(observations), 1)
