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
from crawl_envs.evaluation import Row, evaluate, play, simulate, summarize
from crawl_envs.families.ncis import CrawlNCIS
from crawl_envs.instances import generator_of, make
from crawl_envs.sim.tape import CODE_STRIDE, Tape
from crawl_envs.sim.world import World
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Delay
from tests.environments import assert_same, of_our_own
from tests.worlds import lanes_of, single_of, vector_of

NCIS = "CrawlNCIS-v0"
SMALL = {"num_pages": 5, "bandwidth": 5.0, "horizon": 2.0}
NAN, INF = math.nan, math.inf
ERRORS = (ValueError, gym.error.Error)


def complains(call, *words):
    """The call fails with a line of our own that holds all the words."""
    with pytest.raises(ERRORS) as caught:
        call()
    of_our_own(caught)
    for word in words:
        match = re.search(rf"(?<![\w.]){re.escape(str(word))}(?![\w.]\w)", str(caught.value))
        assert match, f"{word!r} is not in {str(caught.value)!r}"


def instance(**more):
    given = {"importance": [1.0, 2.0], "change_rate": [1.0, 1.0], "bandwidth": 1.0}
    return Instance(**{**given, **more})


def made(env_id=NCIS, **given):
    return gym.make(env_id, **given)


def several(num_envs=2, **given):
    return gym.make_vec(NCIS, num_envs=num_envs, **given)


def small(**given):
    return made(**{**SMALL, **given}).unwrapped


def reset(env, **options):
    env.reset(seed=0, options=options)
    return env


def evaluated(**given):
    return list(evaluate(NCIS, given.pop("policies", {}), [0], **given, **SMALL))


def played(call, **given):
    """What is called with an instance, a policy of it, and a horizon."""
    env = reset(small())
    return call(env.instance, policies.make("GreedyNCIS", env), 1.0, **given)


RATES = ("importance", "change_rate", "recall", "false_signal_rate")
TWO = {"recall": [[0.5, 0.5], [0.25, 0.25]]}
TAPE = {
    "time": np.array([1.0, 2.0, 2.0]),
    "code": np.array([0, CODE_STRIDE + 1, 1]),
    "alive": np.ones(2, bool),
}

