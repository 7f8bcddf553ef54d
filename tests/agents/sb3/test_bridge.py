"""The bridge gives what DummyVecEnv gives, step for step."""

from __future__ import annotations

import copy
import sys
import types

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize, VecVideoRecorder

import policies
from agents.sb3.bridge import CrawlVecEnv
from crawl_envs import Instance

ID = "crawl_envs:CrawlNCIS-v0"
SMALL = {"num_pages": 5, "bandwidth": 4.0, "horizon": 3.0, "instance": "noisy"}
RECORDED = {"window": [10.0, 16.0], "days_per_crawl": 60.0}
SETTINGS = {
    "page": {},
    "resampled": {"resample": True},
    "delayed": {"delay": {"kind": "exponential", "mean": 0.3}},
    "scores": {"action": "scores", "batch": 2},
    "refresh": {"action": "refresh", "crawl_cost": 0.01},
    "requests": {"reward": "requests", "reveal": "importance"},
    "recorded": {"env_id": "crawl_envs:CrawlTrace-v0", **RECORDED},
}


def named(arguments):
    """The id of an environment, and its arguments."""
    known = arguments if "env_id" in arguments else {"env_id": ID, **SMALL, **arguments}
    return known["env_id"], {name: value for name, value in known.items() if name != "env_id"}


def bridge(num_lanes: int = 3, *, full_infos: bool = False, **arguments) -> CrawlVecEnv:
    env_id, own = named(arguments)
    vector = gym.make_vec(env_id, num_envs=num_lanes, autoreset_mode="SameStep", **own)
    return CrawlVecEnv(vector, full_infos=full_infos)


def dummy(num_lanes: int = 3, **arguments) -> DummyVecEnv:
    env_id, own = named(arguments)
    return DummyVecEnv([lambda: gym.make(env_id, **own)] * num_lanes)


def random_actions(env, rng):
    one = env.action_space
    if isinstance(one, gym.spaces.Discrete):
        return rng.integers(one.n, size=env.num_envs)
    if isinstance(one, gym.spaces.MultiBinary):
        return rng.integers(2, size=(env.num_envs, one.n)).astype(np.int8)
    return rng.uniform(-1, 1, size=(env.num_envs, *one.shape)).astype(np.float32)


