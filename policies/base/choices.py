"""What a policy chose, checked, in the forms of action."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def page_action(
    name: str, choice: Any, form: str, num_pages: int, *, batch: int = 1, probes: bool = False
) -> NDArray[Any]:
    """Return chosen pages as an action of the form ``page``, ``scores`` or ``refresh``.

    Args:
        name: name of the policy, for errors.
        choice: the pages, best first, (k,), or a single one.
        form: the form of action.
        num_pages: m.
        batch: crawls per decision in the form ``scores``.
        probes: whether m + i may be chosen for a probe of page i.

    Raises:
        ValueError: the pages are not integers in [0, m), or repeat in ``scores``; there are none in
            ``page`` or ``scores``.
    """
    pages = np.atleast_1d(choice)
    pages = pages if pages.size > 0 else pages.astype(np.int64)
    if pages.ndim != 1 or pages.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must choose pages as an array of integers, shape (k,), got {choice!r}"
        )
    if pages.size == 0 and form != "refresh":
        raise ValueError(f"{name} must choose a page in the form {form!r}, got none")
    choices = num_pages << probes
    within = 0 <= pages[0] < choices if pages.size == 1 else _all_within(pages, choices)
    if not within:
        raise ValueError(f"{name} must choose pages in [0, {choices}), got {choice!r}")
    if form == "page":
        return np.asarray(pages[0], dtype=np.int64)
    if form == "refresh":
        refresh = np.zeros(num_pages, dtype=np.int8)
        refresh[pages] = 1
        return refresh
    scores = np.full(num_pages, -1.0, dtype=np.float32)
    scores[pages] = 1.0 - np.arange(pages.size) / max(batch, pages.size)
    if pages.size > 1 and np.count_nonzero(scores > -1.0) < pages.size:
        raise ValueError(f"{name} must choose different pages in the form 'scores', got {choice!r}")
    return scores


def _all_within(pages: NDArray[Any], choices: int) -> bool:
    """Return whether all pages lie in [0, choices)."""
    return bool(((pages >= 0) & (pages < choices)).all())


def rate_action(name: str, choice: Any, num_pages: int, *, shares: bool = False) -> NDArray[Any]:
    """Return chosen rates as an action of the form ``rates``, or ``shares`` as float32.

    Raises:
        ValueError: not one number per page, finite and >= 0; for shares in [-1, 1].
    """
    rates = np.asarray(choice, dtype=np.float32 if shares else np.float64)
    least, words = (-1.0, "in [-1, 1]") if shares else (0.0, "finite and >= 0")
    most = 1.0 if shares else np.finfo(np.float64).max
    if rates.shape != (num_pages,) or not (rates.min() >= least and rates.max() <= most):
        raise ValueError(
            f"{name} must choose a number per page, ({num_pages},), {words}, got {choice!r}"
        )
    return rates
