"""The tools of Stable-Baselines3 work on the bridge, and say what they say of DummyVecEnv."""

from __future__ import annotations

import csv

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecCheckNan, VecFrameStack, VecMonitor, VecNormalize

from agents.sb3.bridge import CrawlVecEnv
from tests.agents.weights import same_weights

SMALL = {"num_pages": 5, "bandwidth": 4.0, "horizon": 3.0, "instance": "noisy", "resample": True}
STEPS = 12
"""Of an episode: four crawls per unit of time, for three of them."""
TRACE = {"window": [10.0, 16.0], "days_per_crawl": 60.0}
LANES = 3


def bridge(env_id: str = "CrawlNCIS-v0", **arguments) -> CrawlVecEnv:
    arguments = arguments or SMALL
    name = "crawl_envs:" + env_id
    return CrawlVecEnv(gym.make_vec(name, num_envs=LANES, autoreset_mode="SameStep", **arguments))


def dummy(env_id: str = "CrawlNCIS-v0", **arguments):
    """The alternative without the bridge: DummyVecEnv of environments in Monitor."""
    return make_vec_env("crawl_envs:" + env_id, n_envs=LANES, env_kwargs=arguments or SMALL)


def pairs(ours, theirs, steps=40):
    """Play the same pages in both and yield what their steps return."""
    for env in (ours, theirs):
        env.seed(4)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    rng = np.random.default_rng(0)
    for _ in range(steps):
        actions = rng.integers(5, size=LANES)
        yield ours.step(actions), theirs.step(actions)


def model(env, **changes) -> PPO:
    settings = {"n_steps": 16, "batch_size": 48, "n_epochs": 1, "seed": 0, "device": "cpu"}
    return PPO("MlpPolicy", env, **{**settings, **changes})


def test_vec_monitor_says_of_episodes_what_monitor_says(tmp_path):
    ours = VecMonitor(bridge(), str(tmp_path / "bridge"))
    ended = 0
    for got, expected in pairs(ours, dummy()):
        for one, other in zip(got[3], expected[3], strict=True):
            assert ("episode" in one) == ("episode" in other)
            if "episode" in other:
                assert one["episode"]["l"] == other["episode"]["l"] == STEPS
                # One adds up in float32, the other in float64 and rounds to six places.
                assert one["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
                ended += 1
    ours.close()
    assert ended == 3 * LANES
    with (tmp_path / "bridge.monitor.csv").open() as file:
        assert file.readline().startswith("#")
        rows = list(csv.DictReader(file))
    assert [int(row["l"]) for row in rows] == [STEPS] * ended


def test_monitor_wraps_a_single_environment_of_the_same_episodes():
    one = Monitor(gym.make("crawl_envs:CrawlNCIS-v0", **SMALL))
    one.reset(seed=4)
    ours = VecMonitor(bridge())
    ours.seed(4)
    ours.reset()
    for step in range(STEPS):
        *_, info = one.step(step % 5)
        infos = ours.step(np.full(LANES, step % 5))[3]
    assert infos[0]["episode"]["r"] == pytest.approx(info["episode"]["r"], abs=1e-5)
    assert infos[0]["episode"]["l"] == info["episode"]["l"] == STEPS


def test_vec_normalize_is_saved_and_loaded(tmp_path):
    ours, theirs = VecNormalize(bridge(), gamma=0.9), VecNormalize(dummy(), gamma=0.9)
    for got, expected in pairs(ours, theirs):
        for part, other in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(part, other)
        for one, other in zip(got[3], expected[3], strict=True):
            assert ("terminal_observation" in one) == ("terminal_observation" in other)
            if "terminal_observation" in other:
                np.testing.assert_array_equal(
                    one["terminal_observation"], other["terminal_observation"]
                )
    ours.save(tmp_path / "normalize.pkl")
    loaded = VecNormalize.load(tmp_path / "normalize.pkl", bridge())
    loaded.training = ours.training = False
    np.testing.assert_array_equal(loaded.obs_rms.mean, ours.obs_rms.mean)
    assert loaded.obs_rms.count > 100
    for env in (ours, loaded):
        env.seed(9)
    np.testing.assert_array_equal(ours.reset(), loaded.reset())


def test_vec_frame_stack_and_check_nan_on_the_bridge():
    """Frames are stacked along the last axis: each page has the columns of two steps."""
    ours = VecFrameStack(VecCheckNan(bridge(), raise_exception=True), 2)
    theirs = VecFrameStack(VecCheckNan(dummy(), raise_exception=True), 2)
    assert ours.observation_space.shape == (5, 14)
    for got, expected in pairs(ours, theirs):
        np.testing.assert_array_equal(got[0], expected[0])
    model(ours).learn(96)


def test_evaluate_policy_gives_the_rewards_of_single_environments():
    learner = model(bridge())
    scores = []
    for env in (VecMonitor(bridge()), dummy()):
        env.seed(21)
        scores.append(evaluate_policy(learner, env, n_eval_episodes=6, return_episode_rewards=True))
    (ours, our_lengths), (theirs, their_lengths) = scores
    assert our_lengths == their_lengths == [STEPS] * 6
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Training and eval env:UserWarning")
def test_evaluations_and_checkpoints_are_written(tmp_path):
    evaluation = EvalCallback(
        VecMonitor(bridge()),
        n_eval_episodes=4,
        eval_freq=16,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path / "best"),
        verbose=0,
    )
    saving = CheckpointCallback(32, str(tmp_path / "saved"), "ppo", save_vecnormalize=True)
    env = VecNormalize(VecMonitor(bridge()))
    evaluation.eval_env = VecNormalize(VecMonitor(bridge()), training=False)
    learner = model(env).learn(48 * 4, callback=[evaluation, saving])
    written = np.load(tmp_path / "evaluations.npz")
    assert written["timesteps"].tolist() == [48, 96, 144, 192]
    assert np.all(written["ep_lengths"] == STEPS)
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "ppo_192_steps.zip",
        "ppo_96_steps.zip",
        "ppo_vecnormalize_192_steps.pkl",
        "ppo_vecnormalize_96_steps.pkl",
    ]
    # The second checkpoint was taken before the second update.
    saved = PPO.load(tmp_path / "saved" / "ppo_96_steps.zip")
    once = model(VecNormalize(VecMonitor(bridge()))).learn(48)
    assert same_weights(saved, once)
    assert learner.num_timesteps == 192
    assert PPO.load(tmp_path / "best" / "best_model.zip").num_timesteps in (48, 96, 144, 192)


