from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from scripts.study import intervals
from scripts.study.intervals import Interval

OFFSETS = np.array([0.0, 100.0, -30.0])


def scores(seeds: int, spread: float = 1.0, seed: int = 0) -> np.ndarray:
    return OFFSETS + spread * np.random.default_rng(seed).standard_normal((seeds, 3))


def test_the_spread_between_settings_does_not_count() -> None:
    given = scores(80)
    interval = intervals.mean(given)
    # that between settings is 30 times as large
    half = 1.99 * given.mean(axis=1).std(ddof=1) / np.sqrt(80)
    assert interval.estimate == pytest.approx(given.mean(), abs=1e-12)
    assert interval.high - interval.estimate == pytest.approx(half, rel=0.1)
    assert interval.estimate - interval.low == pytest.approx(half, rel=0.1)


def correlated(seeds: int, settings: int, seed: int = 0) -> np.ndarray:
    """Return scores whose errors have a part that is common to all settings."""
    rng = np.random.default_rng(seed)
    common = 0.5 * rng.standard_normal((seeds, 1))
    return np.linspace(0.2, 1.0, settings) + common + rng.standard_normal((seeds, settings))


@pytest.mark.parametrize("seeds", [4, 10, 40])
def test_seeds_are_resampled_with_all_their_settings(seeds: int) -> None:
    given = correlated(seeds, 12)
    low, high = stats.t.interval(0.95, seeds - 1, given.mean(), stats.sem(given.mean(axis=1)))
    interval = intervals.mean(given)
    assert interval.half == pytest.approx((high - low) / 2, rel=0.12)
    # settings that repeat another one tell nothing new
    repeated = intervals.mean(np.repeat(given[:, :1], 6, axis=1))
    assert repeated == pytest.approx(intervals.mean(given[:, :1]), rel=1e-12)


@pytest.mark.parametrize("seeds", [3, 10])
def test_intervals_contain_the_truth_as_often_as_they_say(seeds: int) -> None:
    """Few seeds, 12 settings with correlated errors: 95%, within 4 errors of 300 trials."""
    many = correlated(200_000, 12, seed=9)
    truth = {"mean": 0.6, "interquartile_mean": float(stats.trim_mean(many, 0.25, axis=None))}
    for name, true in truth.items():
        found = [getattr(intervals, name)(correlated(seeds, 12, seed)) for seed in range(300)]
        share = np.mean([interval.low <= true <= interval.high for interval in found])
        assert share == pytest.approx(0.95, abs=0.051), name


def test_intervals_of_groups_and_their_members() -> None:
    """Means of groups contain how their members vary, so that whole groups are drawn."""

    def nested(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return 0.6 + rng.standard_normal((8, 1)) + rng.standard_normal((8, 5))

    found = [intervals.mean(nested(seed)) for seed in range(300)]
    share = np.mean([interval.low <= 0.6 <= interval.high for interval in found])
    assert share == pytest.approx(0.95, abs=0.051)


def test_a_lead_is_of_the_same_seeds() -> None:
    base = correlated(10, 12)
    assert intervals.interquartile_lead(base + 0.01, base) == pytest.approx((0.01, 0.01, 0.01))
    other = base + 0.05 * np.random.default_rng(1).standard_normal((10, 12))
    lead = intervals.interquartile_lead(base, other)
    middle = [float(stats.trim_mean(each, 0.25, axis=None)) for each in (base, other)]
    assert lead.estimate == pytest.approx(middle[0] - middle[1], abs=1e-12)
    assert lead.half < 0.3 * intervals.interquartile_mean(base).half


def test_one_seed_has_no_interval() -> None:
    for estimate in (intervals.mean, intervals.interquartile_mean):
        assert np.isnan(estimate(np.array([[1.0, 2.0]]))[1:]).all()


def test_a_single_setting_is_one_sample() -> None:
    given = np.random.default_rng(3).exponential(size=(200, 1))
    interval = intervals.mean(given)
    half = 1.96 * given.std() / np.sqrt(200)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize("seeds", [2, 5, 30])
def test_the_interquartile_mean_is_a_trimmed_mean(seeds: int) -> None:
    given = scores(seeds)
    interval = intervals.interquartile_mean(given)
    assert interval.estimate == pytest.approx(stats.trim_mean(given, 0.25, axis=None), rel=1e-12)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.low < interval.high


def test_probability_of_improvement_counts_all_pairs_of_seeds_and_half_the_ties() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 5, (7, 2)).astype(float), rng.integers(0, 4, (9, 2)) * 1.0
    counted = [
        np.mean([(x > y) + 0.5 * (x == y) for x in first[:, k] for y in second[:, k]])
        for k in (0, 1)
    ]
    interval = intervals.probability_of_improvement(first, second)
    assert interval.estimate == pytest.approx(np.mean(counted), abs=1e-12)
    assert 0.0 < interval.low < interval.estimate < interval.high < 1.0


