"""Agents come back from disk, and act on any number of pages."""

from __future__ import annotations

import json
import re
import shutil

import gymnasium as gym
import numpy as np
import pytest
import torch

import agents
from agents.catalog import AGENT_FILES
from agents.networks.encoder import NEVER
from agents.sb3.arguments import TrainArguments
from agents.sb3.lanes import make_lanes
from agents.sb3.loading import ENCODER, HEAD, SCORER_FORMAT, Agent, load_scorer, start_from
from agents.sb3.model_file import load_model, save_model
from agents.sb3.training import fresh_model, train
from tests.agents.weights import same_weights

SMALL = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0, "instance": "noisy"}
FORMS = {
    "page": {},
    "scores": {"action": "scores", "batch": 2},
    "refresh": {"action": "refresh"},
}
FEATURES = ("elapsed", "signals", "alive", "importance", "recall", "change_rate", "mood")


def short(**changes) -> TrainArguments:
    return TrainArguments(**{"env_args": SMALL, "steps": 600, "lanes": 8, "width": 8, **changes})


def untrained(spread: float = 1.0, **changes) -> Agent:
    """An agent that has learned nothing, but scores pages differently."""
    arguments = short(**changes)
    env = make_lanes(arguments, arguments.lanes, training=True)
    model = fresh_model(env, arguments)
    with torch.no_grad():
        for name, value in model.policy.named_parameters():
            if name.endswith("score.weight"):
                torch.nn.init.normal_(value, std=spread)
    return Agent(model, arguments)


def saved(agent: Agent, folder):
    folder.mkdir(parents=True, exist_ok=True)
    save_model(agent.model, agent.arguments, folder / "model.zip")
    return folder


def played(env_args, actions: int = 6, lanes: int = 3, seed: int = 5):
    """A vector environment in mid-episode, and what it shows."""
    env = gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=lanes, **env_args)
    observations, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    for _ in range(actions):
        observations, *_ = env.step(env.action_space.sample())
    return env, observations


def weights_of(columns: int, width: int = 8, seed: int = 0):
    rng = np.random.default_rng(seed)
    shapes = {
        "rows.weight": (width, columns),
        "rows.bias": (width,),
        "alone.weight": (width, width),
        "alone.bias": (width,),
        "all.weight": (width, width),
        "score.weight": (1, width),
        "score.bias": (1,),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_scorer(folder, weights, **about):
    """Write a file with an actor alone, as those that come with the package."""
    folder.mkdir(exist_ok=True)
    known = {"format": SCORER_FORMAT, "name": "ppo", "features": FEATURES, "draws": True}
    known |= {"action_form": "page", "num_pages": 4, "cycle": 1.0, **about}
    np.savez(folder / "scorer.npz", about=np.array(json.dumps(known)), **weights)
    return folder / "scorer.npz"


def actor_of(agent: Agent):
    """The weights of an agent's actor, by the names of a scorer."""
    state = agent.model.policy.state_dict()
    places = dict.fromkeys(ENCODER, "pi_features_extractor") | dict.fromkeys(HEAD, "mlp_extractor")
    return {name: state[f"{place}.{name}"].numpy() for name, place in places.items()}


def rows_of(pages: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 4.0, (pages, 7))
    rows[:, 2] = rng.random(pages) < 0.7
    rows[0, 2] = 1.0
    rows[:, 4] /= 4.0
    rows[:, 6] -= 2.0
    return rows.astype(np.float32)


def slow_scores(weights, rows, cycle):
    """The scorer, a page at a time, in float64."""
    alive = [row for row in rows.astype(np.float64) if row[2] > 0.5]
    time = cycle * len(alive) / len(rows)
    mean = np.mean([row[3] for row in alive])
    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def first(row):
        row = row.astype(np.float64)
        deep = [np.log1p(100.0 * x) - 3.0 for x in (row[0] / time, row[3] / mean, row[5] * time)]
        recall = np.arctanh((2.0 * row[4] - 1.0) / 1.02)
        mood = np.sign(row[6]) * np.log1p(abs(row[6]))
        scaled = [deep[0], np.log1p(row[1]), row[2], deep[1], recall, deep[2], mood]
        return np.maximum(w["rows.weight"] @ scaled + w["rows.bias"], 0.0)

    context = w["all.weight"] @ np.mean([first(row) for row in alive], axis=0)
    scores = []
    for row in rows:
        second = np.maximum(w["alone.weight"] @ first(row) + w["alone.bias"] + context, 0.0)
        score = (w["score.weight"] @ second + w["score.bias"])[0]
        scores.append(score if row[2] > 0.5 else -np.inf)
    return np.array(scores)


@pytest.mark.parametrize("pages", [1, 5, 300])
def test_the_scores_of_a_scorer_are_their_formula(pages, tmp_path):
    weights, rows = weights_of(7), rows_of(pages)
    scores = load_scorer(write_scorer(tmp_path, weights), cycle=3.0).scores(rows)
    assert scores.dtype == np.float32
    alive = rows[:, 2] > 0.5
    expected = slow_scores(weights, rows, 3.0)
    np.testing.assert_allclose(scores[alive], expected[alive], rtol=1e-4, atol=1e-4)
    assert (scores[~alive] == NEVER).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["ppo", "recurrentppo"])
