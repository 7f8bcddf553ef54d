"""Scale observations to numbers without units, for networks.

An observation has times up to the horizon, counts up to a thousand and rates up to a million.
T = m / R is the time in which every page can be crawled once:

=====================  ============================================================
column                 scaled
=====================  ============================================================
``elapsed``            L(elapsed / T)
``age_0``              L(age / T); -1, for no copy, counts as an age of 0
``change_rate``        L(change rate · T)
``false_signal_rate``  L(false-signal rate · T)
``importance``         L(importance / mean importance)
``signals``            log(1 + signals)
``recall``             artanh((2 recall - 1) / 1.02), half its log-odds, bounded
in [-1, 1]             as they are: ``changed``, ``alive``, ``complete``
any other              sign(x) log(1 + abs(x))
=====================  ============================================================

where L(x) = log(1 + 100 x) - 3 is a logarithm down to a hundredth, and finite at 0: crawl values
are products of powers, and rates spread over decades. No information is lost: only ratios of
importances matter to the best action, and ``divergence_0`` shows whether ``age_0`` has a copy. The
unit of time does not matter. Columns of several sources (``recall_1``) and copies are scaled like
those of one. Any other column must have no unit. There is no running mean: a model is the same
function at the start of training, at its end, and on new environments.

With a column ``alive``, means are over pages that exist, and T is the time in which these can be
crawled once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from crawl_envs.types.arguments import real

DECADES = 100.0
"""Scaled values become linear in the observation, not logarithmic, below 1 / DECADES."""
MIDDLE = 3.0
"""Constant subtracted from logarithms, so that typical values are around 0."""
RECALL_BOUND = 1.02
"""Bound at which recalls 0 and 1 differ from 0.01 and 0.99, though hardly from 0.001 and 0.999."""
MIN_MEAN = 1e-12
"""Lower bound of the mean importance as a divisor."""
PLAIN = ("changed", "alive", "complete", "recall")
POWERS = {"elapsed": 1, "age": 1, "change_rate": -1, "false_signal_rate": -1, "importance": 0}
"""Power of the cycle T in the divisor of each column that is scaled by a logarithm."""


def base_name(feature: str) -> str:
    """Return the name of a column without the number of its source or copy."""
    name, _, number = feature.rpartition("_")
    return name if number.isdigit() else feature


class PageScaling(nn.Module):
    """Scale observations, (N, m, F) to (N, m, F), without weights.

    Attributes:
        cycle: the time T = m / R.
        power: power of T in the divisor of each column, (F,).
        mortal: whether pages are born and die.

    Args:
        features: names of the columns, ``env.unwrapped.features``.
        cycle: T, > 0.

    Raises:
        ValueError: ``cycle`` is not positive and finite.
    """

    gain: Tensor
    shift: Tensor
    keep: Tensor
    power: Tensor

    def __init__(self, features: Sequence[str], cycle: float) -> None:
        super().__init__()
        self.cycle = real("cycle", cycle, above=0.0)
        names = [base_name(feature) for feature in features]
        scales = {
            "gain": [
                DECADES / self.cycle ** POWERS[name] if name in POWERS else float(name == "signals")
                for name in names
            ],
            "shift": [-MIDDLE if name in POWERS else 0.0 for name in names],
            "keep": [float(name in PLAIN) for name in names],
            "power": [float(POWERS.get(name, 0)) for name in names],
        }
        for name, values in scales.items():
            self.register_buffer(name, torch.tensor(values), persistent=False)
        self._column = {name: column for column, name in enumerate(names)}
        self.mortal = "alive" in names
        self._recalls = [k for k, name in enumerate(names) if name == "recall"]
        signed = {*names} - {*POWERS, *PLAIN, "signals"}
        self._signed = [k for k, name in enumerate(names) if name in signed]

    def alive(self, observations: Tensor) -> Tensor | None:
        """Return 1 for each page that exists and 0 for others, (N, m); None if all pages exist."""
        return (observations[..., self._column["alive"]] > 0.5).float() if self.mortal else None

    def _gains(self, observations: Tensor) -> Tensor:
        """Return the factor of each column before its logarithm, in each lane, (N, F)."""
        alive = self.alive(observations)
        gains = self.gain.repeat(len(observations), 1)
        if alive is not None:
            share = alive.mean(-1, keepdim=True).clamp_min(1.0 / alive.shape[-1])
            gains /= share**self.power
        if "importance" in self._column:
            column = self._column["importance"]
            gains[:, column] /= mean_over(observations[..., column], alive).clamp_min(MIN_MEAN)
        return gains

    def forward(self, observations: Tensor) -> Tensor:
        """Return the scaled observations."""
        scaled = torch.addcmul(self.shift, observations, self.keep)
        scaled += torch.log1p_((observations * self._gains(observations)[:, None]).clamp_min_(0.0))
        for k in self._recalls:
            odds = (2.0 / RECALL_BOUND) * observations[..., k] - 1.0 / RECALL_BOUND
            scaled[..., k] = torch.atanh_(odds)
        for k in self._signed:
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
