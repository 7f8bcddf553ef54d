"""Crawling at thresholds: the kernel against its twin, crawl for crawl, and the agenda alone."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs import Instance
from crawl_envs.compiled.heap import empty_heap, first_due, set_due
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.types.compiled_policies import CompiledThresholds, ThresholdRule
from crawl_envs.worlds.rollouts import play_form
from tests.naive import pages as naive
from tests.naive import thresholds as naive_thresholds
from tests.naive.divergence import Penalty
from tests.worlds import random_events, rounded

SEED = 3


def rule_of(threshold, signal_weight, *, later=None, share=0.0, timed=True, start=0.0):
    """A rule of one source, or of the sources of ``signal_weight``, with scalars for all pages."""
    threshold = np.array(threshold, float)
    pages = threshold.shape
    weights = np.atleast_2d(np.array(signal_weight, float))
    return ThresholdRule(
        start=start,
        threshold=threshold,
        later_threshold=threshold.copy() if later is None else np.array(later, float),
        later_share=np.broadcast_to(np.array(share, float), pages).copy(),
        signal_weight=np.broadcast_to(weights, (weights.shape[0], *pages)).copy(),
        timed=np.broadcast_to(np.array(timed, bool), pages).copy(),
    )


def random_rule(rng, num_pages, sources=1, start=0.0):
    """Pages of all sorts: timed or not, never due, of sure signals, of two thresholds."""
    timed = rng.random(num_pages) < 0.7
    weight = np.where(timed, rng.exponential(0.5, (sources, num_pages)), 1.0)
    weight[:, rng.random(num_pages) < 0.2] = np.inf
    weight[rng.random((sources, num_pages)) < 0.1] = 0.0
    threshold = np.where(timed, rng.exponential(1.0, num_pages) + 0.05, 1.0 + (timed.cumsum() % 3))
    later = threshold + np.where(timed, 0.7, 1.0)
    threshold[rng.random(num_pages) < 0.1] = np.inf
    later = np.maximum(later, threshold)
    share = np.where(rng.random(num_pages) < 0.5, rng.random(num_pages), 0.0)
    return rule_of(threshold, weight, later=later, share=share, timed=timed, start=start)


def assert_same_play(instance, rules, events, horizon, *, tape=None, alive=None):
    form = CompiledThresholds(tuple(rules), seed=2**63 + 5)
    rollout = play_form(form, instance, horizon, SEED, tape=tape, penalty="harmonic")
    twin = naive_thresholds.World(
        instance, events, rules, rng=form.seed, alive=alive, divergence=Penalty("harmonic")
    )
    twin.play(horizon)
    made = list(zip(rollout.crawls.tolist(), rollout.times.tolist(), strict=True))
    assert made == [crawl[:2] for crawl in twin.slot.crawls]
    assert twin.time == horizon
    for name, value in asdict(rollout.ledger).items():
        # The kernel adds integrals up in another order.
        exact = not name.endswith("_time")
        assert value == (twin.ledger[name] if exact else pytest.approx(twin.ledger[name], 1e-11))
    return rollout


@pytest.mark.parametrize("name", ["uniform", "partial", "noisy", "delayed"])
@pytest.mark.parametrize("seed", range(3))
def test_kernel_and_twin_make_the_same_crawls(name, seed):
    instance = rounded(make(name, num_pages=12, bandwidth=12.0, seed=SEED))
    horizon = 20.0
    events = naive.drawn_events(instance, SEED, 0, horizon)
    rule = random_rule(np.random.default_rng(seed), 12)
    rollout = assert_same_play(instance, [rule], events, horizon)
    assert rollout.ledger.crawls > 50


@pytest.mark.parametrize("sources", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_pages_are_born_and_die_amid_signals_of_several_sources(seed, sources):
    rng = np.random.default_rng(seed)
    counts = {"births": 40, "changes": 80, "signals": 200, "requests": 50, "deaths": 40}
    drawn = random_events(rng, 6, sources, end=30.0, **counts)
    alive = rng.random(6) < 0.5
    tape = Tape.of_events(6, alive=alive, num_sources=sources, **drawn)
    instance = Instance(
        rng.random(6), rng.random(6), np.full((sources, 6), 0.2), 0.5, bandwidth=2.0
    )
    events = naive.written_events(**drawn)
    rules = [random_rule(rng, 6, sources), random_rule(rng, 6, sources, start=11.0)]
    assert_same_play(instance, rules, events, 30.0, tape=tape, alive=alive.tolist())


def still(num_pages=2):
    return Instance(np.ones(num_pages), np.ones(num_pages), bandwidth=1.0)


BY_HAND = {
    "no signals": (rule_of([1.0, np.inf], 0.0), [], [], [(t, 0) for t in (1.0, 2.0, 3.0, 4.0)]),
    "brought forward": (rule_of([4.0, np.inf], 1.5), [1.0, 2.0], [0, 1], [(2.5, 0)]),
    "brought forward twice": (rule_of([4.0, np.inf], 1.5), [1.0, 2.0], [0, 0], [(2.0, 0)]),
    "at once": (rule_of([4.0], np.inf), [1.25, 3.0], [0, 0], [(1.25, 0), (3.0, 0)]),
    "untimed": (
        *(rule_of([2.0, np.inf], 1.0, timed=False), [0.5, 1.0, 1.5, 2.0, 3.0], [0] * 5),
        [(1.0, 0), (2.0, 0)],
    ),
    "never": (rule_of([2.0, np.inf], 1.0, timed=False), [0.5, 1.0, 1.5], [1] * 3, []),
    "never, for sure signals": (rule_of([np.inf], np.inf), [1.0], [0], []),
    "ties": (rule_of([4.0] * 4, 0.0), [], [], [(4.0, page) for page in range(4)]),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_crawls_by_hand(case):
    rule, times, pages, expected = BY_HAND[case]
    tape = Tape.of_events(rule.threshold.size, signals=(times, pages))
    rollout = play_form(CompiledThresholds((rule,), 0), still(rule.threshold.size), 4.5, tape=tape)
    assert list(zip(rollout.times.tolist(), rollout.crawls.tolist(), strict=True)) == expected


def test_the_crawl_at_the_time_of_an_event_comes_before_it():
    rule = rule_of([1.0], 0.0)
    form = CompiledThresholds((rule,), seed=0)
    tape = Tape.of_events(1, changes=([1.0], [0]), requests=([1.0, 1.5], [0, 0]))
    rollout = play_form(form, still(1), 1.75, tape=tape)
    assert rollout.times.tolist() == [1.0]
    assert rollout.ledger.changes_found == 0
    assert rollout.ledger.hits == 0
    assert rollout.freshness == pytest.approx(1.0 / 1.75)


def test_full_logs_change_nothing(monkeypatch):
    instance = rounded(make("noisy", num_pages=12, bandwidth=12.0, seed=SEED))
    rule = random_rule(np.random.default_rng(1), 12)
    events = naive.drawn_events(instance, SEED, 0, 30.0)
    monkeypatch.setattr("crawl_envs.worlds.rollouts.CRAWLS_AT_ONCE", 3)
    assert_same_play(instance, [rule], events, 30.0)


def test_the_choice_of_two_thresholds_has_its_probability():
    """A page due after 1 or 3: the share of long cycles is binomial."""
    rule = rule_of([1.0], 0.0, later=[3.0], share=0.3)
    form = CompiledThresholds((rule,), seed=12)
    rollout = play_form(form, still(1), 40_000.0, tape=Tape.of_events(1))
    gaps = np.diff(rollout.times, prepend=0.0)
    assert set(gaps.round(9)) == {1.0, 3.0}
    long = np.mean(gaps > 2.0)
    assert abs(long - 0.3) < 4.0 * np.sqrt(0.3 * 0.7 / gaps.size)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_agenda_knows_who_is_due_first(data):
    """Against the minimum of a list, after every change of a time; few times, so that many tie."""
    heap, due = empty_heap(7), [np.inf] * 7
    times = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
    for page, time in data.draw(st.lists(st.tuples(st.integers(0, 6), times), max_size=60)):
        set_due(heap, page, time)
        due[page] = time
        assert first_due(heap) == min(due)
        waiting = [page for page in range(7) if due[page] < np.inf]
        assert sorted(heap.entries[: heap.size[0]].tolist()) == waiting
        if waiting:
            assert heap.entries[0] == min((due[page], page) for page in waiting)[1]
        for place, page in enumerate(heap.entries[: heap.size[0]]):
            assert heap.place[page] == place


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": np.ones(3)}, r"threshold must have shape \(2,\), got \(3,\)"),
        ({"threshold": np.array([1.0, np.nan])}, r"threshold must lie in \[0, inf\], got nan"),
        ({"threshold": np.array([1.0, 0.0])}, r"threshold must be > .* differ in time, got 0\.0"),
        ({"threshold": np.array([1.0, 1e-18])}, "threshold must be > .* differ in time, got 1e-18"),
        ({"signal_weight": np.ones((2, 2))}, r"signal_weight must have shape \(1, 2\)"),
        ({"signal_weight": np.array([[1.0, -1.0]])}, r"signal_weight must lie in .* got -1\.0"),
        ({"later_share": np.array([0.0, 1.5])}, r"later_share must lie in \[0, 1\]"),
        ({"later_threshold": np.array([1.0, 0.5])}, "later_threshold must be >= threshold"),
    ],
)
def test_what_is_no_rule_is_refused(changes, message):
    rule = rule_of([1.0, 1.0], 0.0)._replace(**changes)
    with pytest.raises(ValueError, match=message):
        play_form(CompiledThresholds((rule,), 0), still(), 3.0)
