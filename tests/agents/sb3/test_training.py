"""Agents train, learn, repeat themselves, and come back from disk as they were."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import agents
import policies
from agents.runs import read_rows
from agents.sb3 import hyperparameters
from agents.sb3.algorithms import CONTRIB, algorithm_class, derived_from
from agents.sb3.arguments import CHECKS, TrainArguments, check_model_arguments
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.comparison import mean_rewards
from agents.sb3.curve import CurveRow
from agents.sb3.lanes import make_lanes, pages_in_words, recommended
from agents.sb3.scaled_rewards import ScaledRewards
from agents.sb3.training import train
from tests.agents.weights import same_weights

SMALL = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0, "instance": "noisy"}
HEAVY = {
    "env_args": {"num_pages": 3, "bandwidth": 3.0, "horizon": 20.0},
    "instance": {"importance": [1.0, 18.0, 1.0], "change_rate": [2.0, 2.0, 2.0], "bandwidth": 3.0},
}
"""One page has most of the importance, and changes so fast that every crawl should go to it."""


def short(**changes) -> TrainArguments:
    form = {"action": "scores", "batch": 2} if changes.get("algorithm") == "sac" else {}
    env_args = {**SMALL, **form}
    return TrainArguments(**{"env_args": env_args, "steps": 1024, "lanes": 8, **changes})


@pytest.mark.parametrize("form", [{"action": "scores", "batch": 2}, {"action": "refresh"}])
def test_pages_are_scored_for_other_actions_too(form, tmp_path):
    agent = train(short(env_args={**SMALL, **form}), tmp_path)
    means = mean_rewards(lambda env: agent, agent.arguments, episodes=4)
    assert means.shape == (4,)
    assert np.all((means > 0.0) & (means <= 1.0))
    env = gym.make("crawl_envs:CrawlNCIS-v0", **SMALL, **form)
    observation, _ = env.reset(seed=0)
    env.step(agents.load(tmp_path, env).predict(observation)[0])


@pytest.mark.parametrize("network", ["mlp", "plain"])
def test_ppo_learns_which_page_matters(network, tmp_path):
    arguments = TrainArguments(**HEAVY, steps=24_000, network=network)
    agent = train(arguments, tmp_path)
    learned = mean_rewards(lambda env: agent, arguments)
    random = mean_rewards(lambda env: policies.make("RandomCrawl", env), arguments)
    best = mean_rewards(lambda env: policies.make("Greedy", env), arguments)
    assert np.all(learned > random)
    assert learned.mean() > random.mean() + 0.8 * (best.mean() - random.mean())


@pytest.mark.slow
def test_scoring_pages_beats_round_robin_on_instances_never_seen(tmp_path):
    env_args = {"num_pages": 20, "bandwidth": 5.0, "horizon": 40.0, "instance": "noisy"}
    arguments = recommended("ppo", env_args=env_args, steps=50_000)
    agent = train(arguments, tmp_path)
    learned = mean_rewards(lambda env: agent, arguments)
    in_turn = mean_rewards(lambda env: policies.make("RoundRobin", env), arguments)
    gain = learned - in_turn
    assert gain.mean() > 3.0 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.parametrize("algorithm", ["ppo", "recurrentppo", "sac"])
def test_a_run_resumes_from_what_it_saved(algorithm, tmp_path):
    form = {"action": "scores"} if algorithm == "sac" else {}
    env_args = {**HEAVY["env_args"], **form}
    run = {**HEAVY, "algorithm": algorithm, "lanes": 8, "width": 8, "env_args": env_args}
    for folder in ("a", "b"):
        train(TrainArguments(**run, steps=512), tmp_path / folder)
    before = read_rows(tmp_path / "a" / "curve.csv", CurveRow)
    longer = TrainArguments(**run, steps=1024)
    one = train(longer, tmp_path / "a", resume=True)
    two = train(longer, tmp_path / "b", resume=True)
    assert one.model.num_timesteps == 1024
    assert same_weights(one.model, two.model)
    rows = read_rows(tmp_path / "a" / "curve.csv", CurveRow)
    assert rows[: len(before)] == before
    assert rows[-1].steps == 1024
    assert rows[len(before)].seconds >= before[-1].seconds
    assert agents.load(tmp_path / "a").arguments.steps == 1024
    again = train(longer, tmp_path / "a", resume=True)
    assert again.model.num_timesteps == 1024
    assert read_rows(tmp_path / "a" / "curve.csv", CurveRow) == rows


def test_a_resumed_run_goes_on_with_its_scale_of_rewards(tmp_path):
    arguments = short(steps=1024)
    first = train(arguments, tmp_path, until=512).model
    moments = first.reward_scale.moments()
    assert moments[2] == pytest.approx(512, abs=1e-3)  # rewards so far
    seen = []

    class Seeing(BaseCallback):
        def _on_training_start(self):
            seen.extend(self.training_env.scale.moments())

        def _on_step(self):
            return True

    second = train(arguments, tmp_path, resume=True, callbacks=[Seeing()]).model
    assert seen == moments
    assert second.reward_scale.moments()[2] == pytest.approx(1024, abs=1e-3)
    assert agents.load(tmp_path).model.reward_scale.moments() == second.reward_scale.moments()


def test_an_interrupt_saves_what_was_learned(tmp_path, monkeypatch):
    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    arguments = short()
    with monkeypatch.context() as patch:
        patch.setattr(PPO, "train", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(arguments, tmp_path)
    assert agents.load(tmp_path).model.num_timesteps == 512
    assert read_rows(tmp_path / "curve.csv", CurveRow)[-1].steps == 512
    assert train(arguments, tmp_path, resume=True).model.num_timesteps == 1024


def test_a_run_is_not_overwritten_nor_resumed_as_another(tmp_path):
    train(short(), tmp_path)
    before = (tmp_path / "model.zip").read_bytes()
    with pytest.raises(ValueError, match="holds an agent already"):
        train(short(), tmp_path)
    with pytest.raises(ValueError, match=r"gamma must be 0.95 as in the run to resume, got 0.9"):
        train(short(gamma=0.9), tmp_path, resume=True)
    assert (tmp_path / "model.zip").read_bytes() == before


def test_further_arguments_reach_the_algorithm(tmp_path):
    given = {"n_epochs": 3, "batch_size": 16, "ent_coef": 0.25}
    model = train(short(steps=64, model_args=given), tmp_path).model
    assert (model.n_epochs, model.batch_size, model.ent_coef) == (3, 16, 0.25)
    assert agents.load(tmp_path).arguments.model_args == given


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_the_progress_bar_has_the_text_and_the_steps_that_are_made(algorithm, tmp_path, capsys):
    wanted = short(algorithm=algorithm, steps=1001)
    beside = "best analytic [GreedyNCIS] 0.8"
    steps = train(wanted, tmp_path, progress=True, beside=beside).model.num_timesteps
    assert steps > 1001
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.startswith(f"training {steps:,}/{steps:,} steps")
    assert beside in shown


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"algorithm": "sarsa"},
            "algorithm must be one of a2c, .*, recurrentppo, sac, or module:Class, got 'sarsa'",
        ),
        ({"env_id": "a:b:C-v0"}, "env_id must be the id of an environment, got 'a:b:C-v0'"),
        ({"steps": 0}, "steps must be an integer in .*, got 0"),
        ({"lanes": 0}, "lanes must be an integer in .*, got 0"),
        ({"seed": -1}, "seed must be an integer in .*, got -1"),
        (
            {"network": "deep"},
            "network must be one of pages, mlp, plain, or module:Class",
        ),
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0, got 0.0"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\), got 1.0"),
        ({"train_pages": 5, "network": "mlp"}, "train_pages must be 0 with .*, got 5"),
        ({"model_args": {"epochs": 2}}, "model_args must be among .*n_epochs.*, got epochs=2"),
        (
            {"algorithm": "dqn", "model_args": {"replay_buffer_kwargs": {"x": 1}}},
            "model_args must be among .*, got replay_buffer_kwargs=",
        ),
        ({"model_args": {"gamma": 0.5}}, "model_args must be among .*gae_lambda.*, got gamma=0.5"),
        ({"learning_rate": "x"}, "learning_rate must be finite and > 0, got 'x'"),
        ({"gamma": "x"}, r"gamma must be finite and >= 0, got 'x'"),
        ({"start": 3}, "start must be None or a folder, got 3"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainArguments(**changes)


@pytest.mark.parametrize(
    ("algorithm", "name", "value", "expected"),
    [
        *(("ppo", "batch_size", value, "an integer >= 2") for value in (0, -3, 1, 2.0, True)),
        *(("ppo", "n_epochs", value, "an integer >= 1") for value in (0, 1.5, "x", None)),
        *(("ppo", "gae_lambda", value, "finite and >= 0") for value in (math.nan, "x")),
        ("ppo", "gae_lambda", 1.1, "in [0, 1]"),
        *(("a2c", "ent_coef", value, "finite and >= 0") for value in ("x", "auto", -1, 10**400)),
        *(("ppo", "target_kl", value, "finite and > 0") for value in ("x", 0.0)),
        *(("ppo", "verbose", value, "an integer in [0, 2]") for value in ("x", 3, True)),
        *(("ppo", "clip_range", value, "finite and > 0") for value in ("x", -1, None)),
        ("ppo", "normalize_advantage", 1, "True or False"),
        ("dqn", "batch_size", 0, "an integer >= 1"),
        ("dqn", "learning_starts", -1, "an integer >= 0"),
        ("dqn", "gradient_steps", 0, "an integer >= 1"),
        ("dqn", "exploration_fraction", 0.0, "finite and > 0"),
        *(("sac", "ent_coef", value, "finite and >= 0") for value in ("auto_x", "auto_0")),
        ("sac", "target_entropy", "x", "finite"),
    ],
)
def test_values_of_model_arguments_are_checked(algorithm, name, value, expected):
    with pytest.raises(ValueError, match=name) as error:
        TrainArguments(algorithm=algorithm, model_args={name: value})
    said = str(error.value)
    assert said.startswith((f"{name} must be {expected}", f"{name} must lie {expected}"))
    assert said.endswith(f", got {value!r}")


SET_BY_RUNS = {
    *("_init_setup_model", "device", "env", "gamma", "learning_rate", "n_steps", "policy"),
    *("policy_kwargs", "seed", "tensorboard_log"),
}
"""Arguments of the algorithms' classes that have other names in a run, or none."""
OBJECTS = {
    *("action_noise", "replay_buffer_class", "replay_buffer_kwargs", "rollout_buffer_class"),
    "rollout_buffer_kwargs",
}
"""Arguments that are no plain values."""


