"""An index learned from outcomes of crawls: kernels, targets, fits, a small run, bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from scipy import integrate

import agents
from agents.index import (
    LearnedIndex,
    StoredIndex,
    fitting,
    learning,
    load_index,
)
from agents.index.arguments import IndexArguments
from agents.index.crossing import crossing_integral, crossing_integrals
from agents.index.inputs import FLOOR, INPUTS, number_of_weights
from agents.index.kernels import BASES, LEVELS, NUM_BASES, NUM_LEVELS
from agents.index.policy import FEATURES
from agents.index.training import explore, learn_index
from crawl_envs import instances
from crawl_envs.evaluation import play, simulate
from crawl_envs.types import Problem
from policies import bind
from policies.live.scheduler import CrawlScheduler

HIDDEN = 3
PROBLEM = instances.make("noisy", num_pages=30, bandwidth=12.0, seed=3).problem()


def random_index(seed: int = 0) -> StoredIndex:
    """An index whose every weight matters."""
    count = number_of_weights(HIDDEN)
    free = np.random.default_rng(seed).normal(0.0, 0.7, count)
    return StoredIndex(free)


def naive_weights(free: list[float], inputs: list[float], outputs: int) -> list[float]:
    """Positive weights of a page, and what is left of ``free``, number by number."""
    numbers = list(free)

    def layer(values: list[float], width: int) -> list[float]:
        rows = [[numbers.pop(0) for _ in range(width)] for _ in values]
        bias = [numbers.pop(0) for _ in range(width)]
        sums = [sum(v * row[k] for v, row in zip(values, rows, strict=True)) for k in range(width)]
        return [total + start for total, start in zip(sums, bias, strict=True)]

    first = [math.tanh(z) for z in layer(inputs, HIDDEN)]
    second = [math.tanh(z) for z in layer(first, HIDDEN)]
    return [math.exp(z) for z in layer(second, outputs)]


def naive_level(
    weights: list[float], age: float, signals: float, unsignalled: float = 1.0
) -> float:
    """The staleness of a page; ``signals`` is their evidence."""
    bases = (
        unsignalled * age,
        age**2 / (1 + age),
        age / (0.2 + age),
        signals,
        signals / (1 + signals),
    )
    return 1.0 - math.exp(-sum(a * b for a, b in zip(weights, bases, strict=True)))


def naive_value(weights: list[float], stale: float) -> float:
    """The value of a crawl at a staleness."""
    x = -math.log(1.0 - stale)
    levels = [1 - (1 + x) * math.exp(-x), stale]
    levels += [stale**2 / (stale + bend) for bend in (0.01, 0.03, 0.1, 0.3)]
    levels += [max(stale - knot, 0.0) for knot in (0.3, 0.5, 0.7, 0.85)]
    return sum(c * h for c, h in zip(weights, levels, strict=True))


def naive_inputs(page: int) -> list[float]:
    change, recall = PROBLEM.change_rate[page], PROBLEM.recall[page]
    false = PROBLEM.false_signal_rate[page]
    rates = 1 - recall, recall, false / change
    precision = recall * change / (recall * change + false)
    return [*(math.log(FLOOR + rate) for rate in rates), recall, precision]


def test_values_are_what_their_twin_computes():
    index, rng = random_index(), np.random.default_rng(5)
    form = load_form(index)
    size = (len(INPUTS) + 1 + HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * NUM_BASES
    for page in range(30):
        elapsed, signals = rng.exponential(2.0), float(rng.integers(0, 6))
        rate, given = PROBLEM.change_rate[page], naive_inputs(page)
        bases = naive_weights(list(index.weights[:size]), given, NUM_BASES)
        levels = naive_weights(list(index.weights[size:]), given, NUM_LEVELS)
        recall, false = PROBLEM.recall[page], PROBLEM.false_signal_rate[page]
        signals *= min(math.log(1.0 + recall * rate / false), 8.0)
        expected = naive_value(
            levels, naive_level(bases, elapsed * rate, signals, max(1.0 - recall, 0.01))
        )
        value = form.value(form.parameters, page, elapsed, signals)
        assert value == pytest.approx(PROBLEM.importance[page] / rate * expected, rel=1e-10)


def test_pages_are_valued_by_their_own_parameters():
    policy = LearnedIndex(index=random_index())
    given = {name: getattr(PROBLEM, name) for name in FEATURES[3:]}
    few = Problem(3, math.nan, **{name: values[4:7] for name, values in given.items()})
    few = replace(few, change_rate=np.append(few.change_rate[:2], 0.0))
    table = policy.compile(few, 0, np.random.default_rng(0)).parameters
    np.testing.assert_allclose(table[:2], load_form(random_index()).parameters[4:6], rtol=1e-12)
    form = policy.compile(few, 0, np.random.default_rng(0))
    assert form.value(form.parameters, 2, 9.0, 1.0) == 0.0


def test_a_scheduler_takes_it():
    policy = LearnedIndex(index=random_index())
    scheduler = CrawlScheduler(policy, bandwidth=30.0, new_share=1.0)
    given = {name: getattr(PROBLEM, name) for name in FEATURES[3:]}
    scheduler.add(range(20), **{name: values[:20] for name, values in given.items()})
    scheduler.add(range(20, 30), **{name: values[20:] for name, values in given.items()})
    fetched = [scheduler.next(1.0 + k / 30.0).id for k in range(30)]
    assert sorted(fetched) == list(range(30))
    scheduler.report(fetched, 2.0, changed=[False] * 30)
    form = load_form(random_index())
    values = [form.value(form.parameters, page, 3.0, 0.0) for page in range(30)]
    assert scheduler.next(5.0).id == int(np.argmax(values))


def load_form(index: StoredIndex):
    policy = LearnedIndex(index=index)
    return policy.compile(PROBLEM, 0, np.random.default_rng(0))


def test_values_rise_between_crawls():
    form = load_form(random_index(7))
    times = np.linspace(0.0, 30.0, 60)
    for page in range(0, 30, 5):
        rows = np.array(
            [[form.value(form.parameters, page, t, float(n)) for t in times] for n in range(5)]
        )
        assert np.all(np.diff(rows, axis=0) >= 0.0)
        assert np.all(np.diff(rows, axis=1) >= 0.0)


# Targets


def some_table(rng: np.random.Generator, pages: int = 1) -> np.ndarray:
    table = np.zeros((pages, LEVELS + NUM_LEVELS))
    table[:, :BASES] = 1.0, 0.8, 0.6
    table[:, BASES:LEVELS] = rng.exponential(0.3, (pages, NUM_BASES))
    return table


@pytest.mark.parametrize("seed", range(12))
def test_targets_are_integrals_up_to_the_crossing(seed):
    rng = np.random.default_rng(seed)
    table = some_table(rng)
    ages, window = np.sort(rng.uniform(0.0, 6.0, rng.integers(0, 5))), 5.0
    evidences = rng.exponential(0.7, ages.size)
    level = rng.uniform(0.05, 0.95)
    weights = table[0, BASES:LEVELS].tolist()

    def short(t: float) -> float:
        return max(level - naive_level(weights, 0.8 * t, evidences[ages <= t].sum(), 0.6), 0.0)

    grid = np.linspace(0.0, window, 20_001)
    brute = integrate.trapezoid([short(t) for t in grid], grid)
    found = crossing_integral(table, 0, ages, evidences, level, window)
    assert found == pytest.approx(brute, rel=1e-3, abs=3e-4)


def test_paths_begin_at_crawls_and_see_later_signals_of_their_page():
    rng = np.random.default_rng(1)
    table = some_table(rng, 3)
    signals = [np.sort(rng.uniform(0.0, 9.0, size)) for size in (4, 0, 6)]
    first = np.cumsum([0, *(each.size for each in signals)])
    page, start = np.array([2, 0, 1, 2]), np.array([0.5, 3.0, 1.0, 8.5])
    level = np.array([0.7, 0.4, 0.5, 0.9])
    evidences = [rng.exponential(0.7, each.size) for each in signals]
    joined = np.concatenate(signals), np.concatenate(evidences)
    found = crossing_integrals(table, page, start, level, 9.0, first, *joined)
    for k in range(4):
        own = signals[page[k]]
        later = own > start[k]
        given = own[later] - start[k], evidences[page[k]][later], level[k], 9.0 - start[k]
        assert found[k] == crossing_integral(table, page[k], *given)


def test_the_value_of_pages_without_signals_is_the_formula():
    """With x = Delta t, the integral up to level D is (1 - (1 + x) exp(-x)) / Delta."""
    table, rate = np.zeros((1, LEVELS + NUM_LEVELS)), 0.7
    table[0, 1:BASES], table[0, BASES] = 1.0, rate
    for x in (0.2, 1.0, 3.0):
        found = crossing_integral(table, 0, *np.empty((2, 0)), -math.expm1(-x), 100.0)
        assert found == pytest.approx((1 - (1 + x) * math.exp(-x)) / rate, rel=1e-3)


# Exploration and fits


def small(**changes) -> IndexArguments:
    few = {"num_pages": 8, "bandwidth": 8.0, "crawls": 4000, "hidden": 4, "validation_episodes": 2}
    return IndexArguments(**{**few, **changes})


def test_a_record_has_the_signals_and_times_between_crawls():
    record = explore(small(), 0).record
    last = np.zeros(8)
    for k in range(record.page.size):
        page = record.page[k]
        assert record.time[k] - record.elapsed[k] == pytest.approx(last[page])
        since = (record.signal_page == page) & (record.signal_time > last[page])
        assert record.signals[0, k] == np.sum(since & (record.signal_time <= record.time[k]))
        last[page] = record.time[k]
    assert 0 < record.changed.sum() < record.page.size == 24 * 8 - 1


@pytest.mark.parametrize("kind", [fitting.LOG_LOSS, fitting.EXPONENTIAL])
def test_gradients_are_differences_of_the_loss(kind):
    rng = np.random.default_rng(3)
    layers = [each.astype(float) for each in fitting.start_layers(3, 4, (0.1, -0.4), rng)]
    inputs, functions = rng.normal(0.0, 1.0, (9, 3)), rng.exponential(1.0, (9, 2))
    target = (rng.random(9) < 0.5).astype(float) if kind is fitting.LOG_LOSS else (
        rng.exponential(1.0, 9)
    )  # fmt: skip

    def loss() -> float:
        first, bias, second, bias_2, last, bias_3 = layers
        high = np.tanh(np.tanh(inputs @ first + bias) @ second + bias_2)
        total = (np.exp(high @ last + bias_3) * functions).sum(axis=1)
        if kind is fitting.LOG_LOSS:
            return float(np.mean(np.where(target > 0.5, -np.log(-np.expm1(-total)), total)))
        return float(np.mean(np.log(total) + target / total))

    examples = fitting.Examples(inputs, np.arange(9), functions, target)
    assert kind.mean(layers, examples) == pytest.approx(loss(), rel=1e-12)
    found = fitting.gradient(layers, inputs, functions, target, kind.slope)
    for layer, slopes in zip(layers, found, strict=True):
        for place in np.ndindex(layer.shape):
            layer[place] += 1e-6
            above = loss()
            layer[place] -= 2e-6
            below = loss()
            layer[place] += 1e-6
            assert slopes[place] == pytest.approx((above - below) / 2e-6, rel=2e-3, abs=1e-6)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(learning, "STEPS", 40)


def test_a_small_run_end_to_end(tmp_path, quick):
    index = learn_index(small(), tmp_path / "one")
    again = learn_index(small(), tmp_path / "two")
    assert index.to_json() == again.to_json()
    assert learn_index(small(), tmp_path / "one").to_json() == index.to_json()
    assert learn_index(small(seed=1), tmp_path / "three").to_json() != index.to_json()
    rows = (tmp_path / "one" / "curve.csv").read_text().splitlines()
    assert len(rows) == 2 + learning.VALUE_ROUNDS
    env = gymnasium.make("CrawlNCIS-v0", num_pages=12, bandwidth=6.0, horizon=5.0)
    agent = agents.load(tmp_path / "one", env)
    observation, _ = env.reset(seed=0)
    page, _ = agent.predict(observation, deterministic=True)
    assert 0 <= page < 12
    instance = instances.make("noisy", num_pages=20, bandwidth=10.0, seed=4)
    compiled = simulate(instance, load_index(tmp_path / "one"), horizon=10.0, seed=4)
    assert np.unique(compiled.crawls).size > 10


def test_compiled_play_is_that_of_the_steps():
    env = gymnasium.make("CrawlNCIS-v0", num_pages=9, bandwidth=5.0, horizon=8.0, instance="noisy")
    env.reset(seed=2)
    policy = bind(LearnedIndex(index=random_index(4)), env)
    assert play(env, policy, 2) == play(env, policy, 2, compiled=False)


# Bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"crawls": 0}, "crawls must be an integer >= 1, got 0"),
        ({"hidden": 1.5}, "hidden must be an integer >= 1, got 1.5"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and > 0"),
        ({"instance": "unheard"}, "unheard"),
        ({"bandwidth_spread": 0.5}, "bandwidth_spread must be finite and >= 1"),
    ],
)
def test_bad_arguments(changes, words):
    with pytest.raises(ValueError, match=words):
        small(**changes)


def test_a_folder_with_another_index_is_kept(tmp_path, quick):
    random_index().save(tmp_path)
    with pytest.raises(ValueError, match="as in the run to resume"):
        learn_index(small(), tmp_path)
    assert StoredIndex.read(tmp_path).to_json() == random_index().to_json()


def test_a_damaged_index_is_refused(tmp_path):
    random_index().save(tmp_path)
    values = json.loads((tmp_path / "index.json").read_text())
    for change, words in (
        ({"weights": values["weights"][:-1]}, "two networks of 5 inputs"),
        ({"inputs": ["recall"]}, "inputs must be log_uns"),
        ({"weights": [math.nan] * len(values["weights"])}, "finite"),
    ):
        (tmp_path / "index.json").write_text(json.dumps({**values, **change}))
        with pytest.raises(ValueError, match=words):
            StoredIndex.read(tmp_path)
