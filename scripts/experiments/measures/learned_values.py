"""Compare learned values of pages with those of V_GREEDY_NCIS.

Only the order of an agent's scores decides what is crawled, so they are defined up to an increasing
function, the same for all pages of an instance. Isotonic regression over all pages maps scores to
the formula's values. A fit per page would hide pages that an agent overrates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

import agents
from agents.index import load_index
from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray, IntArray, Problem
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.values import greedy_ncis_observed
from policies.values.ranking import counts_at_unknown_age
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

FORMULA = "GREEDY-NCIS"
SIGNALS = (0, 1, 2, 3)
CYCLES = np.linspace(0.1, 4.0, 40)
"""Elapsed times of the tables; the unit of time is T = m / R."""
SELDOM = 0.2
FEW_SIGNALS = (0, 1)
"""Numbers of signals for which the instant of a crawl is computed."""
PAGES_SHOWN = (1, 3)
"""Positions in :func:`shown_pages` of the pages whose values are drawn."""
DECISIONS = 200
"""Number of decisions of an episode whose states are used."""
EXTENDING = 0.1
"""Total weight of table states in the regression; visited states have 1. Table states extend the
map to states that no episode visits."""

Scores = Callable[[FloatArray], FloatArray]
"""A function from an observation, (m, F), to a score per page, (m,)."""
ELAPSED, COUNT = 0, 1
"""Columns of the observation that the tables vary."""


def visit(
    seed: int, num_pages: int, horizon: float, scorer: Callable[[Problem], Scores] | None = None
) -> tuple[Problem, FloatArray]:
    """Run an episode on noisy pages with R = m; return the problem and states of the second half.

    Args:
        seed: seed of the instance and its events.
        num_pages: m.
        horizon: length of the episode.
        scorer: function of the problem that returns the scores; None for V_GREEDY_NCIS.

    Returns:
        The public part of the instance, and the observations of K decisions, (K, m, F).
    """
    size: dict[str, Any] = {
        "num_pages": num_pages,
        "bandwidth": float(num_pages),
        "horizon": horizon,
    }
    env: Any = gymnasium.make("CrawlNCIS-v0", instance="noisy", **size)
    observation, _ = env.reset(seed=seed)
    problem = env.unwrapped.problem
    scores = formula_scores if scorer is None else scorer(problem)
    observations = []
    for _ in range(env.unwrapped.num_slots()):
        observations.append(np.asarray(observation, np.float64))
        observation, *_ = env.step(int(scores(observations[-1]).argmax()))
    env.close()
    last = len(observations) - 1
    places = {int(place) for place in np.linspace((last + 1) // 2, last, DECISIONS)}
    return problem, np.array([observations[place] for place in sorted(places)])


def formula_scores(rows: FloatArray) -> FloatArray:
    """Return V_GREEDY_NCIS of pages, from rows (..., 7) of the environment's default features."""
    elapsed, signals, _, *model = np.moveaxis(rows, -1, 0)
    names = ("importance", "change_rate", "recall", "false_signal_rate")
    return greedy_ncis_observed(elapsed, signals, **dict(zip(names, model, strict=True)))


def index_scores(name: str, problem: Problem) -> Scores:
    """Return a function from observed rows to the scores of a trained index without a belief."""
    form = load_index(agents.catalog.SHIPPED / name).compile(problem, 0, np.random.default_rng(0))
    assert isinstance(form, CompiledIndex)

    def scores(rows: FloatArray) -> FloatArray:
        signals = counts_at_unknown_age(form, rows[:, COUNT].astype(np.int64))
        states = enumerate(zip(rows[:, ELAPSED].tolist(), signals.tolist(), strict=True))
        return np.array([form.value(form.parameters, page, *state) for page, state in states])

    return scores


def set_scores(name: str, problem: Problem) -> Scores:
    """Return a function from observed rows to the scores of a trained page set."""
    from agents.sb3.loading import SCORER, load

    agent = load(agents.catalog.SHIPPED / name / SCORER, cycle=1.0)

    def scores(rows: FloatArray) -> FloatArray:
        return agent.scores(rows).astype(np.float64)

    return scores


