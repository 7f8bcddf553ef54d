"""The problems of rates whose solvers share a contract, and what makes their rates optimal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import exp1, gammainc

from policies import solvers


class Problem(NamedTuple):
    """A solver, and its problem in the terms of all.

    ``solve(importance, change, budget)`` and, of columns (m,) and rates, ``gain(...)`` of one more
    crawl of each page and the ``loss(...)`` that is minimised, both of weights. Weights are shares
    of importance if ``shares``, and the objective is then 1 less the loss. ``most`` is the largest
    useful rate, that of changes for pages that are ``observed``, and ``least`` the least as a share
    of the mean rate. Changes are chances if ``chances``. ``accuracy`` is that of gains, ``spent``
    that of the budget, relative.
    """

    solve: Callable[..., Any]
    gain: Callable[..., Any]
    loss: Callable[..., Any]
    shares: bool = True
    most: float = math.inf
    least: float = 0.0
    chances: bool = False
    observed: Callable[[int], Any] = partial(np.zeros, dtype=bool)
    accuracy: float = 1e-9
    spent: float = 1e-11

    def most_of(self, change):
        """The largest useful rate of each page, (m,)."""
        return np.where(self.observed(len(change)), change, self.most)


def even_gain(weight, change, rate):
    return weight / change * gammainc(2, change / rate)


def even_loss(weight, change, rate):
    return weight @ (1.0 + rate / change * np.expm1(-change / rate))


def random_gain(weight, change, rate):
    return weight * change / (change + rate) ** 2


def random_loss(weight, change, rate):
    return weight @ (change / (change + rate))


def step_gain(weight, change, rate):
    return weight * change / (change + (1.0 - change) * rate) ** 2


def step_loss(weight, change, rate):
    return weight @ (change * (1.0 - rate) / (rate + change - rate * change))


def harmonic_gain(weight, change, rate):
    return weight * change / (rate * (rate + change))


def harmonic_loss(weight, change, rate):
    return weight @ np.log1p(change / rate)


def response_gain(weight, change, rate):
    return weight / rate


def response_loss(weight, change, rate):
    return weight @ np.log(change / rate)


def every_other(size):
    return np.arange(size) % 2 > 0


def mixed_solver(importance, change, budget, cost=None):
    return solvers.harmonic(importance, change, budget, every_other(np.size(importance)), cost)


def mixed_gain(weight, change, rate):
    gains = response_gain(weight, change, rate), harmonic_gain(weight, change, rate)
    return np.where(every_other(rate.size), *gains)


def mixed_loss(weight, change, rate):
    return weight @ np.where(every_other(rate.size), np.log(change / rate), np.log1p(change / rate))


def even_harmonic_gain(weight, change, rate):
    x = change / rate
    small = x * x * (0.5 - x * (1.0 / 6.0 - x / 24.0))
    return weight / change * np.where(x < 1e-3, small, x + np.expm1(-x))


def even_harmonic_loss(weight, change, rate):
    x = change / rate
    return weight @ (np.euler_gamma + np.log(x) + exp1(x) - 1.0 - np.expm1(-x) / x)


PROBLEMS = {
    "periodic": Problem(solvers.binary_periodic, even_gain, even_loss, accuracy=1e-8, spent=1e-12),
    **{
        f"random, floor {floor:g}": Problem(
            partial(solvers.binary_poisson, floor=floor), random_gain, random_loss, least=floor
        )
        for floor in (0.0, 1e-6, 0.4, 0.99)
    },
    **{
        f"steps, ceiling {ceiling:g}": Problem(
            partial(solvers.binary_discrete, ceiling=ceiling),
            step_gain,
            step_loss,
            most=ceiling,
            chances=True,
        )
        for ceiling in (1.0, 0.3, 1e-3)
    },
    "harmonic": Problem(solvers.harmonic, harmonic_gain, harmonic_loss, shares=False),
    "responses": Problem(
        partial(solvers.harmonic, complete=True),
        response_gain,
        response_loss,
        shares=False,
        observed=partial(np.ones, dtype=bool),
    ),
    "mixed": Problem(mixed_solver, mixed_gain, mixed_loss, shares=False, observed=every_other),
    "harmonic periodic": Problem(
        solvers.harmonic_periodic,
        even_harmonic_gain,
        even_harmonic_loss,
        shares=False,
        accuracy=1e-8,
        spent=1e-9,
    ),
}


def random_pages(seed, num_pages=40):
    """Return importance, rates of change, and which pages are observed in full."""
    rng = np.random.default_rng(seed)
    importance = rng.pareto(1.5, num_pages) + 0.1
    change_rate = rng.lognormal(-1.0, 1.5, num_pages)
    complete = rng.random(num_pages) < 0.3
    complete[:2] = [True, False]
    return importance, change_rate, complete


def weights_of(problem, importance):
    return importance / importance.sum() if problem.shares else importance


def loss_of(problem, result):
    return 1.0 - result.objective if problem.shares else result.objective


def check_optimal(problem, importance, change, budget, result):
    """The budget is spent, and no crawl is worth more elsewhere; what cannot be used is left."""
    useful = (importance > 0.0) & (change > 0.0)
    most = np.where(useful, problem.most_of(change), 0.0)
    least = problem.least * (budget / len(change))
    assert result.converged
    assert np.all(
        (result.rates >= least * (1.0 - 1e-15)) & (result.rates <= np.maximum(most, least))
    )
    np.testing.assert_allclose(result.rates[~useful], least, rtol=1e-15)
    if problem.shares:
        assert 0.0 <= result.objective <= 1.0 + 1e-12
    if result.multiplier == 0.0:
        assert not useful.any() or most.sum() <= budget * (1.0 + 1e-12)
        np.testing.assert_allclose(result.rates[useful], most[useful], rtol=1e-15)
        return
    assert result.rates.sum() == pytest.approx(budget, rel=problem.spent)
    weight, rates = weights_of(problem, importance), result.rates[useful]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gain = problem.gain(weight, change, result.rates)
        if problem is PROBLEMS["periodic"]:  # without crawls
            gain = np.where(result.rates > 0.0, gain, weight / change)
    off = gain[useful] / result.multiplier - 1.0
    low, high = rates <= least * (1.0 + 1e-12), rates >= most[useful]
    assert np.abs(off[~low & ~high]).max(initial=0.0) < problem.accuracy
    assert off[low].max(initial=0.0) < problem.accuracy
    assert off[high].min(initial=0.0) > -problem.accuracy
