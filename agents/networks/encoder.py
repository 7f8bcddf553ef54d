"""The network ``pages``: a vector and a score for each page, and a value of the state."""

from __future__ import annotations

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from agents.networks.scaling import PageScaling, mean_over

NEVER = -1e9
"""Score of a page that does not exist; it is finite so that gradients are finite."""


class PageEncoder(BaseFeaturesExtractor):
    """One small network for all pages: (N, m, F) to (N, m·C), a vector of C numbers per page.

    A page's vector is computed from its scaled row and from the mean of the first layer's outputs
    over all pages. Unlike a sum or a maximum, the mean over independent pages tends to a limit as
    their number grows, so a network trained on few pages acts well on many. (The rest of the pages
    matters by the value of a crawl there, a function of the distribution of pages.)

    C is ``width``, plus one where pages can die: for :class:`OnPages`, the last number is 1 if the
    page exists.
    """

    def __init__(
        self, observation_space: Box, features: tuple[str, ...], cycle: float, width: int = 32
    ) -> None:
        num_pages, columns = observation_space.shape
        scaling = PageScaling(features, cycle)
        super().__init__(observation_space, num_pages * (width + scaling.mortal))
        self.width, self.scaling = width, scaling
        self.rows = nn.Linear(columns, width)
        self.alone, self.all = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the vectors of all pages, one after the other."""
        alive = self.scaling.alive(observations)
        rows = torch.relu_(self.rows(self.scaling(observations)))
        context = self.all(mean_over(rows, alive))
        return joined(torch.relu_(self.alone(rows).add_(context[:, None])), alive)


def joined(vectors: Tensor, alive: Tensor | None) -> Tensor:
    """Join the vectors of pages, and whether each page exists, to one row per lane, (N, m·C)."""
    if alive is not None:
        vectors = torch.cat([vectors, alive[..., None]], -1)
    return torch.flatten(vectors, 1)


class OnPages(nn.Module):
    """The base of networks that read an encoder's output, for any number of pages."""

    def __init__(self, encoder: PageEncoder) -> None:
        super().__init__()
        self.width, self.mortal = encoder.width, encoder.scaling.mortal

    def by_page(self, encoded: Tensor) -> tuple[Tensor, Tensor | None]:
        """Split encoded rows into vectors, (N, m, width), and which pages exist, (N, m) or None."""
        vectors = encoded.reshape(len(encoded), -1, self.width + self.mortal)
        return (vectors[..., :-1], vectors[..., -1]) if self.mortal else (vectors, None)


class PerPage(OnPages):
    """A layer that computes a number for each page from its vector, (N, m·C) to (N, m).

    Args:
        encoder: the source of the vectors.
        dead: the number of a page that does not exist; None to compute it from its vector.
    """

    def __init__(self, encoder: PageEncoder, dead: float | None) -> None:
        super().__init__(encoder)
        self.dead = dead
        self.score = nn.Linear(encoder.width, 1)

    def forward(self, encoded: Tensor) -> Tensor:
        """Return the number of each page, (N, m)."""
        vectors, alive = self.by_page(encoded)
        numbers: Tensor = self.score(vectors).squeeze(-1)
        if alive is None or self.dead is None:
            return numbers
        return numbers.masked_fill(alive < 0.5, self.dead)


class PageHeads(PerPage):
    """From a vector per page, (N, m·C), to a score per page, (N, m), and to the input of the value.

    It replaces Stable-Baselines3's MlpExtractor. The scores are the actor's output: logits of the
    pages (action ``page``, and the top pages of ``scores``), logits of their bits (``refresh``), or
    means of normal distributions.
    """

    latent_dim_pi = 1
    """Size of Stable-Baselines3's layer after the scores; it is discarded, so it is small."""

    def __init__(self, encoder: PageEncoder, dead: float | None = NEVER) -> None:
        super().__init__(encoder, dead)
        self.latent_dim_vf = encoder.width
        self.pooled = nn.Sequential(nn.Linear(encoder.width, encoder.width), nn.ReLU())

    def forward(self, encoded: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]  # two
        """Return the score of each page, (N, m), and the input of the state's value, (N, width)."""
        return self.forward_actor(encoded), self.forward_critic(encoded)

    def forward_actor(self, encoded: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        return super().forward(encoded)

    def forward_critic(self, encoded: Tensor) -> Tensor:
        """Return the input of the value of the state, (N, width)."""
        pooled: Tensor = self.pooled(mean_over(*self.by_page(encoded)))
        return pooled
