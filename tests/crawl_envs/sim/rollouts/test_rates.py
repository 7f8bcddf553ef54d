"""Crawls at random instants are the twin's, bit for bit; and what a bucket of tokens lets through.

Parameters and rates are rounded to ten binary digits, so that sums of them are exact in any order.
"""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs import Instance
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import LOG_CAPACITY
from crawl_envs.types import Delay
from crawl_envs.types.compiled_policies import CompiledRates, RateRule
from crawl_envs.worlds.rollouts import play_form
from tests.crawl_envs.sim.test_world import EDGES, KINDS_OF_WORLD, assert_same_world
from tests.naive import pages as naive
from tests.naive import rates as naive_rates
from tests.naive.divergence import Penalty
from tests.worlds import GRAIN, random_events, rated_of, rated_vector_of, rounded, unrequested

PAGES, LANES, HORIZON, SEED = 6, 3, 6.0, 11
CHANCES = (0.0, 1.0, 0.3)
TABLE = (0.0, 1.0, 1.5, 1.75)
KINDS = {name: kind for name, kind in KINDS_OF_WORLD.items() if name != "bandwidth steps"}
KINDS["complete pages"] = {"name": "mixed"}
KINDS["complete pages with delays"] = {"name": "mixed", "delay": Delay("exponential", 0.5)}


def instances_of(name, bandwidth=1000.0, **more):
    """An instance for each lane, of few digits and with all the bandwidth that one can want."""
    return [
        rounded(make(name, num_pages=PAGES, bandwidth=bandwidth, seed=SEED + lane, **more))
        for lane in range(LANES)
    ]


def random_rates(rng, instance):
    """Rates of few binary digits, some of them 0, now and then all, for half of the budget."""
    rates = np.round(rng.exponential(2.0, instance.num_pages) * GRAIN) / GRAIN
    rates[rng.random(instance.num_pages) < 0.3] = 0.0
    while rates.sum() > 0.5 * instance.bandwidth:
        rates /= 2.0
    return rates * (rng.random() < 0.8)


def twin_of(instance, seed, until, *, episode=0, requests=True, **more):
    played = instance if requests else unrequested(instance)
    events = naive.drawn_events(played, seed, episode, until)
    return naive_rates.World(instance, events, seed=seed, episode=episode, **more)


def assert_same_play(
    instances, *, episodes=2, epoch=1.0, bucket=None, requests=True, start="fresh"
):
    """Play episodes of random rates in the kernel and in the twin, side by side."""
    rng, count, pages = np.random.default_rng(5), len(instances), instances[0].num_pages
    env = rated_vector_of(
        instances[0],
        count,
        horizon=HORIZON,
        epoch=epoch,
        bucket=bucket,
        penalty=TABLE,
        requests=requests,
        show_complete=True,
        start=start,
    )
    settings = {"requests": requests, "epoch": epoch, "divergence": Penalty(TABLE), "start": start}
    settings["bucket"] = np.inf if bucket is None else bucket
    for episode in range(episodes):
        options = {"seed": SEED, "options": {"instance": instances}} if episode == 0 else {}
        observations, _ = env.reset(**options)
        twins = [
            twin_of(one, SEED + lane, 2.0 * HORIZON, episode=episode, **settings)
            for lane, one in enumerate(instances)
        ]
        for lane, twin in enumerate(twins):
            assert twin.ledger["time"] == 0.0
            assert_same_world(env, lane, observations[lane], twin)
        truncated, steps, rates = np.zeros(count, bool), 0, np.zeros((count, pages))
        while not truncated.any():
            for lane, one in enumerate(instances):
                if rng.random() < 0.8:  # else the same again
                    rates[lane] = random_rates(rng, one)
                rates[lane, one.complete] = rng.choice(CHANCES, np.count_nonzero(one.complete))
            observations, rewards, _, truncated, info = env.step(rates.copy())
            steps += 1
            for lane, twin in enumerate(twins):
                complete = instances[lane].complete
                twin.play_epoch(
                    np.where(complete, 0.0, rates[lane]),
                    np.where(complete, rates[lane], 0.0),
                    refill=instances[lane].bandwidth,
                )
                assert_same_world(env, lane, observations[lane], twin)
                assert rewards[lane] == twin.freshness()
                assert info["crawls"][lane] == len(twin.slot.crawls)
                assert info["denied"][lane] == twin.denied
        assert steps == env.num_slots(0) == math.floor(HORIZON / epoch + 1e-9)
    return env


