"""Missing snapshots, against plain loops over versions and against simulated updates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from scripts.experiments.longevity.measures import sites
from scripts.experiments.longevity.measures.snapshots import (
    change_frequency,
    longevity,
    runs_of,
    snapshot_times,
    substitutes,
)
from scripts.experiments.longevity.missing import frequency, missed
from tests.naive.fragments import version_at, versions_of

PAGES, SNAPSHOTS = 25, 12


def test_substitutes_are_the_previous_snapshots() -> None:
    missing = np.array([[0, 1, 1, 0, 1], [1, 0, 0, 1, 0]], np.bool_)
    assert substitutes(missing).tolist() == [[0, 0, 0, 3, 3], [0, 1, 2, 2, 4]]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_measures_are_those_of_the_substituted_versions(share: float) -> None:
    _, contents = sites.drawn_set("random", PAGES, 30.0, 3)
    times, rng = snapshot_times(SNAPSHOTS), np.random.default_rng(0)
    missing = rng.random((PAGES, SNAPSHOTS)) < share
    runs = runs_of(contents, times, substitutes(missing))
    share_changed, lived = change_frequency(runs), longevity(runs)
    for page, history in enumerate(versions_of(contents)):
        versions: list[frozenset[object]] = []
        for number, time in enumerate(times):
            gone = number > 0 and missing[page, number]
            versions.append(versions[-1] if gone else frozenset(version_at(history, time)))
        changes = [before != after for before, after in pairwise(versions)]
        assert share_changed[page] == pytest.approx(np.mean(changes))
        lengths = []
        for fragment in frozenset().union(*versions) - versions[0] - versions[-1]:
            there = [False, *(fragment in version for version in versions)]
            starts = sum(after and not before for before, after in pairwise(there))
            lengths += [sum(there) / starts] * starts
        assert lived[page] == pytest.approx(np.mean(lengths) if lengths else np.nan, nan_ok=True)
    assert 0.0 < share_changed.mean() < 1.0


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("rate", [0.05, 0.5, 3.0])
def test_the_frequency_is_that_of_simulated_updates(rate: float, missing: float) -> None:
    rng, count, snapshots = np.random.default_rng(7), 40_000, 6
    version = np.cumsum(rng.poisson(rate * 2.0, (count, snapshots)), axis=1)
    gone = rng.random((count, snapshots)) < missing
    seen = version.copy()
    for number in range(1, snapshots):
        seen[gone[:, number], number] = seen[gone[:, number], number - 1]
    differs = (np.diff(seen, axis=1) != 0).mean(axis=1)
    expected = float(frequency(rate, missing, 2.0, snapshots))
    error = 4.0 * differs.std() / np.sqrt(count)
    assert abs(differs.mean() - expected) < error < 0.01


def test_the_frequency_at_its_limits() -> None:
    assert frequency([0.0, 1e-9], 0.3)[0] == 0.0
    slow = float(frequency(1e-9, 0.3, 2.0, 10_000))
    assert slow == pytest.approx(2e-9, rel=1e-3)
    assert float(frequency(1e9, 0.3)) == pytest.approx(0.7)
    stays = np.exp(-1.0)
    far = 0.7 * (1.0 - stays) / (1.0 - 0.3 * stays)
    assert float(frequency(0.5, 0.3, 2.0, 10_000)) == pytest.approx(far, rel=1e-4)


@pytest.mark.parametrize("length", [1.25, 4.0])
def test_misses_have_their_share_and_length(length: float) -> None:
    rng = np.random.default_rng(1)
    missing = missed(rng, 4000, 60, 0.2, length)
    assert not missing[:, 0].any()
    assert missing[:, 1:].mean() == pytest.approx(0.2, abs=0.01)
    before, after = missing[:, 1:-1], missing[:, 2:]
    assert (before & ~after).sum() / before.sum() == pytest.approx(1.0 / length, abs=0.015)
