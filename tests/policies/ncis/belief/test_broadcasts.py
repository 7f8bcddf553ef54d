"""Broadcasts by hand: what is one, what it weighs, and what becomes of it far back."""

import math

import numpy as np
import pytest

from policies.ncis.belief import broadcasts, kernels, layout
from policies.ncis.belief.policy import CLASS_PRIOR
from tests.policies.ncis.belief.logs import GROUP, PAGES, Learner, instance, naive_of

FIRST, SECOND, THIRD = (np.flatnonzero(number == GROUP).tolist() for number in range(3))
FOREVER = 1e12


def learner(sources=1, **arguments):
    given = {"memory": FOREVER, "pace_memory": 2.0} | arguments
    return Learner(instance(sources).problem("importance"), **given)


def told(found, page):
    """What was heard of a page since its last crawl, by channel."""
    heard = np.empty(found.at.channels)
    own = found.memory.groups[found.memory.group[page]]
    kernels.write_heard(found.memory.pages[page], own, found.at, heard)
    return heard.tolist()


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
    found = learner()
    found.on_signal(everyone(FIRST[:count], 1.0))
    last = 1.0 if expected == "broadcast" else 0.0
    assert [told(found, page)[2] for page in FIRST] == [last] * len(FIRST)
    assert [told(found, page)[0] for page in FIRST[:count]] == [1.0 - last] * count
    assert told(found, SECOND[0]) == [0.0, 0.0, 0.0]


def test_pages_that_died_do_not_count_and_those_reborn_do():
    found = learner()
    for page in FIRST[3:]:
        found.on_birth_or_death(page, False)
        found.on_birth_or_death(page, False)  # once is enough
    found.on_signal(everyone(FIRST[:2], 1.0))
    assert told(found, FIRST[0]) == [0.0, 0.0, 1.0]
    for page in FIRST[3:5]:
        found.on_birth_or_death(page, True)
    assert told(found, FIRST[3]) == [0.0, 0.0, 0.0]  # it was not there
    found.on_signal(everyone(FIRST[:2], 2.0))
    assert told(found, FIRST[0]) == [1.0, 0.0, 1.0]
    found.on_signal(everyone(FIRST[:3], 3.0))
    assert told(found, FIRST[3]) == [0.0, 0.0, 1.0]


def test_one_signal_is_no_broadcast_even_to_a_group_of_one():
    found = learner()
    found.on_birth_or_death(THIRD[0], False)
    found.on_signal([(THIRD[1], 1.0, 0)])
    found.on_signal([(THIRD[1], 2.0, 0), (FIRST[0], 2.0, 0)])
    assert told(found, THIRD[1]) == [2.0, 0.0, 0.0]


def test_signals_at_different_instants_are_not_together():
    found = learner()
    found.on_signal([(page, 1.0 + 1e-9 * page, 0) for page in FIRST])
    assert [told(found, page) for page in FIRST] == [[1.0, 0.0, 0.0]] * len(FIRST)


