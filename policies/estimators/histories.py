"""Histories of crawls, checked and grouped by page; priors of the estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import floats, whole


class Crawls(NamedTuple):
    """Crawls with the state known before each, grouped by page.

    Attributes:
        design: time since the crawl before, and signals of each source since then; (n, d).
        changed: whether the page had changed, (n,) bool.
        weight: multiplicity of a crawl, >= 0; (n,).
        offsets: the crawls of page i are rows offsets[i] .. offsets[i + 1] - 1; (m + 1,) int64.
    """

    design: FloatArray
    changed: BoolArray
    weight: FloatArray
    offsets: IntArray


@dataclass(frozen=True, eq=False)
class GammaPrior:
    """Gamma distributions of the estimated parameters of a page: alpha, then b of each source.

    The estimate is the mode in logarithms, never on a bound; for counted changes it is the
    posterior mean, (shape + counts) / (rate + exposure).

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
        """Mean of each component, nan without a prior."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.shape / self.rate)

    def broadcast_to(self, num_pages: int, components: int) -> tuple[FloatArray, FloatArray]:
        """Return shape and rate, each (m, d); ValueError if they do not broadcast to it."""
        size = num_pages, components
        try:  # copies: numba types differ for arrays that are not writeable
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
    """Return numbers >= 0, or allowed ``flags``, of shape (n,); ValueError unless they are."""
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
        ValueError: a page is not a whole number in 0 .. m - 1.
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
    """Group crawls by page, in the order given.

    Args:
        elapsed: time since the page's crawl before, >= 0; (n,).
        signals: signals since then, (n,), or (S, n) of S sources; may be fractional. None for no
            source.
        changed: whether the page had changed, (n,) bool.
        page: the page of each crawl, (n,) whole numbers; None for a single page.
        num_pages: m; None for the largest page plus 1.
        weights: multiplicity of each crawl, >= 0; (n,). None for 1.

    Raises:
        ValueError: numbers are negative or not finite, shapes disagree, a page is out of range,
            or a page had changed in no time and without a signal.
    """
    time = numbers("elapsed", elapsed)
    if time.ndim != 1:
        raise ValueError(f"elapsed must have shape (n,), got {time.shape}")
    n = len(time)
    counts = np.zeros((0, n)) if signals is None else numbers("signals", signals)
    if counts.ndim not in (1, 2) or counts.shape[-1] != n:
        raise ValueError(f"signals must have shape ({n},) or (S, {n}), got {counts.shape}")
    flags = truths("changed", changed, n) > 0.0
    weight = np.ones(n) if weights is None else column("weights", weights, n)
    pages, m = rows_of_pages(page, num_pages, n)
    design = np.vstack([time[None], counts[None] if counts.ndim == 1 else counts]).T
    if np.any(flags & ~design.any(axis=1)):
        raise ValueError("changed must be False where elapsed and signals are 0, got True")
    offsets = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(pages, minlength=m), out=offsets[1:])
    order = np.argsort(pages, kind="stable")
    return Crawls(np.ascontiguousarray(design[order]), flags[order], weight[order], offsets)


def page_sums(crawls: Crawls, values: FloatArray) -> FloatArray:
    """Return weighted sums of ``values``, (n, ...), over the crawls of each page; (m, ...)."""
    weighted = (values.T * crawls.weight).T
    sums = np.zeros((len(crawls.offsets) - 1, *values.shape[1:]))
    kept = np.flatnonzero(np.diff(crawls.offsets))
    if len(kept):
        sums[kept] = np.add.reduceat(weighted, crawls.offsets[kept], axis=0)
    return sums
