"""The policy of RecurrentPPO that scores pages with a memory; it needs sb3-contrib."""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from torch import Tensor, nn

from agents.networks.actor_critic import PageScores
from agents.networks.encoder import PageHeads, joined


class PageMemory(nn.Module):
    """An LSTM with the same weights and a separate state for every page.

    Attributes:
        lstm: the LSTM of one page.
        num_layers, hidden_size: sizes of the states of all pages together, (layers, N, m·H).
    """

    def __init__(self, lstm: nn.LSTM, num_pages: int) -> None:
        super().__init__()
        self.lstm, self.num_layers = lstm, lstm.num_layers
        self.hidden_size = num_pages * lstm.hidden_size


class RecalledHeads(nn.Module):
    """The actor's and critic's heads on the pages' vectors and memories, (N, m·C + m·H).

    A linear layer adds each memory to the vector of its page, before ``PageHeads``.
    """

    latent_dim_pi = PageHeads.latent_dim_pi

    def __init__(self, heads: PageHeads, memory: int) -> None:
        super().__init__()
        self.heads, self.memory, self.latent_dim_vf = heads, memory, heads.width
        self.page = nn.Linear(heads.width, heads.width)
        self.recall = nn.Linear(memory, heads.width, bias=False)
        self.score = heads.score

    def _with_memory(self, inputs: Tensor) -> Tensor:
        num_pages = inputs.shape[1] // (self.heads.width + self.heads.mortal + self.memory)
        recalled = inputs[:, -num_pages * self.memory :].reshape(len(inputs), num_pages, -1)
        vectors, alive = self.heads.by_page(inputs[:, : -num_pages * self.memory])
        return joined(torch.relu(self.page(vectors) + self.recall(recalled)), alive)

    def forward_actor(self, inputs: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        return self.heads.forward_actor(self._with_memory(inputs))

    def forward_critic(self, inputs: Tensor) -> Tensor:
        """Return the input of the value of the state, (N, width)."""
        return self.heads.forward_critic(self._with_memory(inputs))


class PageRecurrent(PageScores, RecurrentActorCriticPolicy):
    """The policy of RecurrentPPO that scores pages by their rows and a memory of each.

    The input of the LSTM is the vector of the page, so it can learn from the results of crawls how
    fast the page changes. All pages have the same weights. A page that is born keeps the state of
    the dead page in its row.

    Arguments are those of sb3-contrib's policy; the features extractor must be
    :class:`agents.networks.encoder.PageEncoder`, and ``net_arch`` empty.

    Raises:
        ValueError: the critic has no LSTM, and does not share the actor's.
    """

    lstm_actor: Any
    lstm_critic: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not (kwargs.get("enable_critic_lstm", True) or kwargs.get("shared_lstm", False)):
            raise ValueError("enable_critic_lstm must be True unless shared_lstm is, got False")
        super().__init__(*args, **kwargs)
        num_pages = self.observation_space.shape[0]
        self.lstm_actor = PageMemory(self.lstm_actor, num_pages)
        if self.lstm_critic is not None:
            self.lstm_critic = PageMemory(self.lstm_critic, num_pages)
        self.lstm_hidden_state_shape = (self.lstm_actor.num_layers, 1, self.lstm_actor.hidden_size)

    def _build_mlp_extractor(self) -> None:
        encoder = self.features_extractor
        self.mlp_extractor = RecalledHeads(PageHeads(encoder, self._dead()), self.lstm_output_dim)
        self.features_dim = encoder.width  # of the input of the LSTMs, built next

    def _process_sequence(  # type: ignore[override]  # static there
        self,
        features: Tensor,
        lstm_states: tuple[Tensor, Tensor],
        episode_starts: Tensor,
        lstm: PageMemory,
    ) -> tuple[Tensor, Any]:
        """Return the vectors of the pages followed by their memories, and the LSTM's states.

        For the LSTM, each page is a sequence: (N·T, m, C) becomes (N·m·T, C).
        """
        vectors, _ = self.mlp_extractor.heads.by_page(features)
        lanes, pages = lstm_states[0].shape[1], vectors.shape[1]
        sequences = vectors.reshape(lanes, -1, *vectors.shape[1:]).transpose(1, 2)
        starts = episode_starts.reshape(lanes, 1, -1).expand(-1, pages, -1)
        hidden, cell = (state.reshape(len(state), lanes * pages, -1) for state in lstm_states)
        memory, states = RecurrentActorCriticPolicy._process_sequence(
            sequences.flatten(0, 2),
            (hidden, cell),
            starts.flatten(),
            lstm.lstm,
        )
        recalled = memory.reshape(lanes, pages, -1, memory.shape[1]).transpose(1, 2)
        hidden, cell = (state.reshape(len(state), lanes, -1) for state in states)
        return torch.cat([features, recalled.reshape(len(features), -1)], 1), (hidden, cell)