def test_an_agent_acts_on_any_number_of_pages(algorithm, form, tmp_path):
    if algorithm == "recurrentppo":
        pytest.importorskip("sb3_contrib")
    agent = untrained(algorithm=algorithm, env_args={**SMALL, **FORMS[form]})
    folder = saved(agent, tmp_path)
    for pages, batch in ((1, 1), (4, 3), (7, 3), (1000, 10)):
        extra = {"batch": batch} if form == "scores" else {}
        env_args = {**SMALL, **FORMS[form], "num_pages": pages, "bandwidth": 2.0 * pages, **extra}
        env, observations = played(env_args)
        agent = agents.load(folder, env)
        for deterministic in (True, False):
            given = "kept" if algorithm == "ppo" else None
            actions, state = agent.predict(observations, given, deterministic=deterministic)
            assert algorithm == "recurrentppo" or state == given
            assert env.action_space.contains(actions)
            if form == "scores":
                assert ((actions > 0.0).sum(axis=-1) == batch).all()
            env.step(actions)
        single = gym.make("crawl_envs:CrawlNCIS-v0", **env_args)
        observation, _ = single.reset(seed=1)
        action, _ = agents.load(folder, single).predict(observation, deterministic=True)
        assert single.action_space.contains(action)
        by_cycle = agents.load(folder, cycle=0.5).predict(observation, deterministic=True)[0]
        if form != "scores":
            np.testing.assert_array_equal(by_cycle, action)
        env.close()
        single.close()


def test_an_agent_measures_time_by_the_environments_cycle(tmp_path):
    folder = saved(untrained(spread=3.0), tmp_path)
    env, observations = played({**SMALL, "num_pages": 30, "bandwidth": 30.0}, actions=20)
    same = agents.load(folder, env).predict(observations, deterministic=True)[0]
    minutes = observations.copy()
    features = list(env.unwrapped.features)
    for name, factor in (("elapsed", 60.0), ("change_rate", 1 / 60), ("false_signal_rate", 1 / 60)):
        minutes[..., features.index(name)] *= factor
    slow = {**SMALL, "num_pages": 30, "bandwidth": 0.5, "horizon": 300.0}
    other = gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=3, **slow)
    other.reset(seed=0)
    agent = agents.load(folder, other)
    hours = agents.load(folder, cycle=1.0)
    scores = hours.scores(observations)
    np.testing.assert_allclose(agent.scores(minutes), scores, rtol=1e-4, atol=1e-4)
    assert not np.allclose(hours.scores(minutes), scores, atol=0.01)
    np.testing.assert_array_equal(agent.predict(minutes, deterministic=True)[0], same)
    env.close()
    other.close()


def test_at_the_size_of_training_the_clock_counts_too(tmp_path):
    folder = saved(untrained(), tmp_path)
    env, observations = played({**SMALL, "bandwidth": 400.0})
    actions = agents.load(folder, env).predict(observations, deterministic=True)[0]
    weights = actor_of(agents.load(folder))
    expected = load_scorer(write_scorer(tmp_path, weights, features=env.unwrapped.features), env)
    np.testing.assert_array_equal(actions, expected.scores(observations).argmax(1))
    slow = load_scorer(tmp_path / "scorer.npz").scores(observations)
    assert not np.allclose(expected.scores(observations), slow, atol=0.01)
    env.close()


