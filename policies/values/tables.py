"""Tables of page constants for the compiled crawl values, one row per page.

Each builder takes the parameters of the pages, scalars or arrays that broadcast, and returns a
C-contiguous float64 array of shape (number of pages, columns) for the kernel of the same name in
:mod:`policies.values.kernels`. Arguments are checked: importance and rates must be finite and
>= 0, recall must lie in [0, 1].
"""

from __future__ import annotations

import cmath
import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats, one_of
from crawl_envs.types.evidence import signal_evidence
from policies.values import series as value_terms

Reading = Literal["I1", "I2", "I3"]
READINGS: tuple[Reading, ...] = ("I1", "I2", "I3")

HIGH_PRECISION = 0.7
HIGH_RECALL = 0.6
NEVER = math.inf

PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")
"""Parameters of pages, in the order of all functions of values."""

LARGEST = value_terms.LARGEST


def check_nonnegative(name: str, value: ArrayLike, *, finite: bool = True) -> FloatArray:
    """Return ``value`` as float64; ValueError if it is negative, NaN or (``finite``) infinite."""
    array = floats(name, value)
    good = (array >= 0.0) & (np.isfinite(array) | (not finite))
    if not np.all(good):
        bad = np.ravel(array[~good])[0]
        expected = "finite and >= 0" if finite else ">= 0"
        raise ValueError(f"{name} must be {expected}, got {bad}")
    return array


