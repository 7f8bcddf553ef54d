from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crawl_envs import Instance
from crawl_envs.sim.state import ALIAS
from crawl_envs.sim.tape import DELAY_POISSON, draw_delay, event_rates, fill_alias
from crawl_envs.types import DELAY_KINDS
from tests.crawl_envs.sim.test_streams import stream_of
from tests.naive import pages as naive

FEW_DIGITS = st.integers(0, 4096).map(lambda number: number / 1024.0)
ANY_RATE = st.one_of(st.just(0.0), st.floats(1e-9, 1e9))


def alias_of(rates):
    alias = np.zeros(len(rates), ALIAS)
    fill_alias(np.array(rates), alias)
    return alias


def shares_of(alias):
    """The probability of every column that a table stands for, exactly."""
    shares = [Fraction(0)] * len(alias)
    for column, entry in enumerate(alias):
        cut = min(Fraction(float(entry["cut"])), Fraction(1))
        shares[column] += cut / len(alias)
        shares[int(entry["other"])] += (1 - cut) / len(alias)
    return shares


@pytest.mark.parametrize(("num_sources", "columns"), [(1, 4), (2, 8), (3, 8), (4, 16), (15, 32)])
def test_rates_of_several_sources(num_sources, columns):
    recall = np.full((num_sources, 2), 1.0 / 16.0)
    false = np.arange(2.0 * num_sources).reshape(num_sources, 2)
    instance = Instance([1.0, 2.0], [0.5, 4.0], recall, false, bandwidth=1.0)
    rates = event_rates(instance)
    assert rates.shape == (2, columns)
    assert rates.ravel().tolist() == naive.drawn_rates(instance)
    total = instance.importance + instance.change_rate + false.sum(0)
    assert rates.sum(1).tolist() == total.tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(FEW_DIGITS, min_size=1, max_size=40))
def test_alias_table_is_the_twins(rates):
    alias, twin = alias_of(rates), naive.AliasTable(rates)
    assert alias["cut"].tolist() == twin.cut
    assert alias["other"].tolist() == twin.other


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY_RATE, min_size=1, max_size=40).filter(any))
def test_alias_table_stands_for_the_rates(rates):
    total = sum(map(Fraction, rates))
    for share, rate in zip(shares_of(alias_of(rates)), rates, strict=True):
        assert abs(share - Fraction(rate) / total) < 1e-13
        assert share > 0 or rate / float(total) < 1e-13
        assert share == 0 or rate > 0.0, "an event of rate 0 could be drawn"


@pytest.mark.parametrize("kind", ["constant", "exponential", "poisson"])
@pytest.mark.parametrize(("mean", "quantum"), [(0.0, 1.0), (0.7, 0.1), (6.0, 1.0), (500.0, 1.0)])
def test_delays_are_the_twins(kind, mean, quantum):
    stream, twin = stream_of(6, 0), naive.Stream(6, 0)
    number = DELAY_KINDS.index(kind)
    for _ in range(300):
        assert stream.draw(draw_delay, number, mean, quantum) == twin.delay(kind, mean, quantum)
    assert stream.tolist() == twin.state


@pytest.mark.parametrize("mean", [0.3, 6.0, 60.0])
def test_poisson_counts_invert_the_distribution(mean):
    """The count of a uniform number u is the quantile at 1 - u that SciPy computes."""
    stream, twin = stream_of(8, 0), naive.Stream(8, 0)
    shares = np.array([1.0 - twin.uniform() for _ in range(500)])
    counts = [stream.draw(draw_delay, DELAY_POISSON, mean, 1.0) for _ in shares]
    assert counts == stats.poisson.ppf(shares, mean).tolist()
