"""Bad input raises an error that names the argument and the value, before any work."""

from __future__ import annotations

import math
import re

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401
import policies
from crawl_envs import Instance
from crawl_envs.evaluation import evaluate, play, simulate
from crawl_envs.families.ncis import CrawlNCIS
from crawl_envs.instances import generator_of, make
from crawl_envs.sim.tape import CODE_STRIDE, Tape
from crawl_envs.sim.world import World
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Delay
from tests.environments import assert_same
from tests.worlds import lanes_of, single_of, vector_of

NCIS = "CrawlNCIS-v0"
SMALL = {"num_pages": 5, "bandwidth": 5.0, "horizon": 2.0}
ERRORS = (ValueError, gym.error.Error)


def complains(call, *words):
    """The call fails with a message that holds all the words."""
    with pytest.raises(ERRORS) as caught:
        call()
    for word in words:
        match = re.search(rf"(?<![\w.]){re.escape(str(word))}(?![\w.]\w)", str(caught.value))
        assert match, f"{word!r} is not in {str(caught.value)!r}"


# Types

RATE_NAMES = ("importance", "change_rate", "recall", "false_signal_rate")


def instance(**more):
    given = {"importance": [1.0, 2.0], "change_rate": [1.0, 1.0], "bandwidth": 1.0}
    return Instance(**{**given, **more})


