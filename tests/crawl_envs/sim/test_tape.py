from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crawl_envs import Instance
from crawl_envs.instances import make
from crawl_envs.sim.streams import roots
from crawl_envs.sim.tape import CODE_STRIDE, Tape, draw_block, most_of, pending_capacity, rewind
from crawl_envs.sim.world import World
from crawl_envs.types import Delay
from tests.naive import pages as naive
from tests.worlds import events_of, rounded

DELAYS = {
    "prompt": None,
    "no time at all": Delay("constant", 0.0),
    "constant": Delay("constant", 0.3),
    "exponential": Delay("exponential", 0.5),
    "poisson in time": Delay("poisson", 2.0, 1.0),
    "poisson in slots": Delay("poisson", 0.6, 0.1),
    "long": Delay("exponential", 50.0),
}


def noisy(delay=None, seed=0, num_pages=5):
    return make("noisy", seed=seed, num_pages=num_pages, bandwidth=10.0, delay=delay)


def tape_of(instance, seed, *, episode=0, until=40.0, block=64):
    """The kernels' events before ``until``, as (time, page, kind), drawn block by block."""
    world = World(1, instance.num_pages, num_sources=instance.num_sources, block=block)
    world.set_instance(0, instance)
    world.state.lanes["root"], world.state.lanes["episode"] = roots(seed).tape, episode
    rewind(world.state, 0)
    events = []
    while not events or events[-1][0] < until:
        draw_block(world.state, 0)
        for event in world.state.tape[0]:
            page, kind = divmod(int(event["code"]), CODE_STRIDE)
            events.append((float(event["time"]), page, kind))
    return [event for event in events if event[0] < until]


@pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS)
@pytest.mark.parametrize("name", ["uniform", "partial", "noisy", "sources"])
def test_events_are_the_twins(name, delay):
    for seed, episode in ((0, 0), (1, 0), (1, 3)):
        instance = make(name, seed=seed, num_pages=5, bandwidth=10.0, delay=delay)
        instance = rounded(instance)
        expected = naive.drawn_events(instance, seed, episode, 40.0)
        assert len(expected) > 100
        assert tape_of(instance, seed, episode=episode) == expected


@pytest.mark.parametrize("name", ["uniform", "partial", "noisy", "delayed", "sources"])
def test_rates_of_many_digits_shift_only_the_last_digit(name):
    """The kernels' total rate is rounded in another order than the twin's."""
    instance = make(name, seed=4, num_pages=30, bandwidth=10.0)
    events, expected = tape_of(instance, 4), naive.drawn_events(instance, 4, 0, 40.0)
    assert [event[1:] for event in events] == [event[1:] for event in expected]
    times = [event[0] for event in events]
    assert np.allclose(times, [event[0] for event in expected], rtol=1e-13, atol=0.0)


EDGES = {
    "one page": Instance(1.0, 1.0, 0.5, 0.5, bandwidth=1.0),
    "no signals": Instance([1.0, 0.5], [1.0, 2.0], bandwidth=1.0),
    "no false signals": Instance([1.0, 0.5], [1.0, 2.0], 0.5, bandwidth=1.0),
    "all changes signalled": Instance([1.0, 0.5], [1.0, 2.0], 1.0, [0.0, 1.0], bandwidth=1.0),
    "static pages": Instance([1.0, 0.5], 0.0, 0.5, [0.0, 1.0], bandwidth=1.0),
    "no requests": Instance(0.0, [1.0, 2.0], 0.5, 0.5, bandwidth=1.0),
    "false signals alone": Instance(0.0, 0.0, 0.0, [0.5, 1.0], bandwidth=1.0),
    "two sources": Instance(
        [1.0, 0.5], [1.0, 2.0], [[0.25, 0.5], [0.5, 0.25]], [[1.0, 0.5], [0.25, 2.0]], bandwidth=1.0
    ),
    "one dead row": Instance([0.0, 1.0], [0.0, 1.0], [0.0, 0.5], [0.0, 0.5], bandwidth=1.0),
}


LATE = Delay("exponential", 0.5)


