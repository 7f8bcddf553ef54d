"""``corrupted``: what is told of the quality of signals is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import Misspecified, RevealedDelay
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, signalled
from crawl_envs.types import FloatArray, Instance

CORRUPTION = 0.5
"""Half of what is told is noise: far beyond figure 8 of the NCIS paper, which stops at 0.2."""


def check_share(name: str, value: Any) -> None:
    """Raise ValueError where a share is no number in [0, 1]."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")


def misjudged(
    change_rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    share: float,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mix noise into precision and recall (NCIS paper, section 6.7).

    Each becomes (1 - share) times itself plus share times its noise. (The paper's formula for
    recall lacks the last factor.) False signals are believed to come at the rate that the two
    imply, nu = recall * Delta * (1 - precision) / precision; where the precision is 0, at their
    own.

    Args:
        change_rate: Delta, which stays, (m,).
        recall: (m,).
        false_signal_rate: nu, (m,).
        share: the p of the paper, in [0, 1].
        noise: for the precision and for the recall, draws from U(0, 1), (2, m).

    Returns:
        The recall and the false-signal rate that are believed, (m,) each.

    Raises:
        ValueError: the share is outside [0, 1].
    """
    check_share("share", share)
    true = recall * change_rate
    rate = true + false_signal_rate
    precision = np.divide(true, rate, out=np.ones_like(true), where=rate > 0.0)
    precision, believed = (1.0 - share) * np.stack([precision, recall]) + share * noise
    false = np.divide(
        believed * change_rate * (1.0 - precision),
        precision,
        out=false_signal_rate.copy(),
        where=precision > 0.0,
    )
    return believed, false


@dataclass(frozen=True, eq=False)
class Corrupted(RevealedDelay):
    """Poisson changes as told; signals of another recall, and false ones at another rate.

    Args:
        recall: the true one, (m,), in [0, 1].
        false_signal_rate: the true one, (m,), >= 0.
    """

    recall: FloatArray
    false_signal_rate: FloatArray

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
        changes = arrivals(rng, told.change_rate, horizon)
        return signalled(rng, changes, self.recall, self.false_signal_rate, horizon)


def corrupted(
    pages: Instance, rng: np.random.Generator, corruption: float = CORRUPTION
) -> Misspecified:
    """Let the pages be as they are, and tell :func:`misjudged` ones; change rates are told right.

    Args:
        pages: the truth.
        rng: of the noise.
        corruption: share of noise in what is told, in [0, 1].

    Raises:
        ValueError: the corruption is outside [0, 1].
    """
    noise = rng.random((2, pages.num_pages))
    recall, false = misjudged(
        pages.change_rate, pages.recall, pages.false_signal_rate, corruption, noise
    )
    law = Corrupted(pages.recall, pages.false_signal_rate)
    return Misspecified(pages, law, recall=recall, false_signal_rate=false)