@pytest.mark.parametrize("algorithm", agents.ALGORITHMS)
def test_all_plain_arguments_of_a_class_are_known_and_their_defaults_fit(algorithm):
    taken = inspect.signature(algorithm_class(algorithm)).parameters
    defaults = {name: entry.default for name, entry in taken.items() if name in CHECKS}
    assert {*taken} - {*defaults} <= SET_BY_RUNS | OBJECTS
    form = {"action": "scores"} if algorithm == "sac" else {}
    arguments = TrainArguments(algorithm=algorithm, env_args=form, model_args=defaults)
    assert arguments.model_args == defaults
    check_model_arguments(algorithm, hyperparameters.model_arguments(algorithm))


@pytest.mark.parametrize("name", CONTRIB)
def test_an_algorithm_says_what_it_lacks(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(ValueError, match=f"'{name}' needs the package sb3-contrib"):
        algorithm_class(name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"env_args": {"sites": 3}},
            "env_args must be arguments of .*keyword argument 'sites'",
        ),
        ({"env_args": {"num_pages": 0}}, "num_pages must be an integer in .*, got 0"),
        (
            {"algorithm": "dqn", "env_args": {"action": "scores"}},
            "dqn needs env_args with action 'page', got 'scores'",
        ),
        (
            {"algorithm": "maskableppo", "env_args": {"action": "refresh"}},
            "maskableppo needs env_args with action 'page', got 'refresh'",
        ),
        ({"algorithm": "sac"}, "sac needs env_args with action 'scores', got 'page'"),
        (
            {"env_args": {"cost_spread": 1.0}},
            "env_args must not have cost_spread with action 'page'",
        ),
        ({"start": "no/such/folder"}, r"start must be a folder with model\.zip .*no/such/folder"),
        ({"instance": {"weight": 1.0}}, "instance does not fit Instance: .*'weight'"),
        ({"instance": {"importance": [1], "change_rate": 1, "bandwidth": 1}}, "100 pages"),
        ({"env_args": {"delay": {1, 2}}}, "env_args and instance must hold plain values|delay"),
    ],
)
def test_arguments_that_do_not_fit_make_no_folder(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(TrainArguments(**changes), tmp_path / "out")
    assert not (tmp_path / "out" / "model.zip").exists()


def test_arguments_survive_json():
    arguments = short(instance={"importance": [1.0] * 4, "change_rate": 1.0, "bandwidth": 2.0})
    assert TrainArguments.from_json(arguments.to_json()) == arguments
    with pytest.raises(ValueError, match="arguments must be among"):
        TrainArguments.from_json(json.dumps({"colour": "red"}))


def test_importing_agents_imports_no_torch():
    code = (
        "import sys, agents; agents.names(); print({'torch', 'stable_baselines3'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


class OwnFeatures(BaseFeaturesExtractor):
    """A network of one's own: the largest and the mean of each column."""

    def __init__(self, observation_space, features, cycle):
        super().__init__(observation_space, 2 * len(features))
        self.scale = torch.nn.Parameter(torch.full((len(features),), 1.0 / cycle))

    def forward(self, observations):
        scaled = observations * self.scale
        return torch.cat([scaled.amax(1), scaled.mean(1)], 1)


def test_a_network_of_ones_own_is_trained_and_loaded(tmp_path, monkeypatch):
    name = f"{__name__}:OwnFeatures"
    agent = train(short(network=name, steps=256), tmp_path)
    assert isinstance(agent.model.policy.features_extractor, OwnFeatures)
    assert same_weights(agent.model, agents.load(tmp_path).model)
    monkeypatch.delitem(sys.modules, __name__)
    with pytest.raises(ValueError, match=r"network must be module:Class .* imported, got"):
        agents.load(tmp_path)


class OwnPPO(PPO):
    """An algorithm of one's own: the bonus of entropy fades."""

    def __init__(self, *args, fade=0.5, **kwargs):
        super().__init__(*args, **kwargs)
        self.fade = fade

    def train(self):
        self.ent_coef *= self.fade
        super().train()


class OwnBase(OnPolicyAlgorithm):
    """One that derives from none of the known ones."""

    def __init__(self, policy, env, learning_rate, n_steps, gamma, gae_lambda, **kwargs):
        given = {"ent_coef": 0.0, "vf_coef": 0.5, "max_grad_norm": 0.5, "use_sde": False}
        sizes = {"n_steps": n_steps, "gamma": gamma, "gae_lambda": gae_lambda}
        super().__init__(policy, env, learning_rate, sde_sample_freq=-1, **sizes, **given, **kwargs)

    def train(self):
        values, log_prob, _ = self.policy.evaluate_actions(
            torch.as_tensor(self.rollout_buffer.observations).flatten(0, 1),
            torch.as_tensor(self.rollout_buffer.actions).flatten(0, 1).flatten().long(),
        )
        gain = torch.as_tensor(self.rollout_buffer.advantages).flatten() * log_prob
        self.policy.optimizer.zero_grad()
        (values.square().mean() - gain.mean()).backward()
        self.policy.optimizer.step()


class Closed(PPO):
    """One that cannot be built as others are."""

    def __init__(self, policy, env):
        super().__init__(policy, env)


OWN_ALGORITHMS = [
    (f"{__name__}:OwnPPO", {"model_args": {"fade": 0.25, "n_epochs": 1}}, "ppo"),
    (f"{__name__}:OwnBase", {}, ""),
    ("stable_baselines3:TD3", {"network": "mlp", "env_args": {**SMALL, "action": "scores"}}, ""),
]


@pytest.mark.parametrize(("name", "given", "base"), OWN_ALGORITHMS)
def test_an_algorithm_of_ones_own_is_trained_and_loaded(name, given, base, tmp_path, monkeypatch):
    agent = train(short(algorithm=name, steps=256, **given), tmp_path)
    assert (type(agent.model).__name__, derived_from(name)) == (name.rpartition(":")[-1], base)
    assert getattr(agent.model, "fade", 0.25) == 0.25
    assert getattr(agent.model, "n_epochs", 1) == 1
    assert same_weights(agent.model, agents.load(tmp_path).model)
    monkeypatch.delitem(sys.modules, name.partition(":")[0])
    with pytest.raises(ValueError, match=r"algorithm must be module:Class .* imported, got"):
        agents.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"algorithm": f"{__name__}:Closed"},
            "algorithm must take _init_setup_model, device, gamma, .*, seed, got .*:Closed",
        ),
        ({"model_args": {"fades": 1.0}}, "model_args must be among .*fade, .*, got fades=1.0"),
        ({"model_args": {"policy_kwargs": {}}}, "model_args must be among .*, got policy_kwargs="),
        ({"model_args": {"n_epochs": 0}}, "n_epochs must be .* got 0"),
        ({"algorithm": "json:dumps"}, "algorithm must be module:Class of a BaseAlgorithm"),
        ({"algorithm": "nowhere:PPO"}, "in a module that is imported, got 'nowhere:PPO'"),
    ],
)
def test_bad_arguments_of_ones_own_algorithm_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainArguments(**{"algorithm": f"{__name__}:OwnPPO", **changes})


