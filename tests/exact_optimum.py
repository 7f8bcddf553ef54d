"""The best that can be done with a few pages and no signals, by dynamic programming.

Without signals what a tracker can act on is how many slots ago each page was crawled: changes are
memoryless, and whether a crawl found one says nothing where rates are known. So the state is a
vector of elapsed slots, moves are deterministic, and a slot's expected reward has a closed form.
Everything here is slow and obvious.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

State = tuple[int, ...]
Choose = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Elapsed slots, (K, m), and what the last crawls found (-1, 0, 1), (K, m), to pages, (K,)."""


class Pages(NamedTuple):
    """Importance and change rate of each page, and the crawls per unit time."""

    importance: tuple[float, ...]
    change_rate: tuple[float, ...]
    bandwidth: float

    def start(self) -> State:
        """All pages are fresh at time 0, and the first crawl is a slot later."""
        return (1,) * len(self.importance)


def after(state: State, page: int, most: int | None = None) -> State:
    """Elapsed slots at the next decision; beyond ``most`` they are no longer counted."""
    passed = (1 if other == page else slots + 1 for other, slots in enumerate(state))
    return tuple(slots if most is None else min(slots, most) for slots in passed)


def paid(pages: Pages, state: State, page: int) -> float:
    """Expected share of importance that is fresh over the slot in which ``page`` is crawled.

    With e the time since a page's crawl when the slot of length h begins, the page is fresh on
    average for (1/h) times the integral of exp(-Delta s) over s in (e, e + h).
    """
    slot, total = 1.0 / pages.bandwidth, 0.0
    for other, (weight, rate) in enumerate(zip(pages.importance, pages.change_rate, strict=True)):
        begun = 0.0 if other == page else state[other] * slot
        total += weight * (math.exp(-rate * begun) - math.exp(-rate * (begun + slot))) / rate
    return total / slot / sum(pages.importance)


def best_of_episode(pages: Pages, slots: int) -> float:
    """Largest mean reward of episodes of ``slots`` steps, by backward induction."""
    choices = range(len(pages.importance))
    reached = [{pages.start()}]
    for _ in range(slots - 1):
        reached.append({after(state, page) for state in reached[-1] for page in choices})
    value: dict[State, float] = dict.fromkeys(
        {after(state, page) for state in reached[-1] for page in choices}, 0.0
    )
    for states in reversed(reached):
        value = {
            state: max(paid(pages, state, page) + value[after(state, page)] for page in choices)
            for state in states
        }
    return value[pages.start()] / slots


class Best(NamedTuple):
    """The optimum of endless play: bounds on its mean reward, and its page in every state."""

    low: float
    high: float
    page: dict[State, int]


def best_forever(pages: Pages, most: int = 12, precision: float = 1e-10) -> Best:
    """Value iteration over elapsed slots up to ``most``, until the bounds on the mean meet.

    Half of the time nothing moves and nothing is paid, so that cycles do not keep it from
    settling; differences of successive values then bound half the mean reward (Odoni, 1969).
    """
    count = len(pages.importance)
    states = list(itertools.product(range(1, most + 1), repeat=count))
    number = {state: index for index, state in enumerate(states)}
    reward = np.array([[paid(pages, state, page) for page in range(count)] for state in states])
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
    """Mean reward of crawling a cycle of pages for ever; pages outside of it are never fresh."""
    length, total = len(cycle), 0.0
    slot, weights = 1.0 / pages.bandwidth, sum(pages.importance)
    for page, (weight, rate) in enumerate(zip(pages.importance, pages.change_rate, strict=True)):
        at = [index for index, crawled in enumerate(cycle) if crawled == page]
        for index, begun in enumerate(at):
            gap = at[index + 1] - begun if index + 1 < len(at) else length - begun + at[0]
            total += weight * (1.0 - math.exp(-rate * gap * slot)) / rate
    return total / weights / (length * slot)


def expected_mean(pages: Pages, choose: Choose, slots: int) -> float:
    """Expected mean reward of a policy over an episode of ``slots`` steps, without noise.

    The policy may look at what the last crawls found, which is random: so the probabilities of
    all states are carried along.
    """
    slot = 1.0 / pages.bandwidth
    count = len(pages.importance)
    chances = {(pages.start(), (-1,) * count): 1.0}
    total = 0.0
    for _ in range(slots):
        states = list(chances)
        chosen = choose(np.array([one[0] for one in states]), np.array([one[1] for one in states]))
        new: dict[tuple[State, State], float] = {}
        for (elapsed, found), page in zip(states, map(int, chosen), strict=True):
            chance = chances[elapsed, found]
            total += chance * paid(pages, elapsed, page)
            same = math.exp(-pages.change_rate[page] * elapsed[page] * slot)
            for change, share in ((0, same), (1, 1.0 - same)):
                seen = (*found[:page], change, *found[page + 1 :])
                key = after(elapsed, page), seen
                new[key] = new.get(key, 0.0) + chance * share
        chances = new
    return total / slots


def expected_mean_of_random(pages: Pages, slots: int) -> float:
    """Expected mean reward over an episode of crawling pages at random, each as likely."""
    count = len(pages.importance)
    chances = {pages.start(): 1.0}
    total = 0.0
    for _ in range(slots):
        new: dict[State, float] = {}
        for state, chance in chances.items():
            for page in range(count):
                total += chance / count * paid(pages, state, page)
                then = after(state, page)
                new[then] = new.get(then, 0.0) + chance / count
        chances = new
    return total / slots
