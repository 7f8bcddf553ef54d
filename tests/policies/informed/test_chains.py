"""Filters of hidden chains against all paths of a small one, and against simulated pages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crawl_envs.instances.misspecified import change_laws
from crawl_envs.instances.misspecified.change_laws import bursty, periodic, shifting
from crawl_envs.sim.tape import CHANGE, SIGNAL
from crawl_envs.types import Instance
from policies.informed.chains import GAPS, STEP, Chain, ChainFilter, hourly
from scripts.suite import informed

Z = 3.5
"""Standard errors that a share may be off; the seeds are fixed."""
QUALITY = {"recall": 0.4, "false_signal_rate": 0.3}


def small_chain() -> Chain:
    """Return a chain of two states, by probabilities of a step that are of no particular law."""
    quiet = np.array([[0.5, 0.1], [0.2, 0.3]])
    silent = np.array([[0.1, 0.05], [0.0, 0.2]])
    false, true = np.array([[0.2, 0.0], [0.05, 0.1]]), np.array([[0.0, 0.3], [0.4, 0.2]])
    survival = np.ones((GAPS.size, 2))
    return Chain(np.array([0.3, 0.7]), quiet, quiet + silent, false, false + true, survival)


def fresh_by_paths(chain: Chain, log: str) -> float:
    """Return P(fresh | log) by all paths: ``w`` a step, ``s`` a signal, ``f`` and ``c`` crawls."""
    moves = {"w": (chain.fresh_step, chain.step), "s": (chain.fresh_signal, chain.signal)}
    events = [event for event in log if event in moves]
    total = fresh_total = 0.0
    for path in product(range(2), repeat=len(events) + 1):
        for changes in product((False, True), repeat=len(events)):
            weight, fresh, number = chain.first[path[0]], True, 0
            for event in log:
                if event in moves:
                    still, either = (m[path[number], path[number + 1]] for m in moves[event])
                    weight *= either - still if changes[number] else still
                    fresh, number = fresh and not changes[number], number + 1
                else:
                    weight *= fresh == (event == "f")
                    fresh = True
            total, fresh_total = total + weight, fresh_total + weight * fresh
    return fresh_total / total


@pytest.mark.parametrize("log", ["www", "wsw", "wwcww", "wsfws", "swcsw"])
def test_probability_of_being_fresh_is_that_of_all_paths(log: str) -> None:
    law = ChainFilter([small_chain()])
    for event in log:
        if event == "w":
            law.wait(1)
        elif event == "s":
            law.signal(0, 0.0)
        else:
            law.crawl(0, event == "c")
    assert law.fresh()[0] == pytest.approx(fresh_by_paths(small_chain(), log), rel=1e-12)


COUNT, CRAWL, SIGNALLED, END = 200_000, 0.6, (0.96, 1.06), 1.4
LAWS = {
    "bursty": (bursty, {}),
    "shifting": (shifting, {"habit": np.arange(COUNT)}),
    "regular": (periodic, {"shape": np.full(COUNT, 21.0), "opening": np.zeros(COUNT)}),
    "hourly": (periodic, {"shape": np.zeros(COUNT), "opening": np.full(COUNT, 0.23)}),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("signalled", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_share_of_fresh_pages_with_the_same_log(name: str, signalled: bool, changed: bool) -> None:
    law, keywords = LAWS[name]
    pages = Instance(1.0, np.full(COUNT, 0.8), **QUALITY, bandwidth=1.0)
    time, page, kind = law(pages, np.random.default_rng(5), END, **keywords)

    def number(bit: int, start: float, end: float) -> np.ndarray:
        return np.bincount(page[(kind & bit > 0) & (time > start) & (time <= end)], minlength=COUNT)

    within = number(SIGNAL, *SIGNALLED)
    same = (number(CHANGE, 0.0, CRAWL) > 0) == changed
    same &= (within == signalled) & (number(SIGNAL, 0.0, END) == within)
    fresh = number(CHANGE, CRAWL, END)[same] == 0
    one = Instance(1.0, [0.8], **QUALITY, bandwidth=1.0)
    first = {key: value[:1] for key, value in keywords.items()}
    filtered = getattr(informed, law.__name__)(one, one, **first).law_filter
    filtered.wait(round(CRAWL / STEP))
    filtered.crawl(0, changed)
    filtered.wait(round((1.01 - CRAWL) / STEP))
    if signalled:
        filtered.signal(0, 1.01)
    filtered.wait(round((END - 1.01) / STEP))
    error = Z * fresh.std() / np.sqrt(fresh.size)
    assert fresh.size > 200
    assert filtered.fresh()[0] == pytest.approx(fresh.mean(), abs=error + 0.005)


def test_pages_that_share_a_habit_tell_of_each_other() -> None:
    pages = Instance(1.0, np.full(2, 0.5), 0.0, 0.0, bandwidth=1.0)
    habit = np.zeros(2, np.int64)
    law = informed.shifting(pages, pages, habit=habit).law_filter
    alone = informed.shifting(pages, pages, habit=np.arange(2)).law_filter
    for filtered in (law, alone):
        filtered.wait(600)
        filtered.crawl(0, True)
        filtered.wait(50)
        filtered.crawl(0, True)
    assert law.fresh()[1] < alone.fresh()[1]
    assert law.fresh()[0] == pytest.approx(alone.fresh()[0], rel=1e-9)


def test_survival_of_a_page_in_bursts() -> None:
    pages = Instance(1.0, [0.5], 0.0, 0.0, bandwidth=1.0)
    law = informed.bursty(pages, pages).law_filter
    gap = np.trapezoid(law.survival[0] @ law.state[0], GAPS)
    rates = 0.5 * np.array([change_laws.QUIET_FACTOR, change_laws.BURST_FACTOR])
    moves = np.array([[-1.0 / 9.0, 1.0 / 9.0], [1.0, -1.0]])
    mean = law.state[0] @ np.linalg.solve(np.diag(rates) - moves, np.ones(2))
    assert gap == pytest.approx(0.5 * mean, rel=0.02)


def test_office_hours_are_exact_at_steps_and_else_to_about_a_hundredth() -> None:
    """Between crawls P(fresh) is the exponential of the hours of change since then."""
    rng, opening, window = np.random.default_rng(0), 0.237, change_laws.WINDOW
    grid = np.linspace(0.0, 3.0, 300_001)[1:]
    hours = np.append(0.0, ((grid - opening) % 1.0 < window).cumsum() * 1e-5)
    errors = []
    for crawl, end in np.sort(rng.uniform(0.0, 3.0, (200, 2))):
        law = ChainFilter([hourly(1.0, opening, window, 1.0, (0.0, 0.0))])
        law.wait(round(crawl / STEP))
        law.crawl(0, changed=False)
        law.wait(round(end / STEP) - round(crawl / STEP))
        for first, last in ((crawl, end), (round(crawl, 2), round(end, 2))):
            busy = hours[round(last * 1e5)] - hours[round(first * 1e5)]
            errors.append(abs(law.fresh()[0] - np.exp(-busy / window)))
    assert max(errors[1::2]) < 2e-4
    assert 0.002 < np.quantile(errors[::2], 0.99) < 0.02
