r"""Compute the optimum of the discrete class, one crawl per slot of 1/R, for two or three pages.

Before each crawl the state of a page is the number of slots k since its last crawl and the number
of signals n since then: it is fresh with probability p = exp(-alpha k / R) (nu / gamma)^n, eq. 1 of
Busa-Fekete et al. The expected freshness of a slot is sum mu~ p (1 - exp(-Delta/R)) / (Delta/R)
after its crawl; then k grows by 1 and n by a Poisson number. Relative value iteration over these
states maximises the long-run mean.

States with p below some epsilon are merged. If such a page counts as stale, the result is a
feasible policy and a lower bound; if it counts as fresh with probability epsilon, the result is an
upper bound for every policy. The optimum lies between the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.solvers.allocation import normalised

TOLERANCE = 1e-9
"""Width of the bounds of the freshness at which value iteration ends."""

LEAST_FRESH = 1e-9
"""The epsilon, except when the number of states requires a larger one."""

RARE = 1e-16
"""Total probability of the numbers of signals in a slot that are merged."""

DAMPING = 0.9
"""Step size of value iteration; without signals, undamped cycles do not converge."""

MAX_ITERATIONS = 20_000


class _Page(NamedTuple):
    """States of a page: slots and signals since its last crawl; the last state is for all others.

    The states of k slots are ``first[k]``, without signals, to ``first[k + 1] - 1``. State
    ``after[s, j]`` follows s with probability ``chance[j]``. ``reward`` is the reward of a slot
    that starts fresh. ``ages`` and ``uses_signals``: whether time and signals make the page stale.
    """

    first: IntArray
    slots: IntArray
    signals: IntArray
    fresh: FloatArray
    after: IntArray
    chance: FloatArray
    reward: float
    epsilon: float
    ages: bool
    uses_signals: bool

    def states(self, slots: IntArray, signals: IntArray) -> IntArray:
        """Return the numbers of the states with these slots and signals since the last crawl."""
        aged = slots if self.ages else 0 * slots
        last = len(self.first) - 2
        counted = np.minimum(aged, last)
        state = self.first[counted] + (signals if self.uses_signals else 0)
        outside = (state >= self.first[counted + 1]) | (aged > last)
        return np.asarray(np.where(outside, len(self.fresh) - 1, state))


class DiscreteValue(NamedTuple):
    """Long-run freshness of a policy of the discrete class; see :func:`discrete_optimum`.

    Attributes:
        low: a lower bound, in [0, 1].
        high: an upper bound.
        pages: the states of each page.
        keys: values before a crawl, an array per page; the page of the largest one is crawled. It
            has an axis per page, of length 1 if it does not depend on that page's state.
    """

    low: float
    high: float
    pages: tuple[_Page, ...]
    keys: Sequence[FloatArray]

    @property
    def freshness(self) -> float:
        """The middle between the lower and the upper bound of freshness."""
        return 0.5 * (self.low + self.high)


def discrete_optimum(
    instance: Instance, max_states: int, *, index: CompiledIndex | None = None
) -> DiscreteValue:
    """Return the long-run freshness of the best discrete policy, or of an index policy.

    Args:
        instance: two or three pages with a single source of signals.
        max_states: largest number of states of a page, >= 3.
        index: an index policy, which crawls the page of the largest value, the first one at ties.
            In its last state a page has the limit of its value. None: the best policy.

    Returns:
        Bounds of the importance-weighted freshness, with the errors of iteration and truncation.
    """
    slot = 1.0 / instance.bandwidth
    weight = normalised(instance.importance)
    parameters = instance.change_rate, instance.recall, instance.false_signal_rate
    pages = tuple(_page(*one, slot, max_states) for one in zip(weight, *parameters, strict=True))
    keys = None if index is None else _index_keys(index, pages, slot)
    low, _, after = _iterate(pages, keys)
    upper = tuple(page._replace(fresh=np.append(page.fresh[:-1], page.epsilon)) for page in pages)
    _, high, _ = _iterate(upper, keys)
    return DiscreteValue(low, min(high, 1.0), pages, keys or after)


def _page(
    weight: float, change_rate: float, recall: float, false_rate: float, slot: float, limit: int
) -> _Page:
    """Return the states of one page: at most ``limit``, and as small a freshness as this allows."""
    gamma = recall * change_rate + false_rate
    per_slot = (1.0 - recall) * change_rate * slot
    per_signal = math.inf if false_rate == 0.0 else math.log(gamma / false_rate)
    if recall * change_rate == 0.0:
        per_signal = 0.0
    reach = -math.log(LEAST_FRESH)
    while (counts := _counts(reach, per_slot, per_signal, limit)).sum() >= limit:
        reach *= 0.98
    first = np.concatenate([[0], np.cumsum(counts)])
    slots = np.repeat(np.arange(len(counts)), counts)
    signals = np.arange(len(slots)) - first[slots]
    aged = slots * per_slot + (signals * per_signal if per_signal < math.inf else 0.0)
    page = _Page(
        first=first,
        slots=slots,
        signals=signals,
        fresh=np.append(np.exp(-aged), 0.0),
        after=np.empty((0, 0), np.int64),
        chance=_chances(gamma * slot if per_signal > 0.0 else 0.0, int(counts.max())),
        reward=weight
        * (-math.expm1(-change_rate * slot) / (change_rate * slot) if change_rate else 1.0),
        epsilon=math.exp(-reach) if per_slot + per_signal > 0.0 else 0.0,
        ages=per_slot > 0.0,
        uses_signals=per_signal > 0.0,
    )
    arrived = np.arange(len(page.chance))
    after = page.states(slots[:, None] + 1, signals[:, None] + arrived)
    stale = np.full((1, len(arrived)), len(slots))
    return page._replace(after=np.concatenate([after, stale]))


def _counts(reach: float, per_slot: float, per_signal: float, limit: int) -> IntArray:
    """Return, for each number of slots since the crawl, how many signals leave enough freshness."""
    slots = min(int(reach / per_slot), limit) if per_slot > 0.0 else 0
    remaining = reach - per_slot * np.arange(slots + 1)
    if per_signal in (0.0, math.inf):
        return np.ones(slots + 1, np.int64)
    return np.asarray(np.minimum(remaining / per_signal, limit).astype(np.int64) + 1)


def _chances(mean: float, limit: int) -> FloatArray:
    """Return the probabilities of 0, 1, ... signals in a slot; the last one is for all others."""
    chance, rest = [math.exp(-mean)], 1.0
    while mean > 0.0 and len(chance) <= limit and (rest := rest - chance[-1]) > RARE:
        chance.append(chance[-1] * mean / len(chance))
    chance[-1] = 1.0 - sum(chance[:-1])
    return np.array(chance)


def _index_keys(index: CompiledIndex, pages: tuple[_Page, ...], slot: float) -> list[FloatArray]:
    """Return the values that an index policy gives each state of each page, on the page's axis."""
    value = ready(index.value)
    keys = []
    for number, page in enumerate(pages):
        states = [*zip(page.slots * slot, page.signals.astype(float), strict=True), (1e9, 1e9)]
        values = np.array([value(index.parameters, number, *state) for state in states])
        keys.append(_along(values, number, len(pages)))
    return keys