@pytest.mark.parametrize("value", [-0.5, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", RATE_NAMES)
def test_rates_must_be_finite_and_not_negative(name, value):
    complains(lambda: instance(**{name: value}), name, value)
    complains(lambda: instance(**{name: [0.5, value]}), name, value)


@pytest.mark.parametrize("value", [1.5, [0.0, 1.0 + 1e-9]])
def test_recall_is_a_probability(value):
    complains(lambda: instance(recall=value), "recall", np.max(value), "[0, 1]")


@pytest.mark.parametrize("name", RATE_NAMES)
def test_shapes_must_agree(name):
    complains(lambda: instance(**{name: [[[0.5, 0.5]]]}), name, "(1, 1, 2)", "shape")
    if name != "importance":
        complains(lambda: instance(**{name: [0.5]}), name, "(1,)", "(2,)")


BAD_SOURCES = {
    "recalls above 1": ({"recall": [[0.5, 0.5], [0.5, 0.75]]}, "recall", "1.25", "page 1"),
    "one recall for both": (
        {"recall": 0.75, "false_signal_rate": np.ones((2, 2))},
        "recall",
        "1.5",
    ),
    "no source": ({"recall": np.zeros((0, 2))}, "recall", "[1, 15]", "0"),
    "too many sources": ({"false_signal_rate": np.zeros((16, 2))}, "false_signal_rate", "16"),
    "other pages": ({"recall": np.zeros((2, 3))}, "recall", "(2, 3)", "(S, 2)"),
    "ragged": ({"recall": [[0.5, 0.5], [0.5]]}, "recall", "array of numbers"),
    "other numbers of sources": (
        {"recall": np.zeros((2, 2)), "false_signal_rate": np.zeros((3, 2))},
        "recall",
        "3 sources",
        "got 2",
    ),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_sources_of_signals(case):
    given, *words = BAD_SOURCES[case]
    complains(lambda: instance(**given), *words)


def test_worlds_of_other_numbers_of_sources():
    two = instance(recall=[[0.5, 0.5], [0.25, 0.25]])
    env = gym.make(NCIS, num_pages=2, bandwidth=2.0)
    complains(lambda: env.reset(options={"instance": two}), "instance", "1 sources", "2")
    tape = Tape.of_events(2, signals=([1.0], [1], [1]), num_sources=2)
    complains(lambda: World(1, 2, tape=tape), "tape", "1 sources", "2")
    complains(lambda: Tape.of_events(2, signals=([1.0], [1], [1])), "signals", "[0, 1)")
    complains(lambda: Tape.of_events(2, signals=([1.0], [1], [0, 0]), num_sources=2), "signals")
    complains(lambda: gym.make(NCIS, instance="noisy", num_sources=2), "num_sources", "'noisy'")
    for number in (1, 16, 2.5):
        complains(
            lambda n=number: gym.make(NCIS, instance="sources", num_sources=n),
            "num_sources",
            number,
        )


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bandwidth_is_positive(value):
    complains(lambda: instance(bandwidth=value), "bandwidth", value)
    complains(lambda: generator_of("uniform", bandwidth=value), "bandwidth", value)
    complains(lambda: make("uniform", bandwidth=value), "bandwidth", value)
    complains(lambda: gym.make(NCIS, bandwidth=value), "bandwidth", value)


BAD_STEPS = {
    "time 0": ([(0.0, 2.0)], "0.0"),
    "time before 0": ([(-1.0, 2.0)], "-1.0"),
    "no bandwidth": ([(1.0, 0.0)], "(1.0, 0.0)"),
    "bandwidth below 0": ([(1.0, -2.0)], "(1.0, -2.0)"),
    "bandwidth unknown": ([(1.0, math.nan)], "(1.0, nan)"),
    "time unknown": ([(math.nan, 1.0)], "nan"),
    "times at once": ([(1.0, 2.0), (1.0, 3.0)], "1.0"),
    "times falling": ([(2.0, 2.0), (1.0, 3.0)], "1.0"),
    "no pair": ([(1.0, 2.0, 3.0)], "(1.0, 2.0, 3.0)"),
}


@pytest.mark.parametrize("case", BAD_STEPS)
def test_bandwidth_steps_are_pairs_in_order_of_time(case):
    steps, value = BAD_STEPS[case]
    complains(lambda: instance(bandwidth_steps=steps), "bandwidth_steps", value)
    complains(lambda: gym.make(NCIS, bandwidth_steps=steps), "bandwidth_steps", value)


BAD_DELAYS = {
    "unknown kind": ({"kind": "slow", "mean": 1.0}, "kind", "'slow'"),
    "mean below 0": ({"kind": "constant", "mean": -1.0}, "mean", "-1.0"),
    "mean unknown": ({"kind": "constant", "mean": math.nan}, "mean", "nan"),
    "mean endless": ({"kind": "exponential", "mean": math.inf}, "mean", "inf"),
    "a mean of nothing": ({"kind": "none", "mean": 1.0}, "mean", "1.0"),
    "too many quanta": ({"kind": "poisson", "mean": 501.0}, "quanta", "501"),
}


@pytest.mark.parametrize("case", BAD_DELAYS)
def test_delays(case):
    given, *words = BAD_DELAYS[case]
    complains(lambda: Delay(**given), "delay", *words)
    complains(lambda: gym.make(NCIS, delay=given), "delay", *words)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("poisson", ("kind", "mean", "'poisson'")),
        ({"kind": "constant"}, ("mean", "{'kind': 'constant'}")),
        ({"mean": 1.0}, ("kind", "{'mean': 1.0}")),
        ({"kind": "constant", "mean": 1.0, "units": "time"}, ("unit", "'units'")),
        ({"kind": "constant", "mean": 1.0, "unit": "hours"}, ("unit", "'hours'")),
    ],
)
def test_delays_as_plain_values(given, words):
    complains(lambda: gym.make(NCIS, delay=given), "delay", *words)


# Tapes

TAPE = {
    "time": np.array([1.0, 2.0, 2.0]),
    "code": np.array([0, CODE_STRIDE + 1, 1]),
    "alive": np.ones(2, bool),
}
BAD_TAPES = {
    "one code too few": ({"code": np.array([0, CODE_STRIDE + 1])}, "time and code", "(3,)", "(2,)"),
    "a table of times": ({"time": np.ones((3, 1))}, "time", "(3, 1)"),
    "time unknown": ({"time": np.array([1.0, np.nan, 2.0])}, "time", "finite"),
    "time before 0": ({"time": np.array([-1.0, 1.0, 2.0])}, "time", ">= 0"),
    "time falling": ({"time": np.array([1.0, 3.0, 2.0])}, "time", "event 2"),
    "a page too high": ({"code": np.array([0, 2 * CODE_STRIDE, 1])}, "code", "page below 2"),
    "a page below 0": ({"code": np.array([0, -CODE_STRIDE, 1])}, "code", "page below 2"),
    "no such kind": ({"code": np.array([0, 34, 1])}, "code", "kind"),
    "no such source": ({"code": np.array([0, 4, 1])}, "code", "source below 1"),
    "no source at all": ({"num_sources": 0}, "num_sources", 0),
}


@pytest.mark.parametrize("case", BAD_TAPES)
def test_tapes(case):
    Tape(**TAPE)
    given, *words = BAD_TAPES[case]
    complains(lambda: Tape(**{**TAPE, **given}), "tape", *words)


# Arguments of environments

BAD_ARGUMENTS = [
    ("num_pages", 0),
    ("num_pages", -3),
    ("num_pages", 2.0),
    ("num_pages", "3"),
    ("horizon", 0.0),
    ("horizon", -1.0),
    ("horizon", math.nan),
    ("horizon", math.inf),
    ("instance", "loud"),
    ("action", "guess"),
    ("objective", "profit"),
    ("reward", "praise"),
    ("reveal", "everything"),
    ("crawl_cost", -1.0),
    ("crawl_cost", math.nan),
]


@pytest.mark.parametrize(("name", "value"), BAD_ARGUMENTS)
def test_arguments_of_an_environment(name, value):
    complains(lambda: gym.make(NCIS, **{name: value}), name, repr(value))
    complains(lambda: gym.make_vec(NCIS, num_envs=2, **{name: value}), name, repr(value))


def test_a_horizon_without_a_crawl():
    """Neither one that is too short for a crawl, nor one too short for a whole batch."""
    short = gym.make(NCIS, num_pages=5, bandwidth=5.0, horizon=0.125)
    complains(lambda: short.reset(seed=0), "horizon", "0.125", "5.0")
    batch = gym.make(NCIS, num_pages=5, bandwidth=2.0, horizon=1.5, action="scores", batch=4)
    complains(lambda: batch.reset(seed=0), "horizon", "1.5", "4")


# Actions

BAD_ACTIONS = [
    ("page", 5, "[0, 5)", "5"),
    ("page", -1, "[0, 5)", "-1"),
    ("page", 2.0, "action must be a page in [0, 5), got 2.0"),
    ("page", [1, 2], "action must be a page in [0, 5), got int64 (2,)"),
    *(("page", value) for value in (2**40, True, "2", None, [1], math.nan)),
    ("scores", np.full(5, 1.5), "[-1, 1]", "1.5"),
    ("scores", np.zeros(4, np.float32), "(5,)", "(4,)"),
    ("scores", np.zeros((5, 1), np.float32)),
    *(("scores", np.array([0.0, 0.0, value, 0.0, 0.0])) for value in (-1.001, np.nan, np.inf)),
    ("scores", np.array(list("abcde"))),
    ("scores", 3, "action must be scores in [-1, 1], of shape (5,), got 3"),
    ("scores", [0.5], "action must be scores in [-1, 1], of shape (5,), got float64 (1,)"),
    ("scores", [[1], [1, 2]], "of shape (5,), got rows of different lengths"),
    ("refresh", np.array([0, 1, 2, 0, 0], np.int8), "0 or 1", "0..2"),
    ("refresh", np.full(5, 0.5), "0 or 1", "0.5..0.5"),
    ("refresh", np.zeros(4, np.int8)),
    ("refresh", np.array([0, 1, -1, 0, 0], np.int8)),
    ("refresh", np.array([0.0, 1.0, np.nan, 0.0, 0.0])),
    ("refresh", 1),
]


@pytest.mark.parametrize("case", BAD_ACTIONS)
def test_an_action_outside_its_space_changes_nothing(case):
    form, value, *words = case
    env, untouched = (gym.make(NCIS, action=form, **SMALL).unwrapped for _ in range(2))
    good = {"page": 1, "scores": np.linspace(-1.0, 1.0, 5), "refresh": np.array([0, 1, 0, 1, 1])}
    for one in (env, untouched):
        one.reset(seed=0)
        one.step(good[form])
    complains(lambda: env.step(value), "action", *words)
    for _ in range(3):
        assert_same(env.step(good[form]), untouched.step(good[form]))
    assert env.ledger() == untouched.ledger()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 5, 2], ("5", "lane 1")),
        ([1, 2, -4], ("-4", "lane 2")),
        ([1, 2], ("(3,)", "(2,)")),
        ([[1, 2, 3]], ("(3,)", "(1, 3)")),
        ([1.0, 2.0, 3.0], ("float64",)),
    ],
)
def test_a_bad_action_of_one_lane_moves_no_lane(value, words):
    env = gym.make_vec(NCIS, num_envs=3, **SMALL).unwrapped
    untouched = gym.make_vec(NCIS, num_envs=3, **SMALL).unwrapped
    env.reset(seed=0)
    untouched.reset(seed=0)
    complains(lambda: env.step(np.array(value)), "action", *words)
    good = np.array([0, 1, 2])
    assert np.array_equal(env.step(good)[0], untouched.step(good)[0])
    assert [env.ledger(lane) for lane in range(3)] == [untouched.ledger(lane) for lane in range(3)]


