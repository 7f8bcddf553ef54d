"""One small network for all pages: a vector per page, a score per page, a value of them all."""

from __future__ import annotations

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from agents.networks.scaling import PageScaling, mean_over

NEVER = -1e9
"""Score of a page that does not exist; finite, so that gradients are."""


class PageEncoder(BaseFeaturesExtractor):
    """One small network for all pages: (N, m, F) to (N, m·C), a vector of C numbers per page.

    A page's vector is computed from its scaled row and from the mean of the first layer's outputs
    over all pages. Unlike a sum or a maximum, the mean over independent pages tends to a limit as
    their number grows, so that a network trained on few pages acts well on many. (What matters of
    the others is the value of a crawl elsewhere, a function of the distribution of pages.)

    C is ``width``, and one more where pages can die: the last number says which pages exist, for
    :func:`page_vectors`.
    """

    def __init__(
        self, observation_space: Box, features: tuple[str, ...], cycle: float, width: int = 32
    ) -> None:
        num_pages, columns = observation_space.shape
        scaling = PageScaling(features, cycle)
        mortal = scaling.columns.alive is not None
        super().__init__(observation_space, num_pages * (width + mortal))
        self.width, self.mortal = width, mortal
        self.scaling = scaling
        self.rows = nn.Linear(columns, width)
        self.alone, self.all = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the vectors of all pages, one after the other."""
        alive = self.scaling.alive(observations)
        rows = torch.relu_(self.rows(self.scaling(observations)))
        context = self.all(mean_over(rows, alive))
        vectors = torch.relu_(self.alone(rows).add_(context[:, None]))
        if alive is not None:
            vectors = torch.cat([vectors, alive[..., None]], -1)
        return torch.flatten(vectors, 1)


def page_vectors(
    encoded: Tensor, num_pages: int, width: int, mortal: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the vectors, (N, m, width), and which pages exist, (N, m), None for all."""
    vectors = encoded.reshape(encoded.shape[0], num_pages, width + mortal)
    return (vectors[..., :width], vectors[..., width]) if mortal else (vectors, None)


class PageHeads(nn.Module):
    """From vectors per page, (N, m·C), to a score per page, (N, m), and to a value's input.

    It replaces Stable-Baselines3's MlpExtractor. The scores are the actor's output itself: logits
    of the pages (action ``page``, and the top pages of ``scores``), logits of their bits
    (``refresh``), or means of normal distributions.

    Args:
        num_pages: m.
        encoder: the source of the vectors.
        masking: give pages that do not exist the score NEVER.
    """

    latent_dim_pi = 1
    """The scores need no layer after them; size 1 keeps the discarded one small."""

    def __init__(self, num_pages: int, encoder: PageEncoder, masking: bool = True) -> None:
        super().__init__()
        self.num_pages, self.latent_dim_vf = num_pages, encoder.width
        self.mortal, self.masking = encoder.mortal, masking
        self.score = nn.Linear(encoder.width, 1)
        self.pooled = nn.Sequential(nn.Linear(encoder.width, encoder.width), nn.ReLU())

    def by_page(self, encoded: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the vectors, (N, m, width), and which pages exist, None for all."""
        return page_vectors(encoded, self.num_pages, self.latent_dim_vf, self.mortal)

    def forward(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores and the value's input."""
        return self.forward_actor(encoded), self.forward_critic(encoded)

    def forward_actor(self, encoded: Tensor) -> Tensor:
        """Return a score per page, (N, m)."""
        vectors, alive = self.by_page(encoded)
        scores: Tensor = self.score(vectors).squeeze(-1)
        return scores if alive is None or not self.masking else never(scores, alive)

    def forward_critic(self, encoded: Tensor) -> Tensor:
        """Return the input of the value of the state, (N, width)."""
        pooled: Tensor = self.pooled(mean_over(*self.by_page(encoded)))
        return pooled


def never(scores: Tensor, alive: Tensor) -> Tensor:
    """Return the scores with NEVER for the pages that do not exist."""
    return scores.masked_fill(alive < 0.5, NEVER)