def check_share(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as float64; raise ValueError if any number in it is outside [0, 1]."""
    array = floats(name, value)
    good = (array >= 0.0) & (array <= 1.0)
    if not np.all(good):
        raise ValueError(f"{name} must lie in [0, 1], got {np.ravel(array[~good])[0]}")
    return array


def broadcast_pages(*arrays: ArrayLike, **extra: ArrayLike) -> list[FloatArray]:
    """Return page parameters, in the order of PARAMETERS, and extra ones, checked and broadcast."""
    parameters = dict(zip(PARAMETERS, arrays, strict=False)) | extra
    checked = [
        check_share(name, value) if name == "recall" else check_nonnegative(name, value)
        for name, value in parameters.items()
    ]
    try:
        return list(np.broadcast_arrays(*checked))
    except ValueError:
        shapes = ", ".join(
            f"{name} {array.shape}" for name, array in zip(parameters, checked, strict=True)
        )
        raise ValueError(f"page parameters must broadcast, got shapes {shapes}") from None


def _pages(*arrays: ArrayLike, **extra: ArrayLike) -> list[FloatArray]:
    """Return page parameters, checked, broadcast by :func:`broadcast_pages` and flattened."""
    return [np.ravel(array) for array in broadcast_pages(*arrays, **extra)]


def _table(*columns: ArrayLike) -> FloatArray:
    """Stack the columns side by side as contiguous float64; infinite values are allowed."""
    return np.ascontiguousarray(np.stack(np.broadcast_arrays(*columns), axis=-1), dtype=np.float64)


def _over(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Return ``numerator / denominator``: 0 where the denominator is 0, and at most LARGEST."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    positive = np.broadcast_to(np.asarray(denominator) > 0.0, shape)
    with np.errstate(over="ignore"):
        quotient = np.divide(numerator, denominator, out=np.zeros(shape), where=positive)
    return np.minimum(quotient, LARGEST)


@inlined()
def _damping(spacing: float) -> float:
    """Return -Re(W_1(g e^g) - g), g = gamma beta: the damping of waves of psi(iota) per beta."""
    g = spacing
    if g > 1e4:
        return 2.0 * (math.pi / g) ** 2
    if g < 1e-300:
        return 1e3
    turn = 2j * math.pi
    w = turn * g / (1.0 + g) if g > 0.5 else math.log(g) + turn - cmath.log(math.log(g) + turn) - g
    for _ in range(20):
        step = (w + cmath.log(1.0 + w / g) - turn) / (1.0 + 1.0 / (g + w))
        w -= step
        if abs(step) < 1e-10:
            break
    return -w.real


@compiled()
def _third_remainders(evidence: FloatArray) -> FloatArray:
    """Return the third remainder of alpha beta, the evidence of one signal, for each page, (m,)."""
    out = np.empty_like(evidence)
    for k in range(evidence.shape[0]):
        out[k] = value_terms.third_remainder(evidence[k])
    return out


@compiled()
def _dampings(spacing: FloatArray) -> FloatArray:
    """Return the damping of the waves of the cycle length psi for every page, (m,)."""
    out = np.empty_like(spacing)
    for k in range(spacing.shape[0]):
        out[k] = _damping(spacing[k])
    return out


class _Signals:
    """Rates alpha and gamma, time beta per signal and numbers derived from them, (m,) each."""

    def __init__(self, change_rate: FloatArray, recall: FloatArray, false_rate: FloatArray) -> None:
        signalled = recall * change_rate
        self.alpha = (1.0 - recall) * change_rate
        self.gamma = signalled + false_rate
        self.evidence = signal_evidence(change_rate, recall, false_rate)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            beta = self.evidence / self.alpha
            static = recall / (1.0 - recall) / false_rate
        beta = np.where(self.evidence > 0.0, beta, 0.0)
        self.beta = np.where(
            (change_rate == 0.0) & (recall > 0.0) & (false_rate > 0.0), static, beta
        )
        with np.errstate(invalid="ignore", over="ignore"):
            self.spacing = np.where(self.beta > 0.0, self.gamma * self.beta, 0.0)
        self.damping = _dampings(np.ravel(self.spacing))


def round_robin_table(num_pages: int) -> FloatArray:
    """Return the table of ``round_robin_value``, which needs no constants: one column of zeros."""
    return np.zeros((num_pages, 1))


def greedy_table(importance: ArrayLike, change_rate: ArrayLike) -> FloatArray:
    """Return the constants of pages that ``greedy_value`` needs, one row per page."""
    mu, delta = _pages(importance, change_rate)
    return _table(_over(mu, delta), delta)


def harmonic_table(
    importance: ArrayLike, change_rate: ArrayLike, complete: ArrayLike = False
) -> FloatArray:
    """Return the constants that ``harmonic_value`` needs; ``complete`` marks observed pages."""
    mask = np.asarray(complete)
    if mask.dtype != np.bool_:
        raise ValueError(f"complete must be bool, got dtype {mask.dtype}")
    share = mask.astype(np.float64)
    mu, delta, share = _pages(importance, change_rate, complete=share)
    observed = share > 0.0
    weight = np.where(delta > 0.0, mu, 0.0)
    return _table(
        np.where(observed, 0.0, weight), delta, np.where(observed, _over(weight, delta), 0.0)
    )


def _cis(
    mu: FloatArray, delta: FloatArray, recall: FloatArray, nu: FloatArray, reading: Reading
) -> FloatArray:
    """Return the constants that ``greedy_cis_value`` needs, from flat and checked parameters."""
    one_of("reading", reading, READINGS)
    alpha = (1.0 - recall) * delta
    assumed_nu = np.zeros_like(nu) if reading == "I1" else nu
    gamma = np.where(delta > 0.0, recall * delta + assumed_nu, 0.0)
    first = np.where(delta > 0.0, _over(mu, delta + assumed_nu), 0.0)
    top = first if reading == "I3" else _over(mu, delta)
    return _table(top, alpha, gamma, _over(alpha, gamma), first, 1.0)


def greedy_cis_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    *,
    reading: Reading = "I2",
) -> FloatArray:
    """Return the constants that ``greedy_cis_value`` needs; ``greedy_cis`` explains ``reading``."""
    mu, delta, lam, nu = _pages(importance, change_rate, recall, false_signal_rate)
    return _cis(mu, delta, lam, nu, reading)


def greedy_cis_plus_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    *,
    reading: Reading = "I2",
    precision_above: float = HIGH_PRECISION,
    recall_above: float = HIGH_RECALL,
) -> FloatArray:
    """Return the constants with which ``greedy_cis_value`` computes the values of GREEDY-CIS+.

    A page has good signals if its precision and its recall exceed the two thresholds. Every other
    page gets the value of GREEDY, and its signals are ignored.
    """
    mu, delta, lam, nu = _pages(importance, change_rate, recall, false_signal_rate)
    check_share("precision_above", precision_above)
    check_share("recall_above", recall_above)
    gamma = lam * delta + nu
    precision = np.where(gamma > 0.0, _over(lam * delta, gamma), 1.0)
    high = (precision > precision_above) & (lam > recall_above)
    table = _cis(mu, delta, np.where(high, lam, 0.0), np.where(high, nu, 0.0), reading)
    table[:, value_terms.MIN_SIGNALS] = np.where(high, 1.0, NEVER)
    return table


def greedy_ncis_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the constants of pages that ``greedy_ncis_value`` needs, one row per page."""
    mu, delta, lam, nu = _pages(importance, change_rate, recall, false_signal_rate)
    mu = np.where(delta > 0.0, mu, 0.0)
    page = _Signals(delta, lam, nu)
    b, top = page.evidence, _over(mu, delta)
    ratio = _over(page.alpha, page.gamma)
    switch, slope, bend, offset = _asymptote(page, top, mu)
    return _table(
        top,
        page.alpha,
        page.gamma,
        ratio,
        _over(mu, delta + nu),
        b,
        page.spacing,
        np.log1p(ratio),
        _over(nu, delta + nu),
        _over(mu, page.gamma),
        switch,
        slope,
        bend,
        offset,
    )


def _asymptote(
    page: _Signals, top: FloatArray, mu: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return where the asymptotic form of the value starts, and its coefficients, (m,) each.

    The start is a level of y. The coefficients multiply R^1_exp(y), y exp(-y) and 1. Far from the
    last crawl, psi(iota) = (iota + c) / (1 + g), g = gamma beta, c = g beta / (2 (1 + g)), up to
    oscillations that shrink by exp(-damping) per beta. With b = alpha beta and P = alpha (1 + g) =
    alpha + gamma b, V / mu = 1 / Delta - integral of alpha exp(-alpha s) psi from iota on =
    R^1_exp(y) / P + (1 - exp(-y)) c / (1 + g) + d. The form of d used here does not cancel.
    """
    b = page.evidence
    steps = 38.0 / np.maximum(page.damping + b, 1e-300)
    usable = b < value_terms.SATURATED
    b = np.where(usable, b, 0.0)
    cubic = _third_remainders(b)
    quartic = 0.25 * b + cubic * (1.0 + 0.5 * b)  # about b / 12
    pole = page.alpha + page.gamma * b
    share = b * _over(page.gamma, pole)
    slope = _over(mu, pole)
    bend = 0.5 * b * share * slope
    offset = (top * b) * share * (_over(page.alpha, pole) * cubic + share * quartic)
    switch = np.where(usable, b * steps, math.inf)
    return switch, slope + bend, bend, offset


def greedy_ncis_approx_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    *,
    terms: int,
) -> FloatArray:
    """Return the constants that ``greedy_ncis_approx_value`` needs for ``terms`` >= 1 summands."""
    if terms < 1 or terms != int(terms):
        raise ValueError(f"terms must be an integer >= 1, got {terms!r}")
    table = greedy_ncis_table(importance, change_rate, recall, false_signal_rate)
    return _table(*table.T, float(terms))


def cycle_length_table(
    change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike
) -> FloatArray:
    """Return the constants of pages that ``cycle_length_value`` needs, one row per page."""
    page = _Signals(*_pages(0.0, change_rate, recall, false_signal_rate)[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        switch = np.where(page.beta > 0.0, 38.0 / page.damping * page.beta, 0.0)
    return _table(page.gamma, page.beta, page.spacing, switch)


def signal_time(
    change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike
) -> FloatArray:
    """Return beta, the effective time that one signal adds, in the arguments' broadcast shape."""
    pages = _pages(0.0, change_rate, recall, false_signal_rate)[1:]
    shape = np.broadcast_shapes(*map(np.shape, (change_rate, recall, false_signal_rate)))
    return _Signals(*pages).beta.reshape(shape)