@pytest.mark.parametrize("kind", KINDS)
def test_worlds_are_the_twins(kind):
    env = assert_same_play(instances_of(**KINDS[kind]))
    ledgers = [env.ledger(lane) for lane in range(LANES)]
    assert sum(ledger.crawls for ledger in ledgers) > 20
    for ledger in ledgers:
        assert ledger.changes_found > 0
        assert ledger.penalty_time > 0.0
        assert ledger.requests > 0
        assert ledger.wasted == ledger.denied == 0


@pytest.mark.parametrize(("epoch", "bucket"), [(1.0, None), (0.375, 1.5)])
@pytest.mark.parametrize("kind", ["noisy", "complete pages", "two sources with delays"])
def test_crawled_collections_are_the_twins(kind, epoch, bucket):
    instances = instances_of(**KINDS[kind], bandwidth=8.0)
    env = assert_same_play(instances, epoch=epoch, bucket=bucket, start="crawled")
    before = env.tracker(0).time - env.ledger(0).time
    assert before == pytest.approx(math.ceil(PAGES / 8.0 / epoch) * epoch)


@pytest.mark.parametrize("kind", ["noisy", "complete pages", "two sources with delays"])
def test_worlds_without_requests_are_the_twins(kind):
    env = assert_same_play(instances_of(**KINDS[kind]), requests=False)
    assert env.ledger(0).requests == 0 < env.ledger(0).changes


@pytest.mark.parametrize("epoch", [0.1, 0.375, 2.5, HORIZON])
def test_epochs_of_any_length_are_the_twins(epoch):
    assert_same_play(instances_of("mixed"), epoch=epoch)


@pytest.mark.parametrize("bucket", [1.0, 1.5, 30.0])
def test_buckets_are_the_twins(bucket):
    env = assert_same_play(instances_of("mixed", bandwidth=8.0), bucket=bucket)
    denied = sum(env.ledger(lane).denied for lane in range(LANES))
    assert (denied > 0) == (bucket < 30.0)


def wealthy(instance):
    """The instance with all the bandwidth that one can want."""
    quality = (instance.recall, instance.false_signal_rate)
    return Instance(instance.importance, instance.change_rate, *quality, bandwidth=1000.0)


@pytest.mark.parametrize("edge", EDGES)
def test_edge_cases_are_the_twins(edge):
    assert_same_play([wealthy(EDGES[edge])] * 2)


def test_thousands_of_crawls_and_signals_make_the_logs_grow():
    """In one lane; the others have few of them, or none."""
    instances = [
        Instance([1.0, 0.5], 1.0, 0.5, [false_rate, 0.5], bandwidth=1e5)
        for false_rate in (300.0, 2.0, 0.0)
    ]
    rates = [[3000.0, 500.0], [1.5, 0.25], [0.0, 0.0]]
    env = rated_vector_of(instances[0], 3, horizon=3.0, highest=1e5)
    env.reset(seed=SEED, options={"instance": instances})
    twins = [twin_of(one, SEED + lane, 4.0) for lane, one in enumerate(instances)]
    for _ in range(3):
        observations, *_ = env.step(np.array(rates))
        for lane, twin in enumerate(twins):
            twin.play_epoch(rates[lane], [0.0, 0.0])
            assert_same_world(env, lane, observations[lane], twin)
    assert env.ledger(0).crawls > 10_000 > 0 == env.ledger(2).crawls
    state = env.get_state()["world"]
    assert state["crawl_log"].shape[1] > 3000
    assert state["signal_log"].shape[1] > 250 > LOG_CAPACITY


