"""A page-scoring policy with memory for RecurrentPPO; importing it needs sb3-contrib."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Discrete, MultiBinary
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from agents.networks.encoder import PageEncoder, PageHeads, page_vectors
from agents.networks.scaling import mean_over


class RecalledHeads(nn.Module):
    """Heads on vectors per page with a common memory, (N, m·C + H).

    The memory is added to the vectors, through a layer of its own, before ``PageHeads``.
    """

    def __init__(self, heads: PageHeads, memory: int) -> None:
        super().__init__()
        width = heads.latent_dim_vf
        self.heads, self.memory = heads, memory
        self.page, self.recall = nn.Linear(width, width), nn.Linear(memory, width, bias=False)
        self.latent_dim_pi, self.latent_dim_vf = heads.latent_dim_pi, width
        self.score = heads.score

    def _with_memory(self, inputs: Tensor) -> Tensor:
        vectors, alive = self.heads.by_page(inputs[:, : -self.memory])
        recalled = self.recall(inputs[:, -self.memory :])
        vectors = torch.relu(self.page(vectors) + recalled[:, None])
        if alive is not None:
            vectors = torch.cat([vectors, alive[..., None]], -1)
        return torch.flatten(vectors, 1)

    def forward_actor(self, inputs: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        return self.heads.forward_actor(self._with_memory(inputs))

    def forward_critic(self, inputs: Tensor) -> Tensor:
        """Return the input of the value of the state, (N, width)."""
        return self.heads.forward_critic(self._with_memory(inputs))


class PageRecurrent(RecurrentActorCriticPolicy):
    """For RecurrentPPO: scores pages by their rows and by a common memory.

    The input of the LSTM is the mean of the vectors over all pages. The memory is common to all
    pages: it can learn how fast pages change overall, not which page does.

    Arguments are those of sb3-contrib's policy; the features extractor must be
    :class:`agents.networks.encoder.PageEncoder`, and ``net_arch`` empty.

    Raises:
        ValueError: a critic without an LSTM, neither its own nor the actor's.
    """

    mlp_extractor: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not (kwargs.get("enable_critic_lstm", True) or kwargs.get("shared_lstm", False)):
            raise ValueError("enable_critic_lstm must be True unless shared_lstm is, got False")
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        encoder = self.features_extractor
        assert isinstance(encoder, PageEncoder)
        num_pages = self.observation_space.shape[0]  # type: ignore[index]  # (m, F)
        masking = isinstance(self.action_space, Discrete | MultiBinary)
        heads = PageHeads(num_pages, encoder, masking)
        self.mlp_extractor = RecalledHeads(heads, self.lstm_output_dim)
        self.features_dim = encoder.width  # of the input of the LSTMs, built next

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        nn.init.orthogonal_(self.mlp_extractor.score.weight, gain=0.01)
        self.action_net = nn.Identity()

    def _process_sequence(  # type: ignore[override]  # static there
        self,
        features: Tensor,
        lstm_states: tuple[Tensor, Tensor],
        episode_starts: Tensor,
        lstm: nn.LSTM,
    ) -> tuple[Tensor, Tensor]:
        """Return the vectors of the pages followed by the memory, and the LSTM's state."""
        heads = self.mlp_extractor.heads
        pages = page_vectors(features, heads.num_pages, heads.latent_dim_vf, heads.mortal)
        memory, states = RecurrentActorCriticPolicy._process_sequence(
            mean_over(*pages), lstm_states, episode_starts, lstm
        )
        return torch.cat([features, memory], 1), states