def _along(values: FloatArray, axis: int, axes: int) -> FloatArray:
    """Reshape ``values`` to an array with ``axes`` axes, all of length 1 except ``axis``."""
    return values.reshape([-1 if place == axis else 1 for place in range(axes)])


def _iterate(
    pages: tuple[_Page, ...], keys: Sequence[FloatArray] | None
) -> tuple[float, float, list[FloatArray]]:
    """Run relative value iteration; return bounds of the mean reward, and values after each crawl.

    The values after a crawl of page a have an axis per page. Axis a has length 1: page a is in its
    first state.
    """
    axes = len(pages)
    fresh = [_along(page.reward * page.fresh, i, axes) for i, page in enumerate(pages)]
    gains = []
    for crawled, page in enumerate(pages):
        rewards = [fresh[i] for i in range(axes) if i != crawled]
        gains.append(page.reward + sum(rewards[1:], start=rewards[0]))
    after = [np.zeros_like(gain) for gain in gains]
    low, high, iterations = 0.0, 1.0, 0
    while high - low > TOLERANCE and iterations < MAX_ITERATIONS:
        iterations += 1
        steps = [
            gains[crawled] + _next(crawled, pages, after, keys or after) - after[crawled]
            for crawled in range(axes)
        ]
        low = min(float(step.min()) for step in steps)
        high = max(float(step.max()) for step in steps)
        origin = float(steps[0].flat[0])
        for array, step in zip(after, steps, strict=True):
            array += DAMPING * (step - origin)
    return low, high, after


def _next(
    crawled: int, pages: tuple[_Page, ...], after: list[FloatArray], keys: Sequence[FloatArray]
) -> FloatArray:
    """Return the expected value of the choice that follows, one slot after page ``crawled``."""
    total: FloatArray = np.zeros(1)
    for state, chance in zip(pages[crawled].after[0], pages[crawled].chance, strict=True):
        total = total + chance * _best(crawled, int(state), after, keys)
    for axis, page in enumerate(pages):
        if axis != crawled:
            parts = zip(page.after.T, page.chance, strict=True)
            taken = [chance * np.take(total, states, axis) for states, chance in parts]
            total = sum(taken, start=np.zeros(1))
    return total


def _best(
    crawled: int, state: int, after: list[FloatArray], keys: Sequence[FloatArray]
) -> FloatArray:
    """Return the value of the page with the largest key, if page ``crawled`` is in ``state``."""
    best, key = (_in_state(arrays[0], crawled, state) for arrays in (after, keys))
    for values, rivals in zip(after[1:], keys[1:], strict=True):
        rival = _in_state(rivals, crawled, state)
        better = rival > key
        best = np.where(better, _in_state(values, crawled, state), best)
        key = np.where(better, rival, key)
    return best


def _in_state(values: FloatArray, axis: int, state: int) -> FloatArray:
    """Return the part of ``values`` in which the page of ``axis`` is in ``state``."""
    return values if values.shape[axis] == 1 else np.take(values, [state], axis)
