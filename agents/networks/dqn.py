"""Action values of pages, for DQN."""

from __future__ import annotations

from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from agents.networks.encoder import PageEncoder, PageHeads
from agents.networks.scaling import mean_over


class PageValues(nn.Module):
    """Action values of the pages, (N, m): the value of the state, plus a score per page.

    Pages that do not exist have the smallest value minus 1, so they are never selected.
    """

    def __init__(self, encoder: PageEncoder) -> None:
        super().__init__()
        self.heads = PageHeads(encoder, dead=None)
        self.value = nn.Linear(encoder.width, 1)

    def forward(self, encoded: Tensor) -> Tensor:
        """Return the action value of each page, (N, m), from encoded observations."""
        scores, pooled = self.heads(encoded)
        alive = self.heads.by_page(encoded)[1]
        values: Tensor = self.value(pooled) + scores - mean_over(scores, alive)[:, None]
        if alive is None:
            return values
        dead = values.detach().amin(1, keepdim=True) - 1.0
        return alive * values + (1.0 - alive) * dead


class PageDQN(DQNPolicy):
    """The policy of DQN with action values from a vector per page."""

    def make_q_net(self) -> QNetwork:
        """Build the network of action values from the page encoder."""
        network = super().make_q_net()
        encoder = network.features_extractor
        assert isinstance(encoder, PageEncoder)
        network.q_net = PageValues(encoder).to(self.device)  # type: ignore[assignment]  # a module
        return network
