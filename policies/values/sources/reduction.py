"""Pages with several sources of signals, reduced to the sources that matter, in units of Delta.

Sources without recall are dropped, sources of equal b are merged, and sources whose jumps are too
weak to differ from a drift are treated as time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.compiling import compiled

WEAK = 1e-14
"""Twice the largest relative error from treating weak sources as time."""

NOISIEST = 1e100
"""Largest ratio of false signals to changes; keeps squares of b from underflow."""

SAME = 1e-15
"""Relative difference of b up to which sources are merged."""


class Sources(NamedTuple):
    """A reduced page, with rates in units of Delta and finite ``jumps`` b, distinct and ascending.

    ``seen`` (recalls), ``noise`` and ``jumps`` have shape (remaining sources,). ``drift`` is alpha
    plus the weak sources, ``perfect`` the rate of signals that are never false, ``lumped`` whether
    there are weak sources.
    """

    drift: float
    seen: FloatArray
    noise: FloatArray
    jumps: FloatArray
    perfect: float
    lumped: bool


@compiled()
def reduced(recall: FloatArray, noise: FloatArray) -> Sources:
    """Reduce a page with recalls and false-signal rates of shape (S,), in units of Delta."""
    num_sources = recall.size
    drift = max(0.0, 1.0 - recall.sum())
    perfect = 0.0
    seen, kept, jumps = np.zeros(num_sources), np.zeros(num_sources), np.zeros(num_sources)
    evidence = np.log1p(recall / noise)
    count = 0
    for s in np.argsort(np.where(recall > 0.0, evidence, 0.0)):
        if not recall[s] > 0.0 or evidence[s] == 0.0:
            drift += recall[s]
        elif evidence[s] == math.inf:
            perfect += recall[s]
        elif count > 0 and evidence[s] <= jumps[count - 1] * (1.0 + SAME):
            seen[count - 1] += recall[s]
            kept[count - 1] += noise[s]
        else:
            seen[count] = recall[s]
            kept[count] = noise[s]
            jumps[count] = evidence[s]
            count += 1
    weak = 0
    spread = 0.0
    while count - weak + (perfect > 0.0) > 1:
        own = (seen[weak] + kept[weak]) * jumps[weak]
        spread += own * jumps[weak]
        rest = (seen + kept)[weak + 1 : count].sum() + perfect
        if not spread * rest <= WEAK * (drift + own) ** 2:
            break
        drift += own
        weak += 1
    return Sources(drift, seen[weak:count], kept[weak:count], jumps[weak:count], perfect, weak > 0)


def reduced_pages(delta: FloatArray, lam: FloatArray, nu: FloatArray) -> list[Sources]:
    """Return the reduced form of every page."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        noise = np.where(delta > 0.0, np.minimum(nu / delta, NOISIEST), 0.0)
    return [reduced(*page) for page in zip(lam.T.copy(), noise.T.copy(), strict=True)]


def informative(page: Sources) -> int:
    """Return the number of remaining sources; those without false signals are one."""
    return int(page.jumps.size + (page.perfect > 0.0))


def alone(page: Sources) -> tuple[float, float, float, float]:
    """Return change rate, recall, noise (in units of Delta) and UNIT of a page of <= 1 source.

    With weak sources treated as time, the change rate differs slightly from 1.
    """
    if page.perfect > 0.0:
        seen, noise, unit = page.perfect, 0.0, math.inf
    elif page.jumps.size:
        noise, unit = float(page.noise[-1]), float(page.jumps[-1])
        seen = float(page.seen[-1])
    else:
        return page.drift, 0.0, 0.0, 0.0
    pace = page.drift + seen if page.lumped else 1.0
    return pace, min(1.0, seen / pace), noise, 0.0 if page.lumped else unit


def single_sources(
    change_rate: FloatArray, recall: FloatArray, false_signal_rate: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return which pages have several informative sources, and the source of the others.

    Sources without recall are not informative; sources of equal b are merged.

    Args:
        change_rate: Delta, > 0, (m,).
        recall: lambda_s, (S, m).
        false_signal_rate: nu_s, (S, m).

    Returns:
        Whether there are several; recall and false-signal rate of the single sources; (m,) each.
    """
    pages = reduced_pages(change_rate, recall, false_signal_rate)
    several = np.array([page.lumped or informative(page) > 1 for page in pages], np.bool_)
    _, recalls, noise, _ = np.array([alone(page) for page in pages]).reshape(-1, 4).T
    return several, np.where(several, 0.0, recalls), np.where(several, 0.0, noise * change_rate)
