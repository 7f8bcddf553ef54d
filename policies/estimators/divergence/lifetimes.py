"""Lifetimes of fragments (section 3.3): distributions that differ between churn and scroll."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats
from crawl_envs.types.contents import Regions

Among = Literal["born", "present"]


def _nonnegative(name: str, value: ArrayLike) -> FloatArray:
    array = floats(name, value)
    good = array >= 0.0
    if not good.all():
        raise ValueError(f"{name} must be >= 0, got {array[~good].flat[0]}")
    return array


def _updates(elapsed: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return the expected number of updates in a time; 0 if the rate is 0."""
    time, pace = _nonnegative("elapsed", elapsed), _nonnegative("rate", rate)
    if not np.isfinite(pace).all():
        raise ValueError(f"rate must be finite, got {pace.max()}")
    try:
        time, pace = np.broadcast_arrays(time, pace)
    except ValueError:
        raise ValueError(f"elapsed {time.shape} and rate {pace.shape} must broadcast") from None
    updates = np.zeros(time.shape)
    np.multiply(time, pace, out=updates, where=pace > 0.0)
    return updates


def churn_lifetime(elapsed: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return P(lifetime <= t) = 1 - exp(-l t) of a fragment in a churn region (section 3.3).

    Args:
        elapsed: t, >= 0.
        rate: l, updates of the region per unit time, >= 0 and finite; broadcasts with ``elapsed``.

    Raises:
        ValueError: an argument is out of its range, or they do not broadcast.
    """
    return np.asarray(-np.expm1(-_updates(elapsed, rate)))


def scroll_lifetime(elapsed: ArrayLike, items: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return P(lifetime <= t) = 1 - sum_{i < K} (l t)^i exp(-l t) / i! in a scroll region.

    This is the Erlang distribution of the time of K updates (section 3.3); K = 1 is churn.

    Args:
        elapsed: t, >= 0.
        items: K, items in the region at any time, whole numbers >= 1; broadcasts.
        rate: l, updates of the region per unit time, >= 0 and finite; broadcasts.

    Raises:
        ValueError: an argument is out of its range, or they do not broadcast.
    """
    from scipy.special import gammainc

    count = floats("items", items)
    good = (count >= 1.0) & (count == np.floor(count)) & np.isfinite(count)
    if not good.all():
        raise ValueError(f"items must be whole numbers >= 1, got {count[~good].flat[0]}")
    return np.asarray(gammainc(count, _updates(elapsed, rate)))


def page_lifetimes(regions: Regions, elapsed: ArrayLike, among: Among = "born") -> FloatArray:
    """Return the share of fragments of each page with a lifetime of at most ``elapsed``.

    Args:
        regions: regions of m pages.
        elapsed: lifetimes, >= 0, (A,) or a scalar.
        among: ``"born"``: fragments born over a long time, as in the paper; the weight of a region
            is its births, l c; NaN for a static page, which has none. ``"present"``: fragments
            present at a random time; the weight of a region is its fragments, K c, those of static
            regions never die, and long-lived ones are sampled more often, which adds an update to
            the K of their lifetime.

    Returns:
        (m, A), or (m,) for a scalar; in [0, 1] or NaN.

    Raises:
        ValueError: ``elapsed`` is negative or of another shape, or ``among`` is unknown.
    """
    time = _nonnegative("elapsed", elapsed)
    if time.ndim > 1:
        raise ValueError(f"elapsed must have shape (A,) or be a scalar, got shape {time.shape}")
    if among not in ("born", "present"):
        raise ValueError(f"among must be 'born' or 'present', got {among!r}")
    born = among == "born"
    weight = regions.rate * regions.size if born else 1.0 * regions.items * regions.size
    updates = regions.items if born else regions.items + 1
    lived = scroll_lifetime(time.reshape(-1, 1, 1), updates, regions.rate)  # (A, m, G)
    with np.errstate(invalid="ignore"):
        share = weight / weight.sum(axis=1, keepdims=True)
    mixed: FloatArray = np.einsum("amg,mg->ma", lived, share)
    return mixed if time.ndim else mixed[:, 0]
