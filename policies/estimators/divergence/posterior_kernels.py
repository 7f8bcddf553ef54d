"""Compiled parts of the posterior of a page's divergence: weights and expected utility.

Weights are laid out as (l, k, s): rates L_l, dynamic shares A_k, shapes s of
:mod:`policies.estimators.divergence.shapes`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from policies.estimators.divergence.shapes import (
    ABOVE,
    BELOW,
    BINS_PER_STEP,
    MAX_CERTAIN,
    MIN_LOG2,
    NUM_AMOUNTS,
    PER_OCTAVE,
    SHARE_STEP,
)

STATIC_CHANCE = 1e-6
"""Probability of a change of a static page."""
FAR = 20.0
"""A weight is 0 if its logarithm is this much smaller than that of the largest weight."""
NEGLIGIBLE = 1e-5
"""Weights below this share of the largest one are omitted."""
NO_BIN = -128
"""Placeholder for a bin: there is no earlier copy, or it has lost nothing."""


class PageCrawls(NamedTuple):
    """The last n crawls of a page; each is compared with up to h earlier copies.

    Attributes:
        elapsed: time since the crawl before, (n,).
        signals: number of signals in that time, (n,).
        changed: whether the crawl found a change, (n,).
        age: age of the earlier copies, (n, h).
        lost_bin: bins of the lost shares of these copies, (n, h).
    """

    elapsed: NDArray[np.float32]
    signals: NDArray[np.int16]
    changed: NDArray[np.bool_]
    age: NDArray[np.float32]
    lost_bin: NDArray[np.int8]


@inlined()
def bin_of(divergence: float) -> int:
    """Return the bin of the lost share y = D / (2 - D); NO_BIN unless D > 0."""
    if not divergence > 0.0:
        return NO_BIN
    lost = divergence / (2.0 - divergence)
    place = -math.log2(lost) * BINS_PER_STEP / SHARE_STEP
    return min(round(place), 100)


@inlined()
def place_of(amount: float) -> int:
    """Return the row of the tables that is nearest to ``amount`` expected updates."""
    if amount <= 0.0:
        return 0
    place = round(PER_OCTAVE * (math.log2(amount) - MIN_LOG2))
    return min(max(place, 0), NUM_AMOUNTS - 1)


@inlined()
def signal_precision(rate: float, recall: float, false_rate: float) -> float:
    """Return the probability that a signal of a page with update rate ``rate`` is true."""
    true_rate = recall * rate
    return true_rate / (true_rate + false_rate) if true_rate > 0.0 else 0.0


@inlined()
def log_change(
    rate: float,
    elapsed: float,
    signals: int,
    changed: bool,
    recall: float,
    false_rate: float,
    counting: bool,
) -> float:
    """Return the log-probability that a crawl finds a change, or none, as ``changed`` says.

    With ``counting`` it includes the probability of the number of signals; use it only if recall is
    positive.
    """
    expected = (recall * rate + false_rate) * elapsed
    result = -expected if counting else 0.0
    if counting and signals > 0:
        result += signals * math.log(max(expected, 1e-12))
    doubt = 1.0 - signal_precision(rate, recall, false_rate)
    unchanged = -(1.0 - recall) * rate * elapsed
    if signals > 0:
        unchanged += signals * math.log(max(doubt, 1e-12))
    if not changed:
        return result + max(unchanged, math.log(STATIC_CHANCE))
    return result + math.log(max(-math.expm1(unchanged), STATIC_CHANCE))


@compiled()
def weigh(
    weights: FloatArray,
    log_prior: FloatArray,
    log_lost: NDArray[np.float32],
    rates: FloatArray,
    crawls: PageCrawls,
    recall: float,
    false_rate: float,
    older: float,
) -> None:
    """Write the posterior weights of a page, with sum 1, into ``weights``, (l * k * s + 1,).

    They belong to update rates, dynamic shares and shapes. The last weight belongs to a static
    page.

    Args:
        weights: output.
        log_prior: log prior weights, (l * k * s + 1,).
        log_lost: table of :class:`policies.estimators.divergence.shapes.ShapeTables`.
        rates: L_l, (l,).
        crawls: the crawls of the page.
        recall: recall of the signals.
        false_rate: rate of false signals.
        older: exponent of the likelihood of comparisons with earlier copies than the last.
    """
    elapsed, signals, changed, age, lost_bin = crawls
    num_shapes = log_lost.shape[2]
    num_shares = (weights.size - 1) // (rates.size * num_shapes)
    block = num_shares * num_shapes
    weights[:] = log_prior
    for n in range(elapsed.size):
        weights[-1] += log_change(
            0.0, elapsed[n], signals[n], changed[n], recall, false_rate, recall > 0.0
        )
    evidence = np.zeros(rates.size)
    for row in range(rates.size):
        for n in range(elapsed.size):
            evidence[row] += log_change(
                rates[row], elapsed[n], signals[n], changed[n], recall, false_rate, recall > 0.0
            )
    top = weights[-1]
    for row in np.argsort(-evidence):
        part = weights[row * block : (row + 1) * block]
        part += evidence[row]
        if part.max() < top - FAR:
            part[:] = -np.inf
            continue
        for n in range(elapsed.size):
            if not changed[n]:
                continue
            for copy in range(age.shape[1]):
                if lost_bin[n, copy] == NO_BIN:
                    continue
                amount = rates[row] * age[n, copy]
                if copy == 0:
                    precision = signal_precision(rates[row], recall, false_rate)
                    amount = (1.0 - recall) * rates[row] * elapsed[n] + signals[n] * precision
                power = 1.0 if copy == 0 else older
                add_loss(part, log_lost[place_of(amount)], lost_bin[n, copy], power, num_shapes)
        top = max(top, part.max())
    normalise(weights, top)


@inlined()
def weigh_quality(
    weights: FloatArray,
    log_prior: FloatArray,
    rates: FloatArray,
    log_rates: FloatArray,
    recalls: FloatArray,
    false_rates: FloatArray,
    crawls: PageCrawls,
) -> None:
    """Write posterior weights of signal qualities, with sum 1, into ``weights``, (q,), for a page.

    Args:
        weights: output.
        log_prior: log prior weights, (q,).
        rates: update rates, (l,).
        log_rates: the logarithms of their weights, (l,).
        recalls: recall of each quality, (q,).
        false_rates: false-signal rate of each quality, (q,).
        crawls: the crawls of the page.
    """
    elapsed, signals, changed = crawls.elapsed, crawls.signals, crawls.changed
    by_rate = np.zeros(rates.size)
    for q in range(weights.size):
        for row in range(rates.size):
            by_rate[row] = log_rates[row]
            for n in range(elapsed.size):
                by_rate[row] += log_change(
                    rates[row], elapsed[n], signals[n], changed[n], recalls[q], false_rates[q], True
                )
        top, total = by_rate.max(), 0.0
        for row in range(rates.size):
            total += math.exp(by_rate[row] - top)
        weights[q] = log_prior[q] + top + math.log(total)
    weights -= weights.max()
    weights[:] = np.exp(weights)
    weights /= weights.sum()


@inlined()
def add_loss(
    part: FloatArray, table: NDArray[np.float32], lost_bin: int, power: float, num_shapes: int
) -> None:
    """Add ``power`` times the log-likelihood of a lost share to log weights ``part``, (k, s)."""
    for k in range(part.size // num_shapes):
        place = min(max(lost_bin - BINS_PER_STEP * k, -ABOVE), BELOW) + ABOVE
        for s in range(num_shapes):
            part[k * num_shapes + s] += power * table[place, s]


@inlined()
def normalise(weights: FloatArray, top: float) -> None:
    """Replace log weights with maximum ``top`` by weights that sum to 1."""
    total = 0.0
    for j in range(weights.size):
        weights[j] = math.exp(weights[j] - top) if weights[j] - top > -FAR else 0.0
        total += weights[j]
    for j in range(weights.size):
        weights[j] /= total


@inlined()
def utility_without_signals(
    curve: FloatArray,
    weights: FloatArray,
    gain: FloatArray,
    amounts: FloatArray,
    rates: FloatArray,
    ages: FloatArray,
) -> None:
    """Write :func:`expected_utility` of a page that has no signals, from a smaller table.

    Args:
        curve: output, (T,).
        weights: posterior of the page.
        gain: a E[d_N] - E[sum of d_k over k < N], N ~ Poisson(a), by share, shape and a.
        amounts: a.
        rates: L_l, (l,).
        ages: ages of the utilities, (T,).
    """
    cells = gain.reshape(-1, amounts.size)
    places, upper = np.zeros(ages.size, np.int64), np.zeros(ages.size)
    curve[:] = 0.0
    min_weight = NEGLIGIBLE * weights[: rates.size * cells.shape[0]].max()
    for row in range(rates.size):
        for column in range(ages.size):
            places[column], upper[column] = between(amounts, rates[row] * ages[column])
        for cell in range(cells.shape[0]):
            weight = weights[row * cells.shape[0] + cell]
            if weight <= min_weight:
                continue
            gains = cells[cell]
            for column in range(ages.size):
                place = places[column]
                value = gains[place] + upper[column] * (gains[place + 1] - gains[place])
                curve[column] += weight / rates[row] * value


@compiled()
def between(amounts: FloatArray, amount: float) -> tuple[int, float]:
    """Return the row of the tables at or below an amount, and its relative position up to the next.

    The position is below 0 for amounts below the tabulated ones.
    """
    place = int(np.searchsorted(amounts, amount, side="right")) - 1
    place = min(max(place, 0), amounts.size - 2)
    share = (amount - amounts[place]) / (amounts[place + 1] - amounts[place])
    return place, min(share, 1.0)


@inlined()
def true_signal_distribution(chance: FloatArray, count: int, precision: float) -> None:
    """Write the probability that j of ``count`` signals are true to ``chance[j]``, j <= count."""
    chance[:] = 0.0
    chance[0] = 1.0
    for _ in range(count):
        for j in range(count, 0, -1):
            chance[j] = chance[j] * (1.0 - precision) + chance[j - 1] * precision
        chance[0] *= 1.0 - precision


@compiled()
def expected_utility(
    curve: FloatArray,
    weights: FloatArray,
    divergence: FloatArray,
    missed: FloatArray,
    amounts: FloatArray,
    rates: FloatArray,
    ages: FloatArray,
    signals: int,
    recall: float,
    false_rate: float,
) -> None:
    r"""Write the expected utility of a crawl at each of ``ages`` into ``curve``, (T,).

    With N ~ Poisson((1 - recall) L t) + Binomial(n, p) updates missed, B = E[N] and d_k the mean
    divergence after k updates, it is E[B d_N - sum_{k < N} d_k] / L, averaged over the weights.
    Each signal beyond the first MAX_CERTAIN counts as Poisson(p) updates.
    """
    num_shares, num_shapes = divergence.shape[0], divergence.shape[1]
    block = num_shares * num_shapes
    num_certain = min(signals, MAX_CERTAIN)
    chance = np.zeros(MAX_CERTAIN + 1)
    places = np.zeros(ages.size, np.int64)
    upper, expected = np.zeros(ages.size), np.zeros(ages.size)
    curve[:] = 0.0
    min_weight = NEGLIGIBLE * weights[: rates.size * block].max()
    for row in range(rates.size):
        rate = rates[row]
        precision = signal_precision(rate, recall, false_rate)
        true_signal_distribution(chance, num_certain, precision)
        for column in range(ages.size):
            amount = (1.0 - recall) * rate * ages[column] + (signals - num_certain) * precision
            place, share = between(amounts, amount)
            places[column], upper[column] = place, share
            expected[column] = num_certain * precision + (
                amounts[place] * (1.0 - share) + amounts[place + 1] * share
            )
        for cell in range(block):
            weight = weights[row * block + cell] / rate
            if weight * rate <= min_weight:
                continue
            k, s = cell // num_shapes, cell % num_shapes
            for column in range(ages.size):
                place, share, b = places[column], upper[column], expected[column]
                total = 0.0
                for j in range(num_certain + 1):
                    low = b * divergence[k, s, place, j] - missed[k, s, place, j]
                    high = b * divergence[k, s, place + 1, j] - missed[k, s, place + 1, j]
                    total += chance[j] * (low + share * (high - low))
                curve[column] += weight * total