# Resets and steps


def test_a_step_before_the_first_reset():
    env = gym.make(NCIS, **SMALL).unwrapped
    complains(lambda: env.step(0), "reset")
    complains(lambda: env.instance, "reset")
    complains(lambda: env.rng(), "reset")
    lanes = gym.make_vec(NCIS, num_envs=2, **SMALL).unwrapped
    complains(lambda: lanes.step(np.zeros(2, np.int64)), "reset")
    complains(lambda: lanes.instances, "reset")


SMALLER = Instance([1.0, 2.0], 1.0, bandwidth=1.0)
BAD_RESETS = {
    "a seed below 0": ({"seed": -1}, "seed", "-1"),
    "a seed that is no integer": ({"seed": 1.5}, "seed", "1.5"),
    "text for a seed": ({"seed": "one"}, "seed", "'one'"),
    "a number for options": ({"options": 3}, "options", "3"),
    "an unknown option": ({"options": {"world": 3}}, "options", "'world'"),
    "no instance": ({"options": {"instance": 3}}, "options", "instance", "3"),
    "too small an instance": ({"options": {"instance": SMALLER}}, "instance", "5 pages", "2"),
    "a lane's seed below 0": ({"seed": [1, -2]}, "seed", "-2"),
    "seeds for other numbers of lanes": ({"seed": [1, 2, 3]}, "seed", "[1, 2, 3]"),
    "no instances": ({"options": {"instance": [3, 4]}}, "instance", "[3, 4]"),
    "too few instances": ({"options": {"instance": [SMALLER]}}, "instance", "2"),
    "a mask of one lane": ({"options": {"reset_mask": np.ones(1, bool)}}, "reset_mask", "(2,)"),
    "a mask of no lane": ({"options": {"reset_mask": np.zeros(2, bool)}}, "reset_mask", "False"),
    "a mask of numbers": ({"options": {"reset_mask": np.ones(2)}}, "reset_mask", "bool"),
}


