"""Tables of page constants for the values of pages with several sources of signals.

The row of a page has the form (:mod:`policies.values.sources.kernels`) for the sources that remain
of it (:mod:`policies.values.sources.reduction`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled, inlined
from crawl_envs.types.evidence import signal_evidence
from policies.values.series import TOP, third_remainder
from policies.values.sources import kernels as columns
from policies.values.sources.kernels import LEVEL, LIMIT, SIGNALS, WEIGHT, WIDTH
from policies.values.sources.pieces import KINK_SIGNALS, Equation, march
from policies.values.sources.reduction import Sources, alone, informative, reduced_pages
from policies.values.tables import broadcast_pages, greedy_ncis_table

TOLERANCE = 1e-12
"""Relative error of a piece; multiplied by COARSER until MAX_PIECES pieces suffice."""

COARSER = 100.0
"""Factor of the tolerance where a page needs too many pieces."""

MAX_PIECES = 64
"""Largest number of pieces of a page."""

MAX_POINTS = 220
"""Largest number of lattice points of a page; pages with more have pieces."""

LENGTH_MAX_PIECES, LENGTH_MAX_POINTS = 300, 1000
"""The same for the cycle length, which is evaluated less often."""

ROUGH = 1e-9
"""The coarsest tolerance of a cycle length, which rises in steps if all changes are signalled.

