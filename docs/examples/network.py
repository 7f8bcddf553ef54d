"""A small network that scores all pages alike, for the examples whose library brings none."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class PageNetwork(nn.Module):
    """Logits (..., m) and a value (...) of observations (..., m, F), for any number m of pages."""

    def __init__(self, features: int, width: int = 64) -> None:
        super().__init__()
        self.rows = nn.Sequential(nn.Linear(features, width), nn.Tanh())
        self.scores = nn.Sequential(
            nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1), nn.Flatten(-2)
        )
        self.value = nn.Linear(width, 1)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the value."""
        rows = self.rows(torch.log1p(observation.clamp(min=0.0)))
        mean = rows.mean(-2, keepdim=True)
        logits = self.scores(torch.cat([rows, mean.expand_as(rows)], -1))
        return logits, self.value(mean).flatten(-2).squeeze(-1)


class Best:
    """A policy of the suite that crawls the page with the largest logit."""

    def __init__(self, network: PageNetwork) -> None:
        self.network = network

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, **_: Any
    ) -> tuple[Any, Any]:
        """Return a page for each observation (..., m, F)."""
        with torch.no_grad():
            logits, _ = self.network(torch.as_tensor(observation))
        return np.asarray(logits.argmax(-1)), state
