"""The compiled parts of a belief about how a page diverges: what its crawls tell, what it is worth.

Weights are laid out as (l, k, s): rates L_l, dynamic shares A_k, shapes s of
:mod:`policies.estimators.divergence.shapes`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.estimators.divergence.shapes import (
    ABOVE,
    BELOW,
    BINS_PER_STEP,
    LEAST,
    NUM_AMOUNTS,
    PER_OCTAVE,
    SHARE_STEP,
    TOLD,
)

UNHEARD = 1e-6
"""Chance of a change of a page that is static."""
FAR = 20.0
"""Weights are nothing where their logarithms fall so far short of the largest one."""
NEGLIGIBLE = 1e-5
"""Weights below this share of the largest one are left out."""
NO_BIN = -128
"""In the place of a bin: no copy was compared with, or nothing of it was lost."""


@compiled()
def bin_of(divergence: float) -> int:
    """Return the bin of the lost share y = D / (2 - D); NO_BIN where D is not > 0."""
    if not divergence > 0.0:
        return NO_BIN
    lost = divergence / (2.0 - divergence)
    place = -math.log2(lost) * BINS_PER_STEP / SHARE_STEP
    return min(round(place), 100)


@compiled()
def place_of(amount: float) -> int:
    """Return the row of the tables for so many expected updates."""
    if amount <= 0.0:
        return 0
    place = round(PER_OCTAVE * (math.log2(amount) - LEAST))
    return min(max(place, 0), NUM_AMOUNTS - 1)


@compiled()
def truth(rate: float, recall: float, false_rate: float) -> float:
    """Return the probability that a signal tells of an update."""
    told = recall * rate
    return told / (told + false_rate) if told > 0.0 else 0.0


@compiled()
def log_change(
    rate: float,
    elapsed: float,
    signals: int,
    changed: bool,
    recall: float,
    false_rate: float,
    counting: bool,
) -> float:
    """Return the logarithm of the probability of what a crawl found.

    With ``counting``, also of how many signals came; signals of no recall tell nothing.
    """
    told = (recall * rate + false_rate) * elapsed
    result = -told if counting else 0.0
    if counting and signals > 0:
        result += signals * math.log(max(told, 1e-12))
    doubt = 1.0 - truth(rate, recall, false_rate)
    unchanged = -(1.0 - recall) * rate * elapsed
    if signals > 0:
        unchanged += signals * math.log(max(doubt, 1e-12))
    if not changed:
        return result + max(unchanged, math.log(UNHEARD))
    return result + math.log(max(-math.expm1(unchanged), UNHEARD))


@compiled()
def weigh(
    weights: FloatArray,
    log_prior: FloatArray,
    log_found: NDArray[np.float32],
    rates: FloatArray,
    elapsed: NDArray[np.float32],
    signals: NDArray[np.int16],
    changed: NDArray[np.bool_],
    age: NDArray[np.float32],
    found: NDArray[np.int8],
    recall: float,
    false_rate: float,
    older: float,
) -> None:
    """Write the posterior of a page into ``weights``, (l * k * s + 1,), which sum to 1.

    The last one is that of a static page.

    Args:
        weights: written.
        log_prior: (l * k * s + 1,).
        log_found: of the shape tables.
        rates: L_l, (l,).
        elapsed: of the page's crawls, (n,).
        signals: received meanwhile, (n,).
        changed: what was found, (n,).
        age: how much older the copies compared with are, (n, h).
        found: the bins of what they had lost, (n, h).
        recall: of signals.
        false_rate: of signals.
        older: exponent of what the comparisons with copies before the last one say.
    """
    num_shapes = log_found.shape[2]
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
                if found[n, copy] == NO_BIN:
                    continue
                amount = rates[row] * age[n, copy]
                if copy == 0:
                    sure = truth(rates[row], recall, false_rate)
                    amount = (1.0 - recall) * rates[row] * elapsed[n] + signals[n] * sure
                power = 1.0 if copy == 0 else older
                add_found(part, log_found[place_of(amount)], found[n, copy], power, num_shapes)
        top = max(top, part.max())
    normalise(weights, top)


@compiled()
def add_found(
    part: FloatArray, table: NDArray[np.float32], found: int, power: float, num_shapes: int
) -> None:
    """Add to the logarithms of weights (k, s) what a lost share says, ``power`` times."""
    for k in range(part.size // num_shapes):
        place = min(max(found - BINS_PER_STEP * k, -ABOVE), BELOW) + ABOVE
        for s in range(num_shapes):
            part[k * num_shapes + s] += power * table[place, s]


@compiled()
def normalise(weights: FloatArray, top: float) -> None:
    """Turn logarithms of weights, the largest of them ``top``, into weights that sum to 1."""
    total = 0.0
    for j in range(weights.size):
        weights[j] = math.exp(weights[j] - top) if weights[j] - top > -FAR else 0.0
        total += weights[j]
    for j in range(weights.size):
        weights[j] /= total


@compiled()
def worth_unheard(
    curve: FloatArray,
    weights: FloatArray,
    gain: FloatArray,
    amounts: FloatArray,
    rates: FloatArray,
    ages: FloatArray,
) -> None:
    """Write what :func:`worth` does for a page without signals, from a table made for it.

    Args:
        curve: written, (T,).
        weights: of the page's curves.
        gain: a E[d_N] - E[sum of d_k over k < N], N ~ Poisson(a), by share, shape and a.
        amounts: a.
        rates: L_l, (l,).
        ages: (T,).
    """
    cells = gain.reshape(-1, amounts.size)
    places, upper = np.zeros(ages.size, np.int64), np.zeros(ages.size)
    curve[:] = 0.0
    least = NEGLIGIBLE * weights[: rates.size * cells.shape[0]].max()
    for row in range(rates.size):
        for column in range(ages.size):
            places[column], upper[column] = between(amounts, rates[row] * ages[column])
        for cell in range(cells.shape[0]):
            weight = weights[row * cells.shape[0] + cell]
            if weight <= least:
                continue
            own = cells[cell]
            for column in range(ages.size):
                place = places[column]
                value = own[place] + upper[column] * (own[place + 1] - own[place])
                curve[column] += weight / rates[row] * value


@compiled()
def between(amounts: FloatArray, amount: float) -> tuple[int, float]:
    """Return the row of the tables below an amount, and its share of the way to the next.

    The share is below 0 where fewer updates are expected than are tabulated.
    """
    place = int(np.searchsorted(amounts, amount, side="right")) - 1
    place = min(max(place, 0), amounts.size - 2)
    share = (amount - amounts[place]) / (amounts[place + 1] - amounts[place])
    return place, min(share, 1.0)


@compiled()
def law_of_told(chance: FloatArray, known: int, sure: float) -> None:
    """Write the probabilities that j of ``known`` signals tell of an update, j = 0 .. known."""
    chance[:] = 0.0
    chance[0] = 1.0
    for _ in range(known):
        for j in range(known, 0, -1):
            chance[j] = chance[j] * (1.0 - sure) + chance[j - 1] * sure
        chance[0] *= 1.0 - sure


@compiled()
def worth(
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
    divergence after k updates, it is E[B d_N - sum_{k < N} d_k] / L, averaged over the weights. Of
    more than TOLD signals the others are taken to tell of Poisson(p) updates each.
    """
    num_shares, num_shapes = divergence.shape[0], divergence.shape[1]
    block = num_shares * num_shapes
    known = min(signals, TOLD)
    chance = np.zeros(TOLD + 1)
    places = np.zeros(ages.size, np.int64)
    upper, expected = np.zeros(ages.size), np.zeros(ages.size)
    curve[:] = 0.0
    least = NEGLIGIBLE * weights[: rates.size * block].max()
    for row in range(rates.size):
        rate = rates[row]
        sure = truth(rate, recall, false_rate)
        law_of_told(chance, known, sure)
        for column in range(ages.size):
            amount = (1.0 - recall) * rate * ages[column] + (signals - known) * sure
            place, share = between(amounts, amount)
            places[column], upper[column] = place, share
            expected[column] = known * sure + (
                amounts[place] * (1.0 - share) + amounts[place + 1] * share
            )
        for cell in range(block):
            weight = weights[row * block + cell] / rate
            if weight * rate <= least:
                continue
            k, s = cell // num_shapes, cell % num_shapes
            for column in range(ages.size):
                place, share, b = places[column], upper[column], expected[column]
                total = 0.0
                for j in range(known + 1):
                    low = b * divergence[k, s, place, j] - missed[k, s, place, j]
                    high = b * divergence[k, s, place + 1, j] - missed[k, s, place + 1, j]
                    total += chance[j] * (low + share * (high - low))
                curve[column] += weight * total