BAD_INSTANCES = [
    *(({name: x}, name, x) for name in RATES for x in (-0.5, NAN, INF, -INF)),
    *(({name: [0.5, x]}, name, x) for name in RATES for x in (-0.5, NAN, INF, -INF)),
    ({"recall": 1.5}, "recall", 1.5, "[0, 1]"),
    ({"recall": [0.0, 1.0 + 1e-9]}, "recall", 1.0 + 1e-9, "[0, 1]"),
    *(({name: [[[0.5, 0.5]]]}, name, "(1, 1, 2)", "shape") for name in RATES),
    *(({name: [0.5]}, name, "(1,)", "(2,)") for name in RATES[1:]),
    ({"importance": "a"}, "importance", "'a'"),
    ({"importance": []}, "importance", "page"),
    ({"importance": [[1.0], [1.0, 2.0]]}, "importance"),
    ({"importance": 1.0, "change_rate": []}, "change_rate"),
    # sources of signals
    ({"recall": [[0.5, 0.5], [0.5, 0.75]]}, "recall", "1.25", "page 1"),
    ({"recall": 0.75, "false_signal_rate": np.ones((2, 2))}, "recall", "1.5"),
    ({"recall": np.zeros((0, 2))}, "recall", "[1, 15]", "0"),
    ({"false_signal_rate": np.zeros((16, 2))}, "false_signal_rate", "16"),
    ({"recall": np.zeros((2, 3))}, "recall", "(2, 3)", "(S, 2)"),
    ({"recall": [[0.5, 0.5], [0.5]]}, "recall", "array of numbers"),
    (
        {"recall": np.zeros((2, 2)), "false_signal_rate": np.zeros((3, 2))},
        *("recall", "3 sources", "got 2"),
    ),
    ({"bandwidth": "fast"}, "bandwidth", "'fast'"),
    ({"bandwidth_steps": [1.0]}, "bandwidth_steps", "1.0"),
    ({"delay": "poisson"}, "delay", "'poisson'"),
]
BAD_STEPS = [  # of the bandwidth
    ([(0.0, 2.0)], "0.0"),
    ([(-1.0, 2.0)], "-1.0"),
    ([(1.0, 0.0)], "(1.0, 0.0)"),
    ([(1.0, -2.0)], "(1.0, -2.0)"),
    ([(1.0, NAN)], "(1.0, nan)"),
    ([(NAN, 1.0)], "nan"),
    ([(1.0, 2.0), (1.0, 3.0)], "1.0"),
    ([(2.0, 2.0), (1.0, 3.0)], "1.0"),
    ([(1.0, 2.0, 3.0)], "(1.0, 2.0, 3.0)"),
]
NO_PAIRS = [np.ones(2), np.ones((2, 3)), [1.0, 2.0], "ab", [["a", 1.0]]]
BAD_DELAYS = [
    ({"kind": "slow", "mean": 1.0}, "kind", "'slow'"),
    ({"kind": "constant", "mean": -1.0}, "mean", "-1.0"),
    ({"kind": "constant", "mean": NAN}, "mean", "nan"),
    ({"kind": "exponential", "mean": INF}, "mean", "inf"),
    ({"kind": "none", "mean": 1.0}, "mean", "1.0"),
    ({"kind": "poisson", "mean": 501.0}, "quanta", "501"),
    ({"kind": "poisson", "mean": 1.0, "quantum": 0.0}, "quantum", "0.0"),
    ({"kind": "poisson", "mean": 1.0, "quantum": INF}, "quantum", "inf"),
]
DELAYS_AS_PLAIN_VALUES = [
    ("poisson", "kind", "mean", "'poisson'"),
    ({"kind": "constant"}, "mean", "{'kind': 'constant'}"),
    ({"mean": 1.0}, "kind", "{'mean': 1.0}"),
    ({"kind": "constant", "mean": "long"}, "mean"),
    ({"kind": "constant", "mean": 1.0, "units": "time"}, "unit", "'units'"),
    ({"kind": "constant", "mean": 1.0, "unit": "hours"}, "unit", "'hours'"),
]
BAD_TAPES = [
    ({"code": np.array([0, CODE_STRIDE + 1])}, "time and code", "(3,)", "(2,)"),
    ({"time": np.ones((3, 1))}, "time", "(3, 1)"),
    ({"time": np.array([1.0, np.nan, 2.0])}, "time", "finite"),
    ({"time": np.array([-1.0, 1.0, 2.0])}, "time", ">= 0"),
    ({"time": np.array([1.0, 3.0, 2.0])}, "time", "event 2"),
    ({"code": np.array([0, 2 * CODE_STRIDE, 1])}, "code", "page below 2"),
    ({"code": np.array([0, -CODE_STRIDE, 1])}, "code", "page below 2"),
    ({"code": np.array([0, 34, 1])}, "code", "kind"),
    ({"code": np.array([0, 4, 1])}, "code", "source below 1"),
    ({"num_sources": 0}, "num_sources", 0),
]
BAD_LISTS = [  # of events
    ({"signals": ([1.0], [1], [1])}, "signals", "[0, 1)"),
    ({"signals": ([1.0], [1], [0, 0]), "num_sources": 2}, "signals"),
    ({"changes": ([1.0], [2])}, "tape code", "page below 2"),
    ({"changes": ([-1.0], [1])}, "tape time"),
    ({"changes": ([1.0, 2.0], [1])}, "changes", "(2,)", "(1,)"),
]
BAD_ARGUMENTS = [  # of an environment, single and vector
    *(("num_pages", x) for x in (0, -3, 2.0, "3")),
    *(("horizon", x) for x in (0.0, -1.0, NAN, INF, 1e300, "long")),
    *(("bandwidth", x) for x in (0.0, -1.0, NAN, INF)),
    *(("crawl_cost", x) for x in (-1.0, NAN)),
    *(("instance", "loud"), ("action", "guess"), ("objective", "profit"), ("reward", "praise")),
    *(("reveal", "everything"), ("resample", "no"), ("pages", "dev")),
]
BAD_RATES = [  # of an environment whose actions are rates
    ({"objective": [0.0, 1.0, 3.0]}, "objective", "concave"),
    ({"action": "page", "epoch": 2.0}, "epoch", "2.0", "'page'"),
    ({"action": "scores", "bucket": 3.0}, "bucket", "3.0", "'scores'"),
    ({"action": "page", "overspend": "error"}, "overspend", "'error'"),
    ({"batch": 3}, "batch", "3", "'rates'"),
    ({"instance": "no-such-file.parquet"}, "no-such-file.parquet"),
]
ROWS = [Row("id", "s", "a", 0, "m", 1.0)]
FAST = Instance(np.full(5, 1e9), 1.0, bandwidth=5.0)
BAD = [
    *((lambda x=x: instance(**x), *words) for x, *words in BAD_INSTANCES),
    *(
        (lambda call=call, x=x: call(bandwidth_steps=x), "bandwidth_steps", *words)
        for x, *words in BAD_STEPS
        for call in (instance, made)
    ),
    *((lambda x=x: Delay(**x), "delay", *words) for x, *words in BAD_DELAYS),
    *(
        (lambda x=x: made(delay=x), "delay", *words)
        for x, *words in BAD_DELAYS + DELAYS_AS_PLAIN_VALUES
    ),
    *((lambda x=x: Tape(**{**TAPE, **x}), "tape", *words) for x, *words in BAD_TAPES),
    *((lambda x=x: Tape.of_events(2, **x), *words) for x, *words in BAD_LISTS),
    (lambda: World(1, 3, tape=Tape(**TAPE)), "tape", "3 pages", "2"),
    (
        lambda: World(1, 2, tape=Tape.of_events(2, signals=([1.0], [1], [1]), num_sources=2)),
        *("tape", "1 sources", "2"),
    ),
    *(
        (lambda call=call, name=name, x=x: call(**{name: x}), name, repr(x))
        for name, x in BAD_ARGUMENTS
        for call in (made, several)
    ),
    *(
        (lambda call=call, x=x: call(bandwidth=x), "bandwidth", x)
        for x in (0.0, -1.0, NAN, INF)
        for call in (
            instance,
            lambda **x: generator_of("uniform", **x),
            lambda **x: make("uniform", **x),
        )
    ),
    *(
        (lambda x=x: made(instance="sources", num_sources=x), "num_sources", x)
        for x in (1, 16, 2.5)
    ),
    (lambda: made(instance="noisy", num_sources=2), "num_sources", "'noisy'"),
    (lambda: made(instance=["noisy"]), "instance"),
    (lambda: made("CrawlTrace-v0", trace=3), "trace"),
    (lambda: made("CrawlTrace-v0", window=np.ones((2, 2))), "window"),
    *(
        (lambda env_id=env_id: made(env_id, reward="fragments"), "reward must be", "'fragments'")
        for env_id in (NCIS, "CrawlTrace-v0")
    ),
    *((lambda x=x: made(horizon=x), "horizon", "finite") for x in (10**400, -(10**400))),
    *((lambda x=x: made(bandwidth_steps=x), "bandwidth_steps") for x in NO_PAIRS),
    *(
        (lambda x=x: made(objective=x), "objective must be")
        for x in (np.ma.masked_array([0, 1, 1.5], [0, 0, 1]), ["0", "1"], [False])
    ),
    *(
        (lambda given=given: made("CrawlHarmonic-v0", **given), *words)
        for given, *words in BAD_RATES
    ),
    # a horizon that is too short for a crawl, an epoch, or a whole batch, or too long
    (lambda: made("CrawlHarmonic-v0", horizon=0.75).reset(seed=0), "horizon", 0.75, "epoch", 1.0),
    (lambda: made("CrawlHarmonic-v0", epoch=1e-12, horizon=1e6).reset(seed=0), "horizon", "epoch"),
    (lambda: small(horizon=0.125).reset(seed=0), "horizon", "0.125", "5.0"),
    (
        lambda: small(bandwidth=2.0, horizon=1.5, action="scores", batch=4).reset(seed=0),
        *("horizon", "1.5", "4"),
    ),
    (lambda: made(bandwidth=1e11, horizon=1e6).reset(seed=0), "horizon", "bandwidth", "1e+17"),
    (lambda: reset(small(), instance=FAST), "importance", "horizon 2", "1e+09", "1e+10"),
    (
        lambda: reset(made(num_pages=2, bandwidth=2.0), instance=instance(**TWO)),
        *("instance", "1 sources", "2"),
    ),
    *((lambda x=x: several(x), "num_envs", repr(x)) for x in (0, 1.5, "x", 10**12)),
    (lambda: lanes_of(instance(), -1), "num_envs", -1),
    (lambda: several(render_mode="video"), "render_mode", "'video'"),
    (lambda: CrawlNCIS(render_mode="film"), "render_mode", "ansi", "film"),
    *((lambda x=x: several(autoreset_mode=x), "autoreset_mode", repr(x)) for x in ("Never", 3)),
    (lambda: several(copy="x"), "copy", "'x'"),
    *((lambda x=x: action_form("scores", 5, x), "batch", x, "[1, 5]") for x in (0, 6, 1.5)),
    *((lambda x=x: action_form(x, 5, 2), "batch", "2", repr(x)) for x in ("page", "refresh")),
    *((lambda x=x: Objective(crawl_cost=x), "crawl_cost", repr(x)) for x in (-1.0, NAN, "low")),
    (lambda: make("uniform", num_pages=10**12), "num_pages", 10**12),
    (lambda: make("uniform", seed=1.5), "seed", "1.5"),
    # before the first reset
    (lambda: small().step(0), "reset"),
    (lambda: small().instance, "reset"),
    *((lambda name=x: getattr(small(), name)(), "reset") for x in ("rng", "ledger", "tracker")),
    (lambda: several(**SMALL).unwrapped.step(np.zeros(2, np.int64)), "reset"),
    (lambda: several(**SMALL).unwrapped.instances, "reset"),
    # of simulate, play and evaluate
    (lambda: evaluated(policies={"one": 3}), "policies", 3),
    (lambda: evaluated(bounds={"one": 3}), "bounds", 3),
    (lambda: evaluated(compiled=3), "compiled", 3),
    (lambda: played(simulate, tape=3), "tape", 3),
    (lambda: played(simulate, requests=3), "requests", 3),
    (lambda: played(lambda true, _, end: simulate(true, policies.GreedyNCIS, end)), "policy"),
    (lambda: played(lambda true, policy, _: simulate(true, policy, 0.1)), "at least 1 crawls", 0),
    *(
        (lambda x=x: played(lambda true, policy, _: simulate(true, policy, x)), "horizon", repr(x))
        for x in (NAN, "x", 1e300)
    ),
    (lambda: played(lambda _, policy, end: simulate(3, policy, end)), "instance", 3),
    (lambda: played(lambda true, _, end: simulate(true, 3, end)), "policy", "compiled form", 3),
    (lambda: played(simulate, seed=1.5), "seed", "1.5"),
    (lambda: played(simulate, tape=Tape.of_events(3)), "tape", "5 pages and 1 sources", "3 and 1"),
    (
        lambda: simulate(
            instance(),
            policies.make("LowDiscrepancy", reset(made(num_pages=2))),
            *(1.0, 0, Tape.of_events(2, deaths=([0.5], [0]))),
        ),
        "must be an index policy",
    ),
    (lambda: next(evaluate(NCIS, {}, [3, 4, 4])), "seeds must differ", "4 2 times"),
    (lambda: summarize(ROWS, "n"), "metric must be one of m", "'n'"),
    (lambda: summarize(ROWS, "m", reference="b"), "reference must be one of a", "'b'"),
    (lambda: play(reset(small()), policies.GreedyNCIS, 0), "policy"),
    (lambda: play(reset(small()), policies.GreedyNCIS(), 0, compiled=False), "policy", "be bound"),
    (lambda: play(env := reset(small()), policies.make("GreedyNCIS", env), "x"), "seed", "'x'"),
]


