"""Compare trained agents that know all rates with GREEDY-NCIS: accuracy and learned values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import agents
import policies as crawl_policies
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.types import Policy
from scripts.experiments.figures import Axis, Frame, Rule, Series, dots, lines
from scripts.experiments.measures import learned_values
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Expected, Trend, trends
from scripts.study.comparisons import METRICS
from scripts.study.settings import Measurement, Playable, Setting, spec

TITLE = "Agents with known rates"
REFERENCE = "GreedyNCIS"
RANDOM = "RandomCrawl"
REPETITIONS = 40

ID = "CrawlNCIS-v0"
HORIZON, QUICK_HORIZON, LARGE_HORIZON = 20.0, 1.0, 5.0
INDEX = "index, from outcomes of crawls"
PPO = "page set, PPO from reward alone"
CLONE = "page set, clone of GREEDY-NCIS"
SAVED_AS = {INDEX: "noisy-index", PPO: "noisy-pages", CLONE: "noisy-clone"}
BANDWIDTH_PAGES = 100
"""Number of pages at other bandwidths."""
ANALYTIC = (REFERENCE, "Greedy", "GreedyCIS", "RoundRobin", RANDOM)

LEARNED = "what they learned"
FORMULA = learned_values.FORMULA
SCORE = "normalised score (random crawling 0, GREEDY-NCIS 1)"
LOSS = "loss against GREEDY-NCIS in percent"


@spec("noisy-formula")
def analytic(env: Any, *, policy: str) -> Any:
    """Return the analytic policy of this name for an environment."""
    return crawl_policies.make(policy, env)


@spec("noisy-index")
def index(env: Any, *, name: str) -> Any:
    """Return the trained index of this name for an environment."""
    return agents.load(name, env)


@spec("noisy-page-set")
def page_set(env: Any, *, name: str) -> Policy:
    """Return the trained page set of this name, for the environment's form of actions."""
    from agents.sb3.loading import SCORER, load_scorer

    core = env.unwrapped
    file = agents.catalog.SHIPPED / name / SCORER
    return load_scorer(file, env, action_form=core.action_form, batch=core.batch)


KINDS: Mapping[str, Any] = {INDEX: index, PPO: page_set, CLONE: page_set}


def entrants() -> dict[str, PolicyFactory]:
    """Return, by label, functions that make formulas and available agents for an environment."""
    factories: dict[str, PolicyFactory] = {
        name: partial(analytic, policy=name) for name in ANALYTIC
    }
    for label, name in SAVED_AS.items():
        if name in agents.names():
            factories[label] = partial(KINDS[label], name=name)
    return factories


def setting(
    num_pages: int,
    ratio: float = 1.0,
    *,
    horizon: float = HORIZON,
    batch: int = 1,
    max_seeds: int = REPETITIONS,
) -> Setting:
    """Return the setting of noisy pages with known rates and a bandwidth of ``ratio * num_pages``.

    With ``batch`` above 1, a decision chooses this many pages.
    """
    several = {"action": "scores", "batch": batch} if batch > 1 else {}
    arguments = {
        "instance": "noisy",
        "num_pages": num_pages,
        "bandwidth": ratio * num_pages,
        "horizon": horizon,
        **several,
    }
    return Setting(name_of(num_pages, ratio), ID, arguments, entrants(), most=max_seeds)


def name_of(num_pages: int, ratio: float = 1.0) -> str:
    """Return the name of the setting with this number of pages and ratio of bandwidth to pages."""
    return f"m={num_pages}" + ("" if ratio == 1.0 else f", R={ratio:g}m")


SIZES = (50, 100, 1000, 100_000)
RATIOS = (0.25, 4.0)
BATCH = 1000
"""Pages per decision with 100,000 pages, a hundred times per unit of time, for all policies: a page
set scores all pages at every decision."""
MAX_GAP = 0.03
"""Largest difference to GREEDY-NCIS that a panel of differences shows."""
MAX_SEEDS = {1000: 12, 100_000: 4}
"""Number of seeds of large settings, whose episodes average over many pages."""


def measurements(quick: bool) -> Sequence[Playable]:
    """Return all settings: pages of all sizes with R = m, other bandwidths, and learned values."""
    if quick:
        played_here = [setting(50, horizon=QUICK_HORIZON), setting(100, horizon=QUICK_HORIZON)]
        return [*played_here, tabulated(num_pages=20, horizon=2.0)]
    sizes = [
        setting(50),
        setting(100),
        setting(1000, max_seeds=MAX_SEEDS[1000]),
        setting(100_000, horizon=LARGE_HORIZON, batch=BATCH, max_seeds=MAX_SEEDS[100_000]),
    ]
    by_ratio = [setting(BANDWIDTH_PAGES, ratio) for ratio in RATIOS]
    return [*sizes, *by_ratio, tabulated(num_pages=BANDWIDTH_PAGES, horizon=10.0)]


