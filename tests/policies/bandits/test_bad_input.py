"""Bad input of bandits and of strategies."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import policies
from policies import Exp3, Exp3IX, Exp3PlusPlus, bind
from policies.bandits import (
    Exp3Bandit,
    Exp3IXBandit,
    Exp3PlusPlusBandit,
    bernoulli_regret,
    growth,
)
from tests.policies.small_environments import OFFERS, place

PAIR = {"turn": policies.RoundRobin(), "value": policies.Greedy()}
HALVES = np.array([0.5, 0.5])
OTHER = r"env must take the actions of the crawl environment inside, .* got a {} that takes {}"
SCALED = OTHER.format("RescaleAction", r"Box\(0.0, 1.0, ")


def small():
    return place("CrawlNCIS-v0", "page")


def arms(arm):
    return Exp3(arms={"a": arm})


def regret(horizons, **more):
    return bernoulli_regret(partial(Exp3Bandit, 5), np.full(5, 0.5), horizons, **more)


def rescaled():
    return gym.wrappers.RescaleAction(place(OFFERS, "rates"), np.float64(0.0), np.float64(1.0))


BAD = {
    # bandits
    "no arms": (lambda: Exp3Bandit(0), "num_arms must be an integer >= 1, got 0"),
    "gamma 0": (lambda: Exp3Bandit(2, gamma=0.0), "gamma must be .* got 0.0"),
    "gamma 2": (lambda: Exp3Bandit(2, gamma=2.0), r"gamma must lie in \(0, 1\], got 2.0"),
    "rate": (lambda: Exp3IXBandit(2, learning_rate=-1.0), "learning_rate must be .* got -1.0"),
    "alpha": (lambda: Exp3PlusPlusBandit(2, alpha=0.0), "alpha must be .* got 0.0"),
    "beta": (lambda: Exp3PlusPlusBandit(2, beta=math.nan), "beta must be .* got nan"),
    "arm": (lambda: Exp3Bandit(2).update(2, 0.5), r"arm must be an integer in \[0, 1\], got 2"),
    "reward": (lambda: Exp3Bandit(2).update(0, 1.5), r"reward must lie in \[0, 1\], got 1.5"),
    "loss": (lambda: Exp3Bandit(2).update(0, -0.5), "reward must be .* got -0.5"),
    "never": (lambda: Exp3PlusPlusBandit(2).update(1, 0.5), "arm must be one with .* got 1"),
    "uniform": (lambda: Exp3Bandit(2).draw(1.0), r"uniform must lie in \[0, 1\), got 1.0"),
    "means": (
        lambda: Exp3Bandit(2).play_bernoulli(np.array([0.5, 1.5]), np.zeros((1, 2))),
        r"means must be 2 numbers in \[0, 1\]",
    ),
    "uniforms": (
        lambda: Exp3Bandit(2).play_bernoulli(HALVES, np.ones((1, 2))),
        r"uniforms must be pairs of numbers in \[0, 1\)",
    ),
    "shape": (lambda: Exp3Bandit(2).play_bernoulli(HALVES, np.zeros(2)), "uniforms must be pairs"),
    "falls": (lambda: regret([9, 5]), "horizons must"),
    "never ends": (lambda: regret([]), "horizons must"),
    "runs": (lambda: regret([9], runs=0), "runs must"),
    "one point": (lambda: growth([9], np.ones(1)), "regret must"),
    "no regret": (lambda: growth([9, 10], np.zeros(2)), "regret must"),
    # strategies
    "no env": (lambda: bind(Exp3(), None), "env must be a crawl environment, got NoneType"),
    "no strategies": (lambda: Exp3(arms={}), "arms must map"),
    "a list": (lambda: Exp3(arms=[policies.Greedy()]), "arms must map"),
    "no policy": (lambda: arms(3), "arm 'a' must be a policy"),
    "a class": (lambda: arms(policies.Greedy), "arm 'a' must be a policy or .* got <class"),
    "bound": (
        lambda: arms(bind(policies.Greedy(), small())),
        "arm 'a' must be the policy Greedy itself, got a BoundCompiled; make it without env",
    ),
    "of columns": (
        lambda: arms(policies.make("RoundRobin", features=("elapsed",))),
        "arm 'a' must be the policy RoundRobin itself, got a FromColumns",
    ),
    "no actions": (
        lambda: arms(policies.ThresholdNCIS()),
        "arm 'a' must have actions, got ThresholdNCIS",
    ),
    "other form": (
        lambda: bind(arms(policies.ClickWeightedCrawl()), small()),
        "action_form of ClickWeightedCrawl must be one of .*, got 'page'",
    ),
    "reward of steps": (lambda: Exp3(reward="loss"), "reward must be one of .* 'loss'"),
    "high bound": (lambda: Exp3(gain_bound=1.5), r"gain_bound must lie in \(0, 1\], got 1.5"),
    "no bound": (lambda: Exp3(gain_bound=0.0), "gain_bound must be .* got 0.0"),
    "for nothing": (
        lambda: Exp3(reward="literal", gain_bound=0.5),
        "gain_bound must be None for 'literal', got 0.5",
    ),
    "record": (lambda: Exp3(record=1), "record must be True or False, got 1"),
    "its gamma": (lambda: Exp3(gamma=0.0), "gamma must be .* got 0.0"),
    "its rate": (lambda: Exp3IX(learning_rate=0.0), "learning_rate must be .* got 0.0"),
    "its alpha": (lambda: Exp3PlusPlus(alpha=-1.0), "alpha must be .* got -1.0"),
    "lane": (lambda: bind(Exp3(), small()).of_lane(), "lane must be one .* got 0"),
    "history": (lambda: Exp3().history(), "record must be True .* got False"),
    "other actions": (lambda: bind(Exp3(), rescaled()), SCALED),
    "other actions of one": (lambda: bind(policies.UniformCrawl(), rescaled()), SCALED),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
