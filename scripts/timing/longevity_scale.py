"""Measure the cost of pages with fragments: bytes per page and steps per second, by size.

``CrawlLongevity-v0`` takes turns with ``CrawlNCIS-v0`` on pages that are updated and crawled as
often (instance ``quality``, 0.1 crawls per page and day, 60 days, crawls of random pages). Times
are processor times on one core; the bytes of a lane are of all arrays of its state. Writes
``longevity.csv``, ``provenance.json`` and ``longevity.png``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.table import Table

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, PAGE_LAWS, RegionPages, draw_regions
from crawl_envs.types import Instance
from scripts.timing.commands import Cases, measuring, shown
from scripts.timing.stepped import step_task
from scripts.timing.turns import Task, spread, timed

DAYS = 60.0
PLANNED = 4096

NCIS = "CrawlNCIS-v0"
LONGEVITY = "CrawlLongevity-v0"
READ_LOG = ", log read"


class Variant(NamedTuple):
    """Median number of fragments per page, and arguments of the environment."""

    fragments: int = 50
    base_versions: int = 2
    sketch_size: int | None = None

    @property
    def name(self) -> str:
        """Name of the variant."""
        sketch = "all" if self.sketch_size is None else self.sketch_size
        return f"{self.fragments} fragments, h = {self.base_versions}, sketch {sketch}"


PLAIN = Variant()
VARIANTS = (
    PLAIN,
    Variant(fragments=500),
    Variant(base_versions=0),
    Variant(base_versions=5),
    Variant(sketch_size=8),
    Variant(fragments=500, sketch_size=8),
    Variant(base_versions=5, sketch_size=8),
)
CELLS = ((100, 1), (1_000, 1), (10_000, 1), (100_000, 1), (100, 64), (1_000, 64))
QUICK_CELLS = ((100, 1), (100, 4))
"""Numbers of pages and lanes."""
TURNS, SPELL = 15, 0.05
QUICK_TURNS, QUICK_SPELL = 3, 0.01


class Cost(NamedTuple):
    """A measured number: median and quartiles, with its numbers of pages and lanes."""

    pages: int
    lanes: int
    variant: str
    what: str
    unit: str
    median: float
    low: float
    high: float


def pages_of(num_pages: int, fragments: int) -> RegionPages:
    """Draw ``quality`` pages with another median number of fragments."""
    law = replace(PAGE_LAWS["quality"], median_size=float(fragments))
    regions = draw_regions(law, num_pages, np.random.default_rng(0))
    return RegionPages(np.ones(num_pages), regions, bandwidth=CRAWLS_PER_PAGE * num_pages)


def make_env(num_pages: int, lanes: int, variant: Variant | None) -> Any:
    """Return an environment after reset; without a variant, one without fragments.

    Its pages are then updated and crawled as often as those with fragments.
    """
    pages: Any = pages_of(num_pages, (variant or PLAIN).fragments)
    arguments = {"num_pages": num_pages, "bandwidth": pages.bandwidth, "horizon": DAYS}
    if variant is None:
        pages = Instance(pages.importance, pages.change_rate, bandwidth=pages.bandwidth)
    else:
        arguments |= {"base_versions": variant.base_versions, "sketch_size": variant.sketch_size}
    name = NCIS if variant is None else LONGEVITY
    if lanes == 1:
        env: Any = gymnasium.make(name, **arguments).unwrapped
    else:
        env = gymnasium.make_vec(name, num_envs=lanes, **arguments)
    env.reset(seed=0, options={"instance": pages})
    return env


def stepping(env: Any, num_pages: int, lanes: int, *, log: bool = False) -> Task:
    """Return the task of stepping with random pages over successive episodes."""
    shape = PLANNED if lanes == 1 else (PLANNED, lanes)
    actions = np.random.default_rng(0).integers(num_pages, size=shape)
    return step_task(LogReader(env) if log else env, actions, resets=lanes == 1)


class LogReader(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose log is read after each step."""

    def step(self, action: Any) -> Any:
        """Step, and read the log."""
        result = self.env.step(action)
        self.unwrapped.last_log(0)  # type: ignore[attr-defined]  # of the environments here
        return result


def cases(quick: bool) -> Cases:
    """Return a case for each number of pages and lanes."""
    turns, spell = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
    return {
        f"{pages} pages, {lanes} lanes": partial(costs, pages, lanes, turns, spell)
        for pages, lanes in (QUICK_CELLS if quick else CELLS)
    }


def costs(num_pages: int, lanes: int, turns: int, spell: float) -> Iterator[Cost]:
    """Yield costs of steps, resets and bytes, with at most two environments at a time."""
    cost = partial(Cost, num_pages, lanes)
    beside = make_env(num_pages, lanes, None)
    plain = stepping(beside, num_pages, lanes)
    yield from _bytes(num_pages, lanes, NCIS, beside)
    yield _reset(num_pages, lanes, NCIS, beside)
    for number, variant in enumerate(VARIANTS):
        env = make_env(num_pages, lanes, variant)
        tasks = {NCIS: plain, variant.name: stepping(env, num_pages, lanes)}
        if lanes == 1:
            tasks[variant.name + READ_LOG] = stepping(env, num_pages, lanes, log=True)
        seconds = timed(tasks, turns, spell)
        for name, each in seconds.items():
            if name != NCIS or number == 0:
                yield cost(name, "speed", "env-steps/s", *spread(lanes / each))
            if name != NCIS:
                ratio = spread(each / seconds[NCIS])
                yield cost(name, "time over CrawlNCIS-v0", "times", *ratio)
        yield _reset(num_pages, lanes, variant.name, env)
        yield from _bytes(num_pages, lanes, variant.name, env)
        env.close()
    beside.close()


