"""A small network that scores pages, one at a time, from a few inputs each.

score = skip . x + sum_j outer_j sat(bias_j + inner_j . x), with sat(z) = z / (1 + |z|).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import inlined

BLOCK = 128
"""Pages that are scored together, so that their inputs stay in the cache."""


class Weights(NamedTuple):
    """The weights of a network of K inputs and H hidden units (float64).

    ``inner`` (H, K), ``bias`` (H,), ``outer`` (H,), ``skip`` (K,).
    """

    inner: FloatArray
    bias: FloatArray
    outer: FloatArray
    skip: FloatArray


def hidden_units(num_weights: int, num_inputs: int) -> int:
    """Return the number of hidden units of a network of ``num_weights`` weights.

    Raises:
        ValueError: no network of ``num_inputs`` inputs has that number of weights.
    """
    hidden, rest = divmod(num_weights - num_inputs, num_inputs + 2)
    if hidden < 1 or rest:
        raise ValueError(
            f"weights must be H (K + 2) + K numbers for K = {num_inputs} inputs and H >= 1, "
            f"got {num_weights}"
        )
    return hidden


@inlined()
def forward(weights: Weights, features: NDArray[np.float64], out: FloatArray) -> None:
    """Score pages: ``features`` (K, m) float64, ``out`` (m,) receives the scores.

    The loops run over pages innermost, so that they are vectorised.
    """
    inner, bias, outer, skip = weights
    num_inputs, num_pages = features.shape
    block = np.zeros((num_inputs, BLOCK))
    unit, score = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, num_pages, BLOCK):
        size = min(BLOCK, num_pages - first)
        score[:] = 0.0
        for k in range(num_inputs):
            row = features[k]
            for page in range(size):
                block[k, page] = row[first + page]
                score[page] += skip[k] * block[k, page]
        for j in range(bias.size):
            unit[:] = bias[j]
            for k in range(num_inputs):
                weight = inner[j, k]
                for page in range(BLOCK):
                    unit[page] += weight * block[k, page]
            weight = outer[j]
            for page in range(BLOCK):
                score[page] += weight * unit[page] / (1.0 + abs(unit[page]))
        for page in range(size):
            out[first + page] = score[page]
