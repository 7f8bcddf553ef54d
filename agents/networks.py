r"""Networks for observations of pages, (m, F), whose columns differ in scale by orders.

An observation holds times up to the horizon, counts up to a thousand and rates up to a million.
:class:`PageScaling` makes it free of units: with T = m / R the time in which every page could be
crawled once, and the columns that are present,

=========================  =====================================
column                     becomes
=========================  =====================================
``elapsed``                log(1 + elapsed / T)
``signals``                log(1 + signals)
``importance``             log(1 + importance / mean importance)
``change_rate``            log(1 + change rate · T)
``false_signal_rate``      log(1 + false-signal rate · T)
``recall``, ``alive``      as they are, in [0, 1]
``changed``                as it is, in -1, 0, 1
=========================  =====================================

so nothing is lost (only the ratios of importances matter to what is best), and an agent does not
mind whether time is counted in days or seconds. It is part of the network: models act on
observations as the environment gives them.

Pages are exchangeable: what to do with a page depends on its row, and on the others as a whole.
So ``pages`` scores all rows with the same small network, of the size that it has for one page;
``mlp`` is Stable-Baselines3's perceptron on the scaled, flattened observation.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

LOGARITHMIC = ("elapsed", "signals", "importance", "change_rate", "false_signal_rate")
SCORE_GAIN = 0.01
"""Scale of the first scores, small so that all pages start out alike."""


class PageScaling(nn.Module):
    """Scales observations as the module's table says, (N, m, F) to (N, m, F).

    Args:
        features: names of the columns, ``env.unwrapped.features``.
        cycle: the time T = m / R.

    Raises:
        ValueError: ``cycle`` is not positive.
    """

    def __init__(self, features: tuple[str, ...], cycle: float) -> None:
        super().__init__()
        if not cycle > 0.0:
            raise ValueError(f"cycle must be > 0, got {cycle!r}")
        gains = {"elapsed": 1.0 / cycle, "change_rate": cycle, "false_signal_rate": cycle}
        self.gain: Tensor
        self.logarithmic: Tensor
        self.register_buffer("gain", torch.tensor([gains.get(name, 1.0) for name in features]))
        self.register_buffer(
            "logarithmic", torch.tensor([name in LOGARITHMIC for name in features])
        )
        self.importance = features.index("importance") if "importance" in features else None

    def forward(self, observations: Tensor) -> Tensor:
        """Return the scaled observations."""
        scaled = observations * self.gain
        if self.importance is not None:
            weight = scaled[..., self.importance]
            mean = weight.mean(-1, keepdim=True).clamp_min(1e-12)
            scaled[..., self.importance] = weight / mean
        return torch.where(self.logarithmic, torch.log1p(scaled.clamp_min(0.0)), scaled)


class ScaledRows(BaseFeaturesExtractor):
    """The scaled observation, flattened, (N, m·F): what Stable-Baselines3's perceptrons take."""

    def __init__(self, observation_space: Box, features: tuple[str, ...], cycle: float) -> None:
        super().__init__(observation_space, observation_space.shape[0] * observation_space.shape[1])
        self.scaling = PageScaling(features, cycle)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the scaled and flattened observations."""
        return torch.flatten(self.scaling(observations), 1)


class PageEncoder(BaseFeaturesExtractor):
    """One small network for all pages: (N, m, F) to (N, m·width), a vector per page.

    A page's vector is computed from its scaled row and from the mean over all pages.
    """

    def __init__(
        self, observation_space: Box, features: tuple[str, ...], cycle: float, width: int = 32
    ) -> None:
        num_pages, columns = observation_space.shape
        super().__init__(observation_space, num_pages * width)
        self.scaling = PageScaling(features, cycle)
        self.rows = nn.Sequential(nn.Linear(columns, width), nn.Tanh())
        self.alone, self.all = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the vectors of all pages, one after the other."""
        rows = self.rows(self.scaling(observations))
        vectors = torch.tanh(self.alone(rows) + self.all(rows.mean(1, keepdim=True)))
        return torch.flatten(vectors, 1)


class PageHeads(nn.Module):
    """From vectors per page, (N, m·width), to a score per page, (N, m), and to a value's input.

    It stands where Stable-Baselines3 has its MlpExtractor. The scores are the actor's output
    itself: logits of the pages (action ``page``), logits of their bits (``refresh``), or means of
    their scores (``scores``).
    """

    latent_dim_pi = 1
    """The scores need no layer after them; a size of 1 keeps the one that is thrown away small."""

    def __init__(self, num_pages: int, features_dim: int) -> None:
        super().__init__()
        self.num_pages, self.latent_dim_vf = num_pages, features_dim // num_pages
        self.score = nn.Linear(self.latent_dim_vf, 1)
        self.pooled = nn.Sequential(nn.Linear(self.latent_dim_vf, self.latent_dim_vf), nn.Tanh())

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores and the value's input."""
        return self.forward_actor(vectors), self.forward_critic(vectors)

    def _by_page(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(vectors.shape[0], self.num_pages, self.latent_dim_vf)

    def forward_actor(self, vectors: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        scores: Tensor = self.score(self._by_page(vectors)).squeeze(-1)
        return scores

    def forward_critic(self, vectors: Tensor) -> Tensor:
        """Return what the value of the whole is computed from, (N, width)."""
        pooled: Tensor = self.pooled(self._by_page(vectors).mean(1))
        return pooled


class PageScores:
    """Makes an actor-critic policy of Stable-Baselines3 score pages; mixed in before its class."""

    mlp_extractor: Any
    action_net: Any
    features_dim: int
    observation_space: Any
    optimizer_class: Any
    optimizer_kwargs: dict[str, Any]

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = PageHeads(self.observation_space.shape[0], self.features_dim)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]  # of the policy it is mixed into
        nn.init.orthogonal_(self.mlp_extractor.score.weight, gain=SCORE_GAIN)
        self.action_net = nn.Identity()
        parameters = self.parameters()  # type: ignore[attr-defined]  # likewise
        self.optimizer = self.optimizer_class(
            parameters, lr=lr_schedule(1), **self.optimizer_kwargs
        )


class PageActorCritic(PageScores, ActorCriticPolicy):
    """For PPO and A2C: an actor and a critic on vectors per page."""


class PageValues(nn.Module):
    """Action values of the pages, (N, m): the value of the whole, plus a score per page."""

    def __init__(self, num_pages: int, features_dim: int) -> None:
        super().__init__()
        self.heads = PageHeads(num_pages, features_dim)
        self.value = nn.Linear(self.heads.latent_dim_vf, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the action values."""
        scores, pooled = self.heads(vectors)
        values: Tensor = self.value(pooled) + scores - scores.mean(1, keepdim=True)
        return values


class PageDQN(DQNPolicy):
    """For DQN: action values from vectors per page."""

    def make_q_net(self) -> QNetwork:
        """Return a network of action values."""
        network = super().make_q_net()
        values = PageValues(self.observation_space.shape[0], network.features_dim)  # type: ignore[index]  # (m, F)
        network.q_net = values.to(self.device)  # type: ignore[assignment]  # a module, too
        return network
