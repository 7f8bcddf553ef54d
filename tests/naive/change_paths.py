"""Slow counterpart of the drawing of changes between crawls: matrices, sums over states, brentq."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

from policies.live.logs.change_paths import Gaps, Law


def simulated_page(
    rng: np.random.Generator, rate: np.ndarray, burst: np.ndarray, days: float
) -> tuple[list[float], list[int]]:
    """Return times of changes from day 0, and phases, of which the first is at day 0."""
    phase = int(rng.random() < burst[2])
    times, phases = [rng.exponential(1.0 / rate[phase])], [phase]
    while times[-1] < days:
        phases.append(int(rng.random() < burst[phases[-1]]))
        times.append(times[-1] + rng.exponential(1.0 / rate[phases[-1]]))
    return times[:-1], phases


class Page:
    """A page of a law; states are phases 0 and 1 without a change, and then with one."""

    def __init__(self, law: Law, i: int) -> None:
        g = law.group[i]
        self.rate, self.burst = law.rate[i], law.burst[g]
        self.share, self.false = law.share[g], law.false[i]
        self.moves = np.array([[1.0 - b, b] for b in self.burst[:2]])
        self.flow = self.rate[:, None] * self.moves
        self.generator = self.share[0] * self.flow - np.diag(self.rate)

    def piece(self, t: float) -> np.ndarray:
        """Return the probabilities of states after a time without signals, (4, 4)."""
        none, every = np.diag(np.exp(-self.rate * t)), expm(self.generator * t)
        return np.block([[none, every - none], [np.zeros((2, 2)), every]])

    def signal(self, source: int, pace: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the densities of states after a true signal, and after a false one, (4, 4)."""
        true = np.zeros((4, 4))
        true[:2, 2:] = true[2:, 2:] = self.share[1 + source] * self.flow
        return true, np.eye(4) * self.false[source] / pace


def pick(rng: np.random.Generator, weights: list[float]) -> int:
    """Return an index with probability in proportion to its weight."""
    return int(np.searchsorted(np.cumsum(weights), rng.random() * sum(weights), side="right"))


def draw_page(
    gaps: Gaps, law: Law, i: int, rng: np.random.Generator
) -> tuple[list[tuple[float, int]], dict[int, bool], int]:
    """Return changes (time, phase after) of a page, which signals are true, and the first phase."""
    page, alpha = Page(law, i), []
    state = np.array([1.0 - law.burst[law.group[i], 2], law.burst[law.group[i], 2], 0.0, 0.0])
    steps: list[tuple[str, int, float, float]] = []
    for gap in range(gaps.first[i], gaps.first[i + 1]):
        quiet = gaps.has_evidence[gap] and not gaps.changed[gap]
        signals = [] if quiet else list(range(gaps.signal[gap], gaps.signal[gap + 1]))
        cuts = [0.0, *(float(gaps.signal_at[k]) for k in signals), float(gaps.length[gap])]
        for number, (begin, end) in enumerate(pairwise(cuts)):
            steps.append(("time", gap, begin, end))
            steps.append(
                ("signal", signals[number], 0, 0) if number < len(signals) else ("crawl", gap, 0, 0)
            )
    for kind, k, begin, end in steps:
        alpha.append(state)
        if kind == "time":
            state = state @ page.piece(end - begin)
        elif kind == "signal":
            state = state @ sum(page.signal(gaps.source[k], gaps.pace[k]))
        else:
            kept = np.array(
                [not gaps.changed[k]] * 2 + [gaps.changed[k] or not gaps.has_evidence[k]] * 2
            )
            state = np.append((state * kept)[:2] + (state * kept)[2:], [0.0, 0.0])
        state = state / state.sum()
    changes: list[tuple[float, int]] = []
    true: dict[int, bool] = {}
    now = pick(rng, state[:2].tolist())
    for (kind, k, begin, end), before in zip(reversed(steps), reversed(alpha), strict=True):
        if kind == "crawl":
            if not gaps.has_evidence[k]:
                now += 2 * pick(rng, [before[now], before[2 + now]])
            else:
                now += 2 * gaps.changed[k]
        elif kind == "signal" and now >= 2:
            right, wrong = page.signal(gaps.source[k], gaps.pace[k])
            earlier = pick(rng, [*(before * right[:, now]), before[now] * wrong[now, now]])
            if earlier < 4:
                true[k] = True
                changes.append((_time_of(gaps, k), now & 1))
                now = earlier
        elif kind == "time" and now >= 2:
            earlier = pick(rng, [*(before * page.piece(end - begin)[:, now]), 0.0])
            start = float(gaps.start[k])
            changes += between(rng, page, earlier, now & 1, start + begin, start + end)
            now = earlier
    return changes, true, now


def _time_of(gaps: Gaps, signal: int) -> float:
    gap = int(np.searchsorted(gaps.signal, signal, side="right")) - 1
    return float(gaps.start[gap] + gaps.signal_at[signal])


def between(
    rng: np.random.Generator, page: Page, earlier: int, last: int, start: float, end: float
) -> list[tuple[float, int]]:
    """Return the changes without a signal between two states."""
    phase, some, changes = earlier & 1, earlier < 2, []
    while True:
        left = end - start
        every = expm(page.generator * left)[phase, last]
        if phase == last and not some and rng.random() * every < math.exp(-page.rate[phase] * left):
            return changes
        start += first_time(rng.random(), page, phase, last, left)
        reach = page.moves[phase] * expm(page.generator * (end - start))[:, last]
        phase, some = int(rng.random() * reach.sum() >= reach[0]), False
        changes.append((start, phase))


def first_time(uniform: float, page: Page, phase: int, last: int, t: float) -> float:
    """Return the time of the first of one or more changes in (0, t], by a root search.

    The probability of a first change by u is that of all ways minus that of none by u: after u, the
    rest is as from the first phase.
    """

    def by(u: float) -> float:
        rest = math.exp(-page.rate[phase] * u) * expm(page.generator * (t - u))[phase, last]
        return float(expm(page.generator * t)[phase, last] - rest)

    none = math.exp(-page.rate[phase] * t) if phase == last else 0.0
    target = uniform * (expm(page.generator * t)[phase, last] - none)
    return float(brentq(lambda u: by(u) - target, 0.0, t, xtol=1e-13, rtol=1e-13))
