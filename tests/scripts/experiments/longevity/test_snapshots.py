"""Measures from snapshots, realised curves, and interpolation, against plain sets."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.types.contents import Contents
from scripts.experiments.longevity.measures.divergence import (
    distances,
    eagerness_of,
    interpolated,
    interpolated_means,
    occurred,
    step_values,
    utility,
    versions,
)
from scripts.experiments.longevity.measures.lifetimes import (
    Lifetimes,
    dominant_items,
    lifetimes,
    measured,
    modelled,
    pooled,
)
from scripts.experiments.longevity.measures.snapshots import (
    change_frequency,
    changed,
    longevity,
    runs_of,
    snapshot_times,
)
from tests.naive.fragments import distance, mean_divergence, version_at, versions_of

PAGES = 12


def drawn_spells(seed: int) -> Contents:
    """Contents whose fragments come, go and come back."""
    rng = np.random.default_rng(seed)
    page, birth, death, size, key = [], [], [], [], []
    for row in range(PAGES):
        for name in range(int(rng.integers(0, 9))):
            moments = np.sort(rng.uniform(-6.0, 26.0, 2 * int(rng.integers(1, 5))))
            fragments = int(rng.integers(1, 4))
            for start, end in zip(moments[::2], moments[1::2], strict=True):
                page.append(row)
                birth.append(-np.inf if start < 0.0 else start)
                death.append(np.inf if end > 24.0 else max(end, 0.1))
                size.append(fragments)
                key.append(name)
                if birth[-1] == -np.inf:  # no two spells may overlap
                    break
    kept = np.array(birth) < np.array(death)
    columns = (np.array(column)[kept] for column in (page, birth, death, size, key))
    try:
        return Contents.of_spells(PAGES, *columns)
    except ValueError:  # overlapping spells: another draw
        return drawn_spells(seed + 1000)


TIMES = snapshot_times(11)


def naive_snapshots(contents: Contents) -> list[list[set[Any]]]:
    """The set of (key, number) in each snapshot of each page."""
    return [
        [version_at(versions, time) if versions else set() for time in TIMES]
        for versions in versions_of(contents)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_snapshots_against_sets(seed: int) -> None:
    contents = drawn_spells(seed)
    runs = runs_of(contents, TIMES)
    result = lifetimes(runs)
    seen_k: dict[int, list[tuple[int, int]]] = {}
    for place in range(result.page.size):
        life = (int(result.lived[place]), int(result.items[place]))
        seen_k.setdefault(int(result.page[place]), []).extend([life] * int(result.size[place]))
    for page, snapshots in enumerate(naive_snapshots(contents)):
        differs = [one != other for one, other in itertools.pairwise(snapshots)]
        assert changed(runs)[page].tolist() == [False, *differs]
        assert change_frequency(runs)[page] == pytest.approx(np.mean(differs))
        lived = []
        for fragment in set().union(*snapshots):
            there = [fragment in snapshot for snapshot in snapshots]
            if there[0] or there[-1]:
                continue
            start = 0
            for present, stretch in itertools.groupby(there):
                length = len(list(stretch))
                if present:
                    survived = sum(differs[start : start + length])
                    lived.append((length, survived))
                start += length
        assert sorted(lived) == sorted(seen_k.get(page, []))
        mean = longevity(runs)[page]
        if lived:
            assert mean == pytest.approx(np.mean([length for length, _ in lived]))
        else:
            assert np.isnan(mean)


def test_a_fragment_that_returns_between_snapshots_stays() -> None:
    contents = Contents.of_spells(1, [0, 0], [2.5, 5.0], [4.5, 8.5], 1, [7, 7])
    runs = runs_of(contents, TIMES)
    assert (runs.begin.tolist(), runs.end.tolist()) == ([2], [5])
    left = Contents.of_spells(1, [0, 0], [2.5, 6.5], [4.5, 8.5], 1, [7, 7])
    assert runs_of(left, TIMES).begin.tolist() == [2, 4]


def test_snapshot_times_are_checked() -> None:
    contents = drawn_spells(0)
    for times in ([1.0], [1.0, 1.0], [[0.0, 1.0]]):
        with pytest.raises(ValueError, match="times must be two or more increasing numbers"):
            runs_of(contents, np.array(times))


def test_dominant_items_counts_fragments_and_prefers_the_smallest() -> None:
    result = Lifetimes(
        page=np.array([0, 0, 0, 2, 2]),
        lived=np.ones(5, np.int64),
        items=np.array([3, 1, 1, 5, 2]),
        size=np.array([4, 1, 2, 3, 3]),
    )
    assert dominant_items(result, 3).tolist() == [3, 0, 2]


@pytest.mark.parametrize("seed", range(4))
def test_versions_and_distances_against_sets(seed: int) -> None:
    contents = drawn_spells(seed)
    for page, history in enumerate(versions_of(contents)):
        sets = [version_at(history, time) if history else set() for time in TIMES]
        expected = [[distance(one, other) for other in sets] for one in sets]
        assert distances(*versions(contents, page, TIMES)) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("seed", range(4))
def test_curve_that_occurred_against_sets(seed: int) -> None:
    contents, end = drawn_spells(seed), 21.0
    rng = np.random.default_rng(seed)
    for page, history in enumerate(versions_of(contents)):
        times, steps = occurred(contents, page, end)
        held = version_at(history, 0.0) if history else set()
        moments = rng.uniform(0.01, end, 20)
        expected = [
            distance(version_at(history, moment) if history else set(), held) for moment in moments
        ]
        assert step_values(times, steps, moments) == pytest.approx(np.array(expected))
        area = mean_divergence(history, held, 0.0, end) if history else 0.0
        last = distance(version_at(history, end), held) if history else 0.0
        assert utility(times, steps) == pytest.approx(end * last - area)


def test_eagerness_by_hand() -> None:
    apart = np.array([[0.0, 0.2, 0.4], [0.2, 0.0, 0.2], [0.4, 0.2, 0.0]])
    assert eagerness_of(apart) == pytest.approx(0.5)
    assert np.isnan(eagerness_of(np.zeros((4, 4))))
    back = np.array([[0.0, 0.5, 0.1], [0.5, 0.0, 0.5], [0.1, 0.5, 0.0]])
    assert eagerness_of(back) == 1.0


def test_interpolation_against_loops() -> None:
    rng = np.random.default_rng(3)
    apart = rng.random((9, 9))
    np.fill_diagonal(apart, 0.0)
    for every, eager in ((1, 0.3), (3, 0.8), (8, 0.0), (20, 1.0)):
        parts = []
        for snapshot in range(8):
            held = snapshot
            while held % every:
                held -= 1
            early, late = apart[held, snapshot], apart[held, snapshot + 1]
            parts.append((1.0 - eager) * early + eager * late)
        assert interpolated(apart, every, eager) == pytest.approx(np.mean(parts))


def test_pages_without_eagerness_have_the_mean_of_others() -> None:
    quiet = Contents.of_spells(2, [0, 0, 1], [-np.inf, 3.0, -np.inf], [3.0, np.inf, np.inf])
    means, own = interpolated_means(quiet, TIMES, 20)
    assert own[0] == pytest.approx(0.5)  # gone after one, and after two of the next three
    assert np.isnan(own[1])
    assert means == pytest.approx([0.85, 0.0])  # half of the second interval, then all
    fixed, _ = interpolated_means(quiet, TIMES, 20, 1.0)
    assert fixed == pytest.approx([0.9, 0.0])


def test_interpolation_of_steady_divergence() -> None:
    """Content that is lost at a constant pace, a tenth between two snapshots."""
    count, end = 1000, 20.0
    death = (np.arange(count) + 1.0) * end / count
    contents = Contents.of_spells(
        1,
        np.zeros(2 * count, np.int64),
        np.concatenate((np.full(count, -np.inf), death)),
        np.concatenate((death, np.full(count, np.inf))),
    )
    times = TIMES + 1e-9
    [first], own = interpolated_means(contents, times, 1)
    [second], _ = interpolated_means(contents, times, 2)
    one, two = 0.2 / 1.1, 0.4 / 1.2  # 2 x / (n + x)
    eager = one / two
    assert own[0] == pytest.approx(eager)
    assert first == pytest.approx(eager * one)
    assert second == pytest.approx(0.5 * (eager * one + (1.0 - eager) * one + eager * two))
    # Exactly, the mean of 2 y / (1 + y) over y in [0, x] is 2 - 2 ln(1 + x) / x.
    for mean, lost in ((first, 0.1), (second, 0.2)):
        exact = 2.0 - 2.0 * np.log1p(lost) / lost
        assert exact < mean < 1.06 * exact  # E is measured over two intervals


def test_model_of_lifetimes_against_simulation() -> None:
    items, size, grid = np.array([1, 2, 6]), np.array([5, 3, 2]), np.arange(29.0)
    rng = np.random.default_rng(0)
    rate = -np.log(0.75)
    count = 200_000
    kinds = rng.choice(items, count, p=size / size.sum())
    lived = rng.gamma(kinds, 1.0 / rate)
    expected = np.searchsorted(np.sort(lived), grid, side="right") / count
    model, as_seen = modelled(items, size, grid)
    assert model == pytest.approx(expected, abs=0.005)
    seen = kinds + rng.negative_binomial(kinds, 0.25)
    expected = np.searchsorted(np.sort(seen), grid, side="right") / count
    assert as_seen == pytest.approx(expected, abs=0.005)


def test_groups_have_pages_that_change_equally_often() -> None:
    result = Lifetimes(
        page=np.array([0, 0, 1, 2, 3]),
        lived=np.array([2, 4, 9, 3, 27]),
        items=np.array([1, 1, 2, 1, 4]),
        size=np.array([1, 3, 1, 7, 2]),
    )
    frequency, dominant = np.array([0.3, 0.2, 0.9, 0.25]), np.array([1, 2, 1, 4])
    churn = measured(result, frequency, dominant, "K = 1")
    assert (churn["pages"], churn["fragments"], churn["short"]) == (1.0, 4.0, 1.0)
    actual, model = (
        np.array([churn[f"{name}[{lived}]"] for lived in range(29)]) for name in ("actual", "model")
    )
    assert actual[:6].tolist() == [0.0, 0.0, 0.25, 0.25, 1.0, 1.0]
    geometric = 1.0 - 0.75 ** np.arange(29)
    assert model == pytest.approx(geometric)
    assert churn["distance"] == pytest.approx(np.abs(actual - geometric).max())
    assert churn["late"] == pytest.approx((1.0 - geometric[15:]).mean())
    assert measured(result, frequency, dominant, "K > 2")["fragments"] == 2.0
    assert "distance" not in measured(result, frequency - 1.0, dominant, "K = 2")


def test_pooled_records_have_separate_pages() -> None:
    parts = [runs_of(drawn_spells(seed), TIMES) for seed in (0, 1)]
    result, frequency, dominant = pooled(parts)
    own = [lifetimes(runs) for runs in parts]
    assert result.page.tolist() == [*own[0].page, *(own[1].page + PAGES)]
    assert frequency.size == dominant.size == 2 * PAGES
    assert frequency[PAGES:] == pytest.approx(change_frequency(parts[1]))
