"""The policy of a learned index: its values, its crawls, its files."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
import policies
from agents.evolution import LearnedIndex, StoredIndex, load_index, read_index, save_index
from agents.evolution.index.inputs import (
    FLOOR,
    INPUTS,
    RISING,
    SCALES,
    dynamic_inputs,
    initial_weights,
    page_scales,
    static_inputs,
    weights_of,
)
from agents.evolution.index.kernels import SHARED
from agents.evolution.network import forward, number_of_weights
from agents.evolution.policy import FEATURES
from crawl_envs import instances
from crawl_envs.evaluation import play, simulate
from crawl_envs.types import Instance
from policies.values import greedy_ncis_observed
from tests.agents.evolution.index_twins import naive_score

HIDDEN = 5


def random_index(seed: int = 0, size: float = 1.0, **changes) -> StoredIndex:
    """An index whose every weight matters."""
    rng = np.random.default_rng(seed)
    count = SCALES + number_of_weights(len(INPUTS), HIDDEN)
    return StoredIndex(**{"free": size * rng.normal(0.0, 1.0, count), **changes})


def sensible_index(seed: int = 0, base: str = "none") -> StoredIndex:
    """An index that crawls many pages: that of a start, and what learning might have changed."""
    rng = np.random.default_rng(seed)
    free = initial_weights(HIDDEN, rng, correction=base != "none")
    return StoredIndex(free + 0.2 * rng.normal(0.0, 1.0, free.size), base)


def compiled_values(policy: LearnedIndex, problem, elapsed, signals):
    form = policy.compile(problem, 0, np.random.default_rng(0))
    return np.array(
        [
            form.value(form.parameters, page, time, count)
            for page, (time, count) in enumerate(zip(elapsed, signals, strict=True))
        ]
    )


def some_states(num_pages: int):
    rng = np.random.default_rng(5)
    return rng.exponential(2.0, num_pages), rng.integers(0, 6, num_pages).astype(float)


PROBLEM = instances.make("noisy", num_pages=40, bandwidth=16.0, seed=3).problem()


def test_values_are_what_their_twin_computes():
    index, (elapsed, signals) = random_index(), some_states(40)
    values = compiled_values(
        LearnedIndex(features=FEATURES, index=index), PROBLEM, elapsed, signals
    )
    share = PROBLEM.importance / PROBLEM.importance.mean()
    scores = [
        naive_score(index.free, PROBLEM, 2.5, page, elapsed[page], signals[page])
        for page in range(40)
    ]
    np.testing.assert_allclose(values, share * np.exp(scores), rtol=1e-12)


def test_values_are_the_exponential_of_the_forward_pass():
    index, (elapsed, signals) = random_index(1), some_states(40)
    values = compiled_values(
        LearnedIndex(features=FEATURES, index=index), PROBLEM, elapsed, signals
    )
    static = static_inputs(PROBLEM, 2.5)
    scales = page_scales(static, index.weights.scales)
    features = np.vstack([static, dynamic_inputs(elapsed, signals, 2.5, scales)])
    scores = np.empty(40)
    forward(index.weights.network, features, scores)
    share = PROBLEM.importance / PROBLEM.importance.mean()
    np.testing.assert_allclose(values, share * np.exp(scores), rtol=1e-12)


def test_a_correction_multiplies_the_formula_by_a_bounded_factor():
    elapsed, signals = some_states(40)
    model = {name: getattr(PROBLEM, name) for name in FEATURES[3:]}
    formula = greedy_ncis_observed(elapsed, signals.astype(int), **model)
    index = random_index(2, size=0.6, base="GreedyNCIS")
    policy = LearnedIndex(features=FEATURES, index=index)
    scores = [
        naive_score(index.free, PROBLEM, 2.5, page, elapsed[page], signals[page])
        for page in range(40)
    ]
    factor = np.exp(np.clip(scores, -np.log(3.0), np.log(3.0)))
    assert 0 < np.sum((factor > 1 / 3) & (factor < 3)) < 40
    values = compiled_values(policy, PROBLEM, elapsed, signals)
    np.testing.assert_allclose(values, formula * factor, rtol=1e-12)


def test_a_correction_starts_near_none():
    elapsed, signals = some_states(40)
    model = {name: getattr(PROBLEM, name) for name in FEATURES[3:]}
    formula = greedy_ncis_observed(elapsed, signals.astype(int), **model)
    free = initial_weights(12, np.random.default_rng(0), correction=True)
    policy = LearnedIndex(features=FEATURES, index=StoredIndex(free, "GreedyNCIS"))
    values = compiled_values(policy, PROBLEM, elapsed, signals)
    np.testing.assert_allclose(values, formula, rtol=0.05)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.floats(0.1, 10.0),
    base=st.sampled_from(["none", "GreedyNCIS"]),
    importance=st.floats(1e-6, 1e6),
    change_rate=st.one_of(st.just(0.0), st.floats(1e-12, 1e4)),
    recall=st.floats(0.0, 1.0),
    false_signal_rate=st.just(0.0) | st.floats(1e-12, 1e4),
)
def test_values_do_not_fall_and_stay_finite(seed, size, base, **page):
    instance = Instance(bandwidth=1.0, **{name: [value, 1.0] for name, value in page.items()})
    policy = LearnedIndex(features=FEATURES, index=random_index(seed, size, base=base))
    form = policy.compile(instance.problem(), 0, np.random.default_rng(0))
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(rng.exponential(0.5, 20)), [1e9]])
    counts = np.concatenate([np.arange(10.0), [1e6]])
    values = np.array([[form.value(form.parameters, 0, t, n) for t in times] for n in counts])
    assert np.all(np.isfinite(values))
    assert np.all(values >= 0.0)
    assert np.all(np.diff(values, axis=0) >= -1e-12 * values[:-1])
    assert np.all(np.diff(values, axis=1) >= -1e-12 * values[:, :-1])


def test_inputs_have_no_unit():
    """In other units of time and of importance the index is the same."""
    index, (elapsed, signals) = random_index(3), some_states(40)
    known = {name: getattr(PROBLEM, name) for name in FEATURES[3:]}
    other = {
        "importance": 7.0 * known["importance"],
        "change_rate": known["change_rate"] / 24.0,
        "recall": known["recall"],
        "false_signal_rate": known["false_signal_rate"] / 24.0,
    }
    slow = Instance(**other, bandwidth=16.0 / 24.0).problem()
    policy = LearnedIndex(features=FEATURES, index=index)
    np.testing.assert_allclose(
        compiled_values(policy, slow, 24.0 * elapsed, signals),
        compiled_values(policy, PROBLEM, elapsed, signals),
        rtol=1e-9,
    )


@pytest.mark.parametrize("base", ["none", "GreedyNCIS"])
@pytest.mark.parametrize("name", ["uniform", "partial", "noisy", "delayed"])
def test_simulate_makes_the_crawls_of_the_step_loop(name, base):
    arguments = {"num_pages": 60, "bandwidth": 20.0, "instance": name}
    env = gymnasium.make("CrawlNCIS-v0", horizon=12.0, **arguments)
    policy = LearnedIndex(env, index=sensible_index(4, base))
    observation, _ = env.reset(seed=4)
    pages, over = [], False
    while not over:
        action, _ = policy.predict(observation)
        pages.append(int(action))
        observation, _, _, over, _ = env.step(action)
    instance = instances.make(name, num_pages=60, bandwidth=20.0, seed=4)
    rollout = simulate(instance, policy, 12.0, seed=4)
    np.testing.assert_array_equal(rollout.crawls, pages)
    assert rollout.ledger == env.unwrapped.ledger()
    assert np.unique(pages).size > 10


@pytest.mark.parametrize("num_pages", [1, 7, 300])
def test_the_lazy_search_is_exact(num_pages):
    """Against an argmax of the value over all pages, at every slot."""
    instance = instances.make("noisy", num_pages=num_pages, bandwidth=50.0, seed=9)
    env = gymnasium.make("CrawlNCIS-v0", num_pages=num_pages, bandwidth=50.0, instance="noisy")
    env.reset(seed=9)
    policy = LearnedIndex(env, index=sensible_index(6))
    for page in simulate(instance, policy, 4.0, seed=9).crawls:
        tracker = env.unwrapped.tracker()
        signals = tracker.signals.astype(float)
        values = compiled_values(policy, tracker.problem, tracker.elapsed, signals)
        assert int(np.argmax(values)) == page
        env.step(page)


def test_a_shipped_index_simulates_the_crawls_of_the_step_loop():
    """Many pages are about to rise at once here, so that bars by their values would be too low."""
    arguments = {"num_pages": 100, "bandwidth": 100.0, "instance": "noisy"}
    env = gymnasium.make("CrawlNCIS-v0", horizon=20.0, **arguments)
    instance = instances.make("noisy", num_pages=100, bandwidth=100.0, seed=2)
    observation, _ = env.reset(seed=2)
    policy, pages = agents.load("noisy-index", env), []
    for _ in range(1500):
        action, _ = policy.predict(observation)
        pages.append(int(action))
        observation, *_ = env.step(action)
    np.testing.assert_array_equal(simulate(instance, policy, 15.0, seed=2).crawls, pages)


def test_one_index_for_several_sources_and_other_forms_of_action():
    for name, action in (("sources", "page"), ("noisy", "scores"), ("noisy", "refresh")):
        arguments = {"num_pages": 12, "bandwidth": 4.0, "instance": name, "action": action}
        env = gymnasium.make("CrawlNCIS-v0", horizon=8.0, **arguments)
        env.reset(seed=1)
        policy = LearnedIndex(env, index=random_index(7))
        assert play(env, policy, 1, compiled=False).crawls > 0


def test_columns_alone_suffice_where_the_cycle_is_that_of_training():
    env = gymnasium.make("CrawlNCIS-v0", num_pages=12, bandwidth=8.0, instance="noisy", horizon=9.0)
    assert env.unwrapped.features == FEATURES
    observation, _ = env.reset(seed=2)
    index = sensible_index(8)
    bound = LearnedIndex(env, index=index)
    unbound = LearnedIndex(features=FEATURES, index=StoredIndex(index.free, cycle=1.5))
    other = LearnedIndex(features=FEATURES, index=index, cycle=1.5)
    pages = []
    for _ in range(70):
        action, _ = bound.predict(observation)
        assert unbound.predict(observation)[0] == action
        assert other.predict(observation)[0] == action
        pages.append(int(action))
        observation, *_ = env.step(action)
    assert len(set(pages)) > 3


def test_tables_have_a_row_per_page_and_those_that_pages_share():
    policy = LearnedIndex(features=FEATURES, index=random_index())
    form = policy.compile(PROBLEM, 0, np.random.default_rng(0))
    assert form.parameters.shape[0] == 40 + SHARED
    assert form.parameters.flags.c_contiguous


def test_pages_without_importance_have_value_0():
    instance = Instance([0.0, 1.0], [3.0, 1.0], 0.5, 0.5, bandwidth=2.0)
    policy = LearnedIndex(features=FEATURES, index=random_index())
    assert compiled_values(policy, instance.problem(), [9.0, 9.0], [5.0, 5.0])[0] == 0.0
    idle = Instance([0.0, 0.0], [3.0, 1.0], bandwidth=2.0)
    assert np.all(compiled_values(policy, idle.problem(), [9.0, 9.0], [5.0, 5.0]) > 0.0)


def test_the_first_index_leans_on_age_and_signals_alone():
    """A page's first index is its importance times about its age, and more after a signal."""
    free = initial_weights(12, np.random.default_rng(0))
    policy = LearnedIndex(features=FEATURES, index=StoredIndex(free))
    instance = Instance([1.0, 1.0, 1.0, 3.0], 1.0, 0.5, 0.5, bandwidth=4.0)
    values = compiled_values(policy, instance.problem(), [1.0, 2.0, 1.0, 1.0], [0, 0, 1, 0])
    assert values[1] / values[0] == pytest.approx((2.0 + FLOOR) / (1.0 + FLOOR), rel=0.5)
    assert values[2] > 1.3 * values[0]
    assert values[3] > 2.0 * values[0]


