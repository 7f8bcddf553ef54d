"""What agents learned: the values that they give to pages, beside those of V_GREEDY_NCIS.

The scores of an agent are defined up to one rising function, the same for all pages of an
instance, since only their order among pages decides what is crawled. So scores are mapped to the
formula's values by the rising function that fits best, in the sense of least squares, over all
pages of the instance (isotonic regression); not page by page, which would hide it if an agent
thought too much of one page and too little of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from scipy.optimize import isotonic_regression

import agents
from agents.evolution import load_index
from agents.networks.page_scorer import SCORER, PageScorer
from crawl_envs.types import FloatArray, IntArray, Problem
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.values import greedy_ncis_observed
from scripts.reporting.rows import indexed

FORMULA = "GREEDY-NCIS"
SIGNALS = (0, 1, 2, 3)
CYCLES = np.linspace(0.1, 4.0, 40)
"""Elapsed times of the tables, in cycles T = m / R."""
SELDOM = 0.2
HEARD = (0, 1)
"""Numbers of signals for which it is told when a page would be crawled."""
DECISIONS = 200
"""Decisions of an episode whose states are looked at."""
EXTENDING = 0.1
"""Weight of all states of the tables together in the regression, that of the states met being 1:
they say how the map goes on where no episode went."""

Scores = Callable[[FloatArray], FloatArray]
"""From an observation, (m, F), to a score per page, (m,)."""
ELAPSED, COUNT = 0, 1
"""Columns of the observation that the tables vary."""


class Met(NamedTuple):
    """States that a policy met in an episode, and what it did.

    ``problem`` is what it was told, ``observations`` (K, m, F) those of K decisions, ``chosen``
    (K,) the pages that it crawled.
    """

    problem: Problem
    observations: FloatArray
    chosen: IntArray

    @property
    def cycle(self) -> float:
        """The time T = m / R."""
        return float(self.problem.num_pages / self.problem.bandwidth)


def met(
    seed: int, num_pages: int, horizon: float, player: Callable[[Problem], Scores] | None = None
) -> Met:
    """Play on noisy pages with R = m, and look at states of the second half.

    ``player`` makes the scores by which pages are chosen; None plays V_GREEDY_NCIS.
    """
    env: Any = gymnasium.make(
        "CrawlNCIS-v0",
        num_pages=num_pages,
        bandwidth=float(num_pages),
        horizon=horizon,
        instance="noisy",
    )
    observation, _ = env.reset(seed=seed)
    problem = env.unwrapped.problem
    own = formula_scores if player is None else player(problem)
    slots = env.unwrapped.num_slots()
    kept = {int(slot) for slot in np.linspace(slots // 2, slots - 1, DECISIONS)}
    seen, chosen = [], []
    for slot in range(slots):
        rows = np.asarray(observation, np.float64)
        page = int(own(rows).argmax())
        if slot in kept:
            seen.append(rows)
            chosen.append(page)
        observation, *_ = env.step(page)
    env.close()
    return Met(problem, np.array(seen), np.array(chosen, np.int64))


def formula_scores(rows: FloatArray) -> FloatArray:
    """V_GREEDY_NCIS of pages by their rows, (..., 7), which are those of the default features."""
    elapsed, signals, _, *told = np.moveaxis(rows, -1, 0)
    words = ("importance", "change_rate", "recall", "false_signal_rate")
    values: FloatArray = greedy_ncis_observed(
        elapsed, signals, **dict(zip(words, told, strict=True))
    )
    return values


def index_scores(name: str, problem: Problem) -> Scores:
    """The index of a trained index, one that corrects no belief."""
    form = load_index(agents.SHIPPED / name).compile(problem, 0, np.random.default_rng(0))
    assert isinstance(form, CompiledIndex)

    def scores(rows: FloatArray) -> FloatArray:
        states = enumerate(rows[:, (ELAPSED, COUNT)].tolist())
        return np.array([form.value(form.parameters, page, *state) for page, state in states])

    return scores


def set_scores(name: str, problem: Problem) -> Scores:
    """The scores of a trained page set."""
    scorer = PageScorer.load(agents.SHIPPED / name / SCORER)
    cycle = problem.num_pages / problem.bandwidth

    def scores(rows: FloatArray) -> FloatArray:
        return scorer.scores(rows, cycle).astype(np.float64)

    return scores


def table(scores: Scores, rows: FloatArray, cycle: float) -> FloatArray:
    """Scores of every page at every state of the tables, all other pages as they are.

    Args:
        scores: of whom.
        rows: an observation, (m, F).
        cycle: T, the unit of ``CYCLES``.

    Returns:
        (m, S, A) for S numbers of signals and A elapsed times.
    """
    found = np.empty((len(rows), len(SIGNALS), CYCLES.size))
    varied = rows.copy()
    for page, row in enumerate(rows):
        for i, count in enumerate(SIGNALS):
            for j, cycles in enumerate(CYCLES):
                varied[page, ELAPSED], varied[page, COUNT] = cycles * cycle, count
                found[page, i, j] = scores(varied)[page]
        varied[page] = row
    return found


def risen(scores: FloatArray, values: FloatArray, weights: FloatArray) -> Scores:
    """The rising function that takes scores nearest to values, (n,) each, by weighted squares.

    Between scores it is straight, beyond them level.
    """
    order = np.argsort(scores, kind="stable")
    fitted = isotonic_regression(values[order], weights=weights[order]).x
    knots = scores[order]
    return lambda given: np.interp(given, knots, fitted)


def instants(values: FloatArray, level: float) -> FloatArray:
    """When values first reach a level, in cycles; NaN where they never do.

    Args:
        values: (..., A) over ``CYCLES``.
        level: what is to be reached.
    """
    reached = values >= level
    first = reached.argmax(-1)
    before = np.maximum(first - 1, 0)
    low = np.take_along_axis(values, before[..., None], -1)[..., 0]
    high = np.take_along_axis(values, first[..., None], -1)[..., 0]
    step = np.divide(level - low, high - low, out=np.ones_like(low), where=high > low)
    time = CYCLES[before] + step * (CYCLES[first] - CYCLES[before])
    time = np.where(first == 0, CYCLES[0], time)
    return np.where(reached.any(-1), time, np.nan)


def shown_pages(problem: Problem) -> IntArray:
    """Four pages that differ, of those of at least median importance.

    Of those that change often, at least as the median does: the one whose signals tell most, the
    one whose signals tell least, and the one of which half of the changes are signalled; and of
    all, the one whose change rate is nearest to ``SELDOM`` per cycle.
    """
    model = (problem.importance, problem.change_rate, problem.recall, problem.false_signal_rate)
    weight, change, recall, false = (np.asarray(column, np.float64) for column in model)
    heavy = weight >= np.median(weight)
    lively = heavy & (change >= np.median(change))
    true = recall * change
    told = recall * true / (true + false)
    half = -np.abs(recall - 0.5)
    best = [np.where(lively, each, -np.inf).argmax() for each in (told, -told, half)]
    seldom = -np.abs(change * problem.num_pages / problem.bandwidth - SELDOM)
    return np.array([*best, np.where(heavy, seldom, -np.inf).argmax()])


def formula_table(seed: int, *, num_pages: int, horizon: float) -> Mapping[str, float]:
    """The level of V_GREEDY_NCIS, and on the first seed its values and the pages shown."""
    found = met(seed, num_pages, horizon)
    level = crawl_level(formula_scores, found)
    measured = {"level": level}
    if seed == 0:
        rows = found.observations[-1]
        values = table_of_formula(rows, found.cycle)
        pages = shown_pages(found.problem)
        measured |= indexed("page", rows[pages][:, 3:]) | indexed("value", values[pages])
        measured |= indexed("instant", instants(values[:, list(HEARD)], level))
    return measured


def table_of_formula(rows: FloatArray, cycle: float) -> FloatArray:
    """The table of V_GREEDY_NCIS, in which pages do not depend on each other, (m, S, A)."""
    spread = np.broadcast_to(
        rows[:, None, None], (len(rows), len(SIGNALS), CYCLES.size, rows.shape[1])
    ).copy()
    spread[..., ELAPSED] = cycle * CYCLES
    spread[..., COUNT] = np.array(SIGNALS)[:, None]
    return formula_scores(spread)


def crawl_level(scores: Scores, found: Met) -> float:
    """The median score of the pages that were crawled: about the level at which pages are.

    A median goes along with any rising function of the scores.
    """
    given = np.array([scores(rows) for rows in found.observations])
    return float(np.median(np.take_along_axis(given, found.chosen[:, None], 1)))


def index_table(seed: int, *, name: str, num_pages: int, horizon: float) -> Mapping[str, float]:
    """What :func:`learned_table` says of a trained index."""
    return learned_table(seed, partial(index_scores, name), num_pages, horizon)


def set_table(seed: int, *, name: str, num_pages: int, horizon: float) -> Mapping[str, float]:
    """What :func:`learned_table` says of a trained page set."""
    return learned_table(seed, partial(set_scores, name), num_pages, horizon)


def learned_table(
    seed: int, scores: Callable[[Problem], Scores], num_pages: int, horizon: float
) -> Mapping[str, float]:
    """How an agent's values compare with the formula's, in states that the agent meets itself.

    ``agreement`` is the share of decisions in which the formula would crawl the same page;
    ``worth`` the formula's value of the page that is crawled over that of the best page, on
    average; ``explained`` the share of the variance of the formula's values that the agent's
    explain, mapped by the best rising function, and ``explained, GREEDY-NCIS plays`` the same in
    states that the formula meets. On the first seed there are mapped values, too, the level at
    which pages are crawled among them, and when each page would reach it.

    Args:
        seed: of the instance and its events.
        scores: makes the scores of the agent for a problem.
        num_pages: m.
        horizon: of the episode.
    """
    found = met(seed, num_pages, horizon, scores)
    own = scores(found.problem)
    given = np.array([own(rows) for rows in found.observations])
    truth = formula_scores(found.observations)
    level, taken = crawl_level(own, found), np.take_along_axis(truth, found.chosen[:, None], 1)
    measured = {
        "agreement": float((truth.argmax(1) == found.chosen).mean()),
        "worth": float((taken[:, 0] / truth.max(1)).mean()),
        "explained": explained(given, truth),
    }
    others = met(seed, num_pages, horizon)
    theirs = np.array([own(rows) for rows in others.observations])
    measured["explained, GREEDY-NCIS plays"] = explained(
        theirs, formula_scores(others.observations)
    )
    if seed == 0:
        rows = found.observations[-1]
        grid = table(own, rows, found.cycle)
        rise = _rise_of(given, truth, grid, table_of_formula(rows, found.cycle))
        pages = shown_pages(found.problem)
        measured |= indexed("value", rise(grid[pages])) | {"level": float(rise(np.array(level)))}
        measured |= indexed("instant", instants(grid[:, list(HEARD)], level))
    return measured


def explained(scores: FloatArray, values: FloatArray) -> float:
    """The share of the variance of values that the best rising function of scores explains."""
    flat, truth = scores.ravel(), values.ravel()
    left = truth - risen(flat, truth, np.ones(flat.size))(flat)
    return float(1.0 - left.var() / truth.var())


def _rise_of(
    given: FloatArray, truth: FloatArray, grid: FloatArray, grid_truth: FloatArray
) -> Scores:
    """The rising function by the states met and, with little weight, those of the tables."""
    weights = np.concatenate(
        [np.full(given.size, 1.0 / given.size), np.full(grid.size, EXTENDING / grid.size)]
    )
    return risen(
        np.concatenate([given.ravel(), grid.ravel()]),
        np.concatenate([truth.ravel(), grid_truth.ravel()]),
        weights,
    )