@pytest.mark.parametrize("pages", [4, 9])
def test_draws_follow_the_scores_at_every_size(pages):
    torch.manual_seed(3)
    agent = untrained()
    agent = Agent(agent.model, agent.arguments, cycle=1.0)
    _, observations = played({**SMALL, "num_pages": pages, "bandwidth": float(pages)}, lanes=1)
    draws, _ = agent.predict(np.repeat(observations, 20_000, axis=0))
    scores = agent.scores(observations[0]).astype(np.float64)
    chances = np.exp(scores) / np.exp(scores).sum()
    share = np.bincount(draws, minlength=pages) / len(draws)
    assert np.all(abs(share - chances) < 4.5 * np.sqrt(chances * (1.0 - chances) / len(draws)))


@pytest.mark.parametrize("pages", [4, 9])
def test_bits_are_drawn_by_their_logits_at_every_size(pages):
    torch.manual_seed(3)
    agent = untrained(env_args={**SMALL, **FORMS["refresh"]})
    agent = Agent(agent.model, agent.arguments, cycle=1.0)
    form = {**SMALL, **FORMS["refresh"], "num_pages": pages, "bandwidth": float(pages)}
    _, observations = played(form, lanes=1)
    share = agent.predict(np.repeat(observations, 20_000, axis=0))[0].mean(0)
    chances = 1.0 / (1.0 + np.exp(-agent.scores(observations[0]).astype(np.float64)))
    assert np.all(abs(share - chances) < 4.5 * np.sqrt(chances * (1.0 - chances) / 20_000))


@pytest.mark.parametrize("algorithm", ["a2c", "dqn", "maskableppo", "ppo", "sac"])
def test_at_another_size_the_best_action_is_that_of_the_network(algorithm):
    """All pages twice are scored as once, so the best page is the same one."""
    if algorithm == "maskableppo":
        pytest.importorskip("sb3_contrib")
    env_args = {**SMALL, **FORMS["scores" if algorithm == "sac" else "page"]}
    agent = untrained(algorithm=algorithm, env_args=env_args)
    _, observations = played(env_args)
    twice = Agent(agent.model, agent.arguments, cycle=1.0)
    one = agent.predict(observations, deterministic=True)[0]
    two = twice.predict(np.concatenate([observations] * 2, axis=1), deterministic=True)[0]
    if algorithm == "sac":
        np.testing.assert_allclose(two, np.concatenate([one, one], axis=1), atol=1e-5)
    else:
        np.testing.assert_array_equal(two % 4, one)


def test_an_agent_at_another_size_follows_the_training_of_its_model():
    agent = untrained()
    larger = Agent(agent.model, agent.arguments, cycle=1.0)
    _, observations = played({**SMALL, "num_pages": 9})
    before = larger.predict(observations, deterministic=True)[0]
    with torch.no_grad():
        agent.model.policy.mlp_extractor.score.weight.neg_()
    after = larger.predict(observations, deterministic=True)[0]
    np.testing.assert_array_equal(after, larger.scores(observations).argmax(1))
    assert not np.array_equal(before, after)
    assert agent.model.observation_space.shape == (4, 7)


def test_another_size_needs_a_cycle():
    agent = untrained()
    _, observations = played({**SMALL, "num_pages": 9})
    message = "env or cycle is needed to act on 9 pages after training on 4"
    with pytest.raises(ValueError, match=message):
        agent.predict(observations)
    with pytest.raises(ValueError, match="cycle must be finite and > 0, got 0"):
        Agent(agent.model, agent.arguments, cycle=0.0)


def test_other_networks_say_what_they_cannot(tmp_path):
    folder = saved(untrained(network="mlp"), tmp_path / "mlp")
    env, _ = played({**SMALL, "num_pages": 9})
    message = "trained on 4 pages with elapsed.*, got 9 pages with .*need the network 'pages'"
    with pytest.raises(ValueError, match=message):
        agents.load(folder, env)
    with pytest.raises(ValueError, match="cycle must be None with env, and for agents"):
        agents.load(folder, cycle=2.0)
    for form in ("rates", "shares"):
        rates = untrained(env_id="CrawlHarmonic-v0", env_args={"action": form, "num_pages": 4})
        with pytest.raises(ValueError, match="cycle must be None with env, and for agents"):
            Agent(rates.model, rates.arguments, cycle=2.0)
    env.close()


