"""Measure the cost of pages with fragments: bytes per page and steps per second, by size.

``CrawlLongevity-v0`` takes turns with ``CrawlNCIS-v0`` on pages that are updated and crawled as
often (instance ``quality``, 0.1 crawls per page and day, 60 days, crawls of random pages). Times
are processor times on one core; the bytes of a lane are of all arrays of its state. Writes
``longevity.csv``, ``provenance.json``, ``longevity.png`` (times) and ``longevity_bytes.png``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.table import Table

from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, PAGE_LAWS, RegionPages, draw_regions
from crawl_envs.types import Instance
from scripts.timing.commands import Cases, Measurement, measuring, shown
from scripts.timing.stepped import Case, make_env, random_actions, step_task
from scripts.timing.turns import Task, spread, timed, used

DAYS = 60.0
PLANNED = 4096

NCIS = "CrawlNCIS-v0"
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


def case_of(num_pages: int, lanes: int, variant: Variant | None) -> Case:
    """Return the environment of a variant; without one, that without fragments.

    Its pages are then updated and crawled as often as those with fragments.
    """
    pages: Any = pages_of(num_pages, (variant or PLAIN).fragments)
    arguments = {"num_pages": num_pages, "bandwidth": pages.bandwidth, "horizon": DAYS}
    if variant is None:
        pages = Instance(pages.importance, pages.change_rate, bandwidth=pages.bandwidth)
    else:
        arguments |= {"base_versions": variant.base_versions, "sketch_size": variant.sketch_size}
    return Case(
        "CrawlNCIS" if variant is None else "CrawlLongevity",
        arguments,
        lanes=None if lanes == 1 else lanes,
        wrapped=False,
        options={"instance": pages},
    )


def stepping(env: Any, *, log: bool = False) -> Task:
    """Return the task of stepping with random pages over successive episodes."""
    actions = random_actions(env.action_space, pages=PLANNED)
    return step_task(LogReader(env) if log else env, actions, resets=actions.ndim == 1)


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
    beside = make_env(case_of(num_pages, lanes, None))
    plain = stepping(beside)
    yield from held(cost, NCIS, beside, num_pages * lanes)
    for number, variant in enumerate(VARIANTS):
        env = make_env(case_of(num_pages, lanes, variant))
        tasks = {NCIS: plain, variant.name: stepping(env)}
        if lanes == 1:
            tasks[variant.name + READ_LOG] = stepping(env, log=True)
        seconds = timed(tasks, turns, spell)
        for name, each in seconds.items():
            if name != NCIS or number == 0:
                yield cost(name, "speed", "env-steps/s", *spread(lanes / each))
            if name != NCIS:
                ratio = spread(each / seconds[NCIS])
                yield cost(name, f"time over {NCIS}", "times", *ratio)
        yield from held(cost, variant.name, env, num_pages * lanes)
        env.close()
    beside.close()


PARTS = {
    "spells and events": ("spells", "spell_start", "tape", "detail", "since"),
    "copies": ("copies",),
    "base versions": ("bases",),
}
REST = "all else"


def held(cost: partial[Cost], variant: str, env: Any, pages: int) -> Iterator[Cost]:
    """Yield the time of a reset, which draws an episode of each lane, and the bytes by part.

    The bytes are of all arrays of the environment's state, per page and lane.
    """
    yield cost(variant, "reset", "s", *spread(np.array([used(env.reset) for _ in range(3)])))
    totals: dict[str, int] = dict.fromkeys((*PARTS, REST), 0)
    for path, size in array_bytes(env.unwrapped.get_state()):
        parts = [part for part, names in PARTS.items() if set(names) & set(path)]
        totals[(*parts, REST)[0]] += size
    for part, size in totals.items():
        yield cost(variant, part, "bytes per page", *(3 * [size / pages]))


def array_bytes(state: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the paths and bytes of arrays in nested mappings, sequences and dataclasses."""
    if isinstance(state, np.ndarray):
        yield path, state.nbytes
    elif isinstance(state, list | tuple):
        state = dict(enumerate(state))
    elif is_dataclass(state) and not isinstance(state, type):
        state = {field.name: getattr(state, field.name) for field in fields(state)}
    for name, value in state.items() if isinstance(state, Mapping) else ():
        yield from array_bytes(value, (*path, str(name)))


COLUMNS = {
    "speed": "env-steps/s",
    f"time over {NCIS}": f"times {NCIS}",
    "reset": "reset, s",
}
"""Columns of the printed table by what is measured; all others are bytes."""


def table(results: list[Cost]) -> Table:
    """Return the table of medians, with a row per size and variant."""
    import pandas as pd

    costs = pd.DataFrame(results)
    costs["column"] = costs.what.map(COLUMNS).fillna("bytes")
    titles = ["pages", "lanes", "variant", *COLUMNS.values(), "bytes"]
    medians = costs.groupby([*titles[:3], "column"], sort=False)["median"].sum().unstack()
    rows = [tuple(row) for row in medians[titles[3:]].reset_index().itertuples(index=False)]
    return shown(rows, titles, "Cost of fragments: medians")


def draw(path: Path, results: list[Cost]) -> None:
    """Draw the time of a step by numbers of pages, and beside it the bytes of a page by part."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, bars, lines

    costs = pd.DataFrame(results)
    single = costs[costs.lanes == 1]
    speed = single[single.what == "speed"].assign(label=single.variant, x=single.pages)
    frame = Frame(
        "Cost of fragments: a step of the single environment, on one core; bars: quartiles",
        Axis("pages (logarithmic scale)", "log"),
        Axis("microseconds per step (logarithmic scale)", "log"),
        size=(6.5, 5.5),
    )
    names = [*(variant.name for variant in VARIANTS), PLAIN.name + READ_LOG, NCIS]
    times = {"y": "median", "low": "high", "high": "low"}
    microseconds = {name: 1e6 / speed[of] for name, of in times.items()}
    lines(speed.assign(**microseconds), path, frame, labels=names, black=[NCIS])
    sizes = sorted(set(single.pages))
    pages = sizes[(len(sizes) - 1) // 2]
    parts = single[(single.pages == pages) & (single.unit == "bytes per page")]
    frame = Frame(
        f"Memory by purpose, of {pages:,} pages of one lane, for an episode of {DAYS:g} days",
        Axis("bytes per page"),
    )
    data = parts.assign(y=parts.variant, x=parts["median"], panel=parts.what)
    bars(data, path.with_name("longevity_bytes.png"), frame, texts="{:,.0f}".format)


OF = Measurement(
    "scripts.timing.longevity_scale",
    {"longevity": Cost},
    "Cost of fragments",
    draw=draw,
    shown=table,
    pinned=True,
)
app = measuring(OF, __doc__, cases)

if __name__ == "__main__":
    app()