def assert_same_info(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_equal(ours[name], value)
        assert type(ours[name]) is type(value)
        assert getattr(ours[name], "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("setting", SETTINGS)
def test_steps_are_those_of_dummy_vec_env(setting):
    ours, theirs = bridge(full_infos=True, **SETTINGS[setting]), dummy(**SETTINGS[setting])
    lean = bridge(**SETTINGS[setting])
    for env in (ours, theirs, lean):
        env.seed(11)
    first = theirs.reset()
    np.testing.assert_array_equal(ours.reset(), first)
    np.testing.assert_array_equal(lean.reset(), first)
    rng, ends, masked = np.random.default_rng(0), 0, False
    for _ in range(90):
        actions = random_actions(theirs, rng)
        got, expected, lean_got = ours.step(actions), theirs.step(actions), lean.step(actions)
        for part, lean_part, other in zip(got[:3], lean_got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(part, other)
            np.testing.assert_array_equal(lean_part, other)
            assert part.dtype == lean_part.dtype == other.dtype
            assert part.shape == other.shape
        for lane in range(3):
            assert_same_info(got[3][lane], expected[3][lane])
            if expected[2][lane]:
                assert_same_info(lean_got[3][lane], expected[3][lane])
            else:
                assert lean_got[3][lane] == {"TimeLimit.truncated": False}
        np.testing.assert_equal(ours.reset_infos, theirs.reset_infos)
        masks = np.stack(ours.env_method("action_masks"))
        np.testing.assert_array_equal(masks, np.stack(theirs.env_method("action_masks")))
        np.testing.assert_array_equal(masks, ours.action_masks())
        ends, masked = ends + int(expected[2].sum()), masked or not masks.all()
    assert ends >= 9
    assert masked == (setting == "recorded")
    # A second reset, without a seed, goes on with the lanes' streams.
    np.testing.assert_array_equal(ours.reset(), theirs.reset())


def test_spaces_are_those_of_a_single_environment():
    ours, theirs = bridge(), dummy()
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.render_mode is None


def test_lanes_that_end_at_different_steps():
    instances = [Instance([1.0, 2.0, 3.0], 0.5, bandwidth=rate) for rate in (2.0, 3.0)]
    options = [{"instance": instance} for instance in instances]
    ours = bridge(2, num_pages=3, full_infos=True)
    theirs = dummy(2, num_pages=3)
    for env in (ours, theirs):
        env.seed(5)
        env.set_options(options)
        env.reset()
    ends = []
    for step in range(40):
        actions = np.array([step % 3, (2 * step) % 3])
        got, expected = ours.step(actions), theirs.step(actions)
        for part, other in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(part, other)
        for lane in range(2):
            assert_same_info(got[3][lane], expected[3][lane])
        ends.append(tuple(expected[2]))
    assert {(True, False), (False, True)} <= set(ends)


def test_an_option_for_some_lanes_only_is_refused():
    ours = bridge(2, num_pages=3)
    ours.set_options([{"instance": Instance([1.0, 2.0, 3.0], 0.5, bandwidth=2.0)}, {}])
    with pytest.raises(ValueError, match="'instance' must be set for all lanes or for none"):
        ours.reset()


def test_bits_may_be_floats_as_models_draw_them():
    bits = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    results = []
    for dtype in (np.int8, np.float32):
        env = bridge(action="refresh")
        env.seed(0)
        env.reset()
        results.append(env.step(bits.astype(dtype))[0])
    np.testing.assert_array_equal(*results)
    with pytest.raises(ValueError, match="action must be bits"):
        env.step(bits * 0.5)


def test_returned_arrays_stay_valid():
    env = bridge()
    env.seed(0)
    first = env.reset()
    kept = first.copy()
    second = env.step(np.array([1, 2, 3]))
    kept_second = [part.copy() for part in second[:3]]
    env.step(np.array([0, 0, 0]))
    np.testing.assert_array_equal(first, kept)
    for part, copied in zip(second[:3], kept_second, strict=True):
        np.testing.assert_array_equal(part, copied)


def test_every_lane_has_an_info_of_its_own():
    env = bridge()
    env.seed(0)
    env.reset()
    first, second, _ = env.step(np.array([0, 1, 2]))[3]
    first["mine"] = 1
    assert second == {"TimeLimit.truncated": False}
    assert "mine" not in env.step(np.array([0, 1, 2]))[3][0]


def test_what_policies_read_are_attributes_of_the_bridge():
    env = bridge(2)
    env.seed(0)
    env.reset()
    assert env.features == env.vector.features
    rates = env.get_attr("problem")[1].change_rate
    np.testing.assert_array_equal(env.tracker(1).problem.change_rate, rates)
    assert VecMonitor(env).features == env.features
    assert isinstance(copy.copy(env), CrawlVecEnv)
    with pytest.raises(AttributeError, match="nothing"):
        env.nothing  # noqa: B018


def test_wrappers_of_stable_baselines_work_on_its_infos():
    env = VecNormalize(VecMonitor(bridge()))
    env.seed(0)
    env.reset()
    episodes = []
    for _ in range(30):
        infos = env.step(np.array([0, 1, 2]))[3]
        episodes += [info["episode"] for info in infos if "episode" in info]
    assert len(episodes) >= 6
    assert all(episode["l"] == 12 for episode in episodes)


def test_attributes_and_methods_of_lanes():
    ours, theirs = bridge(), dummy()
    for env in (ours, theirs):
        env.seed(3)
        env.reset()
    for name in ("features", "action_form", "batch", "num_lanes"):
        assert ours.get_attr(name) == theirs.get_attr(name)
    rates = [instance.change_rate for instance in ours.get_attr("instance", [0, 2])]
    expected = [instance.change_rate for instance in theirs.get_attr("instance", [0, 2])]
    np.testing.assert_array_equal(rates, expected)
    np.testing.assert_array_equal(ours.env_method("action_masks"), np.ones((3, 5), bool))
    np.testing.assert_array_equal(ours.env_method("action_masks", indices=1), np.ones((1, 5), bool))
    assert ours.env_method("num_slots") == theirs.env_method("num_slots") == [12] * 3
    assert ours.env_method("ledger") == theirs.env_method("ledger")
    ours.set_attr("note", "mine", indices=1)
    assert ours.get_attr("note", 1) == ["mine"]
    assert ours.has_attr("action_masks")
    assert not ours.has_attr("note")
    with pytest.raises(AttributeError):
        ours.get_attr("nothing")
    with pytest.raises(AttributeError):
        ours.set_attr("instance", None)
    assert ours.env_is_wrapped(gym.wrappers.TimeLimit) == [False] * 3


def test_analytic_policies_act_through_the_bridge_as_alone():
    env = bridge(4)
    policy = policies.make("GreedyNCIS", env)
    env.seed(7)
    returns, lengths = evaluate_policy(
        policy, VecMonitor(env), n_eval_episodes=4, return_episode_rewards=True
    )
    single = gym.make(ID, **SMALL)
    alone = policies.make("GreedyNCIS", single)
    for lane in range(4):
        observation, _ = single.reset(seed=7 + lane)
        total, over = 0.0, False
        while not over:
            action, _ = alone.predict(observation)
            observation, reward, _, over, _ = single.step(action)
            total += reward
        assert returns[lane] == pytest.approx(total, rel=1e-5)
    assert lengths == [12] * 4


def test_an_action_outside_its_space_changes_nothing():
    env = bridge()
    env.seed(0)
    env.reset()
    before = env.vector.get_state()["world"]
    with pytest.raises(ValueError, match="action must be a page"):
        env.step(np.array([0, 1, 5]))
    assert str(env.vector.get_state()["world"]) == str(before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"autoreset_mode": "NextStep"}, "must be made with autoreset_mode='SameStep'"),
        ({"autoreset_mode": "SameStep", "copy": False}, "must be made with copy=True"),
    ],
)
def test_unfit_vector_environments_are_refused(arguments, message):
    vector = gym.make_vec(ID, num_envs=2, **SMALL, **arguments)
    with pytest.raises(ValueError, match=message):
        CrawlVecEnv(vector)


