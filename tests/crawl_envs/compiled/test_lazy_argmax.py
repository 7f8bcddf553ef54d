"""The lazy argmax against the largest of all values, through any sequence of operations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.compiled.lazy_argmax import (
    ABSENT,
    TOP_PAGES,
    add,
    best_page,
    count_crawl,
    count_signal,
    kth_largest,
    lazy_at,
    lazy_table,
    new_lazy_argmax,
    remove,
)
from crawl_envs.compiled.promises import NO_PROMISES

SIGNAL, CRAWL, ADD, REMOVE, CHOOSE = range(5)


KINDS = ("saturating", "stepped", "steep", "sudden", "flat")


@compiled(VALUE.signature)
def value(parameters, page, elapsed, signals):
    """Return the value of a page, of the kind in the last column."""
    scale, rate, kind = parameters[page, 0], parameters[page, 1], parameters[page, 3]
    if kind == 0:  # concave in the end, with a limit per page
        x = rate * elapsed + parameters[page, 2] * signals
        return scale * (1.0 - math.exp(-x) * (1.0 + x))
    if kind == 1:  # jumps between whole numbers, so that many pages tie
        return math.floor(rate * elapsed) + math.floor(signals)
    if kind == 2:  # convex, negative at first, and infinite in the end
        return scale * math.exp(rate * elapsed + signals) - 2.0
    if kind == 3:  # next to nothing until a jump, near which many pages cannot sleep
        age = rate * elapsed + 0.1 * signals
        return scale * (1.0 if age > 0.2 else 1e-3 * age)
    # NaN for some pages, the same for the others until their first signal
    return math.nan if scale < 0.3 else min(signals, 1.0)


def parameters_of(rng, pages, kind):
    return np.column_stack([rng.random((pages, 3)), np.full(pages, KINDS.index(kind))])


@compiled()
def operate(table, value, operation, page, time):
    """Apply an operation; return the chosen page, or -1."""
    lazy = lazy_at(table)
    if operation == SIGNAL:
        count_signal(lazy, value, page, 1.0, time)
    elif operation == CRAWL:
        count_crawl(lazy, value, page, time)
    elif operation == ADD:
        add(lazy, value, page, time)
    elif operation == REMOVE:
        remove(lazy, page)
    elif operation == CHOOSE:
        return best_page(lazy, value, time)
    return -1


def current_value(lazy, page, age, counted):
    """Return a page's value, or the larger one that it has when it is due by a promise."""
    if lazy.promises.size and age >= lazy.promises[page, 0]:
        return 1e200 * (lazy.promises[page, 1] + lazy.promises[page, 2] * age)
    return value(lazy.parameters, page, age, counted)


def dense(lazy, time):
    """Return the page of the largest value, after evaluating all."""
    best, largest = -1, -math.inf
    elapsed, counted = (time - lazy.pages["last_crawl"]).tolist(), lazy.pages["counted"].tolist()
    for page in np.flatnonzero(lazy.pages["place"] != ABSENT).tolist():
        current = current_value(lazy, page, elapsed[page], counted[page])
        if current > largest:
            best, largest = page, current
    return best


def oversleeps(lazy, time):
    """Return the pages that sleep, but are not below their bar."""
    late = []
    for page, record in enumerate(lazy.pages):
        if record["place"] != ABSENT and lazy.wake[page] >= time:
            age = time - record["last_crawl"]
            current = current_value(lazy, page, age, record["counted"])
            bar = lazy.levels["bar"][record["level"] - 1]
            if not (current < bar or math.isnan(current)):
                late.append(page)
    return late


@pytest.fixture(scope="module", autouse=True)
def compiled_value():
    ready(value)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_pages=st.sampled_from([1, 7, 60, 400]),
    start=st.sampled_from([0.0, 2e4]),
    grows=st.booleans(),
    promised=st.sampled_from([None, 1, 3, 1000]),
)
def test_every_choice_is_a_page_of_the_largest_value(kind, seed, num_pages, start, grows, promised):
    """``promised`` is the number of different promises, None for none; some pages have none."""
    rng = np.random.default_rng(seed)
    pace, promises = 10.0 ** rng.uniform(-4, 0), NO_PROMISES
    if promised:
        some = rng.choice([rng.uniform(5.0, 500.0) * pace for _ in range(promised)], num_pages)
        due, scale = some * rng.choice([0.0, 0.5, 0.9]), 512.0 * pace
        due[rng.random(num_pages) < 0.2] = math.inf
        promises = np.stack([due, 2.0 - some / scale, np.full(num_pages, 1.0 / scale)], axis=1)
        if rng.random() < 0.5:  # by age over interval
            promises[:, 1:] = np.stack([np.ones(num_pages), 1.0 / some], axis=1)
    parameters = parameters_of(rng, num_pages + 2, kind)
    lazy = new_lazy_argmax(parameters, num_pages, start, grows, promises)
    lazy.pages["last_crawl"] = start
    table, time = lazy_table(lazy), start
    for page in range(num_pages):
        operate(table, value, ADD, page, time)
    for turn in range(300):
        time += rng.choice([0.0, pace, pace * rng.exponential(), 50.0 * pace])
        for _ in range(rng.poisson(2.0)):
            page = rng.integers(num_pages)
            operation = rng.choice([SIGNAL, SIGNAL, SIGNAL, CRAWL, REMOVE, ADD])
            present = lazy.pages["place"][page] != ABSENT
            if operation == ADD:  # with other parameters, if it is there already
                lazy.parameters[page, :3] = rng.random(3)
                if not present:
                    lazy.pages["last_crawl"][page], lazy.pages["counted"][page] = time, 0.0
            if operation in (ADD, REMOVE) or present:
                operate(table, value, operation, page, time)
        chosen = operate(table, value, CHOOSE, 0, time)
        best = dense(lazy, time)
        if best < 0:  # every value is NaN
            continue
        assert chosen == best
        assert turn % 5 or not oversleeps(lazy, time)
        if rng.random() < 0.9:
            operate(table, value, CRAWL, chosen, time)


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5) | st.just(-math.inf), max_size=60), st.integers(1, 70))
def test_kth_largest(values, k):
    expected = sorted(values, reverse=True)[k - 1] if k <= len(values) else -math.inf
    assert of_python(np.array(values, np.float64), k) == expected


@compiled()
def of_python(values, k):
    """Call the inlined function."""
    return kth_largest(values, k)


def test_most_choices_evaluate_few_pages():
    """A dense search would evaluate 20,000."""
    num_pages, rng = 20_000, np.random.default_rng(4)
    lazy = new_lazy_argmax(parameters_of(rng, num_pages, "saturating"), num_pages)
    lazy.pages["last_crawl"] = rng.uniform(-10.0, 0.0, num_pages)
    table, time = lazy_table(lazy), 0.0
    for page in range(num_pages):
        operate(table, value, ADD, page, time)
    for warm in (True, False):
        lazy.search["evaluated"] = 0
        for _ in range(40_000 if warm else 5_000):
            time += 1.0 / 2_000.0
            operate(table, value, SIGNAL, rng.integers(num_pages), time)
            operate(table, value, CRAWL, operate(table, value, CHOOSE, 0, time), time)
    assert lazy.search["evaluated"][0] / 5_000 < 5 * TOP_PAGES
