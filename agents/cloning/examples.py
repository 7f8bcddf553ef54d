"""Decisions of a teacher, kept to be learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crawl_envs.types.files import replacing


class Examples:
    """Observations (n, m, F), the teacher's actions (n, ...) and discounted returns (n,)."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]] = []
        self._starts = [0]

    def __len__(self) -> int:
        return self._starts[-1]

    def add(
        self, observations: NDArray[Any], actions: NDArray[Any], returns: NDArray[np.float32]
    ) -> None:
        """Append examples, without a copy."""
        self._parts.append((observations, actions, returns))
        self._starts.append(self._starts[-1] + len(returns))

    def draw(
        self, rng: np.random.Generator, count: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw ``count`` examples uniformly with replacement."""
        rows = np.sort(rng.integers(len(self), size=count))
        cuts = np.searchsorted(rows, self._starts)
        drawn = [
            [column[rows[low:high] - start] for column in part]
            for part, start, low, high in zip(
                self._parts, self._starts, cuts[:-1], cuts[1:], strict=False
            )
        ]
        observations, actions, returns = (
            torch.from_numpy(np.concatenate(column)) for column in zip(*drawn, strict=True)
        )
        return observations, actions, returns

    def save(self, path: Path) -> None:
        """Write all examples to a file atomically.

        Raises:
            OSError: it cannot be written.
        """
        arrays = {f"{k}_{j}": a for k, part in enumerate(self._parts) for j, a in enumerate(part)}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path, parts: int) -> Examples:
        """Return the first ``parts`` additions in a file.

        Raises:
            ValueError: there is no such file, or it is damaged or foreign.
        """
        examples = cls()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                for k in range(parts):
                    examples.add(*(arrays[f"{k}_{j}"] for j in range(3)))
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path} holds no examples: {error}") from None
        return examples
