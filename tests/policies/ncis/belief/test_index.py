"""Where everything is known, the index is that of the papers."""

import numpy as np
import pytest

import policies
from crawl_envs.compiled.compiling import ready
from policies import values
from policies.ncis.belief import kernels, layout
from tests.policies.ncis.belief.logs import BANDWIDTH, PAGES, Learner, instance

ALIVE = np.ones(PAGES, bool)


def certain(truth, memory=1e15, **changed_scales):
    """A learner with revealed parameters, certain priors, no floor of rates, and no stops."""
    learner = Learner(truth.problem("parameters"), memory=memory)
    at, known = learner.at, learner.memory
    for column, value in changed_scales.items():
        known.pages[:, at.scale + int(column.removeprefix("kind"))] = value
    known.groups[:, : 2 * at.kinds] = 1e12
    known.shared[layout.FLOOR] = 0.0
    known.shared[layout.PRIOR_ACTIVE] = np.inf
    known.shared[layout.DUE] = np.inf
    kernels.renew(known.pages, known.groups, known.shared, known.group)
    return learner


def test_without_signals_it_is_greedy():
    truth = instance(grouped=False, recall=0.0, false_signal_rate=0.0)
    learner = certain(truth, kind2=0.0)
    elapsed = np.geomspace(0.01, 10.0, PAGES)
    expected = values.greedy(elapsed, importance=truth.importance, change_rate=truth.change_rate)
    np.testing.assert_allclose(learner.scores(10.0, elapsed, ALIVE), expected, rtol=1e-9)


def greedy_ncis(truth, elapsed, counts):
    """Values by the compiled form of GREEDY-NCIS."""
    form = policies.GreedyNCIS().compile(truth.problem(), 0, np.random.default_rng(0))
    value = ready(form.value)
    return [value(form.parameters, k, elapsed[k], float(counts[k])) for k in range(PAGES)]


@pytest.mark.parametrize("grouped", [False, True])
def test_where_all_is_signalled_it_is_greedy_ncis(grouped):
    truth = instance(grouped=grouped, recall=1.0)
    learner = certain(truth, kind0=0.0, **({"kind5": 0.0} if grouped else {}))
    counts = np.arange(PAGES)
    learner.on_signal(
        [(k, 0.1 + 0.01 * k + 1e-4 * n, 0) for k in range(PAGES) for n in range(counts[k])]
    )
    elapsed = np.linspace(0.2, 3.0, PAGES)
    expected = greedy_ncis(truth, elapsed, counts)
    precision = truth.change_rate / (truth.change_rate + truth.false_signal_rate)
    by_hand = 1.0 - (1.0 + counts * precision) * (1.0 - precision) ** counts
    by_hand *= truth.importance / truth.change_rate
    np.testing.assert_allclose(expected, by_hand, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.scores(3.0, elapsed, ALIVE), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("recall", [0.2, 0.5, 0.8])
def test_before_a_signal_it_is_greedy_ncis(recall):
    """As long as a signal would leave no page as fresh as it is now: alpha tau < b."""
    truth = instance(grouped=False, recall=recall)
    learner = certain(truth)
    evidence = learner.memory.pages[:, learner.at.believed + 1]
    alpha = learner.memory.pages[:, learner.at.believed]
    for share in (0.05, 0.5, 0.95):
        elapsed = share * evidence / alpha
        expected = greedy_ncis(truth, elapsed, np.zeros(PAGES))
        np.testing.assert_allclose(learner.scores(9.0, elapsed, ALIVE), expected, rtol=1e-7)


@pytest.mark.parametrize("recall", [0.2, 0.5, 0.8])
def test_after_signals_it_is_near_greedy_ncis(recall):
    """The largest error of twelve pages, of precisions .08 to .84, is 4.2% of mu / Delta."""
    truth = instance(grouped=False, recall=recall)
    counts = 1 + np.arange(PAGES) % 3
    learner = certain(truth)
    learner.on_signal([(k, 0.01 * n, 0) for k in range(PAGES) for n in range(counts[k])])
    elapsed = np.linspace(0.2, 3.0, PAGES)
    expected = np.array(greedy_ncis(truth, elapsed, counts))
    top = truth.importance / truth.change_rate
    error = (learner.scores(3.0, elapsed, ALIVE) - expected) / top
    assert np.abs(error).max() < 0.05


def test_two_sources_of_equal_precision_are_one():
    rate = np.linspace(0.3, 1.5, PAGES)
    shares = np.repeat([[0.7], [0.3]], PAGES, axis=1)
    two = instance(2, False, change_rate=rate, recall=shares,
                   false_signal_rate=shares * 0.8)  # fmt: skip
    one = instance(1, False, change_rate=rate, recall=1.0, false_signal_rate=0.8)
    learner = certain(two, kind0=0.0)
    learner.on_signal([(k, 0.1 * n, n % 2) for n in range(4) for k in range(n, PAGES)])
    counts = np.minimum(np.arange(PAGES) + 1, 4)
    elapsed = np.ones(PAGES)
    expected = greedy_ncis(one, elapsed, counts)
    np.testing.assert_allclose(learner.scores(1.0, elapsed, ALIVE), expected, rtol=1e-9)


def test_one_who_is_certain_learns_nothing():
    truth = instance(grouped=False)
    learner, fresh = certain(truth), certain(truth)
    rng = np.random.default_rng(4)
    for page in rng.integers(0, PAGES, 400):
        learner.on_signal([(int(page), 0.1, 0)])
        learner.learn(int(page), float(rng.exponential()), bool(rng.random() < 0.7))
    elapsed = np.linspace(0.1, 2.0, PAGES)
    result, expected = (each.scores(2.0, elapsed, ALIVE) for each in (learner, fresh))
    np.testing.assert_allclose(result, expected, rtol=1e-8)


def test_the_floor_is_a_twentieth_of_a_change_per_interval():
    learner = Learner(instance().problem("importance"))
    assert learner.memory.shared[layout.FLOOR] == pytest.approx(0.05 * BANDWIDTH / PAGES)