def _reset(num_pages: int, lanes: int, variant: str, env: Any) -> Cost:
    """Return the time of three resets, each of which draws an episode of each lane."""
    taken = []
    for _ in range(3):
        start = time.thread_time()
        env.reset()
        taken.append(time.thread_time() - start)
    return Cost(num_pages, lanes, variant, "reset", "s", *spread(np.array(taken)))


PARTS = {
    "spells and events": ("spells", "spell_start", "tape", "detail", "since"),
    "copies": ("copies",),
    "base versions": ("bases",),
}


def _bytes(num_pages: int, lanes: int, variant: str, env: Any) -> Iterator[Cost]:
    """Yield bytes per page and lane of all arrays of the environment's state, by part."""
    totals: dict[str, int] = dict.fromkeys((*PARTS, "all else"), 0)
    for path, size in array_bytes(env.unwrapped.get_state(), ()):
        parts = [part for part, names in PARTS.items() if set(names) & set(path)]
        totals[(*parts, "all else")[0]] += size
    for part, size in totals.items():
        each = size / (num_pages * lanes)
        yield Cost(num_pages, lanes, variant, part, "bytes per page", each, each, each)


def array_bytes(held: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the paths and bytes of arrays in nested mappings, sequences and dataclasses."""
    inner: Mapping[Any, Any] = {}
    if isinstance(held, np.ndarray):
        yield path, held.nbytes
    elif isinstance(held, Mapping):
        inner = held
    elif isinstance(held, list | tuple):
        inner = dict(enumerate(held))
    elif is_dataclass(held) and not isinstance(held, type):
        inner = {field.name: getattr(held, field.name) for field in fields(held)}
    for name, value in inner.items():
        yield from array_bytes(value, (*path, str(name)))


COLUMNS = {
    "speed": "env-steps/s",
    "time over CrawlNCIS-v0": "times CrawlNCIS-v0",
    "reset": "reset, s",
}
"""Columns of the printed table by what is measured; all others are bytes."""


def table(results: Sequence[Cost]) -> Table:
    """Return the table of medians, with a row per size and variant."""
    import pandas as pd

    costs = pd.DataFrame(results)
    costs["column"] = costs.what.map(COLUMNS).fillna("bytes")
    titles = ["pages", "lanes", "variant", *COLUMNS.values(), "bytes"]
    medians = costs.groupby([*titles[:3], "column"], sort=False)["median"].sum().unstack()
    rows = [tuple(row) for row in medians[titles[3:]].reset_index().itertuples(index=False)]
    return shown(rows, titles, "Cost of fragments: medians")


def draw(path: Path, results: Sequence[Cost]) -> None:
    """Draw the time of a step against the number of pages, and the bytes of a page by part."""
    from scripts.present.charts import Axis, Frame, panels

    single = sorted({cost.pages for cost in results if cost.lanes == 1})
    pages = single[(len(single) - 1) // 2]
    times, sizes = "a step of the single environment", "memory by purpose"
    seconds = Axis("microseconds per step (logarithmic scale); bars: quartiles", "log")
    frame = Frame(
        "Cost of fragments, on one core: time of a step, and bytes of a page of one lane",
        x={
            times: Axis("pages (logarithmic scale)", "log"),
            sizes: Axis(f"bytes per page, of {pages:,} pages, for an episode of 60 days"),
        },
        y={times: seconds, sizes: Axis()},
        size=(6.5, 5.5),
        shared="none",
        legend="none",
    )
    with panels(path, [times, sizes], frame) as every:
        _draw_times(every[times], results)
        _draw_bytes(every[sizes], results, pages)
        for axes in every.values():
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 2}
            axes.legend(frameon=False, fontsize=8, **below)


def _draw_times(axes: Any, results: Sequence[Cost]) -> None:
    """Draw microseconds per step of a single environment, with quartiles."""
    from scripts.present.charts import styles

    names = [*(variant.name for variant in VARIANTS), PLAIN.name + READ_LOG, NCIS]
    for name, look in styles(names, black=[NCIS]).items():
        own = [cost for cost in results if cost[1:4] == (1, name, "speed")]
        middle, low, high = (np.array([1e6 / cost[column] for cost in own]) for column in (5, 7, 6))
        pages, errors = [cost.pages for cost in own], [middle - low, high - middle]
        axes.errorbar(pages, middle, errors, **look, linewidth=1.2, capsize=2, label=name)


def _draw_bytes(axes: Any, results: Sequence[Cost], pages: int) -> None:
    """Draw bytes per page by part, of the single environment."""
    from scripts.present.charts import COLOURS

    median = {cost[:4]: cost.median for cost in results}
    names = [NCIS, *(variant.name for variant in VARIANTS)][::-1]
    left = np.zeros(len(names))
    for part, colour in zip((*PARTS, "all else"), COLOURS, strict=False):
        size = np.array([median[pages, 1, name, part] for name in names])
        axes.barh(names, size, 0.62, left=left, color=colour, label=part)
        left += size


app = measuring(
    "scripts.timing.longevity_scale",
    __doc__,
    cases,
    Cost._fields,
    name="longevity",
    title="Cost of fragments",
    draw=draw,
    table=table,
    pinned=True,
)

if __name__ == "__main__":
    app()
