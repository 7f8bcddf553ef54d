"""The bandits: their twins draw for draw, their formulas, their corners, bad input."""

import math

import numpy as np
import pytest

from policies.bandits import Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.bandit import pick
from tests.naive.bandits import (
    NaiveExp3,
    NaiveExp3IX,
    NaiveExp3PlusPlus,
    NaiveFallingExp3,
    naive_draw,
)


def falling(num_arms):
    return lambda number: math.sqrt(2 * math.log(num_arms) / (num_arms * number))


PAIRS = {
    "exp3": (lambda k: Exp3Bandit(k), lambda k: NaiveExp3(k, 0.1)),
    "exp3 of gamma 1": (lambda k: Exp3Bandit(k, gamma=1.0), lambda k: NaiveExp3(k, 1.0)),
    "exp3 of gamma .4": (lambda k: Exp3Bandit(k, gamma=0.4), lambda k: NaiveExp3(k, 0.4)),
    "exp3 falling": (lambda k: Exp3Bandit(k, gamma=None), NaiveFallingExp3),
    "exp3-ix": (lambda k: Exp3IXBandit(k), lambda k: NaiveExp3IX(k, falling(k))),
    "exp3-ix of a rate": (
        lambda k: Exp3IXBandit(k, learning_rate=0.3),
        lambda k: NaiveExp3IX(k, lambda _: 0.3),
    ),
    "exp3++": (lambda k: Exp3PlusPlusBandit(k), lambda k: NaiveExp3PlusPlus(k, 3.0, 256.0)),
    "exp3++ that is bold": (  # so that gaps and the third bound on epsilon come to bear
        lambda k: Exp3PlusPlusBandit(k, alpha=0.3, beta=0.2),
        lambda k: NaiveExp3PlusPlus(k, 0.3, 0.2),
    ),
}
EVERY_BANDIT = pytest.mark.parametrize("make", [one for one, _ in PAIRS.values()], ids=list(PAIRS))


def rewards_of(kind, rounds, num_arms, seed):
    """Rewards (n, K) in [0, 1]: at random, or against whoever learns."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.random((rounds, num_arms))
    if kind == "bits":
        return (rng.random((rounds, num_arms)) < np.linspace(0.9, 0.1, num_arms)).astype(float)
    if kind == "nothing":
        return np.zeros((rounds, num_arms))
    if kind == "everything":
        return np.ones((rounds, num_arms))
    phase = np.arange(rounds) // 50  # the best arm changes every 50 rounds
    return (np.arange(num_arms) == (phase % num_arms)[:, None]).astype(float)


@pytest.mark.parametrize("num_arms", [1, 2, 5])
@pytest.mark.parametrize("kind", ["random", "bits", "nothing", "everything", "switching"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_equals_its_twin_draw_for_draw(pair, kind, num_arms):
    bandit, twin = (make(num_arms) for make in pair)
    rewards = rewards_of(kind, 300, num_arms, 3)
    played = []
    for row, uniform in zip(rewards, np.random.default_rng(4).random(300), strict=True):
        wanted, chances = twin.probabilities(), bandit.probabilities()
        assert chances == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        arm = bandit.draw(uniform)
        assert arm == naive_draw(wanted, uniform)
        played.append(arm)
        bandit.update(arm, row[arm])
        twin.update(arm, row[arm], chances[arm])
    assert bandit.rounds == 300
    assert num_arms == 1 or len(set(played)) > 1


def test_the_bold_bandit_is_sure_of_gaps():
    twin = NaiveExp3PlusPlus(2, 0.3, 0.2)
    bandit = Exp3PlusPlusBandit(2, alpha=0.3, beta=0.2)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        arm, chances = bandit.draw(rng.random()), bandit.probabilities()
        bandit.update(arm, 1.0 - arm)
        twin.update(arm, 1.0 - arm, chances[arm])
    gap = twin.gaps()[1]
    assert gap > 0.3
    # What is left of the worse arm: its xi, and nothing of its weight.
    assert bandit.probabilities()[1] == pytest.approx(
        0.2 * math.log(4001) / (4001 * gap**2), rel=1e-3
    )


@EVERY_BANDIT
def test_compiled_play_is_what_calls_make(make):
    means, uniforms = np.array([0.3, 0.7, 0.5]), np.random.default_rng(2).random((400, 2))
    stepped, played = make(3), make(3)
    arms = []
    for arm_uniform, pay_uniform in uniforms:
        arms.append(stepped.draw(arm_uniform))
        stepped.update(arms[-1], float(pay_uniform < means[arms[-1]]))
    first, second = (
        played.play_bernoulli(means, uniforms[:150]),
        played.play_bernoulli(means, uniforms[150:]),
    )
    assert [*first.tolist(), *second.tolist()] == arms
    assert played.rounds == stepped.rounds == 400
    assert np.array_equal(played.probabilities(), stepped.probabilities())


@EVERY_BANDIT
def test_no_overflow_and_the_best_arm_wins(make):
    bandit = make(3)
    rng = np.random.default_rng(1)
    means = np.array([0.1, 0.9, 0.1])
    arms = bandit.play_bernoulli(means, rng.random((300_000, 2)))
    chances = bandit.probabilities()
    assert np.all(np.isfinite(chances))
    assert np.all(chances >= 0.0)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    if getattr(bandit, "gamma", None) != 1.0:  # that one only ever explores
        assert np.mean(arms[-10_000:] == 1) > 0.6


def test_a_draw_at_the_very_end_takes_an_arm_that_can_be_played():
    assert pick(np.array([0.3, 0.3, 0.3, 0.0]), 0.95) == 2
    assert pick(np.array([0.0, 0.0, 1.0]), 0.0) == 2
    assert pick(np.array([0.5, 0.0, 0.5]), 0.5) == 2