Beyond it a lattice of up to STEPS_MAX_POINTS points is used, as far as it reaches.
"""

STEPS_MAX_POINTS = 16000

DROPPED = 1e-18
"""Share of the value below which points (of many signals) are left out."""

HORIZON = 34.0
"""Level from which on the asymptotic form is exact to 1e-13."""

VISITS_PER_POINT = 8
"""Limit of the points visited by a search, per point of its capacity."""


@compiled()
def far_form(page: Sources, length: bool) -> tuple[float, float, float]:
    """Return the coefficients of the asymptotic form.

    psi tends to (y + c) / P, P = alpha + sum gamma_s b_s, c = sum gamma_s b_s^2 / (2 P), and so
    the share to (R^1_exp(y) + c (1 - exp(-y))) / P + d, d = 1 - (1 + c) / P. With the remainders
    h_s = exp(-b_s) - 1 + b_s - b_s^2 / 2 and m = sum gamma_s b_s^2 / 2, H = sum gamma_s h_s,
    P - 1 = m + H gives d = ((m + H) m + P H) / P^2, which does not cancel where b is small.
    If some signals are never false, psi tends to 1 / their rate.
    """
    if page.perfect > 0.0:
        missed = page.drift + page.seen.sum()
        return 0.0, 1.0 / page.perfect, 0.0 if length else -missed / page.perfect
    rates = page.seen + page.noise
    pole = page.drift + (rates * page.jumps).sum()
    square = 0.5 * (rates * page.jumps**2).sum()
    cubic = 0.0
    for s in range(page.jumps.size):
        cubic += rates[s] * page.jumps[s] ** 2 * third_remainder(page.jumps[s])
    offset = ((square + cubic) * square + pole * cubic) / pole**2
    return 1.0 / pole, square / pole**2, 0.0 if length else offset


@inlined()
def kinks(jumps: FloatArray) -> FloatArray:
    """Return the levels of all points of 1 to KINK_SIGNALS signals, by number of signals."""
    levels = np.zeros(1)
    result = np.zeros(0)
    for _ in range(KINK_SIGNALS):
        levels = np.unique((levels.reshape(-1, 1) + jumps.reshape(1, -1)).ravel())
        result = np.concatenate((result, levels))
    return result


@inlined()
def _point(jumps: FloatArray, shares: FloatArray, numbers: FloatArray) -> tuple[float, float]:
    """Return the level and the weight of the point ``numbers``."""
    level = 0.0
    total = 0.0
    weight = 1.0
    for s in range(jumps.size):
        level += numbers[s] * jumps[s]
        for i in range(int(numbers[s])):
            total += 1.0
            weight *= shares[s] * total / (i + 1.0)
    return level, weight


@inlined()
def lattice(
    jumps: FloatArray, shares: FloatArray, growth: float, limits: tuple[float, float, int]
) -> FloatArray:
    """Return the points by ascending level, shape (points, WIDTH); (0, WIDTH) if too many.

    ``shares`` are the gamma_s / Gamma of the sources with a finite jump, ``growth`` is ln(1 + r),
    and ``limits`` the highest level, the largest number of signals, and the largest number of
    points.
    """
    highest, most, capacity = limits
    points = np.empty((capacity, WIDTH))
    numbers = np.zeros(jumps.size)
    count = 0
    for _ in range(VISITS_PER_POINT * capacity):
        level, weight = _point(jumps, shares, numbers)
        inside = level <= highest and numbers.sum() <= most
        if inside:
            if count == capacity:
                return np.empty((0, WIDTH))
            total = numbers.sum()
            points[count, LEVEL] = level
            points[count, SIGNALS] = total
            points[count, WEIGHT] = weight
            points[count, LIMIT] = math.exp(-level - (total + 1.0) * growth)
            count += 1
            numbers[0] += 1.0
            continue
        s = 0
        while s < jumps.size and numbers[s] == 0.0:
            s += 1
        if s + 1 >= jumps.size:
            return points[np.argsort(points[:count, LEVEL], kind="mergesort")]
        numbers[s] = 0.0
        numbers[s + 1] += 1.0
    return np.empty((0, WIDTH))


@compiled()
def solved(
    page: Sources, length: bool, highest: float, max_points: int, max_pieces: int, coarsest: float
) -> tuple[int, float, FloatArray]:
    """Return the body of a page with several sources: its count, the level FAR, and the columns.

    A lattice up to the level ``highest`` if ``max_points`` points suffice, else pieces. The count
    is 0 if pieces would need a tolerance above ``coarsest``.
    """
    rates = page.seen + page.noise
    total = rates.sum() + page.perfect
    noise = page.noise.sum()
    most = math.inf if length else math.log(DROPPED) / math.log(noise / (1.0 + noise))
    growth = math.log1p(page.drift / total)
    points = lattice(page.jumps, rates / total, growth, (highest, most, max_points))
    if points.shape[0] > 0:
        return points.shape[0], highest, points.copy().ravel()
    equation = Equation(
        length,
        page.drift,
        total,
        total if length else page.drift + total,
        rates if length else page.noise,
        page.jumps,
        far_form(page, length),
    )
    tolerance = TOLERANCE
    cuts = kinks(page.jumps)
    horizon = math.inf if length else HORIZON
    while tolerance <= coarsest:
        row, count, far = march(equation, cuts, tolerance, max_pieces, horizon)
        if count > 0:
            return -count, far, row.ravel()
        tolerance *= COARSER
    return 0, 0.0, np.empty(0)


def _checked(
    importance: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Check the parameters and broadcast them to shapes (m,), (m,), (S, m) and (S, m).

    Raises ValueError like :func:`greedy_ncis_sources_table`.
    """
    for name, given in (("recall", recall), ("false_signal_rate", false_signal_rate)):
        if np.ndim(given) != 2:
            raise ValueError(f"{name} must have shape (S, m), sources first, got {np.shape(given)}")
    mu, delta, lam, nu = broadcast_pages(
        importance=importance,
        change_rate=change_rate,
        recall=recall,
        false_signal_rate=false_signal_rate,
    )
    over = lam.sum(axis=0) > 1.0 + 1e-12
    if np.any(over):
        worst = lam[:, int(np.argmax(over))].tolist()
        raise ValueError(f"recall must sum to at most 1 over sources, got {worst}")
    return mu[0], delta[0], lam, nu


