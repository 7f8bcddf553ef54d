"""Columns of other libraries go in wherever arrays of numbers do; anything else is refused."""

from __future__ import annotations

import datetime
import fractions
import math

import gymnasium as gym
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import crawl_envs  # noqa: F401
from crawl_envs import Instance
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Delay
from crawl_envs.types.arguments import LARGEST, SMALLEST
from policies import estimators, solvers, values

NUMBERS = [0.5, 1.0, 2.0]


class Column:
    """A column as polars has it: a length, items, and what NumPy asks for."""

    def __array__(self, dtype=None, copy=None):
        return np.array(NUMBERS, dtype)


def tensor(**more):
    torch = pytest.importorskip("torch")
    return torch.tensor(NUMBERS, **more)


def polars_column():
    return pytest.importorskip("polars").Series(NUMBERS)


COLUMNS = {
    "pandas": lambda: pd.Series(NUMBERS),
    "pandas with an index of its own": lambda: pd.Series(NUMBERS, index=[7, 3, 5]),
    "pandas that may lack entries": lambda: pd.Series(NUMBERS, dtype="Float64"),
    "pandas over pyarrow": lambda: pd.Series(NUMBERS, dtype="double[pyarrow]"),
    "a column of a table": lambda: pd.DataFrame({"rate": NUMBERS}).rate,
    "pyarrow": lambda: pa.array(NUMBERS),
    "pyarrow in chunks": lambda: pa.chunked_array([NUMBERS[:1], NUMBERS[1:]]),
    "polars": polars_column,
    "its like": Column,
    "torch": tensor,
    "torch in 32 bits": lambda: tensor(dtype=pytest.importorskip("torch").float32),
    "objects": lambda: np.array(NUMBERS, object),
    "fractions": lambda: [fractions.Fraction(number) for number in NUMBERS],
    "a tuple": lambda: tuple(NUMBERS),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_are_read(case):
    column = COLUMNS[case]()
    made = Instance(column, column, 0.5, column, bandwidth=2.0)
    for name in ("importance", "change_rate", "false_signal_rate"):
        array = getattr(made, name)
        assert array.dtype == np.float64
        assert array.tolist() == NUMBERS
        assert not array.flags.writeable
    for solve in (solvers.binary_periodic, solvers.binary_poisson, solvers.harmonic):
        result = solve(column, column, 2.0)
        assert result.rates.tolist() == solve(NUMBERS, NUMBERS, 2.0).rates.tolist()
    value = values.greedy(column, importance=column, change_rate=column)
    assert (
        value.tolist() == values.greedy(NUMBERS, importance=NUMBERS, change_rate=NUMBERS).tolist()
    )
    env = gym.make("CrawlNCIS-v0", num_pages=3, horizon=10.0)
    env.reset(seed=0, options={"instance": made})
    env.step(1)


def test_columns_of_whole_numbers_and_what_crawls_showed():
    table = pd.DataFrame({"host": [0, 1, 1], "elapsed": NUMBERS, "changed": [True, False, True]})
    assert Instance(NUMBERS, 1.0, bandwidth=1.0, group=table.host).group.tolist() == [0, 1, 1]
    fit = estimators.fit_change_rates
    result, plain = fit(table.elapsed, table.changed), fit(NUMBERS, table.changed.to_numpy())
    assert result.change_rate.tolist() == plain.change_rate.tolist()


REFUSED = {
    "a mask": lambda: np.ma.masked_array(NUMBERS, [False, True, False]),
    "a mask of nothing": lambda: np.ma.masked_array(NUMBERS),
    "truths": lambda: [True, False, True],
    "a column of truths": lambda: pd.Series([True, False, True]),
    "times": lambda: pd.Series(pd.date_range("2020-01-01", periods=3)),
    "times of NumPy": lambda: np.array([1, 2, 3], "M8[s]"),
    "durations": lambda: pd.Series([pd.Timedelta(1)] * 3),
    "dates": lambda: [datetime.date(2020, 1, 1)] * 3,
    "words": lambda: ["1", "2", "3"],
    "a column of words": lambda: pd.Series(["1", "2", "3"]),
    "classes": lambda: pd.Series(["a", "b", "a"], dtype="category"),
    "complex numbers": lambda: [1.0 + 0.0j, 2.0, 3.0],
    "nothing": lambda: None,
    "nothing in places": lambda: [1.0, None, 2.0],
    "missing entries": lambda: pd.Series([1.0, None, 2.0]),
    "missing whole numbers": lambda: pd.Series([1, None, 2], dtype="Int64"),
    "nulls": lambda: pa.array([1.0, None, 2.0]),
    "a dictionary": lambda: {0: 1.0},
    "truths among objects": lambda: np.array([True, 1.0, 2.0], object),
    "a tensor with gradients": lambda: tensor(requires_grad=True),
    "infinity": lambda: [1.0, math.inf, 2.0],
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_column_of_numbers_is_refused(case):
    given = REFUSED[case]()
    for call in (
        lambda: Instance(given, NUMBERS, bandwidth=1.0),
        lambda: solvers.binary_periodic(given, NUMBERS, 1.0),
        lambda: solvers.harmonic(given, NUMBERS, 1.0),
        lambda: values.greedy(1.0, importance=given, change_rate=NUMBERS),
    ):
        with pytest.raises(ValueError, match=r"^importance must be "):
            call()


# The supported domain

OUTSIDE = [1e-13, 1e13, 1e-308, 1e308]
AT_DOORS = {
    "importance": lambda x: Instance([x, 1.0], 1.0, bandwidth=1.0),
    "change_rate": lambda x: Instance(1.0, [1.0, x], bandwidth=1.0),
    "false_signal_rate": lambda x: Instance(1.0, 1.0, 0.5, x, bandwidth=1.0),
    "bandwidth": lambda x: Instance(1.0, 1.0, bandwidth=x),
    "bandwidth_steps": lambda x: Instance(1.0, 1.0, bandwidth=1.0, bandwidth_steps=[(2.0, x)]),
    "delay mean": lambda x: Delay("constant", x),
    "delay quantum": lambda x: Delay("poisson", 1.0, x),
    "horizon": lambda x: gym.make("CrawlNCIS-v0", horizon=x),
    "epoch": lambda x: gym.make("CrawlHarmonic-v0", epoch=x),
    "crawl_cost": lambda x: Objective(crawl_cost=x),
    **{
        f"{name} of {solver}": lambda x, at=at, solver=solver: getattr(solvers, solver)(
            *((1.0, 1.0, 1.0)[:at]), x, *((1.0, 1.0, 1.0)[at + 1 :])
        )
        for solver in (
            *("binary_periodic", "binary_poisson", "harmonic"),
            *("harmonic_approx", "harmonic_periodic"),
        )
        for at, name in enumerate(("importance", "change_rate", "bandwidth"))
    },
    "bandwidth of ncis": lambda x: solvers.ncis(Instance(1.0, 1.0, bandwidth=1.0), x),
}


@pytest.mark.parametrize("case", AT_DOORS)
def test_the_supported_domain(case):
    build, name = AT_DOORS[case], case.partition(" of ")[0]
    for value in (SMALLEST, 1.0, LARGEST):
        if case != "delay quantum" or value >= 1.0:
            build(value)
    for value in OUTSIDE:
        with pytest.raises(ValueError, match=rf"{name}.* must be 0 or in \[1e-12, 1e\+12\], got "):
            build(value)