@pytest.mark.parametrize("delay", [None, LATE], ids=["prompt", "delayed"])
@pytest.mark.parametrize("edge", EDGES)
def test_events_of_edge_cases_are_the_twins(edge, delay):
    given = EDGES[edge]
    instance = Instance(
        given.importance,
        given.change_rate,
        given.recall,
        given.false_signal_rate,
        bandwidth=1.0,
        delay=delay,
    )
    events = tape_of(instance, 9)
    assert events == naive.drawn_events(instance, 9, 0, 40.0)
    assert events
    rates = naive.drawn_rates(instance)
    if delay is None:
        assert all(
            rates[naive.num_columns(instance) * page + kind] > 0.0 for _, page, kind in events
        )


def test_false_signals_far_above_all_other_rates_are_the_twins():
    """Hundreds of false signals between two other events, one on its way at a time."""
    instance = Instance(0.125, 0.125, 0.5, 64.0, bandwidth=1.0, delay=Delay("constant", 1 / 64))
    assert tape_of(instance, 9) == naive.drawn_events(instance, 9, 0, 40.0)


@pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS)
@pytest.mark.parametrize("block", [1, 2, 7, 1000])
def test_block_size_changes_no_event(block, delay):
    instance = noisy(delay)
    assert tape_of(instance, 2, block=block) == tape_of(instance, 2, block=64)


def test_the_room_for_signals_under_way_suffices_with_ease():
    instance = make("noisy", num_pages=200, delay=Delay("exponential", 3.0))
    world = World(1, 200, block=2000)
    world.set_instance(0, instance)
    mean = float(instance.signal_rate.sum()) * 3.0
    assert world.state.pending_due.shape[1] == pending_capacity(instance)
    rewind(world.state, 0)
    most = 0
    for _ in range(10):
        draw_block(world.state, 0)
        most = max(most, int(world.state.pending_size[0, 0]))
    assert mean < most < mean + 5.0 * math.sqrt(mean)
    assert most < pending_capacity(instance)


@pytest.mark.parametrize("mean", [0.0, 0.3, 10.0, 1e3, 1e6])
def test_room_for_a_poisson_number_is_tight(mean):
    room = most_of(mean)
    assert stats.poisson.sf(room, mean) < 1e-30
    assert room <= mean + 12.0 * math.sqrt(mean) + 64


def test_prompt_signals_need_no_room():
    assert pending_capacity(make("noisy")) == 0


# Recorded tapes


def test_lists_become_a_tape_in_order_of_time():
    lists = {
        "changes": ([3.0, 1.0, 2.0], [0, 1, 2]),
        "signals": ([2.5, 0.5], [2, 2]),
        "requests": ([9.0], [1]),
        "births": ([0.25], [2]),
        "deaths": ([2.75], [1]),
    }
    tape = Tape.of_events(3, alive=[True, True, False], **lists)
    assert events_of(tape) == naive.written_events(**lists)
    assert tape.time.tolist() == [0.25, 0.5, 1.0, 2.0, 2.5, 2.75, 3.0, 9.0]
    assert tape.alive.tolist() == [True, True, False]


def test_at_one_time_births_come_first_and_deaths_last():
    at_one = ([1.0, 1.0], [1, 0])
    names = ("requests", "deaths", "signals", "births", "changes")
    tape = Tape.of_events(2, **dict.fromkeys(names, at_one))
    births, changes, signals, requests, deaths = (
        [(1.0, 1, kind), (1.0, 0, kind)]
        for kind in (naive.BIRTH, naive.CHANGE, naive.SIGNAL, naive.REQUEST, naive.DEATH)
    )
    assert events_of(tape) == births + changes + signals + requests + deaths
    assert events_of(tape) == naive.written_events(**dict.fromkeys(names, at_one))


@pytest.mark.parametrize(
    ("given", "mortal"),
    [
        ({"changes": ([1.0], [0])}, False),
        ({"births": ([1.0], [1])}, True),
        ({"deaths": ([1.0], [1])}, True),
        ({"alive": [True, False]}, True),
    ],
)
def test_pages_are_mortal_if_they_are_born_die_or_are_not_there(given, mortal):
    assert Tape.of_events(2, **given).mortal is mortal
