"""Optimal policies for a few pages without signals, by dynamic programming.

Changes are memoryless, so with known rates the state is the vector of slots since each page's last
crawl. Transitions are deterministic, and the expected reward of a slot has a closed form. The code
is slow and obvious.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

State = tuple[int, ...]
Choose = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function of elapsed slots and last crawl results (-1, 0, 1), (K, m) each; gives pages, (K,)."""


class Pages(NamedTuple):
    """Importance and change rate of each page, and the crawls per unit time."""

    importance: tuple[float, ...]
    change_rate: tuple[float, ...]
    bandwidth: float

    def start(self) -> State:
        """Return the state at the first crawl, one slot after time 0, when all pages are fresh."""
        return (1,) * len(self.importance)


def after(state: State, page: int, most: int | None = None) -> State:
    """Return the elapsed slots at the next decision, at most ``most``."""
    passed = (1 if other == page else slots + 1 for other, slots in enumerate(state))
    return tuple(slots if most is None else min(slots, most) for slots in passed)


def reward_of(pages: Pages, state: State, page: int) -> float:
    """Return the expected importance-weighted freshness over the slot after a crawl of ``page``.

    With e the time since a page's crawl when the slot of length h begins, the page is fresh on
    average for (1/h) times the integral of exp(-Delta s) over s in (e, e + h).
    """
    slot, total = 1.0 / pages.bandwidth, 0.0
    for other, (weight, rate) in enumerate(zip(pages.importance, pages.change_rate, strict=True)):
        elapsed = 0.0 if other == page else state[other] * slot
        total += weight * (math.exp(-rate * elapsed) - math.exp(-rate * (elapsed + slot))) / rate
    return total / slot / sum(pages.importance)


def best_of_episode(pages: Pages, slots: int) -> float:
    """Return the largest mean reward of an episode of ``slots`` steps, by backward induction."""
    choices = range(len(pages.importance))
    reached = [{pages.start()}]
    for _ in range(slots - 1):
        reached.append({after(state, page) for state in reached[-1] for page in choices})
    value: dict[State, float] = dict.fromkeys(
        {after(state, page) for state in reached[-1] for page in choices}, 0.0
    )
    for states in reversed(reached):
        value = {
            state: max(
                reward_of(pages, state, page) + value[after(state, page)] for page in choices
            )
            for state in states
        }
    return value[pages.start()] / slots


class Best(NamedTuple):
    """Optimum over an infinite horizon: bounds on its mean reward, and its page in every state."""

    low: float
    high: float
    page: dict[State, int]


def best_forever(pages: Pages, most: int = 12, precision: float = 1e-10) -> Best:
    """Run value iteration over elapsed slots up to ``most``, until the bounds on the mean agree.

    With probability 1/2 a step keeps the state, without reward, which makes the chain aperiodic;
    differences of successive values then bound half the mean reward (Odoni, 1969).
    """
    count = len(pages.importance)
    states = list(itertools.product(range(1, most + 1), repeat=count))
    number = {state: index for index, state in enumerate(states)}
    reward = np.array(
        [[reward_of(pages, state, page) for page in range(count)] for state in states]
    )
    move = np.array(
        [[number[after(state, page, most)] for page in range(count)] for state in states]
    )
    value = np.zeros(len(states))
    while True:
        new = (0.5 * value[:, None] + 0.5 * (reward + value[move])).max(1)
        gain = 2.0 * (new - value)
        value = new - new[0]
        if gain.max() - gain.min() < precision:
            pages_of = (reward + value[move]).argmax(1)
            table = dict(zip(states, map(int, pages_of), strict=True))
            return Best(float(gain.min()), float(gain.max()), table)


def mean_of_cycle(pages: Pages, cycle: tuple[int, ...]) -> float:
    """Return the mean reward of repeating a cycle of pages; other pages are never fresh."""
    length, total = len(cycle), 0.0
    slot, weights = 1.0 / pages.bandwidth, sum(pages.importance)
    for page, (weight, rate) in enumerate(zip(pages.importance, pages.change_rate, strict=True)):
        at = [index for index, crawled in enumerate(cycle) if crawled == page]
        for index, first in enumerate(at):
            gap = at[index + 1] - first if index + 1 < len(at) else length - first + at[0]
            total += weight * (1.0 - math.exp(-rate * gap * slot)) / rate
    return total / weights / (length * slot)


def expected_mean(pages: Pages, choose: Choose, slots: int) -> float:
    """Return the exact expected mean reward of a policy over an episode of ``slots`` steps.

    The policy may use the last crawl results, which are random, so the probabilities of all
    states are tracked.
    """
    slot = 1.0 / pages.bandwidth
    count = len(pages.importance)
    chances = {(pages.start(), (-1,) * count): 1.0}
    total = 0.0
    for _ in range(slots):
        states = list(chances)
        chosen = choose(np.array([one[0] for one in states]), np.array([one[1] for one in states]))
        new: dict[tuple[State, State], float] = {}
        for (elapsed, changed), page in zip(states, map(int, chosen), strict=True):
            chance = chances[elapsed, changed]
            total += chance * reward_of(pages, elapsed, page)
            same = math.exp(-pages.change_rate[page] * elapsed[page] * slot)
            for change, share in ((0, same), (1, 1.0 - same)):
                seen = (*changed[:page], change, *changed[page + 1 :])
                key = after(elapsed, page), seen
                new[key] = new.get(key, 0.0) + chance * share
        chances = new
    return total / slots


def expected_mean_of_random(pages: Pages, slots: int) -> float:
    """Return the expected mean reward of crawling uniformly random pages over an episode."""
    count = len(pages.importance)
    chances = {pages.start(): 1.0}
    total = 0.0
    for _ in range(slots):
        new: dict[State, float] = {}
        for state, chance in chances.items():
            for page in range(count):
                total += chance / count * reward_of(pages, state, page)
                then = after(state, page)
                new[then] = new.get(then, 0.0) + chance / count
        chances = new
    return total / slots