def test_a_memory_of_each_page_at_any_size(tmp_path):
    pytest.importorskip("sb3_contrib")
    agent = train(short(algorithm="recurrentppo", env_args={**SMALL, "horizon": 2.0}), tmp_path)
    env, observations = played(SMALL)
    one, first = agent.predict(observations, deterministic=True)
    two, second = agent.predict(observations, first, np.zeros(3, bool), deterministic=True)
    assert one.shape == two.shape == (3,)
    assert not np.array_equal(first[0], second[0])
    _, renewed = agent.predict(observations, second, np.ones(3, bool), deterministic=True)
    np.testing.assert_allclose(renewed[0], first[0], atol=1e-6)
    assert first[0].shape == (1, 3, 4 * 8)
    larger = gym.make("crawl_envs:CrawlNCIS-v0", **{**SMALL, "num_pages": 5})
    loaded = agents.load(tmp_path, larger)
    rows, _ = larger.reset(seed=1)
    page, state = loaded.predict(rows, deterministic=True)
    again, state = loaded.predict(rows, state, np.zeros(1, bool), deterministic=True)
    assert state[0].shape == (1, 1, 5 * 8)
    assert max(page, again) < 5
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(
        order[agent.predict(observations[:, order], deterministic=True)[0]], one
    )
    env.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_scorer_acts_as_the_agent_it_was_taken_from(form, tmp_path):
    agent = untrained(env_args={**SMALL, **FORMS[form]})
    about = {"action_form": form, "features": agent.features}
    write_scorer(tmp_path, actor_of(agent), **about)
    env_args = {**SMALL, **FORMS[form], "num_pages": 50, "bandwidth": 25.0}
    env, observations = played(env_args)
    loaded = agents.load(tmp_path, env)
    assert loaded.features == agent.features
    assert loaded.name == "ppo"
    mine = Agent(agent.model, agent.arguments, env)
    np.testing.assert_array_equal(
        loaded.predict(observations, deterministic=True)[0],
        mine.predict(observations, deterministic=True)[0],
    )
    other = "page" if form != "page" else "refresh"
    with pytest.raises(ValueError, match=f"and actions {form!r}.*, got .* and actions {other!r}"):
        agents.load(tmp_path, gym.make("crawl_envs:CrawlNCIS-v0", action=other))
    with pytest.raises(ValueError, match="trained on 4 pages with elapsed"):
        agents.load(tmp_path, gym.make("crawl_envs:CrawlNCIS-v0", reveal="importance"))
    with pytest.raises(ValueError, match="must have the 3 lanes of the environment, got 1"):
        loaded.predict(observations[0])
    env.close()


def test_files_that_are_no_scorers_are_refused(tmp_path):
    path, foreign = tmp_path / "scorer.npz", "is not a page scorer of this suite"
    with pytest.raises(ValueError, match="there is no agent at"):
        load_scorer(path)
    for damage in (b"", b"not an archive"):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=foreign):
            agents.load(tmp_path)
    write_scorer(tmp_path, weights_of(7))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for about in ({"format": "another"}, {"draws": False}, {"name": "os:system"}, {"cycle": -1}):
        with pytest.raises(ValueError, match=foreign):
            agents.load(tmp_path)
        write_scorer(tmp_path, weights_of(7), **about)
    np.savez(path, about=np.array([{}], object))
    with pytest.raises(ValueError, match=foreign):
        agents.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alone.bias": np.zeros(3)}, "size mismatch for pi_features_extractor.alone.bias"),
        ({"score.bias": None}, "score.bias is not a file in the archive"),
    ],
)
def test_weights_that_do_not_fit_are_named(change, message, tmp_path):
    weights = {k: v for k, v in {**weights_of(7), **change}.items() if v is not None}
    with pytest.raises(ValueError, match=message):
        load_scorer(write_scorer(tmp_path, weights))


