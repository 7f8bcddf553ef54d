"""Measure the freshness of policies and of the clairvoyant on recorded sites.

Parameters are fitted to the days before the simulated ones, or, on request, to the simulated days.
Every episode starts with a fresh copy of each page. Settings are named
``<site>, <days> days, <importance>``: there is a crawl per page in this many days.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

import policies
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import play
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from scripts.data.replays import Split, replayed
from scripts.study.clairvoyant import clairvoyant
from scripts.study.specs import spec

FOLDER_VARIABLE = "CRAWL_TRACES"
"""Environment variable: a folder of other traces, in one folder each."""

MAX_PAGES = 1500
"""Larger sites are thinned to directories with about this many pages in total."""

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
"""Sites of the committed rows; the first is shipped, others come from public repositories."""

QUARTERS = 4
T = TypeVar("T")


def sites() -> dict[str, Path]:
    """Return the folders of available traces by site: shipped ones, and those of FOLDER_VARIABLE.

    Raises:
        ValueError: the environment variable names no folder.
    """
    folders = {name: traces.find(name) for name in traces.shipped()}
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        if not Path(folder).is_dir():
            raise ValueError(f"{FOLDER_VARIABLE} must name a folder of traces, got {folder!r}")
        folders |= {
            path.parent.name: path.parent for path in sorted(Path(folder).glob("*/meta.json"))
        }
    return folders


def halves(days: float) -> Split:
    """Split a record of so many days: fit parameters to the first half, simulate the second."""
    return Split(0.0, days / 2.0, days / 2.0, days)


@spec("recorded-quarter")
def quarter(days: float, number: int) -> Split:
    """Split a record: simulate a quarter (0 to 3) of its second half, fit to all days before."""
    length = days / 2.0 / QUARTERS
    start = days / 2.0 + number * length
    return Split(0.0, start, start, min(start + length, days))


@cache
def record(site: str) -> Trace:
    """Read the trace of an available site; draw some of its directories if it is large.

    Raises:
        ValueError: the site is not available.
    """
    folders = sites()
    one_of("site", site, folders)
    return thinned(traces.load(folders[site]), MAX_PAGES)


def thinned(trace: Trace, max_pages: int) -> Trace:
    """Return the part of a trace in random directories with at most ``max_pages`` pages in total.

    The first directory is kept whatever its size; then every directory that still fits.
    """
    if trace.num_pages <= max_pages:
        return trace
    size = np.bincount(trace.directory)
    directories = np.zeros(size.size, np.bool_)
    total = 0
    for directory in np.random.default_rng(0).permutation(size.size):
        if total < max_pages and (total == 0 or total + size[directory] <= max_pages):
            directories[directory] = True
            total += size[directory]
    return trace.of_pages(np.flatnonzero(directories[trace.directory]))


def reset_env(
    seed: int, *, splitting: Callable[[float, int], Split], site: str, days: int, **options: Any
) -> CrawlEnv:
    """Return the environment of a split of a site, after a reset.

    Args:
        seed: seed of the split and the environment.
        splitting: :func:`quarter`, or another function of the days of a record and a seed.
        site: name of the site.
        days: days per crawl of a page.
        **options: ``signals``, ``importance`` and others of :func:`replayed`.
    """
    trace = record(site)
    options["newborn_prior"] = False  # as in the recorded rows
    env = replayed(trace, splitting(trace.days, seed), days_per_crawl=float(days), **options)
    env.reset(seed=seed)
    return env


@spec("recorded-freshness")
def crawled(
    seed: int, *, policy: str, grouped: bool = False, **setting: Any
) -> Mapping[str, float]:
    """Return the freshness of a policy on a split of a site's record.

    Args:
        seed: seed of the split and the policy.
        policy: its name.
        grouped: whether the policy gets the directory of each page as its group.
        **setting: arguments of :func:`reset_env`.
    """
    env = reset_env(seed, **setting)
    groups: dict[str, Any] = {"groups": record(setting["site"]).directory} if grouped else {}
    return freshness_of(env, policies.make(policy, env, **groups), seed)


def freshness_of(env: CrawlEnv, policy: Policy, seed: int) -> dict[str, float]:
    """Return the freshness of a policy in an environment that was made by :func:`reset_env`."""
    return {"freshness": play(env, policy, seed).freshness}


@spec("recorded-clairvoyant")
def foreseen(seed: int, **setting: Any) -> Mapping[str, float]:
    """Return the clairvoyant's freshness; ``setting`` has arguments of :func:`reset_env`."""
    env = reset_env(seed, signals="none", **setting)
    tape, instance = env.lanes.tape, env.instance
    assert tape is not None
    for page in clairvoyant(tape, instance.importance, instance.bandwidth, env.lanes.horizon):
        env.step(page)
    return {"freshness": env.ledger().freshness}


BUDGETS, IMPORTANCES = (3, 10, 30, 100), ("uniform", "zipf")
"""Days per crawl of a page, and laws of the importance of pages."""
ALL_SITES, EIGHT_SITES = "all sites", "eight sites"
"""Groups of sites, in the settings of derived rows."""


class Cell(NamedTuple):
    """Parameters of a setting: a site or group of sites, days per crawl, and importance."""

    site: str
    days: int
    importance: str


def name_of(site: str, days: int, importance: str) -> str:
    """Return the name of the setting of a site, days per crawl, and kind of importance."""
    return f"{site}, {days} days, {importance}"


def places() -> tuple[str, ...]:
    """Return the names of sites that are available or have saved rows, and of groups of sites."""
    return tuple(dict.fromkeys((*SITES, *sites(), ALL_SITES, EIGHT_SITES)))


def look_up(settings: Iterable[str], parameters: Mapping[str, T]) -> dict[str, T]:
    """Return the ``parameters`` of each of the ``settings``, by the setting's name.

    Raises:
        ValueError: a setting has the rows of a site that is not available.
    """
    names = {*settings}
    if unknown := sorted(names - parameters.keys()):
        raise ValueError(
            f"rows of {unknown[0]!r} need the trace of their site: "
            f"set {FOLDER_VARIABLE} to the folder that has it"
        )
    return {name: parameters[name] for name in names}


def cells_of(settings: Iterable[str]) -> dict[str, Cell]:
    """Return site, days and importance of settings by name, with the errors of :func:`look_up`."""
    cells = map(Cell._make, product(places(), BUDGETS, IMPORTANCES))
    return look_up(settings, {name_of(*cell): cell for cell in cells})


def with_cells(values: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``site``, ``days`` and ``importance`` to a table, and sort it by days."""
    cells = cells_of(values.setting)
    parts = pd.DataFrame([cells[name] for name in values.setting], values.index, Cell._fields)
    return values.join(parts).sort_values("days", kind="stable")


def draw_scores(values: pd.DataFrame, path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw scores of policies: a dot per site, in a panel per budget and importance.

    The score is 0 for round robin and 1 for the clairvoyant.
    """
    from scripts.present import charts

    data = with_cells(values).rename(columns={"policy": "y", "value": "x"})
    data = data.sort_values(["days", "importance"], kind="stable")
    data["panel"] = data.days.map("a crawl per page in {:g} days, ".format) + data.importance
    charts.points(
        data,
        path,
        charts.Frame(
            f"{title}: a dot per site, {data.site.nunique()} sites, arrows below -1;\n"
            "diamonds: medians with 95% intervals; 0: round robin, 1: the clairvoyant",
            charts.Axis("normalised score", limits=(-1.0, 1.05)),
            columns=data.importance.nunique(),
            size=(3.9, 0.0),
            upright=[charts.Rule(0.0, dash="-")],
        ),
        names=labels,
    )
