"""``corrupted``: the revealed quality of signals is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, signalled
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import FloatArray, Instance

CORRUPTION = 0.5
"""Share of noise in the revealed quality; figure 8 of the NCIS paper stops at 0.2."""


def check_share(name: str, value: Any) -> float:
    """Return a share; raise ValueError unless ``value`` is a number in [0, 1]."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return float(value)


def corrupted_quality(
    change_rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    share: float,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mix noise into precision and recall (NCIS paper, section 6.7).

    Each becomes (1 - share) times its value plus share times its noise. (The paper's formula for
    recall lacks the last factor.) The estimated false-signal rate follows from both,
    nu = recall * Delta * (1 - precision) / precision; where the precision is 0, it is the true one.

    Args:
        change_rate: Delta, unchanged, (m,).
        recall: true recall, (m,).
        false_signal_rate: true nu, (m,).
        share: the p of the paper, in [0, 1].
        noise: draws from U(0, 1) for precision and recall, (2, m).

    Returns:
        The corrupted recall and false-signal rate, (m,) each.

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
class Corrupted(HiddenLaw):
    """Poisson changes at the revealed rates; signals with a different recall and false-signal rate.

    Args:
        recall: true recall, in [0, 1], (m,).
        false_signal_rate: true rate, >= 0, (m,).
    """

    recall: FloatArray
    false_signal_rate: FloatArray

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        changes = arrivals(rng, pages.change_rate, horizon)
        return signalled(rng, changes, self.recall, self.false_signal_rate, horizon)


def draw_corrupted(
    rng: np.random.Generator, num_pages: int, *, corruption: float = CORRUPTION, **more: Any
) -> Misspecified:
    """Draw pages with true change rates, and :func:`corrupted_quality` of this share revealed."""
    pages = draw_noisy(rng, num_pages, **more)
    noise = rng.random((2, num_pages))
    recall, false = corrupted_quality(
        pages.change_rate, pages.recall, pages.false_signal_rate, corruption, noise
    )
    law = Corrupted(pages.recall, pages.false_signal_rate)
    return Misspecified(pages, law, recall=recall, false_signal_rate=false)