def test_foreign_vector_environments_are_refused():
    vector = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(ValueError, match=r"must be made by gymnasium\.make_vec"):
        CrawlVecEnv(vector)
    vector.close()


def test_policies_of_rates_act_through_the_bridge_as_in_single_environments():
    arguments = {"num_pages": 8, "bandwidth": 4.0, "horizon": 5.0}
    ours, theirs = (
        make(env_id="crawl_envs:CrawlHarmonic-v0", **arguments) for make in (bridge, dummy)
    )
    for env in (ours, theirs):
        env.seed(3)
    seen = ours.reset()
    np.testing.assert_array_equal(seen, theirs.reset())
    policy = policies.make("LambdaCrawl", ours)
    for _ in range(12):
        actions, _ = policy.predict(seen)
        assert ours.action_space.contains(actions[0])
        seen, *got = ours.step(actions)
        for part, other in zip((seen, *got[:2]), theirs.step(actions)[:3], strict=True):
            np.testing.assert_array_equal(part, other)


def test_pictures_are_those_of_dummy_vec_env():
    ours, theirs = (make(3, render_mode="rgb_array") for make in (bridge, dummy))
    for env in (ours, theirs):
        env.seed(2)
        env.reset()
        env.step(np.arange(3))
    assert ours.render_mode == theirs.render_mode == "rgb_array"
    assert ours.metadata["render_fps"] == theirs.get_attr("metadata")[0]["render_fps"]
    assert [*ours.metadata["render_modes"], "human"] == theirs.metadata["render_modes"]
    for mine, yours in zip(ours.get_images(), theirs.get_images(), strict=True):
        np.testing.assert_array_equal(mine, yours)
    assert ours.render().shape == (1200, 1600, 3)
    np.testing.assert_array_equal(ours.render(), theirs.render())
    np.testing.assert_array_equal(ours.env_method("render", indices=1)[0], ours.get_images()[1])


def test_texts_are_those_of_dummy_vec_env():
    ours, theirs = (make(2, render_mode="ansi") for make in (bridge, dummy))
    for env in (ours, theirs):
        env.seed(2)
        env.reset()
    assert ours.env_method("render") == theirs.env_method("render")
    with pytest.warns(UserWarning, match="render_mode must be 'rgb_array'"):
        assert ours.get_images() == [None, None]


def test_without_a_render_mode_there_is_no_picture():
    env = bridge(2)
    env.reset()
    assert env.render_mode is None
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_videos_are_recorded(tmp_path, monkeypatch):
    written = {}

    class Clip:
        def __init__(self, frames, fps):
            written["frames"], written["fps"] = list(frames), fps

        def write_videofile(self, path):
            written["path"] = path

    places = ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip")
    for place in places:
        monkeypatch.setitem(sys.modules, place, types.ModuleType(place))
    sys.modules[places[-1]].ImageSequenceClip = Clip
    env = VecVideoRecorder(
        bridge(2, render_mode="rgb_array"), tmp_path, lambda step: step == 0, video_length=2
    )
    env.reset()
    for page in range(3):
        env.step(np.full(2, page))
    assert written["fps"] == 10
    assert [frame.shape for frame in written["frames"]] == [(1200, 800, 3)] * 3
    assert not np.array_equal(written["frames"][0], written["frames"][2])