def test_paired_seeds_tell_more_than_unpaired_ones() -> None:
    base = np.random.default_rng(6).standard_normal((30, 2))
    assert intervals.probability_of_improvement(base + 0.01, base).low < 0.5
    assert intervals.share_improved((base + 0.01) - base) == Interval(1.0, 1.0, 1.0)
    assert intervals.share_improved(np.array([[1.0, 0.0], [-1.0, 0.0]])).estimate == 0.5


@pytest.mark.parametrize(
    "estimate", [intervals.mean, intervals.interquartile_mean, intervals.share_improved]
)
def test_the_same_scores_give_the_same_interval(
    estimate: Callable[[np.ndarray], Interval],
) -> None:
    given = scores(10, spread=60.0)
    assert estimate(given) == estimate(given)


@pytest.mark.parametrize("given", [[1.0, 2.0], [[np.nan]], [[]]])
def test_scores_that_are_none(given: list[object]) -> None:
    with pytest.raises(ValueError, match="scores must be finite numbers"):
        intervals.mean(np.array(given))


def test_scores_of_other_settings() -> None:
    with pytest.raises(ValueError, match="numbers of settings must be equal"):
        intervals.probability_of_improvement(np.zeros((3, 2)), np.zeros((3, 1)))


def trained(seed: int, seeds: int = 10, trainings: int = 5) -> np.ndarray:
    """Return scores around 0.6; seed k has the error of training k mod T, and its own."""
    rng = np.random.default_rng(seed)
    by_training = rng.standard_normal((trainings, 1))[np.arange(seeds) % trainings]
    return 0.6 + by_training + 0.3 * rng.standard_normal((seeds, 4))


@pytest.mark.parametrize("seeds", [10, 12])
def test_intervals_of_several_trainings_contain_the_truth(seeds: int) -> None:
    """Of whole trainings: 95%, within 4 errors of 300 trials; intervals over seeds contain less."""
    groups = tuple(seed % 5 for seed in range(seeds))
    for name in ("mean", "interquartile_mean"):
        interval = getattr(intervals, name)
        shares = []
        for of in (groups, ()):
            found = [interval(trained(seed, seeds), groups=of) for seed in range(300)]
            shares.append(np.mean([each.low <= 0.6 <= each.high for each in found]))
        assert shares[0] == pytest.approx(0.95, abs=0.051), name
        assert shares[1] < 0.87, name


def test_the_interval_of_trainings_is_students_over_their_means() -> None:
    given = trained(3)
    by_training = given.mean(axis=1).reshape(2, 5).mean(axis=0)
    low, high = stats.t.interval(0.95, 4, by_training.mean(), stats.sem(by_training))
    interval = intervals.mean(given, 20_000, groups=tuple(seed % 5 for seed in range(10)))
    assert interval.estimate == pytest.approx(given.mean())
    assert interval.half == pytest.approx((high - low) / 2, rel=0.1)
    first = given + np.random.default_rng(1).standard_normal((10, 1))
    lead = intervals.interquartile_lead(first, given, (0, 1, 2, 3, 4) * 2)
    assert lead.low <= lead.estimate <= lead.high


def test_a_bootstrap_sample_has_whole_groups() -> None:
    groups = (0, 1, 2, 0, 1, 2, 0)  # of 3, 2 and 2 seeds
    drawn = intervals._seeds(7, groups=groups)
    assert drawn.shape == (intervals.REPETITIONS, 7)
    group = np.asarray(groups)[drawn]
    assert (group[:, [0, 3, 6]] == group[:, :1]).all()
    assert (group[:, [1, 4]] == group[:, 1:2]).all()
    whole = drawn[group[:, 0] == 0][:, [0, 3, 6]]
    assert (whole == [0, 3, 6]).all()
    again = drawn[group[:, 0] == 1][:, [0, 3, 6]]  # a group of 2 in the place of 3
    assert (again == [1, 4, 1]).all()
    independent = intervals._seeds(7)
    assert (intervals._seeds(7, groups=tuple(range(7))) == independent).all()


def test_one_training_has_no_interval() -> None:
    assert np.isnan(intervals.mean(trained(0), groups=(0,) * 10).low)


def test_one_column_of_sites_has_students_interval() -> None:
    values = np.random.default_rng(0).normal(size=9)
    low, high = stats.t.interval(0.95, 8, values.mean(), stats.sem(values))
    for table in (values[:, None], values[None], np.repeat(values[:, None], 3, axis=1)):
        assert intervals.crossed_mean(table) == pytest.approx((values.mean(), low, high))
    assert np.isnan(intervals.crossed_mean([[0.5]]).low)
    assert intervals.crossed_mean([[0.5, 0.5]]) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(("of_site", "of_training"), [(1.0, 0.0), (1.0, 0.3), (0.2, 1.0)])
def test_intervals_over_sites_and_trainings_contain_the_truth(
    of_site: float, of_training: float
) -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(2_000):
        site = of_site * rng.standard_exponential((26, 1)) - of_site
        table = site + of_training * rng.normal(size=(1, 5)) + 0.3 * rng.normal(size=(26, 5))
        interval = intervals.crossed_mean(table)
        inside += interval.low <= 0.0 <= interval.high
    assert 0.92 < inside / 2_000 < 0.98
