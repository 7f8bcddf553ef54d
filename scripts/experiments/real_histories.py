"""Recorded histories of real sites: what formulas and learners are worth on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs.evaluation import Row, play
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Signals
from scripts.comparing import histories
from scripts.comparing.clairvoyant import clairvoyant
from scripts.comparing.settings import Measurement
from scripts.comparing.verdicts import Trend

TITLE = "Recorded histories of real sites"
CLAIM = (
    "Formulas that assume Poisson changes at fitted rates are not safe on real histories: without "
    "signals they lose to round robin in many cases. A policy that learns while it crawls does not."
)
METRIC = "freshness"
REFERENCE = "round robin"
REPETITIONS, QUICK_REPETITIONS = histories.QUARTERS, 2

BUDGETS = (3, 10, 30, 100)
IMPORTANCES = ("uniform", "zipf")
CLAIRVOYANT = "clairvoyant"
LEARNING = "LEARNING, both"
SITES = (
    "garden-handbook",
    "browser-compat",
    "eol-release-data",
    "nyc-covid",
    "programming-books",
    "python-peps",
    "rust-blog",
    "scoop-main",
    "tldr-pages",
)
"""Those of the committed rows; the first is shipped, others can be made of public repositories."""


def name_of(site: str, days: int, importance: str) -> str:
    """The name of a setting."""
    return f"{site}, {days} days, {importance}"


def crawled(
    seed: int,
    *,
    policy: str,
    signals: Signals,
    site: str,
    folder: str,
    days: int,
    importance: str,
    fit_to_played: bool = False,
    reveal: Any = "parameters",
    grouped: bool = False,
    **arguments: Any,
) -> Mapping[str, float]:
    """Freshness of a policy on one quarter of the second half of a record."""
    trace = histories.record(Path(folder))
    env = histories.replayed(
        trace,
        histories.quarter(trace.days, seed),
        signals=signals,
        days_per_crawl=float(days),
        importance=importance,
        fit_to_played=fit_to_played,
        reveal=reveal,
    )
    env.reset(seed=seed)
    if grouped:
        arguments["groups"] = trace.directory
    ledger = play(env, crawl_policies.make(policy, env, **arguments), seed)
    return {"freshness": ledger.freshness}


def foreseen(
    seed: int, *, site: str, folder: str, days: int, importance: str
) -> Mapping[str, float]:
    """Freshness of the clairvoyant."""
    trace = histories.record(Path(folder))
    env = histories.replayed(
        trace,
        histories.quarter(trace.days, seed),
        signals="none",
        days_per_crawl=float(days),
        importance=importance,
    )
    env.reset(seed=seed)
    tape, instance = env.lanes.tape, env.instance
    assert tape is not None
    pages = clairvoyant(tape, instance.importance, instance.bandwidth, env.lanes.horizon)
    for page in pages:
        env.step(page)
    return {"freshness": env.ledger().freshness}


MEASURES: dict[str, Any] = {
    REFERENCE: partial(crawled, policy="RoundRobin", signals="none"),
    CLAIRVOYANT: foreseen,
    "GREEDY": partial(crawled, policy="Greedy", signals="none"),
    "GREEDY, rates of the days played": partial(
        crawled, policy="Greedy", signals="none", fit_to_played=True
    ),
    "GREEDY-CIS, mentions": partial(crawled, policy="GreedyCIS", signals="mentions"),
    "GREEDY-NCIS, directories": partial(crawled, policy="GreedyNCIS", signals="directory"),
    "GREEDY-NCIS, mentions": partial(crawled, policy="GreedyNCIS", signals="mentions"),
    "GREEDY-NCIS, both": partial(crawled, policy="GreedyNCIS", signals="both"),
    "LEARNING, no signals": partial(
        crawled, policy="LearningGreedyNCIS", signals="none", reveal="importance"
    ),
    LEARNING: partial(crawled, policy="LearningGreedyNCIS", signals="both", reveal="importance"),
    "LEARNING, both, a group per directory": partial(
        crawled, policy="LearningGreedyNCIS", signals="both", reveal="importance", grouped=True
    ),
}
"""What is played. Threshold policies are left out: on what is not Poisson they overspend."""


def _expected() -> tuple[Trend, ...]:
    """The learner against round robin everywhere; which of the sites are there, rows tell."""
    everywhere = tuple(
        name_of(site, days, importance)
        for importance in IMPORTANCES
        for days in BUDGETS
        for site in SITES
    )
    source = "ours"
    return (
        Trend(LEARNING, "not below", REFERENCE, everywhere, source),
        Trend("LEARNING, no signals", "not below", REFERENCE, everywhere, source),
        Trend("GREEDY", "not below", REFERENCE, everywhere, source),
        Trend("GREEDY-NCIS, both", "not below", REFERENCE, everywhere, source),
    )


CLAIMS = ()
EXPECTED = _expected()


def measurements(quick: bool) -> Sequence[Measurement]:
    """Every site at hand, at every budget and importance."""
    sites = histories.sites()
    if quick:
        sites = {name: folder for name, folder in sites.items() if name in traces.shipped()}
    return [
        Measurement(
            name_of(site, days, importance),
            MEASURES,
            {"site": site, "folder": str(folder), "days": days, "importance": importance},
            "CrawlTrace-v0",
            most=histories.QUARTERS,
        )
        for importance in IMPORTANCES[: 1 if quick else None]
        for days in BUDGETS[2 if quick else 0 : 3 if quick else None]
        for site, folder in sites.items()
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """The share of the way from round robin to the clairvoyant, over all quarters (seed 0)."""
    means: dict[str, dict[str, float]] = {}
    for setting in dict.fromkeys(row.setting for row in rows):
        here = [row for row in rows if row.setting == setting and row.metric == METRIC]
        means[setting] = {
            label: float(np.mean([row.value for row in here if row.policy == label]))
            for label in dict.fromkeys(row.policy for row in here)
        }
    return [
        Row("CrawlTrace-v0", setting, label, 0, "share", (value - low) / (high - low))
        for setting, found in means.items()
        for low, high in [(found.get(REFERENCE, np.nan), found.get(CLAIRVOYANT, np.nan))]
        for label, value in found.items()
        if high > low and label not in (REFERENCE, CLAIRVOYANT)
    ]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the share of the way from round robin to the clairvoyant, a dot per site."""
    from matplotlib.figure import Figure

    from scripts.comparing.charts import COLOURS, LINE_COLOUR, bare, save

    shares = [row for row in rows if row.metric == "share"]
    labels = [label for label in MEASURES if any(row.policy == label for row in shares)]
    budgets = sorted({_budget(row.setting) for row in shares})
    drawn = [name for name in IMPORTANCES if any(row.setting.endswith(name) for row in shares)]
    size = (2.6 + 2.9 * len(budgets), 1.5 + (0.5 + 0.32 * len(labels)) * len(drawn))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(drawn), len(budgets), squeeze=False, sharex=True, sharey=True)
    for row_of, importance in zip(grid, drawn, strict=True):
        for axes, days in zip(row_of, budgets, strict=True):
            for height, label in enumerate(reversed(labels)):
                found = [
                    row.value
                    for row in shares
                    if row.policy == label
                    and _budget(row.setting) == days
                    and row.setting.endswith(importance)
                ]
                inside = np.clip(found, -1.0, 1.0)
                axes.plot(inside, np.full(len(found), height), "o", color=COLOURS[5], ms=4)
                axes.plot(np.median(inside), height, "|", color=COLOURS[1], ms=15, mew=2.5)
            axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
            axes.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
            axes.set_xlim(-1.05, 1.05)
            axes.set_title(f"a crawl per page in {days} days, {importance}", fontsize=9)
            bare(axes)
    figure.supxlabel("share of the way from round robin (0) to the clairvoyant (1), cut at -1")
    count = len({row.setting.partition(",")[0] for row in shares})
    figure.suptitle(f"{TITLE}: a dot per site, {count} sites; bar: their median", fontsize=11)
    save(figure, path)


