"""What a policy chose, checked, in the forms of action."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, ready
from crawl_envs.types import IntArray


class Action(NamedTuple):
    """An action that a trained model returned: it needs no conversion to the form of action."""

    values: Any


def page_action(
    name: str, choice: Any, form: str, num_pages: int, *, batch: int = 1
) -> NDArray[Any]:
    """Return the pages that a policy chose as an action: ``page``, ``scores`` or ``refresh``.

    Args:
        name: name of the policy, for errors.
        choice: the pages, best first, (k,), or a single one.
        form: the form of action.
        num_pages: m.
        batch: crawls per decision in the form ``scores``.

    Raises:
        ValueError: the pages are not integers in [0, m), or repeat in ``scores``; there are none in
            ``page`` or ``scores``, or several in ``page``.
    """
    pages = np.atleast_1d(choice)
    pages = pages if pages.size > 0 else pages.astype(np.int64)
    if pages.ndim != 1 or pages.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must choose pages as an array of integers, shape (k,), got {choice!r}"
        )
    if pages.size == 0 and form != "refresh":
        raise ValueError(f"{name} must choose a page in the form {form!r}, got none")
    if form == "page":
        if pages.size > 1:
            raise ValueError(f"{name} must choose one page in the form 'page', got {choice!r}")
        if not _within(pages, num_pages):
            raise ValueError(_outside(name, num_pages, choice))
        return np.asarray(pages[0], dtype=np.int64)
    indices = np.ascontiguousarray(pages, dtype=np.int64)
    if form == "refresh":
        refresh = np.zeros(num_pages, dtype=np.int8)
        if not ready(mark)(indices, refresh):
            raise ValueError(_outside(name, num_pages, choice))
        return refresh
    scores = np.full(num_pages, -1.0, dtype=np.float32)
    if not ready(score)(indices, scores, max(batch, indices.size)):
        if not _within(pages, num_pages):
            raise ValueError(_outside(name, num_pages, choice))
        raise ValueError(f"{name} must choose different pages in the form 'scores', got {choice!r}")
    return scores


def _within(pages: NDArray[Any], num_pages: int) -> bool:
    """Return whether all pages lie in [0, m)."""
    return bool(((pages >= 0) & (pages < num_pages)).all())


def _outside(name: str, num_pages: int, choice: Any) -> str:
    return f"{name} must choose pages in [0, {num_pages}), got {choice!r}"


@compiled(types.boolean(types.int64[::1], types.int8[::1]))
def mark(pages: IntArray, refresh: NDArray[np.int8]) -> bool:
    """Set ``refresh`` to 1 for the chosen pages; return False if one of them does not exist."""
    for page in pages:
        if page < 0 or page >= refresh.size:
            return False
        refresh[page] = 1
    return True


@compiled(types.boolean(types.int64[::1], types.float32[::1], types.int64))
def score(pages: IntArray, scores: NDArray[np.float32], steps: int) -> bool:
    """Write scores of chosen pages, from 1 downwards by 1 / steps; all others have -1.

    Returns False if a page does not exist, or comes twice.
    """
    for place in range(pages.size):
        page = pages[place]
        if page < 0 or page >= scores.size or scores[page] > -1.0:
            return False
        scores[page] = 1.0 - place / steps
    return True


def rate_action(name: str, choice: Any, num_pages: int) -> NDArray[np.float64]:
    """Return the rates that a policy chose as an action of the form ``rates``, (m,).

    Raises:
        ValueError: not one number per page, finite and >= 0.
    """
    rates = np.asarray(choice, dtype=np.float64)
    if rates.shape != (num_pages,) or not (rates.min() >= 0.0 and rates.max() < np.inf):
        raise ValueError(
            f"{name} must choose a number per page, ({num_pages},), finite and >= 0, got {choice!r}"
        )
    return rates