def test_a_network_that_scores_pages_needs_a_known_algorithm_off_policy(tmp_path):
    scores = {**SMALL, "action": "scores"}
    with pytest.raises(ValueError, match="network must be mlp or plain for stable_baselines3:TD3"):
        train(short(algorithm="stable_baselines3:TD3", env_args=scores), tmp_path)


@pytest.mark.parametrize(
    ("env_id", "given", "form", "share"),
    [
        ("CrawlNCIS-v0", {}, "page", 1 / 20),
        ("CrawlNCIS-v0", {"action": "scores", "batch": 10}, "scores", 2 / 20),
        ("CrawlNCIS-v0", {"bandwidth": 50.0, "bandwidth_steps": [(4.0, 25.0)]}, "page", 1 / 20),
        ("CrawlHarmonic-v0", {"action": "refresh"}, "refresh", 1 / 20),
        ("CrawlLongevity-v0", {}, "page", 1 / 20),
        ("CrawlNCIS-Noisy-100-Scores-v0", {}, "scores", 2 / 20),
    ],
)
def test_training_has_fewer_pages_at_the_same_cycle_and_horizon(env_id, given, form, share):
    arguments = recommended("ppo", env_id, env_args=given)
    assert arguments.train_pages == 20
    assert arguments.gamma == pytest.approx(1.0 - share)
    assert arguments.env_args == given
    small, own = (make_lanes(arguments, 1, training=few) for few in (True, False))
    for env in (small, own):
        env.seed(0)
        env.reset()
    few, many = (env.get_attr("problem", 0)[0] for env in (small, own))
    assert (few.num_pages, many.num_pages) == (20, 100)
    assert few.num_pages / few.bandwidth == pytest.approx(many.num_pages / many.bandwidth)
    assert small.action_form == own.action_form == form
    assert small.vector.lanes.horizon == own.vector.lanes.horizon
    assert small.batch / 20 == own.batch / 100 or own.batch == 1
    assert 5 * small.num_slots(0) == own.num_slots(0)  # with steps of the bandwidth, too