NAMES = [" ".join(map(str, words)) for _, *words in BAD]


@pytest.mark.parametrize("case", BAD, ids=NAMES)
def test_bad_input(case):
    call, *words = case
    complains(call, *words)


def test_what_the_tables_change_is_right_without_the_change():
    instance(**TWO)
    Tape(**TAPE)


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
    *(("rates", value) for value in (3, None, np.ones(5, bool), np.full(5, 0.1j))),
    *(("rates", np.array([0.1] * 4 + [value])) for value in (-1e-9, np.nan, np.inf)),
    *(("rates", value) for value in (np.full(4, 0.1), np.full((5, 1), 0.1), [[0.1], [0.1, 0.2]])),
    ("rates", np.array(list("abcde"))),
    ("rates", np.full(5, 1e308)),  # the sum is not finite and cannot be scaled down
]


@pytest.mark.parametrize("case", BAD_ACTIONS)
def test_an_action_outside_its_space_changes_nothing(case):
    form, value, *words = case
    more = {**SMALL, "horizon": 6.0, "action": form}
    env, untouched = (gym.make(NCIS, **more).unwrapped for _ in range(2))
    good = {"page": 1, "scores": np.linspace(-1.0, 1.0, 5), "refresh": np.array([0, 1, 0, 1, 1])}
    good["rates"] = np.full(5, 0.1)
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
        ([[0], [1, 2], [3]], ()),
        ("x", ()),
        (None, ()),
    ],
)
def test_a_bad_action_of_one_lane_moves_no_lane(value, words):
    env = gym.make_vec(NCIS, num_envs=3, **SMALL).unwrapped
    untouched = gym.make_vec(NCIS, num_envs=3, **SMALL).unwrapped
    env.reset(seed=0)
    untouched.reset(seed=0)
    complains(lambda: env.step(value), "action", *words)
    good = np.array([0, 1, 2])
    assert np.array_equal(env.step(good)[0], untouched.step(good)[0])
    assert [env.ledger(lane) for lane in range(3)] == [untouched.ledger(lane) for lane in range(3)]


# Resets and steps

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
    "no mask": ({"options": {"reset_mask": [[1], [1, 2]]}}, "reset_mask", "bool"),
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
    "too many events": FAST,
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