@pytest.mark.parametrize("case", BAD_RESETS)
def test_resets(case):
    """The first of them are of single environments too."""
    given, *words = BAD_RESETS[case]
    complains(lambda: gym.make_vec(NCIS, num_envs=2, **SMALL).unwrapped.reset(**given), *words)
    if list(BAD_RESETS).index(case) < 7:
        complains(lambda: gym.make(NCIS, **SMALL).unwrapped.reset(**given), *words)


REFUSED = {
    "too few pages": SMALLER,
    "too slow": Instance(np.full(5, 9.0), 1.0, bandwidth=0.25),
}


@pytest.mark.parametrize("case", ["no page", *REFUSED])
@pytest.mark.parametrize("resample", [False, True])
def test_a_reset_that_fails_changes_nothing(case, resample):
    """The episode goes on as if nothing had been asked, and so does the next."""
    envs = [gym.make(NCIS, resample=resample, **SMALL).unwrapped for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
        env.step(0)
    given = {"instance": REFUSED.get(case, "no page")}
    complains(lambda: envs[0].reset(options=given), "")
    for _ in range(2):
        for page in range(5):
            mine, yours = (env.step(page) for env in envs)
            assert np.array_equal(mine[0], yours[0])
            assert mine[1:] == yours[1:]
        assert envs[0].ledger() == envs[1].ledger()
        assert np.array_equal(envs[0].rng().random(3), envs[1].rng().random(3))
        envs[0].reset()
        envs[1].reset()
        assert np.array_equal(envs[0].instance.importance, envs[1].instance.importance)


def test_a_step_past_the_end():
    single = single_of(instance(), horizon=2.0)
    single.reset(seed=0)
    single.step(0)
    assert single.step(0)[3]
    complains(lambda: single.step(0), "reset", "ended")
    lanes = vector_of(instance(), 2, horizon=2.0)
    lanes.reset(seed=0)
    for _ in range(2):
        lanes.step(np.zeros(2, np.int64))
    complains(lambda: lanes.step(np.zeros(2, np.int64)), "reset", "ended", "[0 1]")


# Wrong kinds of values: the contract asks for a ValueError that names the argument.


def in_lanes(**more):
    return lambda: gym.make_vec(NCIS, **more)


WRONG_KINDS = {
    "no page": (lambda: Instance([], 1.0, bandwidth=1.0), "importance", "page"),
    "no quantum": (lambda: Delay("poisson", 1.0, 0.0), "delay quantum", "0.0"),
    "an endless quantum": (lambda: Delay("poisson", 1.0, math.inf), "delay quantum", "inf"),
    "an event of no page": (
        lambda: Tape.of_events(2, changes=([1.0], [2])),
        "tape code",
        "page below 2",
    ),
    "an event before time 0": (lambda: Tape.of_events(2, changes=([-1.0], [1])), "tape time"),
    "a tape of other pages": (lambda: World(1, 3, tape=Tape(**TAPE)), "tape", "3 pages", "2"),
    "a mode of rendering": (lambda: CrawlNCIS(render_mode="film"), "render_mode", "ansi", "film"),
    "a vector's mode of rendering": (in_lanes(render_mode="video"), "render_mode", "'video'"),
    "no lanes": (in_lanes(num_envs=0), "num_envs", 0),
    "less than no lanes": (lambda: lanes_of(instance(), -1), "num_envs", -1),
    "an autoreset mode": (in_lanes(autoreset_mode="Never"), "autoreset_mode", "'Never'"),
    "no batch": (lambda: action_form("scores", 5, 0), "batch", 0, "[1, 5]"),
    "a batch of too many": (lambda: action_form("scores", 5, 6), "batch", 6, "[1, 5]"),
    "a batch of single pages": (lambda: action_form("page", 5, 2), "batch", "2", "'page'"),
    "a batch of sets": (lambda: action_form("refresh", 5, 2), "batch", "2", "'refresh'"),
    "crawls that pay": (lambda: Objective(crawl_cost=-1.0), "crawl_cost", -1.0),
    "crawls without price": (lambda: Objective(crawl_cost=math.nan), "crawl_cost", math.nan),
    "text for rates": (lambda: Instance("a", 1.0, bandwidth=1.0), "importance", "'a'"),
    "ragged rates": (lambda: Instance([[1.0], [1.0, 2.0]], 1.0, bandwidth=1.0), "importance"),
    "no change rate": (lambda: Instance(1.0, [], bandwidth=1.0), "change_rate"),
    "text for a bandwidth": (lambda: instance(bandwidth="fast"), "bandwidth", "'fast'"),
    "numbers for steps": (lambda: instance(bandwidth_steps=[1.0]), "bandwidth_steps", "1.0"),
    "text for a delay": (lambda: instance(delay="poisson"), "delay", "'poisson'"),
    "text for a horizon": (lambda: gym.make(NCIS, horizon="long"), "horizon", "'long'"),
    "events without end": (
        lambda: gym.make(NCIS, **SMALL).unwrapped.reset(
            options={"instance": Instance(np.full(5, 1e9), 1.0, bandwidth=5.0)}
        ),
        "importance",
        "horizon 2",
        "1e+09",
        "1e+10",
    ),
    "crawls without end": (
        lambda: gym.make(NCIS, bandwidth=1e11, horizon=1e6).reset(seed=0),
        "horizon",
        "bandwidth",
        "1e+17",
    ),
    "a horizon without end": (lambda: gym.make(NCIS, horizon=1e300), "horizon", "1e+300"),
    "more pages than codes": (lambda: make("uniform", num_pages=10**12), "num_pages", 10**12),
    "text for a flag": (lambda: gym.make(NCIS, resample="no"), "resample", "'no'"),
    "a broken seed of an instance": (lambda: make("uniform", seed=1.5), "seed", "1.5"),
    "half a batch": (lambda: action_form("scores", 5, 1.5), "batch", "1.5"),
    "text for a price": (lambda: Objective(crawl_cost="low"), "crawl_cost", "'low'"),
    "text for a delay's mean": (
        lambda: gym.make(NCIS, delay={"kind": "constant", "mean": "long"}),
        "delay",
        "mean",
    ),
    "an event without a page": (
        lambda: Tape.of_events(2, changes=([1.0, 2.0], [1])),
        "changes",
        "(2,)",
        "(1,)",
    ),
}


@pytest.mark.parametrize("case", WRONG_KINDS)
def test_wrong_kinds_of_values(case):
    call, *words = WRONG_KINDS[case]
    complains(call, *words)


@pytest.mark.parametrize("env_id", ["CrawlNCIS-v0", "CrawlTrace-v0"])
def test_rewards_of_other_families_are_refused(env_id):
    with pytest.raises(ValueError, match=r"reward must be .*'fragments'"):
        gym.make(env_id, reward="fragments")


def test_integers_beyond_the_range_of_floats_are_refused():
    for value in (10**400, -(10**400)):
        complains(lambda given=value: gym.make(NCIS, horizon=given), "horizon", "finite")


@pytest.mark.parametrize("table", [np.ma.masked_array([0, 1, 1.5], [0, 0, 1]), ["0", "1"], [False]])
def test_tables_of_penalties_are_of_numbers(table):
    with pytest.raises(ValueError, match="objective must be"):
        gym.make("CrawlNCIS-v0", objective=table)


# What a single environment and its lanes do not have


def test_a_single_environment_has_no_lanes_to_choose():
    env = gym.make(NCIS, **SMALL)
    env.reset(seed=0)
    for name in ("reset_mask", "other"):
        with pytest.raises(ValueError, match=rf"options must be 'instance', got \('{name}',\)"):
            env.reset(options={name: np.ones(1, bool)})
    with pytest.raises(ValueError, match=r"options\['instance'\] must be an Instance, got 3"):
        env.reset(options={"instance": 3})
    lanes = gym.make_vec(NCIS, 2, **SMALL)
    complains(lambda: lanes.reset(options={"other": 1}), "reset_mask", "instance")


@pytest.mark.parametrize(
    "method", ["tracker", "last_log", "ledger", "rng", "num_slots", "current_observation"]
)
def test_there_are_no_lanes_before_the_first_or_after_the_last(method):
    env = gym.make_vec(NCIS, 2, **SMALL)
    env.reset(seed=0)
    read = getattr(env.unwrapped, method)
    read(1)
    for lane in (-1, 2, "x", 0.5):
        with pytest.raises(ValueError, match=r"lane must be an integer in \[0, 1\], got"):
            read(lane)


FOREIGN = {
    "instance": (NCIS, {"instance": ["noisy"]}),
    "trace": ("CrawlTrace-v0", {"trace": 3}),
    "window": ("CrawlTrace-v0", {"window": np.ones((2, 2))}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_arguments_of_another_type_get_the_usual_error(name):
    env_id, given = FOREIGN[name]
    complains(lambda: gym.make(env_id, **given), name)


def test_more_lanes_than_there_may_be_are_refused():
    complains(lambda: gym.make_vec(NCIS, 10**12), "num_envs", 10**12)


EVALUATED = {
    "policies": {"policies": {"one": 3}},
    "bounds": {"bounds": {"one": 3}},
    "compiled": {"compiled": 3},
}


@pytest.mark.parametrize("name", EVALUATED)
def test_evaluate_refuses_what_it_cannot_call(name):
    given = {"policies": {}, **EVALUATED[name]}
    complains(lambda: list(evaluate(NCIS, given.pop("policies"), [0], **given, **SMALL)), name, 3)


def test_simulate_and_play_refuse_what_they_cannot_use():
    env = gym.make(NCIS, **SMALL)
    env.reset(seed=0)
    policy, true = policies.GreedyNCIS(env), env.unwrapped.instance
    complains(lambda: simulate(true, policy, 1.0, tape=3), "tape", 3)
    complains(lambda: simulate(true, policy, 1.0, requests=3), "requests", 3)
    complains(lambda: simulate(true, policies.GreedyNCIS, 1.0), "policy")
    complains(lambda: play(env, policies.GreedyNCIS, 0), "policy")
    complains(lambda: play(env, policy, "x"), "seed", "'x'")
