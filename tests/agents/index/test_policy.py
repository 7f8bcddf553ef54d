"""The policy of a learned index: its crawls, its files."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import agents
import policies
from agents.catalog import SHIPPED
from agents.index import LearnedIndex, StoredIndex, load_index
from agents.index.inputs import number_of_weights
from agents.index.policy import FEATURES
from crawl_envs import instances
from crawl_envs.evaluation import play, simulate
from crawl_envs.types import Instance
from policies import FromColumns, bind
from tests.worlds import stepped

HIDDEN = 5


def random_index(seed: int = 0, **changes) -> StoredIndex:
    """An index whose every weight matters."""
    count = number_of_weights(HIDDEN)
    free = np.random.default_rng(seed).normal(0.0, 0.5, count)
    return StoredIndex(free, **changes)


def compiled_values(policy: LearnedIndex, problem, elapsed, signals):
    """Values with the evidence of signals, -ln(1 - precision) each."""
    form = policy.compile(problem, 0, np.random.default_rng(0))
    precision = problem.recall * problem.change_rate
    precision /= precision + problem.false_signal_rate
    evidence = signals * np.minimum(-np.log1p(-precision), 8.0)
    states = enumerate(zip(elapsed, evidence, strict=True))
    return np.array([form.value(form.parameters, page, *state) for page, state in states])


def test_values_have_the_units_of_importance_and_time():
    rng = np.random.default_rng(5)
    elapsed, signals = rng.exponential(2.0, 40), rng.integers(0, 6, 40).astype(float)
    problem = instances.make("noisy", num_pages=40, bandwidth=16.0, seed=3).problem()
    known = {name: getattr(problem, name) for name in FEATURES[3:]}
    other = {
        "importance": 7.0 * known["importance"],
        "change_rate": known["change_rate"] / 24.0,
        "recall": known["recall"],
        "false_signal_rate": known["false_signal_rate"] / 24.0,
    }
    slow = Instance(**other, bandwidth=16.0 / 24.0).problem()
    policy = LearnedIndex(index=random_index(3))
    np.testing.assert_allclose(
        compiled_values(policy, slow, 24.0 * elapsed, signals),
        7.0 * 24.0 * compiled_values(policy, problem, elapsed, signals),
        rtol=1e-9,
    )


@pytest.mark.parametrize("name", ["uniform", "partial", "noisy", "delayed"])
def test_simulate_makes_the_crawls_of_the_step_loop(name):
    arguments = {"num_pages": 60, "bandwidth": 20.0, "instance": name}
    env = gymnasium.make("CrawlNCIS-v0", horizon=12.0, **arguments)
    policy = bind(LearnedIndex(index=random_index(4)), env)
    pages = stepped(env, policy, seed=4)
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
    policy = bind(LearnedIndex(index=random_index(6)), env)
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


def test_the_shipped_index_is_nearly_as_good_as_the_formula_on_any_number_of_pages():
    index = StoredIndex.read(SHIPPED / "noisy-index")
    assert dict(index.made) == json.loads((SHIPPED / "noisy-index" / "config.json").read_text())
    for pages, horizon, seeds in ((100, 20.0, 20), (1000, 10.0, 2)):
        arguments = {"num_pages": pages, "bandwidth": float(pages), "instance": "noisy"}
        env = gymnasium.make("CrawlNCIS-v0", horizon=horizon, **arguments)
        fresh = {"index": 0.0, "GreedyNCIS": 0.0, "GreedyCIS": 0.0}
        for seed in range(500, 500 + seeds):
            env.reset(seed=seed)
            for name in fresh:
                own = name == "index"
                policy = agents.load("noisy-index", env) if own else policies.make(name, env)
                fresh[name] += play(env, policy, seed).freshness
        assert fresh["index"] > 0.997 * fresh["GreedyNCIS"]
        assert fresh["index"] > fresh["GreedyCIS"]


def test_one_index_for_several_sources_and_other_forms_of_action():
    for name, action in (("sources", "page"), ("noisy", "scores"), ("noisy", "refresh")):
        arguments = {"num_pages": 12, "bandwidth": 4.0, "instance": name, "action": action}
        env = gymnasium.make("CrawlNCIS-v0", horizon=8.0, **arguments)
        env.reset(seed=1)
        policy = bind(LearnedIndex(index=random_index(7)), env)
        assert play(env, policy, 1, compiled=False).crawls > 0


def test_columns_alone_suffice():
    env = gymnasium.make("CrawlNCIS-v0", num_pages=12, bandwidth=8.0, instance="noisy", horizon=9.0)
    assert env.unwrapped.features == FEATURES
    observation, _ = env.reset(seed=2)
    bound = bind(LearnedIndex(index=random_index(8)), env)
    unbound = FromColumns(LearnedIndex(index=random_index(8)), FEATURES)
    pages = []
    for _ in range(70):
        action, _ = bound.predict(observation)
        assert unbound.predict(observation)[0] == action
        pages.append(int(action))
        observation, *_ = env.step(action)
    assert len(set(pages)) > 3


def test_pages_without_importance_have_value_0():
    instance = Instance([0.0, 1.0], [3.0, 1.0], 0.5, 0.5, bandwidth=2.0)
    policy = LearnedIndex(index=random_index())
    values = compiled_values(policy, instance.problem(), [9.0, 9.0], [5.0, 5.0])
    assert values[0] == 0.0 < values[1]


# Files


def test_files_bring_an_index_back(tmp_path):
    index = random_index(9, made={"seed": 9})
    index.save(tmp_path / "deep" / "folder")
    again = StoredIndex.read(tmp_path / "deep" / "folder")
    np.testing.assert_array_equal(again.weights, index.weights)
    assert again.made == {"seed": 9}
    assert again.to_json() == index.to_json()
    env = gymnasium.make("CrawlNCIS-v0", num_pages=9, instance="noisy")
    assert agents.load(tmp_path / "deep" / "folder", env).core is env.unwrapped
    assert agents.load(tmp_path / "deep" / "folder").features == FEATURES
    wide = FromColumns(load_index(tmp_path / "deep" / "folder"), (*FEATURES, "alive"))
    assert wide.features[-1] == "alive"


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
        (lambda text: "{}", "must have the format 'crawl-envs index 3'"),
        (
            lambda text: text.replace("index 3", "index 2"),
            "must have the format 'crawl-envs index 3'",
        ),
        (lambda text: text.replace('"recall"', '"colour"'), "inputs must be"),
        (lambda text: text.replace('"weights": [', '"weights": [1.0,'), "weights must be"),
        (lambda text: text.replace('"weights": [', '"weights": [NaN,'), "weights must be finite"),
        (lambda text: text.replace('"weights"', '"wights"'), "is damaged"),
        (huge_weight(1e300), r"weights must be finite and in \[-1e\+06, 1e\+06\], got 1e\+300"),
        (huge_weight(-2e6), r"weights must be finite and in .*, got -2e\+06"),
        (huge_weight(math.inf), "weights must be finite"),
        (huge_weight(10**400), "is damaged"),
    ],
)
def test_damaged_and_foreign_files(tmp_path, damage, message):
    random_index().save(tmp_path)
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
    with pytest.raises(ValueError, match="needs the columns recall"):
        FromColumns(LearnedIndex(index=random_index()), sorted({*FEATURES} - {"recall"}))
    env = gymnasium.make("CrawlNCIS-v0", num_pages=9, reveal="importance")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="LearnedIndex needs change_rate"):
        bind(LearnedIndex(index=random_index()), env).predict(observation)


def test_importing_is_light():
    code = (
        "import sys, agents.index; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_name_is_taken():
    assert "LearnedIndex" not in policies.names()
