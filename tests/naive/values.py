"""Slow, obvious twins of the crawl values: the paper's formulas as printed, in 50 digits and more.

Everything is mpmath; parameters are taken as the exact values of their floats. ``alpha = 0`` and
``nu = 0``, where beta is infinite, are written out as the limits they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath as mp

DIGITS = 120
"""Enough for every parameter above 1e-30; :func:`digits` asks for more below that."""


def digits(*parameters: float) -> int:
    """Working precision that the cancellations of the printed formulas leave digits of."""
    tiny = min((abs(value) for value in parameters if value), default=1.0)
    return DIGITS if tiny > 1e-30 else 800


def residual(i: int, x: Any) -> Any:
    """R^i_exp(x) = 1 - exp(-x) sum_{j <= i} x^j / j!, for small x as exp(-x) sum_{j > i}."""
    if x > i + 40:
        term = total = mp.mpf(x) ** 0
        for j in range(1, i + 1):
            term *= x / j
            total += term
        return 1 - mp.exp(-x) * total
    term = x ** (i + 1) / mp.factorial(i + 1)
    total, j = mp.mpf(0), i + 1
    while abs(term) > total * mp.eps:
        total += term
        j += 1
        term *= x / j
    return mp.exp(-x) * total


def greedy(elapsed: float, importance: float, change_rate: float) -> Any:
    """V_GREEDY of section 5.1."""
    with mp.workdps(digits(elapsed, change_rate)):
        t, mu, delta = map(mp.mpf, (elapsed, importance, change_rate))
        return mu / delta * residual(1, delta * t)


def greedy_cis(elapsed: float, alpha: Any, gamma: Any, importance: float) -> Any:
    """V_GREEDY_CIS of section 5.1 before a signal; alpha and gamma as believed."""
    with mp.workdps(digits(elapsed)):
        t, mu = mp.mpf(elapsed), mp.mpf(importance)
        gained = residual(0, (alpha + gamma) * t) / (alpha + gamma)
        return mu * (gained - residual(0, gamma * t) / (gamma * mp.exp(alpha * t)))


def rates(change_rate: float, recall: float, false_signal_rate: float) -> tuple[Any, Any, Any]:
    """alpha, gamma, nu of a page."""
    with mp.workdps(digits(change_rate, recall, false_signal_rate)):
        delta, lam, nu = map(mp.mpf, (change_rate, recall, false_signal_rate))
        return (1 - lam) * delta, lam * delta + nu, nu


def _summands(
    elapsed: float, signals: int, page: tuple[float, float, float], terms: float
) -> Iterator[tuple[int, Any, Any]]:
    """(i, iota - i beta, exp(-alpha iota)) for each i up to floor(iota / beta) below ``terms``."""
    alpha, gamma, nu = rates(*page)
    tau = mp.mpf(elapsed)
    if nu == 0 and signals:
        raise ValueError("after a signal that is never false, the value is mu / Delta")
    quality = nu / gamma
    fresh = mp.exp(-alpha * tau) * quality**signals
    beta = mp.inf if alpha == 0 or nu == 0 else -mp.log(quality) / alpha
    i = 0
    while i < terms:
        ahead = signals - i
        x = tau if ahead == 0 else tau + ahead * beta
        if x <= 0:
            return
        yield i, x, fresh
        i += 1


def greedy_ncis(
    elapsed: float, signals: int, page: tuple[float, float, float], terms: float = mp.inf
) -> Any:
    """V_GREEDY_NCIS of Theorem 1 for importance 1, or its first ``terms`` summands."""
    with mp.workdps(digits(elapsed, *page)):
        alpha, gamma, nu = rates(*page)
        return mp.fsum(
            nu**i / (alpha + gamma) ** (i + 1) * residual(i, (alpha + gamma) * x)
            - fresh / gamma * residual(i, gamma * x)
            for i, x, fresh in _summands(elapsed, signals, page, terms)
        )


def cycle_length(elapsed: float, signals: int, page: tuple[float, float, float]) -> Any:
    """psi of Lemma 4."""
    with mp.workdps(digits(elapsed, *page)):
        _, gamma, _ = rates(*page)
        return mp.fsum(
            residual(i, gamma * x) / gamma for i, x, _ in _summands(elapsed, signals, page, mp.inf)
        )


def cycle_freshness(elapsed: float, signals: int, page: tuple[float, float, float]) -> Any:
    """w of Lemma 4."""
    with mp.workdps(digits(elapsed, *page)):
        alpha, gamma, nu = rates(*page)
        return mp.fsum(
            nu**i / (alpha + gamma) ** (i + 1) * residual(i, (alpha + gamma) * x)
            for i, x, _ in _summands(elapsed, signals, page, mp.inf)
        )
