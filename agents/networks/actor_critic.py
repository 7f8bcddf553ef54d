"""Actors and critics on pages, for PPO and A2C."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Box, Discrete, MultiBinary
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from agents.networks.encoder import NEVER, PageHeads
from agents.networks.gumbel import GumbelTop

SCORE_GAIN = 0.01
"""Scale of the initial scores, small so that all pages start with similar ones."""


class PageCategorical(CategoricalDistribution):
    """Draw one page by its logit.

    The distribution is that of Stable-Baselines3, with fewer operations per step: arguments are not
    checked, and the page is the first arrival of Poisson processes with the probabilities as rates.
    """

    logs: Tensor
    """Logarithms of the probabilities, (N, m)."""

    def proba_distribution(self, action_logits: Tensor) -> PageCategorical:
        """Set the distribution to the one with given logits of pages, (N, m)."""
        self.logs = torch.log_softmax(action_logits, -1)
        return self

    def sample(self) -> Tensor:
        """Draw a page per lane, (N,)."""
        arrivals = torch.empty_like(self.logs).exponential_()
        return torch.argmax(self.logs.exp() / arrivals, -1)

    def mode(self) -> Tensor:
        """Return the likeliest page of each lane, (N,), ties by lowest index."""
        return torch.argmax(self.logs, -1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the logarithms of the probabilities of pages, (N,)."""
        pages = actions.long().reshape(-1, 1)
        return self.logs.gather(-1, pages).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropies, (N,)."""
        return -(self.logs.exp() * self.logs).sum(-1)


class PageScores:
    """Make an actor-critic policy of Stable-Baselines3 score pages; a mixin before its class.

    Args:
        *args: arguments of the policy.
        batch: crawls per decision with the action ``scores``, ``env.unwrapped.batch``: the pages
            that :class:`GumbelTop` draws. None: scores are drawn from normal distributions around
            those of the network.
        **kwargs: arguments of the policy.

    Raises:
        ValueError: ``batch`` with actions other than scores of pages, or outside [1, m].
    """

    mlp_extractor: Any
    action_net: Any
    action_dist: Any
    log_std: Any
    features_extractor: Any
    observation_space: Any
    action_space: Any
    optimizer_class: Any
    optimizer_kwargs: dict[str, Any]

    def __init__(self, *args: Any, batch: int | None = None, **kwargs: Any) -> None:
        self.batch = batch
        super().__init__(*args, **kwargs)

    def _dead(self) -> float | None:
        """Return the score of pages that do not exist; None if scores are means of normals."""
        drawn = self.batch is not None or isinstance(self.action_space, Discrete | MultiBinary)
        return NEVER if drawn else None

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = PageHeads(self.features_extractor, self._dead())

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]  # of the policy it is mixed into
        nn.init.orthogonal_(self.mlp_extractor.score.weight, gain=SCORE_GAIN)
        self.action_net = nn.Identity()
        self._choose_draws()
        parameters = self.parameters()  # type: ignore[attr-defined]  # as above
        self.optimizer = self.optimizer_class(
            parameters, lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _choose_draws(self) -> None:
        """Use :class:`GumbelTop` as the distribution of actions if ``batch`` is given."""
        if self.batch is not None:
            pages = self.observation_space.shape[:1]
            if not isinstance(self.action_space, Box) or self.action_space.shape != pages:
                raise ValueError(f"batch must be None with actions {self.action_space}")
            self.action_dist = GumbelTop(pages[0], self.batch)
            del self.log_std

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Any:
        if isinstance(self.action_dist, GumbelTop):
            return self.action_dist.proba_distribution(latent_pi)
        return super()._get_action_dist_from_latent(latent_pi)  # type: ignore[misc]  # as above

    def _get_constructor_parameters(self) -> dict[str, Any]:
        parameters = super()._get_constructor_parameters()  # type: ignore[misc]  # as above
        return {**parameters, "batch": self.batch}


class PageActorCritic(PageScores, ActorCriticPolicy):
    """The policy of PPO and A2C with an actor and a critic on a vector per page."""

    def _choose_draws(self) -> None:
        super()._choose_draws()
        if type(self.action_dist) is CategoricalDistribution:
            self.action_dist = PageCategorical(self.action_dist.action_dim)