def test_tensorboard_gets_the_episodes(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model(VecMonitor(bridge()), tensorboard_log=str(tmp_path)).learn(96, tb_log_name="run")
    events = EventAccumulator(str(tmp_path / "run_1"))
    events.Reload()
    assert {"rollout/ep_rew_mean", "rollout/ep_len_mean"} <= set(events.Tags()["scalars"])
    assert [event.value for event in events.Scalars("rollout/ep_len_mean")] == [STEPS, STEPS]
    assert [event.step for event in events.Scalars("rollout/ep_len_mean")] == [48, 96]


def test_training_on_the_bridge_is_training_on_dummy_vec_env():
    ours, theirs = (model(env).learn(192) for env in (VecMonitor(bridge()), dummy()))
    assert same_weights(ours, theirs)


def test_masked_training_and_evaluation_on_traces(tmp_path):
    pytest.importorskip("sb3_contrib")
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
    from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_masked

    learners, rewards = [], []
    for build in (lambda: VecMonitor(bridge("CrawlTrace-v0", **TRACE)), lambda: trace_dummy()):
        env = build()
        evaluation = MaskableEvalCallback(
            build(), n_eval_episodes=3, eval_freq=16, log_path=str(tmp_path), verbose=0
        )
        settings = {"n_steps": 16, "batch_size": 48, "n_epochs": 1, "seed": 0, "device": "cpu"}
        learners.append(MaskablePPO("MlpPolicy", env, **settings).learn(96, callback=evaluation))
        assert len(np.load(tmp_path / "evaluations.npz")["timesteps"]) == 2
        env.seed(3)
        scores = evaluate_masked(learners[-1], env, 3, return_episode_rewards=True)
        rewards.append(scores[0])
    assert same_weights(*learners)
    np.testing.assert_allclose(rewards[0], rewards[1], atol=1e-5)


def trace_dummy():
    return dummy("CrawlTrace-v0", **TRACE)