def intervals(rows: Sequence[Row], path: Path) -> None:
    """Draw freshness less that of round robin, with 95% intervals over quarters, site by site."""
    from matplotlib.figure import Figure

    from crawl_envs.evaluation import summarize
    from scripts.comparing.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

    chosen = ("GREEDY", "GREEDY-NCIS, both", LEARNING)
    found = {(item.setting, item.policy): item for item in summarize(rows, METRIC, REFERENCE)}
    sites = sorted({setting.partition(",")[0] for setting, _ in found})
    budgets = sorted({_budget(setting) for setting, _ in found})
    figure = Figure(
        figsize=(2.4 + 2.9 * len(budgets), 1.6 + 0.42 * len(sites)), layout="constrained"
    )
    for axes, days in zip(
        figure.subplots(1, len(budgets), squeeze=False, sharey=True)[0], budgets, strict=True
    ):
        for position, label in enumerate(chosen):
            kept = [
                (height, found[key])
                for height, site in enumerate(reversed(sites))
                if (key := (name_of(site, days, IMPORTANCES[0]), label)) in found
            ]
            axes.errorbar(
                [item.difference for _, item in kept],
                [height + 0.22 * (1 - position) for height, _ in kept],
                xerr=np.nan_to_num([item.difference_half_width for _, item in kept]),
                fmt=MARKERS[position],
                color=COLOURS[position],
                markersize=4.5,
                capsize=2,
                linewidth=1.0,
                label=label,
            )
        axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
        axes.set_yticks(range(len(sites)), list(reversed(sites)), fontsize=8)
        axes.set_title(f"a crawl per page in {days} days", fontsize=9)
        bare(axes)
    figure.supxlabel(
        "freshness less that of round robin, uniform importance; 95% intervals over four quarters"
    )
    figure.suptitle(TITLE, fontsize=11)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


PICTURES = {"shares": plot, "differences": intervals}


def _budget(setting: str) -> int:
    return int(setting.split(", ")[1].removesuffix(" days"))