def test_a_run_starts_from_the_weights_of_another(tmp_path):
    folder = saved(untrained(), tmp_path)
    larger = untrained(env_args={**SMALL, "num_pages": 9, "bandwidth": 3.0}, seed=1)
    start_from(larger.model, folder)
    other, _ = load_model(folder / "model.zip")
    assert same_weights(larger.model, other)
    assert larger.model.policy.features_extractor.scaling.cycle == 3.0
    with pytest.raises(ValueError, match="start must be an agent with the same network"):
        start_from(untrained(network="mlp").model, folder)
    with pytest.raises(ValueError, match="start must have the columns elapsed"):
        start_from(untrained(env_args={**SMALL, "reveal": "importance"}).model, folder)
    with pytest.raises(ValueError, match=r"start must be a folder with model\.zip .*nowhere"):
        start_from(larger.model, tmp_path / "nowhere")


def test_files_that_are_no_agents_are_refused(tmp_path):
    files = " or ".join(re.escape(file) for file in AGENT_FILES)
    with pytest.raises(ValueError, match=rf"there is no {files} in .*nowhere"):
        agents.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="folder_or_name must be a folder or a name, got 3"):
        agents.load(3)
    agent = untrained()
    whole = (saved(agent, tmp_path / "good") / "model.zip").read_bytes()
    folder = tmp_path / "bad"
    folder.mkdir()
    path = folder / "model.zip"
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    with pytest.raises(ValueError, match=r"Bad CRC-32|is not an agent"):
        agents.load(folder)
    agent.model.save(path)
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    save_model(agent.model, short(algorithm="dqn"), path)
    with pytest.raises(ValueError, match="cannot be loaded"):
        agents.load(folder)


def test_an_agent_says_where_it_does_not_fit(tmp_path):
    saved(untrained(), tmp_path)
    for changes, message in (
        ({"reveal": "importance"}, "trained on 4 pages with elapsed"),
        ({"action": "refresh"}, "actions 'page' Discrete.*, got .*'refresh' MultiBinary"),
        ({"action": "refresh", "num_pages": 7}, "actions 'page' Discrete.*, got .*'refresh'"),
        ({"observation": "flat"}, "env must have observation 'table' for an agent, got Box"),
    ):
        env = gym.make("crawl_envs:CrawlNCIS-v0", **{**SMALL, **changes})
        with pytest.raises(ValueError, match=message):
            agents.load(tmp_path, env)
    longer = gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=2, **{**SMALL, "horizon": 9.0})
    agents.load(tmp_path, longer)
    with pytest.raises(ValueError, match=r"cycle must be None with .*, got 1"):
        agents.load(tmp_path, longer, cycle=1.0)


def test_shipped_agents_are_loaded_by_name(tmp_path, monkeypatch):
    shipped = tmp_path / "trained"
    agent = untrained()
    saved(agent, shipped / "small")
    write_scorer(shipped / "light", actor_of(agent), features=agent.features)
    shutil.copytree(shipped / "light", shipped / "both")
    saved(agent, shipped / "both")
    (shipped / "empty").mkdir()
    monkeypatch.setattr("agents.catalog.SHIPPED", shipped)
    assert agents.names() == ("both", "light", "small")
    assert agents.load("small").name == "ppo"
    assert agents.load("light").arguments.lanes == 1
    assert agents.load("both").arguments == agent.arguments


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "dqn", "recurrentppo"])
def test_pages_that_do_not_exist_are_not_crawled(algorithm):
    if algorithm == "recurrentppo":
        pytest.importorskip("sb3_contrib")
    agent = untrained(algorithm=algorithm, env_id="CrawlTrace-v0", env_args={})
    if algorithm == "dqn":
        agent.model.exploration_rate = 0.0
    env = make_lanes(agent.arguments, 4, training=False)
    env.seed(0)
    observations, missing = env.reset(), 0
    for _ in range(30):
        allowed = env.action_masks()
        missing += np.count_nonzero(~allowed)
        for deterministic in (True, False):
            action, _ = agent.predict(observations, deterministic=deterministic)
            assert allowed[np.arange(4), action].all()
        observations, *_ = env.step(action)
    assert missing > 0