@pytest.mark.parametrize(
    ("env_id", "given"),
    [
        ("CrawlTrace-v0", {}),
        ("CrawlNCIS-v0", {"env_args": {"num_pages": 15, "bandwidth": 5.0}}),
        ("CrawlNCIS-v0", {"train_pages": 0}),
        ("CrawlNCIS-v0", {"network": "mlp"}),
        ("CrawlHarmonic-v0", {}),
        ("CrawlNCIS-v0", {"instance": {"importance": [1.0] * 100, "change_rate": 1.0}}),
    ],
)
def test_training_has_the_pages_of_the_environment_where_others_are_impossible_or_not_wanted(
    env_id, given
):
    if "instance" in given:
        given = {"instance": {**given["instance"], "bandwidth": 100.0}}
    arguments = recommended("ppo", env_id, **given)
    assert arguments.train_pages == 0
    env = make_lanes(arguments, 1, training=True)
    own = env.vector.lanes.num_pages
    if env.action_form == "page":
        assert arguments.gamma == pytest.approx(1.0 - 1.0 / own, abs=1e-6)
    assert pages_in_words(arguments).startswith(f"trained on {own} pages at m / R = ")


def test_pages_of_a_trace_cannot_be_chosen():
    with pytest.raises(ValueError, match="env_args must be arguments of CrawlTrace-v0"):
        recommended("ppo", "CrawlTrace-v0", train_pages=5)


