"""A page-scoring policy with memory for RecurrentPPO; importing it needs sb3-contrib."""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from torch import Tensor, nn

from agents.networks.actor_critic import PageScores
from agents.networks.encoder import PageHeads, joined
from agents.networks.scaling import mean_over


class RecalledHeads(nn.Module):
    """Heads on vectors per page with a common memory, (N, m·C + H).

    The memory is added to the vectors, through a layer of its own, before ``PageHeads``.
    """

    latent_dim_pi = PageHeads.latent_dim_pi

    def __init__(self, heads: PageHeads, memory: int) -> None:
        super().__init__()
        self.heads, self.memory, self.latent_dim_vf = heads, memory, heads.width
        self.page = nn.Linear(heads.width, heads.width)
        self.recall = nn.Linear(memory, heads.width, bias=False)
        self.score = heads.score

    def _with_memory(self, inputs: Tensor) -> Tensor:
        vectors, alive = self.heads.by_page(inputs[:, : -self.memory])
        recalled = self.recall(inputs[:, -self.memory :])
        return joined(torch.relu(self.page(vectors) + recalled[:, None]), alive)

    def forward_actor(self, inputs: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        return self.heads.forward_actor(self._with_memory(inputs))

    def forward_critic(self, inputs: Tensor) -> Tensor:
        """Return the input of the value of the state, (N, width)."""
        return self.heads.forward_critic(self._with_memory(inputs))


class PageRecurrent(PageScores, RecurrentActorCriticPolicy):
    """For RecurrentPPO: scores pages by their rows and by a common memory.

    The input of the LSTM is the mean of the vectors over all pages. The memory is common to all
    pages: it can learn how fast pages change overall, not which page does.

    Arguments are those of sb3-contrib's policy; the features extractor must be
    :class:`agents.networks.encoder.PageEncoder`, and ``net_arch`` empty.

    Raises:
        ValueError: a critic without an LSTM, neither its own nor the actor's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not (kwargs.get("enable_critic_lstm", True) or kwargs.get("shared_lstm", False)):
            raise ValueError("enable_critic_lstm must be True unless shared_lstm is, got False")
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        encoder = self.features_extractor
        self.mlp_extractor = RecalledHeads(PageHeads(encoder, self._dead()), self.lstm_output_dim)
        self.features_dim = encoder.width  # of the input of the LSTMs, built next

    def _process_sequence(  # type: ignore[override]  # static there
        self,
        features: Tensor,
        lstm_states: tuple[Tensor, Tensor],
        episode_starts: Tensor,
        lstm: nn.LSTM,
    ) -> tuple[Tensor, Tensor]:
        """Return the vectors of the pages followed by the memory, and the LSTM's state."""
        memory, states = RecurrentActorCriticPolicy._process_sequence(
            mean_over(*self.mlp_extractor.heads.by_page(features)),
            lstm_states,
            episode_starts,
            lstm,
        )
        return torch.cat([features, memory], 1), states