def test_answers_to_signals_fill_a_log_too():
    """Every signal is answered, and both logs fill at one event after another."""
    instance = Instance([1.0], [400.0], 1.0, bandwidth=500.0)
    env = rated_of(instance, horizon=3.0)
    env.reset(seed=SEED)
    twin = twin_of(instance, SEED, 4.0)
    for chance in (1.0, 0.5, 0.0):
        observation, *_ = env.step(np.array([chance]))
        twin.play_epoch([0.0], [chance])
        assert_same_world(env, 0, observation, twin)
    assert env.ledger().crawls > 500


# Compiled rules, which may answer the signals of any page


def assert_same_rollout(instance, rules, events, horizon, *, tape=None, alive=None):
    form = CompiledRates(tuple(RateRule(*rule) for rule in rules))
    rollout = play_form(form, instance, horizon, SEED, tape=tape, penalty=TABLE)
    twin = naive_rates.World(instance, events, seed=SEED, alive=alive, divergence=Penalty(TABLE))
    made = []
    ends = [start for start, *_ in rules[1:]] + [horizon]
    for (start, rates, chances), end in zip(rules, ends, strict=True):
        if start < min(end, horizon):
            twin.play_until(min(end, horizon), rates, chances)
            made += [crawl[:2] for crawl in twin.slot.crawls]
    assert list(zip(rollout.crawls.tolist(), rollout.times.tolist(), strict=True)) == made
    assert len(made) > 0
    for name, value in asdict(rollout.ledger).items():
        # Slots, and so partial sums, end elsewhere: where a log is full.
        exact = not name.endswith("_time")
        assert value == (twin.ledger[name] if exact else pytest.approx(twin.ledger[name], 1e-12))
    return rollout


