"""What crawls found, checked and put together page by page; priors of what is estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import floats, whole
from policies.estimators.signals.likelihood import Crawls


@dataclass(frozen=True, eq=False)
class GammaPrior:
    """Gamma distributions of what is estimated of a page: first alpha, then b of each source.

    The estimate is the mode in logarithms, (shape + counts) / (rate + exposure) were changes
    counted: the posterior mean then, and never on a bound.

    Args:
        shape: > 0, or 0 (with rate 0) for no prior; shape (d,) for all pages, (m, d) for each, or
            a scalar.
        rate: in units of time for alpha, of signals for b; > 0 where ``shape`` is, else 0.

    Raises:
        ValueError: a number is negative or not finite, or only one of shape and rate is 0.
    """

    shape: FloatArray
    rate: FloatArray

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            array = np.array(numbers(f"prior {name}", getattr(self, name)))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if np.any((self.shape > 0.0) != (self.rate > 0.0)):
            raise ValueError(
                "prior shape and rate must both be > 0, or both 0 for no prior, "
                f"got {self.shape} and {self.rate}"
            )

    @property
    def mean(self) -> FloatArray:
        """Mean of each component, nan where there is no prior."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.shape / self.rate)

    def of(self, num_pages: int, components: int) -> tuple[FloatArray, FloatArray]:
        """Shape and rate, each (m, d); ValueError where they do not fit these numbers."""
        size = num_pages, components
        try:  # copies: what can be written to has a type of its own in compiled code
            return np.broadcast_to(self.shape, size).copy(), np.broadcast_to(self.rate, size).copy()
        except ValueError:
            raise ValueError(
                f"prior must have components for {num_pages} pages and 1 + {components - 1} "
                f"sources, got arrays of shape {self.shape.shape} and {self.rate.shape}"
            ) from None


def numbers(name: str, values: ArrayLike, *, flags: bool = False) -> FloatArray:
    """Return float64 numbers; ValueError unless they are finite and >= 0, or allowed ``flags``."""
    array = floats(name, values, flags=flags)
    sound = np.isfinite(array) & (array >= 0.0)
    if not sound.all():
        raise ValueError(f"{name} must be finite and >= 0, got {array[~sound].flat[0]}")
    return array


NO_PRIOR = GammaPrior(np.zeros(()), np.zeros(()))


def column(name: str, values: ArrayLike, length: int, *, flags: bool = False) -> FloatArray:
    """Return numbers >= 0, or allowed ``flags``, of shape (n,); ValueError where they are not."""
    array = numbers(name, values, flags=flags)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {array.shape}")
    return array


def truths(name: str, values: ArrayLike, length: int) -> FloatArray:
    """Return truth values, or numbers 0 and 1, of shape (n,) as 0.0 and 1.0."""
    array = column(name, values, length, flags=True)
    wrong = (array != 0.0) & (array != 1.0)
    if wrong.any():
        raise ValueError(f"{name} must be True or False, got {array[wrong][0]}")
    return array


def rows_of_pages(
    page: ArrayLike | None, num_pages: int | None, length: int
) -> tuple[IntArray, int]:
    """Return the page of each crawl, (n,) int64, and the number of pages.

    Raises:
        ValueError: a page is no whole number, or not one of the pages 0 .. m - 1.
    """
    given = np.zeros(length, np.int64) if page is None else np.asarray(page)
    if given.shape != (length,) or (given.dtype.kind not in "iu" and length):
        raise ValueError(
            f"page must be {length} whole numbers, got dtype {given.dtype}, shape {given.shape}"
        )
    if num_pages is None:
        num_pages = int(given.max(initial=0)) + 1
    num_pages = whole("num_pages", num_pages, 1)
    if length and (given.min() < 0 or given.max() >= num_pages):
        raise ValueError(f"page must lie in [0, {num_pages - 1}], got {given.min()}..{given.max()}")
    return given.astype(np.int64), num_pages


def history(
    elapsed: ArrayLike,
    signals: ArrayLike | None,
    changed: ArrayLike,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
    weights: ArrayLike | None = None,
) -> Crawls:
    """Put crawls together by page, in the order given.

    Args:
        elapsed: time since the page's crawl before, >= 0; (n,).
        signals: signals since then, (n,), or (S, n) of S sources; fractions are welcome. None is
            no source at all.
        changed: whether the page had changed, (n,) bool.
        page: the page of each crawl, (n,) whole numbers; None is a single page.
        num_pages: m; None is up to the largest page.
        weights: how often a crawl counts, >= 0; (n,). None is once each.

    Raises:
        ValueError: numbers are negative or not finite, shapes disagree, a page is none of the m,
            or a page had changed in no time and without a signal.
    """
    time = numbers("elapsed", elapsed)
    if time.ndim != 1:
        raise ValueError(f"elapsed must have shape (n,), got {time.shape}")
    n = len(time)
    counts = np.zeros((0, n)) if signals is None else numbers("signals", signals)
    if counts.ndim not in (1, 2) or counts.shape[-1] != n:
        raise ValueError(f"signals must have shape ({n},) or (S, {n}), got {counts.shape}")
    found = truths("changed", changed, n) > 0.0
    weight = np.ones(n) if weights is None else column("weights", weights, n)
    pages, m = rows_of_pages(page, num_pages, n)
    design = np.vstack([time[None], counts[None] if counts.ndim == 1 else counts]).T
    if np.any(found & ~design.any(axis=1)):
        raise ValueError("changed must be False where elapsed and signals are 0, got True")
    offsets = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(pages, minlength=m), out=offsets[1:])
    order = np.argsort(pages, kind="stable")
    return Crawls(np.ascontiguousarray(design[order]), found[order], weight[order], offsets)


def page_sums(crawls: Crawls, values: FloatArray) -> FloatArray:
    """Weighted sums of ``values``, (n, ...), over the crawls of each page; (m, ...)."""
    weighted = (values.T * crawls.weight).T
    sums = np.zeros((len(crawls.offsets) - 1, *values.shape[1:]))
    kept = np.flatnonzero(np.diff(crawls.offsets))
    if len(kept):
        sums[kept] = np.add.reduceat(weighted, crawls.offsets[kept], axis=0)
    return sums