def greedy_ncis_sources_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the table of ``greedy_ncis_sources_value``, one row per page.

    Args:
        importance: mu, >= 0, (m,) or a scalar.
        change_rate: Delta, >= 0, (m,) or a scalar.
        recall: lambda_s, in [0, 1] with a sum of at most 1, (S, m): sources come first.
        false_signal_rate: nu_s, >= 0, (S, m).

    Raises:
        ValueError: an argument is outside its range, or shapes do not broadcast.
    """
    mu, delta, lam, nu = _checked(importance, change_rate, recall, false_signal_rate)
    pages = reduced_pages(delta, lam, nu)
    bodies = [_share_body(page) for page in pages]
    return _filled(pages, bodies, (mu, delta, lam, nu))


def _share_body(page: Sources) -> tuple[int, float, FloatArray]:
    """Return the body of a page, empty if at most one source remains."""
    if informative(page) <= 1:
        return 0, math.inf, np.empty(0)
    return solved(page, False, HORIZON, MAX_POINTS, MAX_PIECES, math.inf)


def _filled(
    pages: list[Sources],
    bodies: list[tuple[int, float, FloatArray]],
    known: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> FloatArray:
    """Return the rows: columns of one source, of this module, b of every source, the body."""
    mu, delta, lam, nu = known
    start = columns.EVIDENCES + lam.shape[0]
    table = np.zeros((mu.size, start + max((body.size for _, _, body in bodies), default=0)))
    pace, share, noise, unit = np.array([alone(page) for page in pages]).reshape(-1, 4).T
    single = greedy_ncis_table(mu, delta * pace, share, delta * noise)
    table[:, : single.shape[1]] = single
    table[:, TOP] = greedy_ncis_table(mu, delta, 0.0, 0.0)[:, TOP]
    table[:, columns.OWN] = np.maximum(0.0, 1.0 - lam.sum(axis=0)) * delta
    table[:, columns.UNIT] = unit
    table[:, columns.BODY] = start
    table[:, columns.EVIDENCES : start] = signal_evidence(delta, lam, nu).T
    for k, (page, body) in enumerate(zip(pages, bodies, strict=True)):
        if body[0]:
            table[k, columns.COUNT : columns.EVIDENCES] = _constants(page, body, start, False)
            table[k, start : start + body[2].size] = body[2]
    return table


def _constants(
    page: Sources, body: tuple[int, float, FloatArray], start: int, length: bool
) -> tuple[float, ...]:
    """Return the columns COUNT to FAR_OFFSET of a page whose body is at column ``start``."""
    total = (page.seen + page.noise).sum() + page.perfect
    return body[0], start, page.drift, total, body[1], *far_form(page, length)


def cycle_length_sources_table(
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    *,
    highest: float,
) -> FloatArray:
    """Return the table of ``cycle_length_sources_value`` for levels up to ``highest``.

    ``highest`` is finite and >= 0. The bodies follow one another after the rows of the pages.

    Arguments and errors as for :func:`greedy_ncis_sources_table`.
    """
    _, delta, lam, nu = _checked(0.0, change_rate, recall, false_signal_rate)
    pages = reduced_pages(delta, lam, nu)
    bodies = [_length_body(page, highest) for page in pages]
    start = columns.EVIDENCES
    ends = start * delta.size + np.cumsum([0, *(body.size for _, _, body in bodies)])
    table = np.zeros((math.ceil(ends[-1] / start), start))
    table.reshape(-1)[start * delta.size : ends[-1]] = np.concatenate(
        [np.empty(0), *(body for _, _, body in bodies)]
    )
    for k, (page, body) in enumerate(zip(pages, bodies, strict=True)):
        table[k, columns.COUNT : start] = _constants(page, body, ends[k], True)
    return table


def _length_body(page: Sources, highest: float) -> tuple[int, float, FloatArray]:
    """Return the body of a page for the cycle length; empty if every source is treated as time."""
    if page.jumps.size:
        body = solved(page, True, highest, LENGTH_MAX_POINTS, LENGTH_MAX_PIECES, ROUGH)
        reach = highest
        while body[0] == 0 and reach >= 2.0 * page.jumps[-1]:
            body = solved(page, True, reach, STEPS_MAX_POINTS, 1, 0.0)
            reach *= 0.7
        if body[0] == 0:
            body = solved(page, True, highest, LENGTH_MAX_POINTS, LENGTH_MAX_PIECES, math.inf)
        return body
    if page.perfect > 0.0:
        return 1, math.inf, np.array([0.0, 0.0, 1.0, 1.0])
    return 0, 0.0, np.empty(0)