def random_rules(rng, instance, starts):
    return [
        (start, random_rates(rng, instance), rng.choice(CHANCES, instance.num_pages))
        for start in starts
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_rules_answer_the_signals_of_any_page(kind):
    one = instances_of(**KINDS[kind])[0]
    rules = random_rules(np.random.default_rng(3), one, (0.0, 1.3, 2.0, 2.0, 7.5, 30.0))
    assert_same_rollout(one, rules, naive.drawn_events(one, SEED, 0, 12.0), 12.0)


def test_more_crawls_than_are_made_at_once():
    instance = Instance([1.0, 0.5], 1.0, 0.5, 0.25, bandwidth=1e5)
    rules = [(0.0, np.array([3000.0, 2000.0]), np.array([0.3, 1.0]))]
    events = naive.drawn_events(instance, SEED, 0, 3.0)
    assert assert_same_rollout(instance, rules, events, 3.0).crawls.size > 3 * 4096


@pytest.mark.parametrize("sources", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_pages_are_born_and_die(seed, sources):
    """On tapes of signals, births and deaths of few pages, many at one time."""
    rng = np.random.default_rng(seed)
    counts = {"births": 30, "changes": 60, "signals": 120, "requests": 40, "deaths": 30}
    lists = random_events(rng, 4, sources, end=12.0, **counts)
    alive = [True, True, False, False]
    tape = Tape.of_events(4, alive=alive, num_sources=sources, **lists)
    recall = np.full((sources, 4), 1.0 / sources)
    cost = [0.25, 1.5, 2.0, 0.5] if seed % 2 else None
    instance = Instance([1.0, 2.0, 0.5, 0.0], 1.0, recall, 1.0, bandwidth=1000.0, cost=cost)
    events = naive.written_events(**lists)
    rules = random_rules(rng, instance, (0.0, 2.0, 5.5))
    rollout = assert_same_rollout(instance, rules, events, 12.0, tape=tape, alive=alive)
    assert rollout.ledger.wasted > 0
    assert (rollout.ledger.spend == rollout.ledger.crawls) == (cost is None)
    # And step by step, without answers.
    env = rated_of(instance, tape=tape, penalty=TABLE, horizon=12.0)
    env.reset(seed=SEED)
    twin = naive_rates.World(instance, events, seed=SEED, alive=alive, divergence=Penalty(TABLE))
    for _ in range(12):
        rates = random_rates(rng, instance)
        observation, *_ = env.step(rates)
        twin.play_epoch(rates, np.zeros(4))
        assert_same_world(env, 0, observation, twin)


# What the lengths of epochs and the form of actions leave alone


def played(env, rates, seed=SEED):
    """All that the logs of an episode at fixed rates say: crawls and signals, and the ledger."""
    env.reset(seed=seed)
    names = ("page", "time", "changed", "signal_page", "signal_time")
    columns, over = {name: [] for name in names}, False
    while not over:
        *_, over, _ = env.step(rates)
        for name in names:
            columns[name].append(getattr(env.last_log(), name))
    return {name: np.concatenate(parts) for name, parts in columns.items()}, env.ledger()


@pytest.mark.parametrize("epoch", [0.1, 0.75, 4.0])
@pytest.mark.parametrize("bucket", [None, 2.0])
def test_the_same_rates_in_other_epochs_make_the_same_crawls(epoch, bucket):
    instance = make("mixed", num_pages=8, bandwidth=12.0, seed=SEED)
    rates = np.where(instance.complete, 0.6, np.linspace(0.1, 1.7, 8))
    (one, ledger), (other, cut) = (
        played(rated_of(instance, epoch=length, horizon=12.0, bucket=bucket), rates)
        for length in (1.0, epoch)
    )
    assert one["page"].size > 40
    for name, column in one.items():
        if name.endswith("time"):
            np.testing.assert_allclose(other[name], column, rtol=0.0, atol=1e-9)
        else:
            assert np.array_equal(other[name], column), name
    assert cut.denied == ledger.denied
    assert (cut.denied > 0) == (bucket is not None)
    assert cut.fresh_time == pytest.approx(ledger.fresh_time, rel=1e-12)


# What buckets of tokens let through


def attempts_of(instance, rates, seed):
    """The times at which crawls are made where no bucket denies any."""
    env = rated_of(instance, horizon=20.0)
    return played(env, rates, seed)[0]["time"]


def let_through(times, bucket, refill):
    """Which of the crawls find a token, one by one."""
    tokens, before, made = bucket, 0.0, []
    for time in times:
        tokens, before = min(bucket, tokens + (time - before) * refill), time
        if tokens >= 1.0 - 1e-9:
            tokens -= 1.0
            made.append(time)
    return made


@settings(max_examples=25, deadline=None)
@given(
    bucket=st.floats(1.0, 12.0),
    bandwidth=st.floats(0.5, 6.0),
    share=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32),
)
def test_no_window_holds_more_crawls_than_a_bucket_and_its_refill(bucket, bandwidth, share, seed):
    instance = Instance([1.0, 2.0, 1.0], [1.0, 0.5, 3.0], [0.0, 0.0, 1.0], bandwidth=bandwidth)
    rates = np.array([0.75, 0.25, 0.0]) * share * bandwidth
    rates[2] = min((1.0 - share) * bandwidth / 3.0, 1.0)
    env = rated_of(instance, horizon=20.0, bucket=bucket)
    columns, ledger = played(env, rates, seed)
    times = columns["time"]
    attempts = attempts_of(instance, rates, seed)
    # Denied crawls use the same random numbers, so that times are those without a bucket.
    assert ledger.crawls + ledger.denied == attempts.size
    assert ledger.crawls == times.size
    np.testing.assert_array_equal(times, let_through(attempts, bucket, bandwidth))
    # Crawls i to j need j - i + 1 tokens: those saved at i, and those that came after.
    index = np.arange(times.size)
    needed = index - bandwidth * times
    worst = needed + 1.0 - np.minimum.accumulate(needed) if times.size else np.zeros(1)
    assert worst.max() <= bucket + 1e-6


def test_a_bucket_is_refilled_at_the_bandwidth_of_the_epoch():
    """With a signal at almost every instant, all tokens that come are spent."""
    flood = Instance([1.0], [2000.0], 1.0, bandwidth=4.0, bandwidth_steps=((2.0, 20.0), (3.5, 1.0)))
    env = rated_of(flood, horizon=6.0, bucket=1.0, reveal="importance")
    env.reset(seed=SEED)
    for epoch, due in enumerate((4.0, 4.0, 20.0, 10.5, 1.0, 1.0)):
        env.declare([1.0])
        assert env.lanes.budget.bandwidth(flood, epoch) == pytest.approx(due)
        *_, info = env.step(np.array([1.0]))
        assert abs(info["crawls"] - due) <= 1.0
