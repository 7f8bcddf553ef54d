"""Cost of pages with fragments: bytes per page, and the time of a step with and without them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, PAGE_LAWS, RegionPages, draw_regions
from crawl_envs.types import Instance
from scripts.timing.turns import Spread, Task, spread, take_turns

DAYS = 60.0
PLANNED = 4096
"""Number of actions drawn in advance, and then reused."""

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


class Cost(NamedTuple):
    """A measured number, with its numbers of pages and lanes."""

    pages: int
    lanes: int
    variant: str
    what: str
    unit: str
    spread: Spread


def pages_of(num_pages: int, fragments: int) -> RegionPages:
    """Draw ``quality`` pages with another median number of fragments."""
    law = replace(PAGE_LAWS["quality"], median_size=float(fragments))
    regions = draw_regions(law, num_pages, np.random.default_rng(0))
    return RegionPages(np.ones(num_pages), regions, bandwidth=CRAWLS_PER_PAGE * num_pages)


def without_fragments(pages: RegionPages) -> Instance:
    """Return pages without fragments that are updated and crawled as often."""
    return Instance(pages.importance, pages.change_rate, bandwidth=pages.bandwidth)


def make_env(num_pages: int, lanes: int, variant: Variant | None) -> Any:
    """Return an environment after reset; without a variant, one without fragments."""
    pages = pages_of(num_pages, PLAIN.fragments if variant is None else variant.fragments)
    arguments: dict[str, Any] = {
        "num_pages": num_pages,
        "bandwidth": pages.bandwidth,
        "horizon": DAYS,
    }
    if variant is not None:
        arguments["base_versions"] = variant.base_versions
        arguments["sketch_size"] = variant.sketch_size
    name = NCIS if variant is None else LONGEVITY
    if lanes == 1:
        env: Any = gymnasium.make(name, **arguments).unwrapped
    else:
        env = gymnasium.make_vec(name, num_envs=lanes, **arguments)
    instance = without_fragments(pages) if variant is None else pages
    env.reset(seed=0, options={"instance": instance})
    return env


def stepping(env: Any, num_pages: int, lanes: int, *, log: bool = False) -> Task:
    """Return the task of stepping with random pages over successive episodes."""
    shape = PLANNED if lanes == 1 else (PLANNED, lanes)
    actions = np.random.default_rng(0).integers(num_pages, size=shape)

    def task(times: int) -> None:
        for step in range(times):
            truncated = env.step(actions[step % PLANNED])[3]
            if log:
                env.unwrapped.last_log(0)
            if lanes == 1 and truncated:
                env.reset()

    return task


def costs(quick: bool, turns: int, spell: float) -> Iterator[list[Cost]]:
    """Yield the costs of each number of pages and lanes."""
    for num_pages, lanes in QUICK_CELLS if quick else CELLS:
        yield list(_costs(num_pages, lanes, turns, spell))


def _costs(num_pages: int, lanes: int, turns: int, spell: float) -> Iterator[Cost]:
    """Yield costs of steps, resets and bytes, with at most two environments at a time."""
    beside = make_env(num_pages, lanes, None)
    plain = stepping(beside, num_pages, lanes)
    yield from _bytes(num_pages, lanes, NCIS, beside)
    yield _reset(num_pages, lanes, NCIS, beside)
    for number, variant in enumerate(VARIANTS):
        env = make_env(num_pages, lanes, variant)
        tasks = {NCIS: plain, variant.name: stepping(env, num_pages, lanes)}
        if lanes == 1:
            tasks[variant.name + READ_LOG] = stepping(env, num_pages, lanes, log=True)
        taken = list(take_turns(tasks, turns, spell))
        seconds = {name: np.array([turn[name] for turn in taken]) for name in tasks}
        for name, each in seconds.items():
            if name != NCIS or number == 0:
                yield Cost(num_pages, lanes, name, "speed", "env-steps/s", spread(lanes / each))
            if name != NCIS:
                ratio = spread(each / seconds[NCIS])
                yield Cost(num_pages, lanes, name, "time over CrawlNCIS-v0", "times", ratio)
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
    return Cost(num_pages, lanes, variant, "reset", "s", spread(np.array(taken)))


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
        yield Cost(num_pages, lanes, variant, part, "bytes per page", Spread(each, each, each))


def array_bytes(held: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the paths and bytes of arrays in nested mappings, sequences and dataclasses."""
    if isinstance(held, np.ndarray):
        yield path, held.nbytes
        return
    inner: list[tuple[str, Any]] = []
    if isinstance(held, Mapping):
        inner = [(str(name), value) for name, value in held.items()]
    elif isinstance(held, list | tuple):
        inner = [(str(number), value) for number, value in enumerate(held)]
    elif is_dataclass(held) and not isinstance(held, type):
        inner = [(field.name, getattr(held, field.name)) for field in fields(held)]
    for name, value in inner:
        yield from array_bytes(value, (*path, name))