def test_a_page_told_of_by_itself_is_excused():
    found = learner(2)
    found.on_signal([(FIRST[0], 1.0, 1), *everyone(FIRST, 1.0), (SECOND[0], 1.0, 1)])
    # alone by source, beside a broadcast by source, broadcasts by source
    assert told(found, FIRST[0]) == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert told(found, FIRST[1]) == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert told(found, SECOND[0]) == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    event = found.memory.events[0]
    assert event[layout.CLASS] == broadcasts.class_of(2, True)
    found.on_signal(everyone(FIRST, 2.0))
    assert told(found, FIRST[0]) == [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert found.memory.events[1, layout.CLASS] == broadcasts.class_of(1, False)
    found.learn(FIRST[0], 1.0, True)
    assert told(found, FIRST[0]) == [0.0] * 6


def test_weight_is_that_of_what_its_pages_were_found_to_do():
    found = learner()
    at, page = found.at, FIRST[0]
    found.on_signal(everyone(FIRST, 1.0))
    event = found.memory.events[0]
    tells = found.memory.pages[0, at.believed + 1 + at.own]
    silent = found.memory.pages[0, at.believed]
    found.learn(page, 0.5, False)
    weight = 1.0 / (1.0 + tells)
    assert event[layout.WEIGHT] == pytest.approx(weight)
    assert told(found, FIRST[1])[2] == pytest.approx(weight)
    assert told(found, page)[2] == 0.0
    changed = 1.0 - math.exp(-silent * 0.5 - tells * weight)
    found.learn(FIRST[1], 0.5, True)
    blamed = tells * weight / changed
    weight = (1.0 + blamed) / (1.0 + 2.0 * tells)
    assert event[layout.WEIGHT] == pytest.approx(weight)
    assert told(found, FIRST[2])[2] == pytest.approx(weight)
    among = found.memory.events[layout.EVENTS + broadcasts.class_of(1, False)]
    expected = tells + tells / (1.0 + tells)
    assert among[layout.CLASS_FOUND] == pytest.approx(blamed)
    assert among[layout.CLASS_EXPECTED] == pytest.approx(expected)
    found.on_signal(everyone(SECOND, 2.0))
    base = (CLASS_PRIOR + blamed) / (CLASS_PRIOR + expected)
    assert found.memory.events[1, layout.BASE] == pytest.approx(base)
    found.on_signal([*everyone(SECOND, 3.0), *everyone(FIRST, 3.0)])
    assert found.memory.events[2, layout.BASE] == 1.0  # of another class


def test_pages_of_a_broadcast_that_does_something_come_first():
    """What it did to some pages of a group tells of the others, and of nobody else."""
    by_finding = {}
    for finding in (False, True):
        found = learner()
        found.on_signal([*everyone(FIRST, 1.0), *everyone(SECOND, 1.5)])
        for page in FIRST[:3]:
            found.learn(page, 0.01, finding)
        by_finding[finding] = found.scores(2.0, np.full(PAGES, 2.0), np.ones(PAGES, bool))
    importance = instance().importance
    quiet, loud = (by_finding[finding] / importance for finding in (False, True))
    assert np.all(loud[FIRST[3:]] > 1.2 * quiet[FIRST[3:]])


def test_what_broadcasts_weighed_of_late_fades():
    found, slow = learner(), naive_of(instance().problem("importance"), FOREVER, 2.0)
    for each in (found, slow):
        each.on_signal([*everyone(FIRST, 1.0), *everyone(FIRST, 1.5), *everyone(SECOND, 3.0)])
        for page in FIRST:
            each.learn(page, 1.0, False)
    elapsed = np.full(PAGES, 0.5)
    for now in (3.0, 5.0, 50.0):
        expected = [slow.score(page, now, 0.5) for page in range(PAGES)]
        found_now = found.scores(now, elapsed, np.ones(PAGES, bool))
        np.testing.assert_allclose(found_now, expected, rtol=1e-9)


def test_beyond_the_ring_broadcasts_weigh_as_the_average():
    found, slow = learner(), naive_of(instance().problem("importance"), FOREVER, 2.0)
    rng = np.random.default_rng(6)
    count = 2 * layout.RING
    for number in range(count):
        page, changed = int(rng.choice(FIRST[1:])), bool(rng.random() < 0.5)
        for each in (found, slow):
            each.on_signal(everyone(FIRST, float(number)))
            each.learn(page, 0.1, changed)
    weights = [item["weight"] for item in slow.groups[0]["broadcasts"]]
    assert max(weights) > 1.5 * min(weights)
    own, kept = found.memory.groups[0], layout.RING - 1
    for since in (1, 5, kept, kept + 1, 200, count):
        heard = broadcasts.heard_since(own, found.at, 0, float(count - since))
        if since <= kept:
            expected = sum(weights[count - since :])
        else:
            expected = since * np.mean(weights[-kept:])
        assert heard == pytest.approx(expected, rel=1e-9)
    assert told(found, FIRST[0])[2] == pytest.approx(count * np.mean(weights[-kept:]))
    before = found.memory.events[:count, layout.EXPECTED].copy()
    found.learn(FIRST[0], 1.0, False)  # it tells those that are kept, and no other
    moved = found.memory.events[:count, layout.EXPECTED] > before
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(count - kept, count))


@pytest.mark.parametrize(
    ("others", "kept"), [(layout.EVENTS - 2, True), (layout.EVENTS - 1, False)]
)
def test_an_event_that_was_forgotten_learns_nothing(others, kept):
    """A crawl that lies before very many broadcasts to other groups."""
    found = learner()
    found.on_signal(everyone(FIRST, 1.0))
    found.on_signal([signal for k in range(others) for signal in everyone(THIRD, 2.0 + k)])
    assert found.memory.shared[layout.EVENT] == others + 1
    events = found.memory.events.copy()
    found.learn(FIRST[0], 1.0, False)
    np.testing.assert_array_equal(events[1 : layout.EVENTS], found.memory.events[1 : layout.EVENTS])
    assert (found.memory.events[0, layout.WEIGHT] < 1.0) == kept
    assert (told(found, FIRST[1])[2] < 1.0) == kept
