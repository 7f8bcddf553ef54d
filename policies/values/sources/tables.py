"""Tables of page constants for the values of pages with several sources of signals.

Every page is first reduced, in units of Delta: sources without recall are dropped, sources of equal
b are merged, and sources whose jumps are too weak to differ from a drift are treated as time. Its
row then has the form for the remaining sources (:mod:`policies.values.sources.kernels`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.compiling import compiled, inlined
from crawl_envs.types.evidence import signal_evidence
from policies.values.series import TOP
from policies.values.sources import kernels as columns
from policies.values.sources.lattice import lattice
from policies.values.sources.pieces import KINK_SIGNALS, Equation, march
from policies.values.tables import check_nonnegative, check_share, greedy_ncis_table

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

WEAK = 1e-14
"""Twice the largest relative error from treating weak sources as time."""

NOISIEST = 1e100
"""Largest ratio of false signals to changes; keeps squares of b from underflow."""

SAME = 1e-15
"""Relative difference of b up to which sources are merged."""


class Sources(NamedTuple):
    """A reduced page, with rates in units of Delta and finite ``jumps`` b, distinct and ascending.

    ``seen`` (recalls), ``noise`` and ``jumps`` have shape (remaining sources,). ``drift`` is alpha
    plus the weak sources, ``perfect`` the rate of signals that are never false, ``lumped`` whether
    there are weak sources.
    """

    drift: float
    seen: FloatArray
    noise: FloatArray
    jumps: FloatArray
    perfect: float
    lumped: bool


@compiled()
def reduced(recall: FloatArray, noise: FloatArray) -> Sources:
    """Reduce a page with recalls and false-signal rates of shape (S,), in units of Delta."""
    num_sources = recall.size
    drift = max(0.0, 1.0 - recall.sum())
    perfect = 0.0
    seen, kept, jumps = np.zeros(num_sources), np.zeros(num_sources), np.zeros(num_sources)
    evidence = np.log1p(recall / noise)
    count = 0
    for s in np.argsort(np.where(recall > 0.0, evidence, 0.0)):
        if not recall[s] > 0.0 or evidence[s] == 0.0:
            drift += recall[s]
        elif evidence[s] == math.inf:
            perfect += recall[s]
        elif count > 0 and evidence[s] <= jumps[count - 1] * (1.0 + SAME):
            seen[count - 1] += recall[s]
            kept[count - 1] += noise[s]
        else:
            seen[count] = recall[s]
            kept[count] = noise[s]
            jumps[count] = evidence[s]
            count += 1
    weak = 0
    spread = 0.0
    while count - weak + (perfect > 0.0) > 1:
        own = (seen[weak] + kept[weak]) * jumps[weak]
        spread += own * jumps[weak]
        rest = (seen + kept)[weak + 1 : count].sum() + perfect
        if not spread * rest <= WEAK * (drift + own) ** 2:
            break
        drift += own
        weak += 1
    return Sources(drift, seen[weak:count], kept[weak:count], jumps[weak:count], perfect, weak > 0)


@inlined()
def third_remainder(b: float) -> float:
    """Return exp(-b) - 1 + b - b^2 / 2."""
    if b > 1.0:
        return math.expm1(-b) + b - 0.5 * b * b
    term = -b * b * b / 6.0
    total = term
    for k in range(4, 21):
        term *= -b / k
        total += term
    return total


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
        cubic += rates[s] * third_remainder(page.jumps[s])
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


def _over_change_rate(delta: FloatArray, nu: FloatArray) -> FloatArray:
    """Return the ratio nu / Delta, finite; 0 where Delta is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(delta > 0.0, np.minimum(nu / delta, NOISIEST), 0.0)


