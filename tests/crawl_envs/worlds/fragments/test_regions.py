"""Episodes of pages with regions, against a twin that sorts everything."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs.instances.longevity import RegionPages
from crawl_envs.sim.tape import (
    BIRTH,
    CHANGE,
    DEATH,
    KIND_BITS,
    KIND_MASK,
    REQUEST,
    SIGNAL,
    SPELL_END,
    SPELL_START,
    UPDATE,
    Tape,
)
from crawl_envs.sim.world import World
from crawl_envs.types.contents import Contents, Regions
from crawl_envs.worlds.fragments.lanes import with_contents
from tests.naive.fragments import updates
from tests.naive.pages import GOLDEN, WORD, splitmix


def pages_of(seed):
    """Pages with static, churn, scroll and padding regions, and both kinds of signals."""
    rng = np.random.default_rng(seed)
    shape = m, _ = tuple(rng.integers(1, 7, 2))
    size = rng.integers(0, 4, shape)
    size[:, 0] += 1
    rate = rng.uniform(0.0, 2.0, shape) * (rng.random(shape) < 0.7)
    regions = Regions(rng.integers(1, 5, shape), size, rate)
    recall, false = rng.choice([0.0, 0.5, 1.0], m), rng.choice([0.0, 0.7], m)
    return RegionPages(1.0, regions, recall, false, bandwidth=1.0)


def naive_region(pages, page, number, seed, horizon):
    """The spells of a region (birth, death, size, key), and its updates."""
    regions = pages.regions
    kept, size, rate = (
        int(regions.items[page, number]),
        int(regions.size[page, number]),
        float(regions.rate[page, number]),
    )
    if size == 0:
        return [], []
    if rate == 0.0:
        kept, size = 1, kept * size
    drawn = updates(seed, rate, pages.recall[page], horizon)
    births = [-np.inf] * kept + [time for time, _ in drawn]
    deaths = [time for time, _ in drawn] + [np.inf] * kept
    keys = [splitmix(seed + GOLDEN * (item + 1) & WORD) for item in range(len(births))]
    return list(zip(births, deaths, [size] * len(births), keys, strict=True)), drawn


def naive_episode(pages, rng, horizon):
    """Events (time, kind, page, size, since) and spells of an episode, by sorting."""
    m, regions = pages.regions.rate.shape
    seeds = rng.integers(0, 2**64, size=(m, regions), dtype=np.uint64).tolist()
    false_seeds = rng.integers(0, 2**64, size=m, dtype=np.uint64).tolist()
    start, spells, events = [0], [], []
    for page in range(m):
        own = []
        for number in range(regions):
            drawn_spells, drawn = naive_region(pages, page, number, seeds[page][number], horizon)
            own += drawn_spells
            events += [(time, SIGNAL, page) for time, signalled in drawn if signalled]
        spells += sorted(own, key=lambda spell: spell[0])
        false = updates(false_seeds[page], pages.false_signal_rate[page], 0.0, horizon)
        events += [(time, SIGNAL, page) for time, _ in false]
        for birth, death, size, _ in own:
            events += [(death, UPDATE, page, size, birth)] if death < np.inf else []
        start.append(len(spells))
    return sorted(events, key=lambda event: (event[0], event[1] != UPDATE)), start, spells


def events_of(time, code, *details):
    columns = time, code & KIND_MASK, code >> KIND_BITS, *details
    return list(zip(*(column.tolist() for column in columns), strict=True))


def played(pages, rng, horizon):
    """The events of a lane, with the details of updates."""
    world = World(1, pages.num_pages, base_versions=0)
    pages.draw_lane(world, 0, rng, horizon)
    state, record = world.state, world.state.lanes[0]
    assert record["recorded"]
    own = slice(record["length"])
    tape, details = state.tape[0, own], (state.detail[0, own], state.since[0, own])
    events = events_of(tape["time"], tape["code"], *details)
    return [event if event[1] == UPDATE else event[:3] for event in events]


@pytest.mark.parametrize("seed", range(12))
def test_episodes_are_those_of_the_twin(seed):
    pages, horizon = pages_of(seed), 10.0 + 5.0 * seed
    contents = pages.draw_contents(np.random.default_rng(seed), horizon)
    events, start, spells = naive_episode(pages, np.random.default_rng(seed), horizon)
    assert played(pages, np.random.default_rng(seed), horizon) == events
    assert contents.start.tolist() == start
    columns = contents.birth, contents.death, contents.size, contents.key
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == spells
    assert contents.earlier.tolist() == [-1] * len(spells)


def test_pages_played_as_a_whole_have_no_events_of_spells():
    pages = pages_of(2)
    whole = pages.draw_tape(np.random.default_rng(3), 20.0)
    assert whole.detail.size == 0
    kinds = {UPDATE: CHANGE, SIGNAL: SIGNAL}
    of_pages = [
        (time, kinds[kind], page)
        for time, kind, page, *_ in played(pages, np.random.default_rng(3), 20.0)
    ]
    events = events_of(whole.time, whole.code)
    assert [event for event in events if event[1] != REQUEST] == of_pages
    assert {kind for _, kind, _ in events} == {REQUEST, CHANGE, SIGNAL}


def test_recorded_contents_join_a_tape():
    contents = Contents.of_spells(
        2,
        page=[0, 0, 0, 1, 1],
        birth=[-np.inf, 2.0, 0.0, -1.0, 2.0],
        death=[2.0, np.inf, 3.0, 2.0, 5.0],
    )
    tape = Tape.of_events(
        2,
        changes=([2.0, 2.0], [1, 0]),
        signals=([2.0, 4.0], [1, 0]),
        births=([2.0], [1]),
        deaths=([3.0], [0]),
        alive=[True, False],
    )
    merged = with_contents(tape, contents)
    assert contents.birth.tolist() == [-np.inf, 0.0, 2.0, -1.0, 2.0]
    assert events_of(merged.time, merged.code, merged.detail) == [
        (0.0, SPELL_START, 0, 1),
        (2.0, SPELL_END, 0, 0),
        (2.0, SPELL_END, 1, 3),
        (2.0, SPELL_START, 0, 2),
        (2.0, SPELL_START, 1, 4),
        (2.0, BIRTH, 1, -1),
        (2.0, CHANGE, 1, -1),
        (2.0, CHANGE, 0, -1),
        (2.0, SIGNAL, 1, -1),
        (3.0, SPELL_END, 0, 1),
        (3.0, DEATH, 0, -1),
        (4.0, SIGNAL, 0, -1),
        (5.0, SPELL_END, 1, 4),
    ]
    assert merged.alive.tolist() == [True, False]
    assert merged.detail.dtype == np.int32


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("horizon", [0.01, 10.0, 1000.0])
def test_updates_and_their_signals_have_room(seed, horizon):
    few = pages_of(seed)
    items, size, rate = 100 * few.regions.items, few.regions.size, few.regions.rate
    given = few.recall, few.false_signal_rate
    pages = RegionPages(1.0, Regions(items, size, rate), *given, bandwidth=1.0)
    mean = np.where(size > 0, rate, 0.0).sum(axis=1) * horizon
    false = pages.false_signal_rate.sum() * horizon
    rows, signals = pages._room(horizon)
    kept = np.where(size > 0, np.where(rate > 0.0, items, 1), 0).sum()
    assert stats.poisson.sf(rows - kept, mean.sum() + false) < 1e-30
    assert stats.poisson.sf(signals, mean @ pages.recall + false) < 1e-30
    most = rate.sum() * horizon + false  # with regions of no size
    assert rows + signals <= items.sum() + 2.0 * (most + 12.0 * np.sqrt(most) + 64)
