"""The clairvoyant against plain Python, and against every sequence on a tiny tape."""

from __future__ import annotations

import itertools
from functools import partial

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.sim.tape import Tape
from scripts.study.clairvoyant import clairvoyant, clairvoyant_policy
from tests.naive import pages as naive


def random_lists(seed, pages=5, until=6.0):
    rng = np.random.default_rng(seed)
    return {
        "changes": (rng.uniform(0.0, until, 25), rng.integers(0, pages, 25)),
        "births": (rng.uniform(0.0, until, 6), rng.integers(0, pages, 6)),
        "deaths": (rng.uniform(0.0, until, 6), rng.integers(0, pages, 6)),
    }


def plain_choices(lists, alive, importance, bandwidth, horizon):
    """The definition, with sets and searches."""
    events = naive.written_events(**lists)
    alive = {page for page, there in enumerate(alive) if there}
    stale, played, chosen = set(), 0, []
    for slot in range(1, int(horizon * bandwidth) + 1):
        now = slot / bandwidth
        while played < len(events) and events[played][0] < now:
            _, page, kind = events[played]
            played += 1
            if kind == naive.BIRTH:
                alive.add(page)
                stale.discard(page)
            elif kind == naive.DEATH:
                alive.discard(page)
            else:
                stale.add(page)
        gains = {}
        for page in sorted(alive & stale):
            later = [t for t, p, kind in events[played:] if p == page and kind != naive.BIRTH]
            gains[page] = importance[page] * (min([*later, horizon]) - now)
        best = max(gains, key=gains.get) if gains and max(gains.values()) > 0.0 else 0
        stale.discard(best)
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_choices_in_plain_python(seed):
    lists = random_lists(seed)
    rng = np.random.default_rng(seed)
    alive, importance = rng.random(5) < 0.6, rng.random(5)
    tape = Tape.of_events(5, alive=alive, **lists)
    expected = plain_choices(lists, alive, importance, 3.0, 6.0)
    np.testing.assert_array_equal(clairvoyant(tape, importance, 3.0, 6.0), expected)


def freshness(instance, lists, pages):
    world = naive.World(instance, naive.written_events(**lists))
    for page in pages:
        world.play_slot([page])
    return world.ledger["fresh_time"]


@pytest.mark.parametrize("seed", range(5))
def test_no_sequence_is_much_fresher_on_a_tiny_tape(seed):
    """It need not be the best, but must come near it: 3 pages, 6 crawls, 729 sequences."""
    rng = np.random.default_rng(seed)
    lists = {"changes": (rng.uniform(0.0, 3.0, 12), rng.integers(0, 3, 12))}
    instance = Instance(rng.random(3), 1.0, bandwidth=2.0)
    tape = Tape.of_events(3, **lists)
    own = freshness(instance, lists, clairvoyant(tape, instance.importance, 2.0, 3.0))
    every = [freshness(instance, lists, pages) for pages in itertools.product(range(3), repeat=6)]
    assert own >= 0.9 * max(every)
    assert own > np.mean(every)


@pytest.mark.parametrize(
    ("importance", "horizon", "word"), [([1.0], 1.0, "importance"), ([1.0, 1.0], 0.0, "horizon")]
)
def test_bad_input(importance, horizon, word):
    with pytest.raises(ValueError, match=word):
        clairvoyant(Tape.of_events(2), np.array(importance), 1.0, horizon)


def test_hindsight_after_a_round_of_crawls():
    """R = 1: pages 0 and 1 are crawled at 1 and 2; both have changed by 3, page 1 for longer."""
    lists = {"changes": ([0.5, 2.25, 2.5, 3.5], [0, 0, 1, 0])}
    tape = Tape.of_events(2, **lists)
    assert clairvoyant(tape, np.ones(2), 1.0, 4.0, before=2).tolist() == [1, 0]
    assert clairvoyant(tape, np.ones(2), 1.0, 4.0).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("start", ["fresh", "crawled"])
def test_hindsight_in_windows_of_sites_is_above_a_belief(start):
    arguments = {"split": "dev", "num_pages": 40, "days_per_crawl": 10.0, "signals": "both"}
    env = gymnasium.make("CrawlSites-v0", **arguments, start=start)
    for seed in range(4):
        fresh = {}
        for name, make in (
            ("belief", partial(policies.make, "BeliefNCIS")),
            ("", clairvoyant_policy),
        ):
            observation, _ = env.reset(seed=seed)
            agent, done = make(env), False
            while not done:
                observation, _, ended, cut, _ = env.step(agent.predict(observation)[0])
                done = ended or cut
            fresh[name] = env.unwrapped.ledger().freshness
        assert fresh[""] > fresh["belief"]
    env.close()