# Files


def test_files_bring_an_index_back(tmp_path):
    index = random_index(9, base="GreedyNCIS", cycle=2.5, made={"seed": 9})
    save_index(tmp_path / "deep" / "folder", index)
    again = read_index(tmp_path / "deep" / "folder")
    np.testing.assert_array_equal(again.free, index.free)
    assert (again.base, again.cycle, again.made) == ("GreedyNCIS", 2.5, {"seed": 9})
    assert again.to_json() == index.to_json()
    env = gymnasium.make("CrawlNCIS-v0", num_pages=9, instance="noisy")
    assert load_index(tmp_path / "deep" / "folder", env).core is env.unwrapped
    assert load_index(tmp_path / "deep" / "folder").features == FEATURES
    narrow = load_index(tmp_path / "deep" / "folder", features=(*FEATURES, "alive"))
    assert narrow.features[-1] == "alive"


def huge_weight(value):
    """Return what gives the first weight of a text that value."""

    def damage(text):
        values = json.loads(text)
        values["weights"][0] = value
        return json.dumps(values)

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:100], "is damaged"),
        (lambda text: "[1]", "must hold values by name"),
        (lambda text: "{}", "is not a learned index"),
        (lambda text: text.replace("index 1", "index 9"), "is not a learned index"),
        (lambda text: text.replace('"recall"', '"colour"'), "must have the inputs"),
        (lambda text: text.replace('"none"', '"Best"'), "base must be one of"),
        (lambda text: text.replace('"cycle": 1.0', '"cycle": -1.0'), "cycle must be finite"),
        (lambda text: text.replace('"weights": [', '"weights": [1.0,'), "weights must be"),
        (lambda text: text.replace('"weights": [', '"weights": [NaN,'), "weights must be finite"),
        (lambda text: text.replace('"weights"', '"wights"'), "is damaged"),
        (huge_weight(1e300), r"weights must be in \[-1e\+06, 1e\+06\], got 1e\+300"),
        (huge_weight(-2e6), r"weights must be in .*, got -2e\+06"),
        (huge_weight(math.inf), "weights must be finite"),
        (huge_weight(10**400), "is damaged"),
    ],
)
def test_damaged_and_foreign_files(tmp_path, damage, message):
    save_index(tmp_path, random_index())
    path = tmp_path / "index.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=message) as error:
        load_index(tmp_path)
    assert "index.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"there is no index\.json in"):
        load_index(tmp_path)


def test_bad_arguments():
    with pytest.raises(ValueError, match="cycle must be finite and > 0, got 0"):
        LearnedIndex(features=FEATURES, index=random_index(), cycle=0.0)
    with pytest.raises(ValueError, match="needs the columns recall"):
        LearnedIndex(features=[name for name in FEATURES if name != "recall"], index=random_index())
    env = gymnasium.make("CrawlNCIS-v0", num_pages=9, reveal="importance")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="LearnedIndex needs change_rate"):
        LearnedIndex(env, index=random_index()).predict(observation)
    with pytest.raises(ValueError, match="weights must be"):
        StoredIndex(np.zeros(SCALES))
    with pytest.raises(ValueError, match="weights must be"):
        weights_of(np.zeros(SCALES + 1))


def test_rising_inputs_are_those_that_move():
    assert [name for name, up in zip(INPUTS, RISING, strict=True) if up] == [
        "log_elapsed",
        "scaled_elapsed",
        "log_signals",
        "scaled_signals",
    ]


# Pictures


def test_importing_is_light():
    code = (
        "import sys, agents.evolution; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_name_is_taken():
    assert "LearnedIndex" not in policies.names()
    assert json.loads(random_index().to_json())["inputs"] == list(INPUTS)