def test_the_step_size_of_a_run_of_two_parts_falls_once(tmp_path):
    arguments = short(learning_rate="lin_0.01", steps=1024)
    first = train(arguments, tmp_path, until=512).model
    assert first.num_timesteps == 512
    assert first.lr_schedule(0.0) == pytest.approx(0.01)  # of the rollout's start: a half is made
    second = train(arguments, tmp_path, resume=True).model
    assert second.num_timesteps == 1024
    assert second.lr_schedule(0.0) == pytest.approx(0.005)
    assert second.lr_schedule(0.5) == pytest.approx(0.01)


def test_scaled_rewards_are_those_of_a_plain_computation():
    """Twin: the mean and the deviation over everything so far, from lists."""
    env = CrawlVecEnv(
        gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=3, autoreset_mode="SameStep", **SMALL)
    )
    scaled = ScaledRewards(env, 0.9)
    scaled.seed(5)
    scaled.reset()
    seen, returns, own = [], [], np.zeros(3)
    for step in range(50):
        _, rewards, dones, _ = scaled.step(np.full(3, step % 4))
        seen += list(scaled.raw)
        own = 0.9 * own + scaled.raw - np.mean(seen)
        returns += list(own)
        own[dones] = 0.0
        expected = (scaled.raw - np.mean(seen)) / np.std(returns)
        if step > 5:  # the running estimates start from 0 and 1, with the weight of 1e-4 rewards
            np.testing.assert_allclose(rewards, expected, rtol=2e-2, atol=2e-3)
