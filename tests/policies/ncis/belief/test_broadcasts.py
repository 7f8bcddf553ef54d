"""Broadcasts by hand: detection, weights, and old ones."""

import math

import numpy as np
import pytest

from policies.ncis.belief import broadcasts, kernels, layout
from policies.ncis.belief.policy import CLASS_PRIOR
from tests.policies.ncis.belief.logs import GROUP, PAGES, Learner, instance, naive_of

FIRST, SECOND, THIRD = (np.flatnonzero(number == GROUP).tolist() for number in range(3))
FOREVER = 1e12


def make_learner(sources=1, **arguments):
    given = {"memory": FOREVER, "pace_memory": 2.0} | arguments
    return Learner(instance(sources).problem("importance"), **given)


def signal_weights(learner, page):
    """Return the weights of signals since a page's last crawl, by channel."""
    weights = np.empty(learner.at.channels)
    own = learner.memory.groups[learner.memory.group[page]]
    kernels.write_signal_weights(learner.memory.pages[page], own, learner.at, weights)
    return weights.tolist()


def everyone(pages, time, source=0):
    return [(page, time, source) for page in pages]


@pytest.mark.parametrize(
    ("touched", "size"), [(1, 0), (2, 1), (3, 1), (4, 2), (9, 2), (10, 3), (500, 3)]
)
def test_classes(touched, size):
    assert broadcasts.class_of(touched, False) == 2 * size
    assert broadcasts.class_of(touched, True) == 2 * size + 1 < layout.CLASSES


@pytest.mark.parametrize(
    ("count", "expected"), [(1, "alone"), (2, "alone"), (3, "alone"), (4, "broadcast")]
)
def test_most_pages_of_a_group(count, expected):
    learner = make_learner()
    learner.on_signal(everyone(FIRST[:count], 1.0))
    last = 1.0 if expected == "broadcast" else 0.0
    assert [signal_weights(learner, page)[2] for page in FIRST] == [last] * len(FIRST)
    assert [signal_weights(learner, page)[0] for page in FIRST[:count]] == [1.0 - last] * count
    assert signal_weights(learner, SECOND[0]) == [0.0, 0.0, 0.0]


def test_pages_that_died_do_not_count_and_those_reborn_do():
    learner = make_learner()
    for page in FIRST[3:]:
        learner.on_birth_or_death(page, False)
        learner.on_birth_or_death(page, False)  # once is enough
    learner.on_signal(everyone(FIRST[:2], 1.0))
    assert signal_weights(learner, FIRST[0]) == [0.0, 0.0, 1.0]
    for page in FIRST[3:5]:
        learner.on_birth_or_death(page, True)
    assert signal_weights(learner, FIRST[3]) == [0.0, 0.0, 0.0]  # it was not there
    learner.on_signal(everyone(FIRST[:2], 2.0))
    assert signal_weights(learner, FIRST[0]) == [1.0, 0.0, 1.0]
    learner.on_signal(everyone(FIRST[:3], 3.0))
    assert signal_weights(learner, FIRST[3]) == [0.0, 0.0, 1.0]


def test_one_signal_is_no_broadcast_even_to_a_group_of_one():
    learner = make_learner()
    learner.on_birth_or_death(THIRD[0], False)
    learner.on_signal([(THIRD[1], 1.0, 0)])
    learner.on_signal([(THIRD[1], 2.0, 0), (FIRST[0], 2.0, 0)])
    assert signal_weights(learner, THIRD[1]) == [2.0, 0.0, 0.0]


def test_signals_at_different_instants_are_not_together():
    learner = make_learner()
    learner.on_signal([(page, 1.0 + 1e-9 * page, 0) for page in FIRST])
    assert [signal_weights(learner, page) for page in FIRST] == [[1.0, 0.0, 0.0]] * len(FIRST)