def table(scores: Scores, rows: FloatArray) -> FloatArray:
    """Return each page's score by signals and elapsed time, while the other pages do not change.

    Args:
        scores: the scores of an agent.
        rows: an observation, (m, F).

    Returns:
        (m, S, A) for S numbers of signals and A elapsed times.
    """
    result = np.empty((len(rows), len(SIGNALS), CYCLES.size))
    varied = rows.copy()
    for page, row in enumerate(rows):
        for i, count in enumerate(SIGNALS):
            for j, cycles in enumerate(CYCLES):
                varied[page, ELAPSED], varied[page, COUNT] = cycles, count
                result[page, i, j] = scores(varied)[page]
        varied[page] = row
    return result


def increasing_fit(scores: FloatArray, values: FloatArray, weights: FloatArray) -> Scores:
    """Return the increasing function of scores that fits values best in weighted least squares.

    All arrays are (n,). The function is linear between scores and constant beyond them.
    """
    order = np.argsort(scores, kind="stable")
    fitted = isotonic_regression(values[order], weights=weights[order]).x
    knots = scores[order]
    return lambda points: np.interp(points, knots, fitted)


def instants(values: FloatArray, level: float) -> FloatArray:
    """Return the elapsed time, in cycles, at which values first reach a level; NaN if never.

    Args:
        values: (..., A) over ``CYCLES``.
        level: the level.
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
    """Return the numbers of four different pages to draw, all of at least median importance.

    Three have at least the median change rate: they have the most informative signals, the least
    informative signals, and the recall nearest to 1/2. The fourth has the change rate nearest to
    ``SELDOM``.
    """
    model = (problem.importance, problem.change_rate, problem.recall, problem.false_signal_rate)
    weight, change, recall, false = (np.asarray(column, np.float64) for column in model)
    heavy = weight >= np.median(weight)
    lively = heavy & (change >= np.median(change))
    true = recall * change
    quality = recall * true / (true + false)
    half = -np.abs(recall - 0.5)
    best = [np.where(lively, score, -np.inf).argmax() for score in (quality, -quality, half)]
    seldom = -np.abs(change - SELDOM)
    return np.array([*best, np.where(heavy, seldom, -np.inf).argmax()])


@spec("learned-values-formula")
def formula_table(seed: int, *, num_pages: int, horizon: float) -> Mapping[str, float]:
    """Return the median V_GREEDY_NCIS at crawls; for seed 0 also values and the pages shown.

    The level is the median score of crawled pages, which have the largest score. A median commutes
    with any increasing function of the scores.
    """
    problem, observations = visit(seed, num_pages, horizon)
    level = float(np.median(formula_scores(observations).max(1)))
    measured = {"level": level}
    if seed == 0:
        rows, pages = observations[-1], shown_pages(problem)
        values = table(formula_scores, rows)
        measured |= indexed("page", rows[pages][:, 3:]) | indexed("value", values[pages])
        measured |= indexed("instant", instants(values[:, list(FEW_SIGNALS)], level))
    return measured


@spec("learned-values-index")
def index_table(seed: int, *, name: str, num_pages: int, horizon: float) -> Mapping[str, float]:
    """Return the comparison :func:`learned_table` of a trained index with the formula."""
    return learned_table(seed, partial(index_scores, name), num_pages, horizon)


@spec("learned-values-page-set")
def set_table(seed: int, *, name: str, num_pages: int, horizon: float) -> Mapping[str, float]:
    """Return the comparison :func:`learned_table` of a trained page set with the formula."""
    return learned_table(seed, partial(set_scores, name), num_pages, horizon)


def learned_table(
    seed: int, scorer: Callable[[Problem], Scores], num_pages: int, horizon: float
) -> Mapping[str, float]:
    """Compare an agent's values with the formula's, in states that the agent visits.

    * ``agreement``: share of decisions in which the formula would crawl the same page;
    * ``value_ratio``: mean of the formula's value of the crawled page over that of the best page;
    * ``explained``: share of the variance of the formula's values that the agent's values explain
      after the best increasing map; ``explained, GREEDY-NCIS plays``: in states of the formula.

    For seed 0 there are also the mapped values, the level at crawls, and when a page reaches it.

    Args:
        seed: seed of the instance and its events.
        scorer: function of the problem that returns the scores of the agent.
        num_pages: m.
        horizon: length of the episode.
    """
    problem, observations = visit(seed, num_pages, horizon, scorer)
    scores = scorer(problem)
    values, truth = _scored(scores, observations), formula_scores(observations)
    crawled = values.argmax(1)
    taken = np.take_along_axis(truth, crawled[:, None], 1)[:, 0]
    _, visited = visit(seed, num_pages, horizon)
    measured = {
        "agreement": float((truth.argmax(1) == crawled).mean()),
        "value_ratio": float((taken / truth.max(1)).mean()),
        "explained": explained(values, truth),
        f"explained, {FORMULA} plays": explained(_scored(scores, visited), formula_scores(visited)),
    }
    if seed == 0:
        level, last = float(np.median(values.max(1))), observations[-1]
        grid, grid_truth = table(scores, last), table(formula_scores, last)
        fit = increasing_fit(
            np.append(values, grid),
            np.append(truth, grid_truth),
            np.repeat([1.0 / values.size, EXTENDING / grid.size], [values.size, grid.size]),
        )
        pages = shown_pages(problem)
        measured |= indexed("value", fit(grid[pages])) | {"level": float(fit(np.array(level)))}
        measured |= indexed("instant", instants(grid[:, list(FEW_SIGNALS)], level))
    return measured


def _scored(scores: Scores, observations: FloatArray) -> FloatArray:
    """Return the scores of the pages in K observations, (K, m)."""
    return np.array([scores(rows) for rows in observations])


def explained(scores: FloatArray, values: FloatArray) -> float:
    """Return the share of the variance of values that an increasing function of scores explains."""
    flat, truth = scores.ravel(), values.ravel()
    residual = truth - increasing_fit(flat, truth, np.ones(flat.size))(flat)
    return float(1.0 - residual.var() / truth.var())


def _word(signals: int) -> str:
    return f"{signals} signal" + ("" if signals == 1 else "s")


def draw_values(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw the values of agents and the formula over elapsed time, a line per number of signals.

    Panels have a row per page and a column per agent. The horizontal line is the median of values
    at crawls.
    """
    from scripts.present import charts

    values = {label: array for (_, label, _), array in gathered(rows, "value").items()}
    [parameters] = gathered(rows, "page").values()
    levels = {row.policy: row.value for row in rows if row.metric == "level" and row.seed == 0}
    pages = parameters.reshape(-1, 4)
    parts, rules, looks = [], [], {}
    for page, label in product(PAGES_SHOWN, (label for label in values if label != FORMULA)):
        named = "importance {:.2f}, changes {:.2f},\nrecall {:.2f}, false signals {:.2f}"
        panel = f"{label}\n{named.format(*pages[page])}"
        rules.append(charts.Rule(levels[label], None, "-", panel))
        for (place, signals), who in product(enumerate(SIGNALS), (label, FORMULA)):
            name = _word(signals) + (", by the formula" if who == FORMULA else "")
            dash = ":" if who == FORMULA else "-"
            looks[name] = {"color": charts.COLOURS[place], "linestyle": dash}
            curve = values[who].reshape(len(pages), len(SIGNALS), CYCLES.size)[page, place]
            parts.append(pd.DataFrame({"x": CYCLES, "y": curve}).assign(label=name, panel=panel))
    charts.lines(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{title}: learned values, mapped by one function for all pages;\n"
            "horizontal: the level at which the agent crawls",
            charts.Axis("elapsed, in units of m / R"),
            charts.Axis("value", limits=(0.0, 1.3)),
            columns=len(values) - 1,
            size=(3.5, 3.2),
            across=rules,
        ),
        bands=True,
        looks=looks,
    )


def draw_instants(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw when the values of all pages of an instance reach the level at crawls.

    The formula's time is on the horizontal axis, an agent's on the vertical one, in a panel per
    agent and number of signals. A level that is not reached is at the end of the table.
    """
    from scripts.present import charts

    end = float(CYCLES[-1])
    instants = {label: times for (_, label, _), times in gathered(rows, "instant").items()}
    data = pd.DataFrame(list(instants.values()), list(instants)).T.fillna(end)
    parts = [
        pd.DataFrame({"x": data[FORMULA], "y": data[label]})[place :: len(FEW_SIGNALS)].assign(
            panel=f"{label}\nafter {_word(signals)}"
        )
        for place, signals in enumerate(FEW_SIGNALS)
        for label in instants
        if label != FORMULA
    ]
    charts.scatter(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{title}: when a page is crawled, a dot per page, in units of m / R\n"
            f"at {end:g}: not before; at {CYCLES[0]:g}: at once",
            charts.Axis("elapsed time at which GREEDY-NCIS would"),
            charts.Axis("at which the agent would"),
            columns=len(instants) - 1,
            size=(3.4, 3.2),
            diagonal=True,
        ),
        size=12.0,
    )
