"""Divergence between snapshots, interpolated by eagerness as in Olston and Pandey's appendix B."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Contents
from scripts.experiments.longevity.setup.fragment_curves import distances, versions


def eagerness_of(apart: FloatArray) -> float:
    """Return the eagerness E = mean of D(t0, t1) / D(t0, t2), in [0, 1].

    t0, t1, t2 are three consecutive snapshots; those with D(t0, t2) = 0 are excluded, and the
    quotient is clipped at 1, where fragments reappear. Steady growth has E = 1/2; content that is
    replaced more often than snapshots are taken has E = 1.

    Args:
        apart: Jaccard distances of all pairs of a page's snapshots, (S, S).

    Returns:
        E, NaN where nothing differs.
    """
    near, far = np.diag(apart, 1)[:-1], np.diag(apart, 2)
    differs = far > 0.0
    if not differs.any():
        return float("nan")
    return float(np.minimum(near[differs] / far[differs], 1.0).mean())


def interpolated(apart: FloatArray, every: int, eagerness: float) -> float:
    """Return the mean divergence of a page that is refreshed every ``every`` snapshots.

    Between snapshots x and x + 1 it is (1 - E) D_x + E D_{x+1}, from the current copy (appendix B).

    Args:
        apart: Jaccard distances of all pairs of a page's snapshots, (S, S).
        every: snapshots from refresh to refresh, >= 1; the first snapshot is a refresh.
        eagerness: E, in [0, 1].
    """
    number = np.arange(len(apart) - 1)
    held = number // every * every
    early, late = apart[held, number], apart[held, number + 1]
    return float(((1.0 - eagerness) * early + eagerness * late).mean())


def interpolated_means(
    contents: Contents,
    times: FloatArray,
    refreshes: tuple[int, ...],
    eagerness: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the interpolated mean divergence of each page, and each page's eagerness.

    A page without an eagerness takes the mean of the others, or 1/2 where none has one.

    Args:
        contents: of m pages.
        times: of the snapshots, evenly spaced, (S,), S >= 3.
        refreshes: snapshots from refresh to refresh of each schedule.
        eagerness: E of all pages; None for each page's own.

    Returns:
        Mean divergence from the first snapshot to the last, (schedules, m), and each page's own E,
        (m,), NaN where it has none.
    """
    apart = [distances(*versions(contents, page, times)) for page in range(contents.num_pages)]
    own = np.array([eagerness_of(page) for page in apart])
    known = own[~np.isnan(own)]
    used = np.where(np.isnan(own), known.mean() if known.size else 0.5, own)
    if eagerness is not None:
        used = np.full(own.size, eagerness)
    means = [
        [interpolated(page, every, eager) for page, eager in zip(apart, used, strict=True)]
        for every in refreshes
    ]
    return np.array(means), own