def test_a_page_with_its_own_signal_is_excluded():
    learner = make_learner(2)
    learner.on_signal([(FIRST[0], 1.0, 1), *everyone(FIRST, 1.0), (SECOND[0], 1.0, 1)])
    # alone by source, beside a broadcast by source, broadcasts by source
    assert signal_weights(learner, FIRST[0]) == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert signal_weights(learner, FIRST[1]) == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert signal_weights(learner, SECOND[0]) == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    event = learner.memory.events[0]
    assert event[layout.CLASS] == broadcasts.class_of(2, True)
    learner.on_signal(everyone(FIRST, 2.0))
    assert signal_weights(learner, FIRST[0]) == [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert learner.memory.events[1, layout.CLASS] == broadcasts.class_of(1, False)
    learner.learn(FIRST[0], 1.0, True)
    assert signal_weights(learner, FIRST[0]) == [0.0] * 6


def test_weight_follows_the_changes_of_its_pages():
    learner = make_learner()
    at, page = learner.at, FIRST[0]
    learner.on_signal(everyone(FIRST, 1.0))
    event = learner.memory.events[0]
    tells = learner.memory.pages[0, at.believed + 1 + at.own]
    silent = learner.memory.pages[0, at.believed]
    learner.learn(page, 0.5, False)
    weight = 1.0 / (1.0 + tells)
    assert event[layout.WEIGHT] == pytest.approx(weight)
    assert signal_weights(learner, FIRST[1])[2] == pytest.approx(weight)
    assert signal_weights(learner, page)[2] == 0.0
    changed = 1.0 - math.exp(-silent * 0.5 - tells * weight)
    learner.learn(FIRST[1], 0.5, True)
    blamed = tells * weight / changed
    weight = (1.0 + blamed) / (1.0 + 2.0 * tells)
    assert event[layout.WEIGHT] == pytest.approx(weight)
    assert signal_weights(learner, FIRST[2])[2] == pytest.approx(weight)
    among = learner.memory.events[layout.EVENTS + broadcasts.class_of(1, False)]
    expected = tells + tells / (1.0 + tells)
    assert among[layout.CLASS_OBSERVED] == pytest.approx(blamed)
    assert among[layout.CLASS_EXPECTED] == pytest.approx(expected)
    learner.on_signal(everyone(SECOND, 2.0))
    base = (CLASS_PRIOR + blamed) / (CLASS_PRIOR + expected)
    assert learner.memory.events[1, layout.BASE] == pytest.approx(base)
    learner.on_signal([*everyone(SECOND, 3.0), *everyone(FIRST, 3.0)])
    assert learner.memory.events[2, layout.BASE] == 1.0  # of another class


def test_pages_of_a_broadcast_that_does_something_come_first():
    """Its changes to some pages of a group count for the others, and for no other group."""
    by_finding = {}
    for finding in (False, True):
        learner = make_learner()
        learner.on_signal([*everyone(FIRST, 1.0), *everyone(SECOND, 1.5)])
        for page in FIRST[:3]:
            learner.learn(page, 0.01, finding)
        by_finding[finding] = learner.scores(2.0, np.full(PAGES, 2.0), np.ones(PAGES, bool))
    importance = instance().importance
    quiet, loud = (by_finding[finding] / importance for finding in (False, True))
    assert np.all(loud[FIRST[3:]] > 1.2 * quiet[FIRST[3:]])


def test_what_broadcasts_weighed_of_late_fades():
    learner, slow = make_learner(), naive_of(instance().problem("importance"), FOREVER, 2.0)
    for each in (learner, slow):
        each.on_signal([*everyone(FIRST, 1.0), *everyone(FIRST, 1.5), *everyone(SECOND, 3.0)])
        for page in FIRST:
            each.learn(page, 1.0, False)
    elapsed = np.full(PAGES, 0.5)
    for now in (3.0, 5.0, 50.0):
        expected = [slow.score(page, now, 0.5) for page in range(PAGES)]
        scores = learner.scores(now, elapsed, np.ones(PAGES, bool))
        np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_beyond_the_ring_broadcasts_weigh_as_the_average():
    learner, slow = make_learner(), naive_of(instance().problem("importance"), FOREVER, 2.0)
    rng = np.random.default_rng(6)
    count = 2 * layout.RING
    for number in range(count):
        page, changed = int(rng.choice(FIRST[1:])), bool(rng.random() < 0.5)
        for each in (learner, slow):
            each.on_signal(everyone(FIRST, float(number)))
            each.learn(page, 0.1, changed)
    weights = [item["weight"] for item in slow.groups[0]["broadcasts"]]
    assert max(weights) > 1.5 * min(weights)
    own, kept = learner.memory.groups[0], layout.RING - 1
    for since in (1, 5, kept, kept + 1, 200, count):
        weight = broadcasts.broadcast_weight_since(own, learner.at, 0, float(count - since))
        if since <= kept:
            expected = sum(weights[count - since :])
        else:
            expected = since * np.mean(weights[-kept:])
        assert weight == pytest.approx(expected, rel=1e-9)
    assert signal_weights(learner, FIRST[0])[2] == pytest.approx(count * np.mean(weights[-kept:]))
    before = learner.memory.events[:count, layout.EXPECTED].copy()
    learner.learn(FIRST[0], 1.0, False)  # it updates the stored ones only
    moved = learner.memory.events[:count, layout.EXPECTED] > before
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(count - kept, count))


@pytest.mark.parametrize(
    ("others", "kept"), [(layout.EVENTS - 2, True), (layout.EVENTS - 1, False)]
)
def test_an_event_that_was_forgotten_learns_nothing(others, kept):
    """A crawl that lies before very many broadcasts to other groups."""
    learner = make_learner()
    learner.on_signal(everyone(FIRST, 1.0))
    learner.on_signal([signal for k in range(others) for signal in everyone(THIRD, 2.0 + k)])
    assert learner.memory.shared[layout.EVENT] == others + 1
    events = learner.memory.events.copy()
    learner.learn(FIRST[0], 1.0, False)
    np.testing.assert_array_equal(
        events[1 : layout.EVENTS], learner.memory.events[1 : layout.EVENTS]
    )
    assert (learner.memory.events[0, layout.WEIGHT] < 1.0) == kept
    assert (signal_weights(learner, FIRST[1])[2] < 1.0) == kept
