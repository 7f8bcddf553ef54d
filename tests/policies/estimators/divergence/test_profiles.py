"""Change profiles: against lists of sets, when they begin and retire, and what they take up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from crawl_envs.types.copies import Sketches, sketch_of
from crawl_envs.types.copies import divergence as sketch_divergence
from policies.estimators.divergence.profiles import ChangeProfiles
from tests.policies.curve_fits import combined


class NaiveProfiles:
    """Profiles of one page as dictionaries, versions as sets."""

    def __init__(self, histories, length):
        self.histories, self.length, self.profiles = histories, length, []

    def refresh(self, time, version):
        kept = [p for p in self.profiles if len(p["pairs"]) < self.length]
        self.profiles = kept
        for profile in kept:
            base = profile["version"]
            both, either = len(base & version), len(base | version)
            staleness = 1 - both / either if either else 0.0
            profile["pairs"].append((time - profile["time"], staleness))
        if len(kept) < self.histories:
            kept.append({"time": time, "version": version, "pairs": []})

    def combined(self):
        by_age = {}
        for profile in self.profiles:
            for age, value in profile["pairs"]:
                by_age.setdefault(round(age, 9), []).append(value)
        return sorted((age, np.mean(values)) for age, values in by_age.items())


def log_of(pages, times, versions):
    rows = [sketch_of(sorted(version)) for version in versions]
    return SimpleNamespace(
        page=np.array(pages, np.int64),
        time=np.array(times, np.float64),
        sketch=Sketches.of_rows(rows),
    )


def refresh(profiles, page, time, version):
    profiles.learn(log_of([page], [time], [version]))


@pytest.mark.parametrize(("histories", "length"), [(1, 3), (3, 4), (5, 12)])
def test_equal_the_naive_ones(histories, length):
    rng = np.random.default_rng(histories)
    m = 4
    profiles = ChangeProfiles(m, histories, length)
    naive = [NaiveProfiles(histories, length) for _ in range(m)]
    versions = [set(range(100 * page, 100 * page + 3)) for page in range(m)]
    time = 0.0
    for _ in range(120):
        time += float(rng.integers(1, 4)) * 0.1
        pages = rng.choice(m, rng.integers(1, m + 1), replace=False)
        for page in pages:  # some fragments go, some come, so that sketches grow and shrink
            kept = {f for f in versions[page] if rng.random() < 0.8}
            versions[page] = kept | set(rng.integers(0, 1000, rng.integers(0, 6)).tolist())
            naive[page].refresh(time, versions[page])
        learned = profiles.learn(log_of(pages, [time] * pages.size, [versions[p] for p in pages]))
        assert learned.tolist() == pages.tolist()
        for page in range(m):
            ages, values = combined(profiles, page)
            expected = naive[page].combined()
            assert ages == pytest.approx([age for age, _ in expected], abs=1e-9)
            assert values == pytest.approx([value for _, value in expected], abs=1e-12)


def test_retired_at_the_refresh_after_the_last_observation():
    profiles = ChangeProfiles(1, 1, 2)
    counts = []
    for k in range(7):
        refresh(profiles, 0, float(k), [1, 2, k])
        counts.append((float(profiles.arrays.base[0, 0]), int(profiles.arrays.filled[0, 0])))
    assert counts == [(0, 0), (0, 1), (0, 2), (3, 0), (3, 1), (3, 2), (6, 0)]


def test_small_sketches_are_kept_and_compared():
    rng = np.random.default_rng(1)
    profiles = ChangeProfiles(1, 1, 4, sketch_size=8)
    first, second = rng.integers(0, 2**31, 60), rng.integers(0, 2**31, 60)
    second[:30] = first[:30]
    refresh(profiles, 0, 0.0, first)
    refresh(profiles, 0, 1.0, second)
    expected = sketch_divergence(sketch_of(first, 8), sketch_of(second, 8), 8)
    assert 0.0 < expected < 1.0
    assert combined(profiles, 0)[1].tolist() == [expected]


def test_starts_from_copies_of_time_0_alone():
    tracker = SimpleNamespace(
        time=2.0,
        elapsed=np.array([2.0, 1.0, 2.0, 2.0]),  # page 1 was born at 1
        changed=np.array([-1, -1, 0, -1], np.int8),
        alive=np.array([True, True, True, False]),
        copies=None,
    )
    sketches = Sketches.of_rows([sketch_of([page, 9]) for page in range(4)])
    profiles = ChangeProfiles.of_episode(tracker, sketches, 2, 4)
    assert np.isnan(profiles.arrays.base[:, 0]).tolist() == [False, True, True, True]
    refresh(profiles, 0, 3.0, [0, 9, 5])
    assert combined(profiles, 0)[0].tolist() == [3.0]
    assert combined(profiles, 0)[1] == pytest.approx([1 / 3])


def test_footprint_as_the_paper_counts():
    """Eight hashes and 12 observations: 32 + 96 = 128 bytes (section 5.2)."""
    profiles = ChangeProfiles(3, 1, 12, sketch_size=8)
    for page in range(3):
        for k in range(13):
            refresh(profiles, page, float(k), range(k, k + 20))
    footprint = profiles.footprint()
    assert footprint.counted == 128.0
    assert footprint.counted < footprint.stored < 400.0


def test_the_store_grows_no_further_where_sizes_stay():
    profiles = ChangeProfiles(2, 3, 4)
    for k in range(200):
        refresh(profiles, k % 2, float(k), range(k, k + 50))
    assert profiles.footprint().stored < 2 * (3 * 50 * 4 + 3 * (5 * 8 + 4 * 16))


@pytest.mark.parametrize(
    ("copies", "own", "kept"), [(3, None, 0), (9, None, 3), (9, 2, 2), (3, 2, 2)]
)
def test_sketches_that_were_cut_off_are_compared_as_such(copies, own, kept):
    """Three hashes are all that a page of three fragments has, but not one of nine."""
    tracker = SimpleNamespace(
        time=1.0,
        elapsed=np.ones(2),
        changed=np.full(2, -1, np.int8),
        alive=np.ones(2, bool),
        copies=SimpleNamespace(size=np.array([2, copies])),
    )
    sketches = Sketches.of_rows([sketch_of([1, 2]), sketch_of([3, 4, 5])])
    profiles = ChangeProfiles.of_episode(tracker, sketches, 1, 4, own)
    assert profiles.sketch_size == kept
