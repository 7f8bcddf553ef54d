"""The policy of SAC that scores pages, for the action ``scores``."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.sac.policies import Actor, SACPolicy
from torch import Tensor, nn

from agents.networks.encoder import OnPages, PageEncoder, PerPage
from agents.networks.scaling import mean_over

DEAD_SCORE = -10.0
"""Unsquashed score of a page that does not exist."""


class PageActor(Actor):
    """Draw a score for every page from its squashed normal distribution."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "features_dim": 1})  # its layers are replaced
        self.features_dim = kwargs["features_dim"]
        encoder = self.features_extractor
        assert isinstance(encoder, PageEncoder)
        self.mu = PerPage(encoder, DEAD_SCORE)
        self.log_std = PerPage(encoder, 0.0)  # type: ignore[assignment]  # a module, too


class PageQ(OnPages):
    """A critic: the value of giving scores to all pages, (N, m·C + m) to (N, 1).

    Each page's vector and score enter a layer, the mean over all pages a second one.
    """

    def __init__(self, encoder: PageEncoder) -> None:
        super().__init__(encoder)
        width = encoder.width
        self.rows, self.alone = nn.Linear(width + 1, width), nn.Linear(width, width)
        self.all = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the value of the scores in each lane, (N, 1)."""
        num_pages = inputs.shape[1] // (self.width + self.mortal + 1)
        vectors, alive = self.by_page(inputs[:, :-num_pages])
        scores = inputs[:, -num_pages:]
        rows = torch.relu(self.rows(torch.cat([vectors, scores[..., None]], -1)))
        context = self.all(mean_over(rows, alive))
        combined = torch.relu(self.alone(rows) + context[:, None])
        value: Tensor = self.value(mean_over(combined, alive))
        return value


class PageCritic(ContinuousCritic):
    """The critics of SAC, each a :class:`PageQ`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        encoder = self.features_extractor
        assert isinstance(encoder, PageEncoder)
        for number in range(self.n_critics):
            network = PageQ(encoder)
            self.add_module(f"qf{number}", network)
            self.q_networks[number] = network


class PageSAC(SACPolicy):
    """The policy of SAC with a score per page, and critics on pages.

    Arguments are those of ``SACPolicy``; the features extractor must be :class:`PageEncoder`, and
    ``net_arch`` is not used.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "net_arch": []})

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> Actor:
        """Build the actor that draws a score per page."""
        kwargs = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return PageActor(**kwargs).to(self.device)

    def make_critic(
        self, features_extractor: BaseFeaturesExtractor | None = None
    ) -> ContinuousCritic:
        """Build the critics, which value the scores of all pages."""
        kwargs = self._update_features_extractor(self.critic_kwargs, features_extractor)
        return PageCritic(**kwargs).to(self.device)
