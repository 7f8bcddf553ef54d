"""Slow, obvious twins of the values of several sources: the sums as written, in 50 digits and more.

``psi(iota) = sum over n with n . beta <= iota of (|n|! / prod n_s!) prod gamma_s^n_s Gamma^(-|n|-1)
R^|n|(Gamma (iota - n . beta))``; for w gamma_s becomes nu_s in the product and Gamma becomes
alpha + Gamma; V = w - exp(-alpha iota) psi. Everything is mpmath, in levels y = alpha iota, so that
alpha = 0 and nu = 0 are the limits they are.
"""

from __future__ import annotations

import itertools
from typing import Any

import mpmath as mp

from tests.naive.values import residual

DIGITS = 60


def page(change_rate: float, recall: Any, false_signal_rate: Any) -> tuple[Any, Any, Any, Any]:
    """alpha, gamma_s, nu_s and b_s = alpha beta_s of the sources whose recall is not 0."""
    delta = mp.mpf(change_rate)
    pairs = [
        (mp.mpf(lam), mp.mpf(nu))
        for lam, nu in zip(recall, false_signal_rate, strict=True)
        if lam > 0
    ]
    alpha = (1 - mp.fsum(lam for lam, _ in pairs)) * delta
    gamma = [lam * delta + nu for lam, nu in pairs]
    noise = [nu for _, nu in pairs]
    b = [mp.log(g / nu) if nu else mp.inf for g, nu in zip(gamma, noise, strict=True)]
    return alpha, gamma, noise, b


def points(b: Any, y: Any) -> Any:
    """Every n with n . b < y."""
    ranges = [range(1) if step == mp.inf else range(int(mp.ceil(y / step)) + 1) for step in b]
    for n in itertools.product(*ranges):
        level = mp.fsum(k * step for k, step in zip(n, b, strict=True) if k)
        if level < y:
            yield n, level


def probability(n: Any, rates: Any, total: Any) -> Any:
    """(|n|! / prod n_s!) prod (rate_s / total)^n_s."""
    weight = mp.factorial(sum(n))
    for k, rate in zip(n, rates, strict=True):
        weight *= (rate / total) ** k / mp.factorial(k) if k else 1
    return weight


def _reaches(k: int, rate: Any, alpha: Any, gap: Any) -> Any:
    """R^k(rate gap / alpha): certain where alpha = 0."""
    return residual(k, rate * gap / alpha) if alpha else mp.mpf(1)


def cycle_length(y: Any, known: tuple[float, Any, Any]) -> Any:
    """psi at level y."""
    with mp.workdps(DIGITS):
        alpha, gamma, _, b = page(*known)
        total = mp.fsum(gamma)
        return mp.fsum(
            probability(n, gamma, total) / total * _reaches(sum(n), total, alpha, y - level)
            for n, level in points(b, y)
        )


def cycle_freshness(y: Any, known: tuple[float, Any, Any]) -> Any:
    """w at level y."""
    with mp.workdps(DIGITS):
        alpha, gamma, noise, b = page(*known)
        total = alpha + mp.fsum(gamma)
        return mp.fsum(
            probability(n, noise, total) / total * _reaches(sum(n), total, alpha, y - level)
            for n, level in points(b, y)
        )


def greedy_ncis(y: Any, known: tuple[float, Any, Any]) -> Any:
    """V at level y, for importance 1."""
    with mp.workdps(DIGITS):
        return cycle_freshness(y, known) - mp.exp(-y) * cycle_length(y, known)


def level(elapsed: float, signals: Any, known: tuple[float, Any, Any]) -> Any:
    """y = alpha elapsed + sum of b_s n_s, in exact arithmetic."""
    with mp.workdps(DIGITS):
        alpha, _, _, b = page(*known)
        counted = [k for k, lam in zip(signals, known[1], strict=True) if lam > 0]
        return alpha * mp.mpf(elapsed) + mp.fsum(
            k * step for k, step in zip(counted, b, strict=True) if k
        )