def _checked(
    importance: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Check the parameters and broadcast them to shapes (m,), (m,), (S, m) and (S, m).

    Raises ValueError like :func:`greedy_ncis_sources_table`.
    """
    mu = check_nonnegative("importance", importance)
    delta = check_nonnegative("change_rate", change_rate)
    lam = check_share("recall", recall)
    nu = check_nonnegative("false_signal_rate", false_signal_rate)
    for name, array in (("recall", lam), ("false_signal_rate", nu)):
        if array.ndim != 2:
            raise ValueError(f"{name} must have shape (S, m), sources first, got {array.shape}")
    try:
        mu, delta, lam, nu = np.broadcast_arrays(mu, delta, lam, nu)
    except ValueError:
        raise ValueError(
            f"page parameters must broadcast, got shapes importance {mu.shape}, change_rate "
            f"{delta.shape}, and, sources first, recall {lam.shape}, false_signal_rate {nu.shape}"
        ) from None
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
    noise = _over_change_rate(delta, nu)
    pages = [reduced(*_page(lam, noise, k)) for k in range(mu.size)]
    bodies = [_share_body(page) for page in pages]
    return _filled(pages, bodies, (mu, delta, lam, nu))


def _page(lam: FloatArray, noise: FloatArray, page: int) -> tuple[FloatArray, FloatArray]:
    """Return recalls and noise of one page."""
    return np.ascontiguousarray(lam[:, page]), np.ascontiguousarray(noise[:, page])


def _share_body(page: Sources) -> tuple[int, float, FloatArray]:
    """Return the body of a page, empty if at most one source remains."""
    if page.jumps.size + (page.perfect > 0.0) <= 1:
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
    alone = [_alone(page) for page in pages]
    pace, share, noise, unit = np.array(alone).reshape(-1, 4).T
    single = greedy_ncis_table(mu, delta * pace, share, delta * noise)
    table[:, : single.shape[1]] = single
    table[:, TOP] = greedy_ncis_table(mu, delta, 0.0, 0.0)[:, TOP]
    table[:, columns.OWN] = np.maximum(0.0, 1.0 - lam.sum(axis=0)) * delta
    table[:, columns.UNIT] = unit
    table[:, columns.BODY] = start
    table[:, columns.EVIDENCES : start] = signal_evidence(delta, lam, nu).T
    for k, (page, (count, far, body)) in enumerate(zip(pages, bodies, strict=True)):
        if count:
            total = (page.seen + page.noise).sum() + page.perfect
            table[k, columns.COUNT : columns.EVIDENCES] = (
                *(count, start, page.drift, total, far),
                *far_form(page, False),
            )
            table[k, start : start + body.size] = body
    return table


def _alone(page: Sources) -> tuple[float, float, float, float]:
    """Return change rate, recall, noise (in units of Delta) and UNIT of a page of <= 1 source.

    With weak sources treated as time, the change rate differs slightly from 1.
    """
    if page.perfect > 0.0:
        seen, noise, unit = page.perfect, 0.0, math.inf
    elif page.jumps.size:
        noise, unit = float(page.noise[-1]), float(page.jumps[-1])
        seen = float(page.seen[-1])
    else:
        return page.drift, 0.0, 0.0, 0.0
    pace = page.drift + seen if page.lumped else 1.0
    return pace, min(1.0, seen / pace), noise, 0.0 if page.lumped else unit


def single_sources(
    change_rate: FloatArray, recall: FloatArray, false_signal_rate: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return which pages have several informative sources, and the source of the others.

    Sources without recall are not informative; sources of equal b are merged.

    Args:
        change_rate: Delta, > 0, (m,).
        recall: lambda_s, (S, m).
        false_signal_rate: nu_s, (S, m).

    Returns:
        Whether there are several; recall and false-signal rate of the single sources; (m,) each.
    """
    noise = _over_change_rate(change_rate, false_signal_rate)
    several = np.zeros(change_rate.size, np.bool_)
    alone, rate = np.zeros(change_rate.size), np.zeros(change_rate.size)
    for k in range(change_rate.size):
        page = reduced(*_page(recall, noise, k))
        several[k] = page.lumped or page.jumps.size + (page.perfect > 0.0) > 1
        if not several[k]:
            _, alone[k], noise_only, _ = _alone(page)
            rate[k] = noise_only * change_rate[k]
    return several, alone, rate


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
    noise = _over_change_rate(delta, nu)
    pages = [reduced(*_page(lam, noise, k)) for k in range(delta.size)]
    bodies = [_length_body(page, highest) for page in pages]
    start = columns.EVIDENCES
    ends = start * delta.size + np.cumsum([0, *(body.size for _, _, body in bodies)])
    table = np.zeros((math.ceil(ends[-1] / start), start))
    table.reshape(-1)[start * delta.size : ends[-1]] = np.concatenate(
        [np.empty(0), *(body for _, _, body in bodies)]
    )
    for k, (page, (count, far, _)) in enumerate(zip(pages, bodies, strict=True)):
        total = (page.seen + page.noise).sum() + page.perfect
        table[k, columns.COUNT : start] = (
            *(count, ends[k], page.drift, total, far),
            *far_form(page, True),
        )
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