def tabulated(*, num_pages: int, horizon: float) -> Measurement:
    """Return the measurement that compares the agents' values with the formula's, on 5 seeds."""
    measures: dict[str, Any] = {FORMULA: learned_values.formula_table}
    for label, name in SAVED_AS.items():
        if name in agents.names():
            table = learned_values.index_table if label == INDEX else learned_values.set_table
            measures[label] = partial(table, name=name)
    arguments = {"num_pages": num_pages, "horizon": horizon}
    return Measurement(LEARNED, measures, arguments, ID, most=5)


def _expected() -> Iterator[Expected]:
    """Yield the expected results: agents are close to GREEDY-NCIS and above simpler formulas."""
    half_percent = "half a percent of the accuracy of GREEDY-NCIS, about .91"
    for label in (INDEX, CLONE):
        yield Trend(label, "about", REFERENCE, (name_of(100),), half_percent, 0.0045)
        sizes = (name_of(1000), name_of(100_000))
        yield Trend(label, "about", REFERENCE, sizes, "one percent of it", 0.009)
    everywhere = (*map(name_of, SIZES), *(name_of(BANDWIDTH_PAGES, ratio) for ratio in RATIOS))
    simple = "formulas that leave something out"
    yield from trends(SAVED_AS, "above", ANALYTIC[1:], everywhere, simple)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of normalised scores and losses in percent, from mean accuracies over seeds."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == "accuracy":
            values.setdefault(row.setting, {}).setdefault(row.policy, []).append(row.value)
    derived = []
    for name, by_label in values.items():
        mean = {label: float(np.mean(of_label)) for label, of_label in by_label.items()}
        if REFERENCE not in mean or RANDOM not in mean:
            continue
        top, low = mean[REFERENCE], mean[RANDOM]
        for label, value in mean.items():
            derived.append(Row(ID, name, label, 0, LOSS, 100.0 * (top - value) / top))
            if top > low:
                derived.append(Row(ID, name, label, 0, SCORE, (value - low) / (top - low)))
    return derived


AGENTS_FIRST = (PPO, CLONE, INDEX, *ANALYTIC[1:])
"""Labels other than REFERENCE: agents, then formulas."""
LEVEL, GAP = "means", f"accuracy minus {REFERENCE}, up to {MAX_GAP:g}"
UNIT = Axis(f"accuracy ({METRICS['accuracy']})")
BY_SIZE = {name_of(size): size for size in SIZES}
BY_RATIO = {name_of(BANDWIDTH_PAGES, r): f"R = {r:g} m" for r in (RATIOS[0], 1.0, *RATIOS[1:])}


def draw_learned(rows: Sequence[Row], path: Path, *, draw: Callable[..., None]) -> None:
    """Draw the learned values by the function ``draw``, from the rows of their setting."""
    draw([row for row in rows if row.setting == LEARNED], path, title=TITLE)


EXPERIMENT = Experiment(
    name="agents-noisy",
    title=TITLE,
    claim=(
        "With known rates, an index that was learned from the outcomes of crawls at random, "
        "without a reward, is within half a percent of GREEDY-NCIS on 100 pages, and within "
        "one percent on a hundred thousand."
    ),
    metric="accuracy",
    references=(REFERENCE,),
    repetitions=REPETITIONS,
    settings=measurements,
    derive=derive,
    expected=tuple(_expected()),
    pictures={
        "accuracy": lines(
            [
                Series("accuracy", LEVEL, settings=tuple(BY_SIZE)),
                Series("accuracy", GAP, settings=tuple(BY_SIZE), minus=REFERENCE, within=MAX_GAP),
            ],
            Frame(
                f"{TITLE}: noisy pages, R = m, {HORIZON:g} units of time, "
                f"{LARGE_HORIZON:g} where m = {SIZES[-1]:,}; 95% intervals",
                Axis("pages m (logarithmic scale)", "log", ticks=SIZES),
                {LEVEL: UNIT, GAP: Axis("difference, on the same events")},
                shared="x",
                across=[Rule(0.0, panel=GAP)],
            ),
            positions=BY_SIZE,
            labels=(REFERENCE, *AGENTS_FIRST),
            black=(REFERENCE,),
        ),
        "bandwidths": dots(
            [Series("accuracy", label=BY_RATIO, settings=tuple(BY_RATIO), minus=REFERENCE)],
            Frame(
                f"{TITLE}: scarce, usual and ample budgets",
                Axis(
                    f"accuracy minus {REFERENCE}, same events, 95% intervals\n"
                    "(logarithmic beyond .01)",
                    "symlog",
                    limits=(-1.0, 0.02),
                    ticks=(-1.0, -0.1, -0.01, 0.0, 0.01),
                    linear=0.01,
                ),
                upright=[Rule(0.0, dash="-")],
            ),
            labels=tuple(BY_RATIO.values()),
            names=AGENTS_FIRST,
        ),
        "learned_values": partial(draw_learned, draw=learned_values.draw_values),
        "learned_instants": partial(draw_learned, draw=learned_values.draw_instants),
    },
)
