"""Bad input of policies for pages with fragments."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from policies import bind
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    UniformRefresh,
)
from policies.values.divergence.curves import HolisticCurves
from tests.policies.longevity.fragment_play import fragments, play
from tests.policies.longevity.test_known_curves import recorded

OF_CURVES = (FragmentStatic, HolisticStatic, CurrentDivergence)
LEARNERS = (CurveFitting, DivergenceBounds, ChoGarciaMolina)
THRESHOLDS = (*LEARNERS, *OF_CURVES, FragmentDynamic, HolisticDynamic, LearningLongevity)
CURVES = HolisticCurves([1.0, 2.0])


def made(policy, form="refresh", reveal="parameters", **given):
    """Play an episode of 40 pages; in the form refresh most have a threshold."""
    if form == "refresh" and policy is not UniformRefresh:
        given = {"threshold": 1.0, **given}
    env = fragments(form, reveal=reveal)
    return lambda: play(env, bind(policy(**given), env))


def elsewhere(policy, **given):
    """Play pages that are no fragments."""
    env = gym.make("CrawlNCIS-v0", num_pages=4, bandwidth=4.0, horizon=2.0)
    return lambda: play(env, bind(policy(**given), env))


def unmeasured(policy):
    """Play recorded pages, without curves."""
    env = recorded()
    return lambda: play(env, bind(policy(), env))


BAD = [
    *(
        (made(policy, threshold=bad), f"threshold must be .* got {bad!r}")
        for policy in THRESHOLDS
        for bad in (None, 0.0, -1.0, np.nan, "1")
    ),
    *(
        (made(policy, "page", curves=bad), "curves must be divergence curves")
        for policy in OF_CURVES
        for bad in (3, "curves", [0.1, 0.2], np.ones(40))
    ),
    *(
        (
            made(policy, "page", "importance"),
            rf"for {policy.__name__}.* reveal='parameters'",
        )
        for policy in OF_CURVES
    ),
    *(
        (unmeasured(policy), rf"{policy.__name__}.* no regions.*of_contents")
        for policy in (FragmentStatic, CurrentDivergence)
    ),
    *(
        (elsewhere(policy), rf"for {policy.__name__}.* no regions")
        for policy in (FragmentStatic, CurrentDivergence)
    ),
    *(
        (elsewhere(policy), "fragments")
        for policy in (CurveFitting, DivergenceBounds, FragmentDynamic, HolisticDynamic)
    ),
    (elsewhere(LearningLongevity), "env must be an environment of pages with fragments"),
    (elsewhere(CurrentDivergence, dynamic=True), "fragments for CurrentDivergence"),
    (made(CurrentDivergence, dynamic=1), "dynamic"),
    (made(CurrentDivergence, curves=CURVES, dynamic=True), "must be None with dynamic=True"),
    (made(FragmentStatic, curves=CURVES), "curves must be of 40 pages"),
    (made(UniformRefresh), "interval"),
    (made(UniformRefresh, interval=1.0, static=[0, 1]), "static"),
    (made(UniformRefresh, interval=2.0, static=np.ones(39, bool)), r"must have shape \(40,\)"),
    (made(ChoGarciaMolina, estimator="naive"), "estimator"),
    (made(ChoGarciaMolina, warm_up=0.0), "warm_up"),
    (made(CurveFitting, "page", risk=10.0), "risk needs a threshold"),
    *(
        (made(CurveFitting, **{name: 0}), name)
        for name in ("histories", "length", "learning", "risk", "sketch_size")
    ),
    (made(DivergenceBounds, risk=0.5), "risk"),
    (made(LearningLongevity, memory=0), "memory must be"),
    (lambda: bind(CurveFitting(), fragments("page")).of_lane(), "lane must be .* got 0"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
