"""The kernel and its twin play the same worlds, bit for bit.

Parameters are rounded to ten binary digits, so that sums of them are exact in any order; nothing
else is compared with a tolerance.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from numba import njit

from crawl_envs import Instance
from crawl_envs.instances import make
from crawl_envs.sim.clock import clock_rows, slot_time, slots_until
from crawl_envs.sim.state import State, state_at
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import LOG_CAPACITY, World
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Delay
from tests.naive import pages as naive
from tests.naive.divergence import Penalty
from tests.worlds import random_events, rounded, single_of, vector_of

PAGES, LANES, RATE, HORIZON = 6, 3, 6.0, 4.0
SEED = 11

KINDS_OF_WORLD = {
    "uniform": {"name": "uniform"},
    "partial": {"name": "partial"},
    "noisy": {"name": "noisy"},
    "delayed": {"name": "delayed"},
    "delay 0": {"name": "noisy", "delay": Delay("constant", 0.0)},
    "constant delay": {"name": "noisy", "delay": Delay("constant", 0.4)},
    "exponential delay": {"name": "noisy", "delay": Delay("exponential", 0.5)},
    "poisson delay in time": {"name": "noisy", "delay": Delay("poisson", 1.5, 1.0)},
    "poisson delay in slots": {
        "name": "partial",
        "delay": Delay("poisson", 3.0 / RATE, 1.0 / RATE),
    },
    "two sources": {"name": "sources"},
    "two sources with delays": {"name": "sources", "delay": Delay("exponential", 0.5)},
    "three sources": {"name": "sources", "num_sources": 3, "delay": Delay("poisson", 1.5, 1.0)},
    "bandwidth steps": {"name": "noisy", "bandwidth_steps": ((0.7, 12.0), (2.1, 2.5))},
}
ACTIONS = {
    "page": {"action": "page"},
    "scores": {"action": "scores"},
    "scores in threes": {"action": "scores", "batch": 3},
    "refresh": {"action": "refresh"},
}


def instances_of(name, **more):
    """An instance for each lane, of few digits."""
    more = {"num_pages": PAGES, "bandwidth": RATE, **more}
    return [rounded(make(name, seed=SEED + lane, **more)) for lane in range(LANES)]


def draw_actions(rng, action, num_pages, num_lanes, batch=1):
    """A batch of actions, and the pages that they crawl."""
    if action == "page":
        pages = rng.integers(num_pages, size=num_lanes)
        return pages, [[int(page)] for page in pages]
    if action == "refresh":
        bits = (rng.random((num_lanes, num_pages)) < 0.3).astype(np.int8)
        return bits, [[page for page in range(num_pages) if row[page]] for row in bits]
    # Few levels, so that ties are common.
    scores = (rng.integers(-2, 3, size=(num_lanes, num_pages)) / 2.0).astype(np.float32)
    ranked = [sorted(range(num_pages), key=lambda page: (-row[page], page)) for row in scores]
    return scores, [order[:batch] for order in ranked]


def twins_of(instances, episode, until, slots=1, penalty=None, start="fresh"):
    return [
        naive.World(
            one,
            naive.drawn_events(one, SEED + lane, episode, until),
            slots=slots,
            divergence=None if penalty is None else Penalty(penalty),
            start=start,
        )
        for lane, one in enumerate(instances)
    ]


def assert_same_log(log, twin):
    made = (log.page, log.time, log.elapsed, log.signals.T, log.changed)
    crawls = list(zip(*(column.tolist() for column in made), strict=True))
    wasted = [elapsed is None for _, _, elapsed, *_ in twin.slot.crawls]
    if any(wasted):  # whose elapsed time has a test of its own
        crawls = [
            (page, time, None if lost else elapsed, *rest)
            for (page, time, elapsed, *rest), lost in zip(crawls, wasted, strict=True)
        ]
    assert crawls == twin.slot.crawls
    arrived = (log.signal_page, log.signal_time, log.signal_source)
    signals = list(zip(*(column.tolist() for column in arrived), strict=True))
    assert signals == twin.slot.signals


def assert_same_tracker(tracker, twin):
    assert tracker.time == twin.time
    assert tracker.alive.tolist() == [page.alive for page in twin.pages]
    assert tracker.elapsed.tolist() == [
        twin.time - page.since if page.alive else 0.0 for page in twin.pages
    ]
    assert tracker.signals.T.tolist() == [twin.counted(page.signals) for page in twin.pages]
    assert tracker.changed.tolist() == [page.changed for page in twin.pages]


def assert_same_observation(observation, twin, features, horizon):
    seen = [twin.seen(number, horizon) for number in range(len(twin.pages))]
    expected = np.array([[page[name] for name in features] for page in seen], np.float32)
    assert np.array_equal(observation, expected)


def assert_same_world(env, lane, observation, twin):
    """Everything that is seen or counted of a lane is what its twin says."""
    oldest = env.lanes.world.state.lanes[lane]["max_elapsed"]
    assert_same_observation(observation, twin, env.features, oldest)
    assert_same_tracker(env.tracker(lane), twin)
    assert asdict(env.ledger(lane)) == twin.ledger
    assert_same_log(env.last_log(lane), twin)


def assert_owed(env, lane, twin, exact=True):
    """The reward of a penalty is what the twin owes; equal but for rounding if not ``exact``."""
    objective, slot = Objective("penalty"), twin.slot
    owed = slot.divergence_time / slot.divergent_time if slot.divergent_time > 0.0 else 0.0
    reward = objective.total(objective.terms(env.lanes.world.outcomes))[lane]
    assert reward == (-owed if exact else pytest.approx(-owed, rel=1e-12))
    if not exact:
        given = env.ledger(lane).penalty_time
        assert given == pytest.approx(twin.ledger["penalty_time"], rel=1e-12)
        twin.ledger["penalty_time"] = given


def assert_same_play(
    instances,
    *,
    episodes=2,
    horizon=HORIZON,
    until=None,
    penalty=None,
    exact=True,
    start="fresh",
    **form,
):
    """Play two episodes of random actions in the kernel and in the twin, side by side."""
    rng = np.random.default_rng(5)
    batch = form.get("batch", 1)
    more = {"horizon": horizon, "penalty": penalty, "start": start, **form}
    env = vector_of(instances[0], len(instances), **more)
    for episode in range(episodes):
        options = {} if episode else {"seed": SEED, "options": {"instance": instances}}
        observations, _ = env.reset(**options)
        until = 3.0 * horizon if until is None else until
        twins = twins_of(instances, episode, until, batch, penalty, start)
        for lane, twin in enumerate(twins):
            assert_same_world(env, lane, observations[lane], twin)
        truncated = np.zeros(len(instances), bool)
        steps = 0
        while not truncated.any():
            actions, crawls = draw_actions(
                rng, form.get("action", "page"), env.lanes.num_pages, len(instances), batch
            )
            observations, rewards, _, truncated, info = env.step(actions)
            steps += 1
            for lane, twin in enumerate(twins):
                twin.play_slot(crawls[lane])
                assert twin.time < until
                if penalty is not None:
                    assert_owed(env, lane, twin, exact)
                assert_same_world(env, lane, observations[lane], twin)
                assert rewards[lane] == twin.freshness()
                assert info["requests"][lane] == twin.slot.requests
                assert info["hits"][lane] == twin.slot.hits
        assert steps == env.num_slots(0) // batch
    return env


@pytest.mark.parametrize("kind", KINDS_OF_WORLD)
def test_worlds_are_the_twins(kind):
    env = assert_same_play(instances_of(**KINDS_OF_WORLD[kind]))
    ledger = env.ledger(0)
    assert ledger.changes_found > 0
    assert ledger.hits > 0
    assert (ledger.signals > 0) == (kind != "uniform")


@pytest.mark.parametrize("form", ACTIONS)
@pytest.mark.parametrize("kind", ["noisy", "exponential delay", "two sources with delays"])
def test_crawled_collections_are_the_twins(kind, form):
    env = assert_same_play(instances_of(**KINDS_OF_WORLD[kind]), start="crawled", **ACTIONS[form])
    assert env.tracker(0).time > env.ledger(0).time + 0.99


def test_penalties_of_crawled_collections_are_the_twins():
    instances = instances_of(**KINDS_OF_WORLD["noisy"])
    assert_same_play(instances, start="crawled", penalty="harmonic", exact=False)


@pytest.mark.parametrize("form", ACTIONS)
@pytest.mark.parametrize(
    "kind", ["bandwidth steps", "exponential delay", "two sources with delays"]
)
def test_action_forms_crawl_what_the_twin_crawls(kind, form):
    assert_same_play(instances_of(**KINDS_OF_WORLD[kind]), **ACTIONS[form])


EDGES = {
    "static pages": Instance([1.0, 0.5], 0.0, 0.5, [0.0, 1.0], bandwidth=4.0),
    "nobody asks": Instance(0.0, [1.0, 2.0], 0.5, 0.5, bandwidth=4.0),
    "one page nobody asks for": Instance([0.0, 2.0], 1.0, 0.5, 0.5, bandwidth=4.0),
    "every change signalled": Instance([1.0, 0.5], [1.0, 2.0], 1.0, bandwidth=4.0),
    "one page": Instance(1.5, 2.0, 0.5, 0.5, bandwidth=4.0),
    "two sources tell of every change": Instance(
        [1.0, 0.5],
        [1.0, 2.0],
        [[0.25, 0.75], [0.75, 0.25]],
        [[1.0, 0.5], [0.0, 2.0]],
        bandwidth=4.0,
    ),
    "nothing ever happens": Instance([0.0, 0.0], 0.0, bandwidth=4.0),
}


@pytest.mark.parametrize("edge", EDGES)
def test_edge_cases_are_the_twins(edge):
    assert_same_play([EDGES[edge]] * 2)


LONG_SLOTS = {
    "hundreds of signals in one lane, a handful in the next, none in the last": [
        Instance([1.0, 0.5], 1.0, 0.5, false_rate, bandwidth=1.0, delay=delay)
        for false_rate, delay in (
            ([200.0, 30.0], None),
            ([2.0, 1.0], Delay("constant", 0.5)),
            ([0.0, 0.0], None),
        )
    ],
    "two sources": [
        Instance([1.0], 1.0, [[0.25], [0.5]], [[200.0], [30.0]], bandwidth=1.0, delay=delay)
        for delay in (Delay("constant", 0.5), None)
    ],
}


@pytest.mark.parametrize("case", LONG_SLOTS)
def test_long_slots_make_the_log_of_signals_grow(case):
    env = assert_same_play(LONG_SLOTS[case])
    room = env.get_state()["world"]["signal_log"].shape[1]
    assert room > 200 > LOG_CAPACITY


def test_a_log_that_is_exactly_full_loses_nothing():
    """Slots of one less, as many, and one more signals than were provided for."""
    instance = Instance([1.0], 1.0, bandwidth=1.0)
    for extra in (-1, 0, 1):
        times = np.linspace(1.1, 1.9, LOG_CAPACITY + extra)
        lists = {"signals": (times, np.zeros(times.size, int)), "requests": ([1.95], [0])}
        env = single_of(instance, tape=Tape.of_events(1, **lists))
        twin = naive.World(instance, naive.written_events(**lists))
        env.reset(seed=0)
        for _ in range(3):
            env.step(0)
            twin.play_slot([0])
            assert_same_log(env.last_log(), twin)
            assert asdict(env.ledger()) == twin.ledger


# Hand-written tapes


def assert_same_tape_play(instance, lists, crawls, alive=True, penalty=None, start="fresh", **more):
    """Play a hand-written tape, page by page, in the kernel and in the twin."""
    num_pages, sources = instance.num_pages, instance.num_sources
    tape = Tape.of_events(num_pages, alive=alive, num_sources=sources, **lists)
    env = single_of(instance, tape=tape, penalty=penalty, start=start, **more)
    divergence = None if penalty is None else Penalty(penalty)
    events = naive.written_events(**lists)
    alive = tape.alive.tolist()
    twin = naive.World(instance, events, alive=alive, divergence=divergence, start=start)
    observation, info = env.reset(seed=0)
    rewards = []
    for page in [None, *crawls]:
        if page is not None:
            observation, reward, _, _, info = env.step(page)
            twin.play_slot([page])
            assert reward == twin.freshness()
            rewards.append(reward)
        assert_same_world(env, 0, observation, twin)
        living = [page.alive for page in twin.pages]
        assert info["action_mask"].tolist() == [int(there) for there in living]
        assert info["action_mask"].dtype == np.int8
        assert env.action_masks().tolist() == living
    return env, rewards


TWO = Instance([1.0, 3.0], 1.0, bandwidth=1.0)


def test_freshness_of_a_change_in_mid_slot():
    lists = {"changes": ([1.25], [1]), "requests": ([1.125, 1.5, 1.75], [1, 1, 0])}
    env, rewards = assert_same_tape_play(TWO, lists, [0, 1, 0])
    # Weight 3 of 4 goes stale after a quarter of the slot, and is crawled at 2.
    assert rewards == [1.0 - 0.75 * 0.75, 1.0, 1.0]
    ledger = env.ledger()
    assert (ledger.requests, ledger.hits, ledger.changes, ledger.changes_found) == (3, 2, 1, 1)
    assert ledger.freshness == 1.0 - 0.75 * 0.75 / 4.0


def test_an_event_at_the_time_of_a_crawl_comes_after_it():
    """Events before t_j are seen at t_j; events at t_j come after the crawl."""
    lists = {
        "changes": ([1.0, 2.0], [0, 0]),
        "signals": ([1.0, 2.0], [0, 0]),
        "requests": ([1.0], [0]),
    }
    env, rewards = assert_same_tape_play(TWO, lists, [0, 0, 0, 0])
    assert rewards == [0.75, 0.75, 1.0, 1.0]
    assert env.ledger().hits == 0  # at time 1 the change comes before the request


def test_births_and_deaths():
    lists = {
        "births": ([0.5, 2.25], [1, 2]),
        "deaths": ([3.5, 4.0], [0, 1]),
        "changes": ([0.25, 0.75, 2.5, 3.25, 3.75], [1, 1, 2, 0, 0]),
        "signals": ([0.25, 0.75, 2.5, 3.75], [1, 1, 2, 0]),
        "requests": ([0.25, 0.625, 0.875, 2.75, 3.625], [1, 1, 1, 2, 0]),
    }
    instance = Instance([1.0, 2.0, 4.0], 1.0, bandwidth=1.0)
    env, _ = assert_same_tape_play(
        instance, lists, [0, 1, 2, 1, 1], alive=[True, False, False], horizon=6.0
    )
    # Before its birth and after its death nothing happens to a page.
    ledger = env.ledger()
    assert (ledger.changes, ledger.signals, ledger.requests, ledger.hits) == (3, 2, 3, 1)
    assert ledger.wasted == 1
    assert ledger.crawls == 5


@pytest.mark.parametrize(
    ("start", "births", "deaths"),
    [
        ("fresh", ([2.0], [3]), ([5.0], [3])),
        # A round up to 1.5: page 3 is born in it, page 1 dies before its crawl.
        ("crawled", ([0.5, 4.0], [3, 1]), ([0.625, 5.0], [1, 3])),
    ],
)
def test_random_tapes_are_the_twins(start, births, deaths):
    """Random events, many of them at one time or at the time of a crawl."""
    rng = np.random.default_rng(0)
    steps = ((3.0, 4.0),) if start == "fresh" else ()
    instance = Instance([1.0, 2.0, 0.5, 0.0], 1.0, bandwidth=2.0, bandwidth_steps=steps)
    for _ in range(20):
        lists = random_events(rng, 4, changes=20, signals=30, requests=40)
        lists["births"], lists["deaths"] = births, deaths
        crawls = rng.choice([0, 1, 2], 20 if start == "fresh" else 16).tolist()
        alive = [True, True, True, False]
        assert_same_tape_play(instance, lists, crawls, alive=alive, horizon=8.0, start=start)


def test_the_log_of_a_wasted_crawl_says_nothing_of_the_page():
    """A learner would take a time without a change for an observation of the page."""
    env = single_of(TWO, tape=Tape.of_events(2, deaths=([1.5], [0])))
    env.reset(seed=0)
    env.step(1)
    env.step(0)
    log = env.last_log()
    assert (log.page.tolist(), log.time.tolist(), log.changed.tolist()) == ([0], [2.0], [False])
    assert (log.elapsed.tolist(), log.signals.tolist()) == ([0.0], [0])


def test_freshness_without_a_fresh_page_is_zero():
    weights = [0.1, 0.2, 0.3, 0.7, 0.15]
    tape = Tape.of_events(5, changes=([0.1, 0.2, 0.3, 0.4, 0.5], range(5)))
    env = single_of(Instance(weights, 1.0, bandwidth=1.0), tape=tape, action="refresh")
    env.reset(seed=0)
    _, reward, *_ = env.step(np.zeros(5, np.int8))
    assert reward == 0.0


# The clock


@pytest.mark.parametrize(
    ("bandwidth", "steps"),
    [(3.0, ()), (0.7, ((2.0, 5.0),)), (10.0, ((0.05, 1.0), (3.3, 0.1), (50.0, 7.0)))],
)
def test_slots_are_the_twins(bandwidth, steps):
    rows = clock_rows(bandwidth, steps)
    times = [slot_time(rows, slot) for slot in range(200)]
    assert times == [naive.slot_time(bandwidth, steps, slot) for slot in range(200)]
    assert times[0] == 0.0
    assert np.all(np.diff(times) > 0.0)
    # The bandwidth's integral up to a slot is its number.
    starts = [0.0, *(time for time, _ in steps)]
    rates = [bandwidth, *(rate for _, rate in steps)]
    ends = [*starts[1:], np.inf]
    for slot, time in enumerate(times):
        allowed = sum(
            max(0.0, min(time, end) - start) * rate
            for start, end, rate in zip(starts, ends, rates, strict=True)
        )
        assert allowed == pytest.approx(slot, rel=1e-12, abs=1e-12)


def test_slots_until_the_horizon():
    assert slots_until(clock_rows(100.0), 10.0) == 1000
    assert slots_until(clock_rows(0.1), 30.0) == 3  # 0.1 * 30 is a little above 3
    assert slots_until(clock_rows(3.0), 0.1 + 0.2 + 0.7) == 3  # a little below 1
    assert slots_until(clock_rows(2.0), 1.4) == 2
    assert slots_until(clock_rows(2.0, ((1.0, 4.0),)), 2.0) == 6
    assert slots_until(clock_rows(2.0, ((1.0, 4.0),)), 1.0) == 2
    assert slots_until(clock_rows(2.0), 0.4) == 0


@pytest.mark.parametrize("num_sources", [1, 3])
def test_the_table_of_a_state_leads_to_its_arrays(num_sources):
    """A kernel reads the arrays that Python wrote, from their addresses: every array and field."""
    world = World(3, 4, num_sources=num_sources, num_features=2, crawls_per_slot=2, block=8)
    quality = (np.full((num_sources, 4), 0.25), 0.5)
    for lane in range(3):
        steps = ((1.0, 2.0),) if lane else ()
        delay = Delay("constant", 1.0)
        world.set_instance(
            lane,
            Instance(np.ones(4), 1.0, *quality, bandwidth=1.0, bandwidth_steps=steps, delay=delay),
        )
    rng = np.random.default_rng(0)
    for array in world.state:
        array.view(np.uint8)[...] = rng.integers(0, 2, array.view(np.uint8).shape, np.uint8)
    for name, mine in zip(State._fields, world.state, strict=True):
        names = {"state_at": state_at}
        exec(f"def read(table): return state_at(table).{name}", names)
        theirs = njit(names["read"])(world.table)
        assert mine.dtype == theirs.dtype, name
        assert mine.shape == theirs.shape, name
        assert mine.ctypes.data == theirs.ctypes.data, name
        assert mine.tobytes() == theirs.tobytes(), name
