"""Corrected beliefs: their inputs, crawls, bounds and files."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import agents
import crawl_envs
import policies
from agents.evolution import LearnedIndex, StoredIndex, load_index, read_index, save_index
from agents.evolution.belief import kernels
from agents.evolution.belief.inputs import INPUTS
from agents.evolution.corrected_belief import CorrectedBelief, initial_correction, spread
from agents.evolution.network import forward
from agents.evolution.outcomes import inputs as outcomes
from agents.evolution.policy import FEATURES
from crawl_envs.evaluation import play, simulate
from crawl_envs.instances import STRESS
from policies.ncis.belief.kernels import read_page
from policies.ncis.belief.policy import places_of
from tests.agents.evolution.belief_twin import Twin
from tests.agents.evolution.network_twin import naive_network, number_of_weights, weights_of

SMALL = {"num_pages": 20, "bandwidth": 20.0, "horizon": 5.0}
OUTCOME_WEIGHTS = np.zeros(outcomes.number_of_weights(len(outcomes.INPUTS), 1))


def env_of(setting: str, seed: int = 3, **changes):
    env = gymnasium.make("CrawlNCIS-v0", **{**STRESS[setting], **SMALL, **changes})
    env.reset(seed=seed)
    return env


def random_index(seed: int = 0, hidden: int = 5, size: float = 0.6, **changes) -> StoredIndex:
    rng = np.random.default_rng(seed)
    free = rng.normal(0.0, size, number_of_weights(len(INPUTS), hidden))
    return StoredIndex(free, "BeliefNCIS", **changes)


def zero_index(hidden: int = 4) -> StoredIndex:
    return StoredIndex(
        initial_correction(hidden, len(INPUTS), np.random.default_rng(0)), "BeliefNCIS"
    )


def inputs_of(policy):
    """The inputs of all pages at the decision at hand, (K, m), and their values."""
    tracker = policy._follow(0)
    memory = policy.learner.memory
    count = tracker.elapsed.size
    values, believed = np.empty(count), np.empty((3, count))
    features = np.zeros((len(INPUTS), count))
    kernels.value_all(tuple(memory), tracker.time, tracker.elapsed, tracker.alive, values, believed)
    kernels.describe(
        tuple(memory), tracker.time, tracker.elapsed, np.arange(count), believed, features
    )
    return features, values


@pytest.mark.parametrize(
    ("setting", "day"),
    [
        ("bursty", None),
        ("periodic", 1.0),
        ("unknown delay", 0.4),
        ("deploys", None),
        ("shifting habits", None),
        ("cold start", None),
    ],
)
def test_inputs_are_what_their_twin_computes(setting, day):
    env = env_of(setting)
    policy, twin = CorrectedBelief(env, index=random_index(day=day)), Twin(env, day)
    observation, over = env.reset(seed=3)[0], False
    step = 0
    while not over:
        action, _ = policy.predict(observation)
        twin.follow()
        if step % 7 == 0:
            features, _ = inputs_of(policy)
            expected = np.array([twin.inputs(page) for page in range(20)]).T
            np.testing.assert_allclose(features, expected, rtol=1e-6, atol=1e-6)
            assert np.abs(features).max() < 6.0
        observation, _, _, over, _ = env.step(action)
        step += 1
    assert step == 100
    assert any(crawl.changed for crawl in twin.crawls)
    assert twin.signals or twin.broadcasts


@pytest.mark.parametrize("setting", list(STRESS))
def test_crawls_are_those_of_the_step_loop(setting):
    env = env_of(setting, seed=4)
    policy = CorrectedBelief(env, index=random_index(1, day=1.0))
    compiled = play(env, policy, 4)
    stepped = play(env, CorrectedBelief(env, index=random_index(1, day=1.0)), 4, compiled=False)
    assert compiled.freshness == stepped.freshness
    assert compiled.freshness != play(env, policies.BeliefNCIS(env), 4).freshness


@pytest.mark.parametrize("setting", list(STRESS))
def test_a_network_without_output_crawls_as_the_belief_does(setting):
    env = env_of(setting, seed=5)
    corrected, belief = CorrectedBelief(env, index=zero_index()), policies.BeliefNCIS(env)
    observation, over = env.reset(seed=5)[0], False
    while not over:
        np.testing.assert_array_equal(corrected.scores(), belief.scores())
        action, _ = corrected.predict(observation)
        assert action == belief.predict(observation)[0]
        observation, _, _, over, _ = env.step(action)


@pytest.mark.parametrize("size", [0.5, 50.0])
@pytest.mark.parametrize("setting", ["periodic", "deploys"])
def test_factors_are_bounded_and_all_that_could_be_first_is_corrected(setting, size):
    env = env_of(setting, seed=6)
    index = random_index(2, size=size, day=1.0)
    corrected = CorrectedBelief(env, index=index)
    observation, over = env.reset(seed=6)[0], False
    while not over:
        action, _ = corrected.predict(observation)
        features, values = inputs_of(corrected)
        scores = corrected.scores()
        factors = scores[values > 0.0] / values[values > 0.0]
        assert np.all(factors >= 1.0 / 3.0 - 1e-12)
        assert np.all(factors <= 3.0 + 1e-12)
        outputs = [naive_network(index.free, row) for row in features.T]
        everywhere = values * np.exp(np.log(3.0) * np.tanh(np.array(outputs) / np.log(3.0)))
        left = values < values.max() / 9.0
        np.testing.assert_allclose(scores[~left], everywhere[~left], rtol=1e-9)
        np.testing.assert_array_equal(scores[left], values[left])
        assert everywhere[int(action)] >= everywhere.max() * (1.0 - 1e-9)
        observation, _, _, over, _ = env.step(action)


def test_reading_a_page_without_groups_is_reading_any_page():
    env = env_of("bursty", num_pages=60)
    policy = CorrectedBelief(env, index=random_index())
    observation, _ = env.reset(seed=1)
    for _ in range(60):
        observation, *_ = env.step(policy.predict(observation)[0])
    tracker = policy._follow(0)
    memory = policy.learner.memory
    at, floor = places_of(policy.core.problem), memory.shared[4]
    weights = np.empty(at.channels)
    columns = at.channels, at.believed, at.signals, at.rate
    seen = 0.0
    for page, row in enumerate(memory.pages):
        elapsed = tracker.elapsed[page]
        read = read_page(row, memory.groups[0], memory.shared, at, tracker.time, elapsed, weights)
        assert kernels.read_alone(row, elapsed, *columns, floor) == read
        seen += weights[0]
    assert seen > 0.0


def test_one_network_serves_any_number_of_pages_and_sources():
    instance = crawl_envs.instances.make("noisy", num_pages=300, bandwidth=300.0, seed=1)
    two = crawl_envs.Instance(
        instance.importance,
        instance.change_rate,
        np.stack([0.5 * instance.recall, 0.5 * instance.recall]),
        np.stack([instance.false_signal_rate] * 2),
        bandwidth=300.0,
    )
    for truth in (instance, two):
        env = gymnasium.make("CrawlNCIS-v0", num_pages=300, bandwidth=300.0)
        rollout = simulate(truth, CorrectedBelief(env, index=random_index(3)), 2.0, 1)
        assert rollout.crawls.size == 600
        assert len(set(rollout.crawls.tolist())) > 30


def test_files_bring_a_correction_back(tmp_path):
    index = random_index(4, made={"seed": 4}, day=0.5)
    save_index(tmp_path, index)
    again = read_index(tmp_path)
    np.testing.assert_array_equal(again.free, index.free)
    assert (again.base, again.made, again.day) == ("BeliefNCIS", {"seed": 4}, 0.5)
    assert again.inputs == INPUTS
    env = env_of("periodic")
    first, *others = (
        play(env, policy, 3).freshness
        for policy in (
            CorrectedBelief(env, index=index),
            load_index(tmp_path, env),
            agents.load(tmp_path, env),
        )
    )
    assert others == [first, first]


def test_bad_input(tmp_path):
    env = env_of("bursty")
    with pytest.raises(ValueError, match="index must have the base BeliefNCIS, got 'outcomes'"):
        CorrectedBelief(env, index=StoredIndex(OUTCOME_WEIGHTS, "outcomes"))
    with pytest.raises(ValueError, match="index must have another base than BeliefNCIS"):
        LearnedIndex(features=FEATURES, index=random_index())
    with pytest.raises(ValueError, match=r"weights must be .* K = 33 inputs"):
        StoredIndex(np.zeros(3), "BeliefNCIS")
    for day in (0.0, float("nan")):
        with pytest.raises(ValueError, match="day must be None, or finite and > 0"):
            random_index(day=day)
    with pytest.raises(ValueError, match="day must be None, or finite and > 0 with base"):
        StoredIndex(OUTCOME_WEIGHTS, "outcomes", day=1.0)
    save_index(tmp_path, random_index())
    with pytest.raises(ValueError, match="env must be a crawl environment"):
        agents.load(tmp_path)
    path = tmp_path / "index.json"
    path.write_text(path.read_text().replace('"echo"', '"eggo"'))
    with pytest.raises(ValueError, match="must have the inputs fresh, evidence"):
        read_index(tmp_path)


def test_a_network_that_sees_some_inputs_has_no_weights_for_others():
    seen = (INPUTS[0], INPUTS[6], INPUTS[-1])
    hidden, rng = 3, np.random.default_rng(8)
    index = StoredIndex(rng.normal(size=hidden * 5 + 3), "BeliefNCIS", inputs=seen)
    rows = rng.normal(size=(len(INPUTS), 40))
    out = np.empty(40)
    forward(weights_of(spread(index), len(INPUTS)), rows, out)
    few = rows[[0, 6, len(INPUTS) - 1]]
    expected = [naive_network(index.free, column) for column in few.T]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=r"must have the inputs fresh, .* got last_changed, fresh"):
        StoredIndex(np.zeros(8), "BeliefNCIS", inputs=("last_changed", "fresh"))
    with pytest.raises(ValueError, match=r"must have the inputs log_unsignalled.* all of them"):
        StoredIndex(OUTCOME_WEIGHTS, "outcomes", inputs=("recall",))


@pytest.mark.parametrize("signals", ["both", "mentions"])
def test_pages_that_are_born_and_die(signals):
    env = gymnasium.make("CrawlTrace-v0", days_per_crawl=90.0, signals=signals, reveal="importance")
    env.reset(seed=0)
    index = random_index(7)
    compiled = play(env, CorrectedBelief(env, index=index), 0)
    stepped = play(env, CorrectedBelief(env, index=index), 0, compiled=False)
    belief = play(env, policies.BeliefNCIS(env), 0)
    zero = play(env, CorrectedBelief(env, index=zero_index()), 0)
    assert compiled.freshness == stepped.freshness
    assert zero.freshness == belief.freshness != compiled.freshness
