"""Drawn and recorded pages, and the measures of figures on them, against plain sets."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy import stats

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.instances.traces.fragments import window_contents
from policies import bind
from policies.longevity.offline import UniformRefresh
from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity import fig1, fig2, fig4, interpolation
from scripts.experiments.longevity.measures import sites, two_pages
from scripts.experiments.longevity.measures.plays import ledgers
from tests.naive.fragments import distance, mean_divergence, version_at, versions_of
from tests.scripts.experiments.longevity.test_snapshots import drawn_spells


def test_a_drawn_set_equals_that_of_the_environment() -> None:
    env: Any = gymnasium.make("CrawlLongevity-v0", num_pages=40, instance="random", horizon=20.0)
    env.reset(seed=5)
    regions, contents = env.unwrapped.instance.regions, env.unwrapped.contents()
    instance, own = sites.drawn_set("random", 40, 20.0, 5)
    assert np.array_equal(instance.regions.rate, regions.rate)
    early = own.birth <= 20.0
    assert np.array_equal(own.birth[early], contents.birth[contents.birth <= 20.0])
    assert np.array_equal(own.key[early], contents.key[contents.birth <= 20.0])


def test_recorded_pages_exist_throughout() -> None:
    [site] = sites.available(shipped=True)
    assert site in sites.available()
    record = sites.trace_of(site)
    stretches = sites.windows(site, 60.0)
    assert stretches == ((0.0, 60.0), (60.0, 120.0), (120.0, 180.0))
    start, end = stretches[1]
    contents = sites.lasting(site, stretches[1])
    assert record.fragments is not None
    pages = [
        page
        for page in sorted({*record.fragments.page.tolist()})
        if record.created[page] <= start and record.deleted[page] > end
    ]
    assert contents.num_pages == len(pages) > 10
    for number, page in enumerate(pages):
        rows = record.fragments.page == page
        there = rows & (record.fragments.birth < 90.0) & (record.fragments.death >= 90.0)
        version = versions_of(sites.of_pages(contents, np.array([number])))[0]
        keys = {key for key, _ in version_at(version, 30.0)}
        assert keys == {*record.fragments.fragment[there].tolist()}
    with pytest.raises(ValueError, match="must be one of"):
        sites.trace_of("elsewhere")
    with pytest.raises(ValueError, match="days must be at most 200"):
        sites.windows(site, 201.0)
    with pytest.raises(IndexError, match="out of bounds"):
        sites.of_pages(contents, np.array([contents.num_pages]))


def test_stripes_cover_all_fragments() -> None:
    contents = drawn_spells(2)
    for page, history in enumerate(versions_of(contents)):
        result = fig1.stripes(contents, page, 20.0)
        columns = {
            name: [value for metric, value in result.items() if metric.startswith(f"{name}[")]
            for name in fig1.STRIPES
        }
        seen: set[Any] = set()
        for time in np.arange(0.01, 20.0, 0.01) if history else ():
            seen |= version_at(history, time)
        assert sum(columns["size"]) == pytest.approx(len(seen), abs=3)  # some last for less
        assert columns["birth"] == sorted(columns["birth"])
        assert columns["first"] == pytest.approx(np.cumsum([0, *columns["size"][:-1]])[: len(seen)])


def test_drawn_pages_are_updated_equally_often() -> None:
    rate = two_pages.REGIONS.change_rate
    assert rate == pytest.approx([two_pages.UPDATES_PER_DAY] * 2)
    curves = RegionCurves(two_pages.REGIONS)
    low, high = curves.utility(60.0)
    for seed in range(2):
        result = [fig2.drawn(seed, label=page, present=60.0) for page in ("page A", "page B")]
        assert [one["expected_utility"] for one in result] == pytest.approx([low, high])
        assert result[0]["holistic_utility"] == result[1]["holistic_utility"]
        assert result[0]["occurred_minus_expected"] == pytest.approx(result[0]["utility"] - low)
    lived = [fig1.drawn(0, label=page, days=120.0) for page in ("page A", "page B")]
    assert lived[0]["static_share"] == pytest.approx(20 / 160)
    assert lived[1]["static_share"] == pytest.approx(80 / 160)


@pytest.mark.parametrize("items", [1, 10])
def test_lifetimes_of_regions(items: int) -> None:
    lived = fig4.first_lifetimes(items, 3000, 1)
    assert lived.size == 3000
    law = stats.gamma(items, scale=1.0 / fig4.RATE)
    assert fig4.theory(items, lived) == pytest.approx(law.cdf(lived))
    assert stats.kstest(lived, law.cdf).pvalue > 1e-3


def test_exact_divergence_is_that_of_the_sets() -> None:
    contents, end, exact = interpolation.refreshed("random", 6, 2, 3)
    assert end == 62.0
    total = 0.0
    for history in versions_of(contents):
        for start in np.arange(0.0, end, 4.0):
            held = version_at(history, start)
            total += mean_divergence(history, held, start, min(start + 4.0, end))
    assert exact == pytest.approx(total / 6 / end)


def test_how_often_divergence_falls() -> None:
    [site] = sites.available(shipped=True)
    stretch = sites.windows(site, 60.0)[0]
    falls = []
    for history in versions_of(sites.lasting(site, stretch)):
        held = version_at(history, 0.0)
        later = [0.0] + [
            distance(fragments, held) for since, fragments in history if 0.0 <= since < 60.0
        ]
        falls.append(max([0.0, *(one - other for one, other in itertools.pairwise(later))]))
    result = fig2.falling(0, site=site)
    assert result["largest_fall"] == pytest.approx(max(falls))
    assert result["falling_share"] == pytest.approx(np.mean(np.array(falls) > 0.0))


Histories = list[list[tuple[float, Any]]]


def fragments_at(histories: Histories, page: int, time: float) -> set[Any]:
    """The fragments of a page at a time, of the histories of all."""
    return version_at(histories[page], time) if histories[page] else set()


def test_contents_of_some_pages_are_unchanged() -> None:
    trace = sites.trace_of("garden-handbook")
    contents, _ = window_contents(trace, 100.0, 200.0)
    chosen = np.array([7, -1, 2])
    result = sites.of_pages(contents, chosen)
    assert result.num_pages == 3
    before, after = versions_of(contents), versions_of(result)
    for time in (0.5, 40.0, 99.0):
        for place, page in enumerate(chosen):
            expected = fragments_at(before, page, time) if page >= 0 else set()
            assert fragments_at(after, place, time) == expected
    assert fragments_at(after, 0, 40.0)


def test_curves_of_a_site_are_mean_distances_of_its_versions() -> None:
    played = sites.second_half("garden-handbook")
    curves = sites.curves("garden-handbook")
    trace, split = played.trace, played.split
    contents, rows = window_contents(trace, split.fit_start, split.fit_end)
    lasting = np.flatnonzero(
        (trace.created[played.pages] <= 0.0) & np.isin(played.pages, rows)
        & (trace.deleted[played.pages] > split.fit_end)
    )  # fmt: skip
    times, histories = np.arange(2.0, split.fit_end + 1e-9, 2.0), versions_of(contents)
    for page in lasting[:3]:
        row = int(np.searchsorted(rows, played.pages[page]))
        versions = [fragments_at(histories, row, time) for time in times]
        means = []
        for gap in range(1, len(times)):
            pairs = zip(versions[:-gap], versions[gap:], strict=True)
            means.append(
                np.mean([1.0 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in pairs])
            )
        assert curves.table[page, 1:] == pytest.approx(np.maximum.accumulate(means), abs=1e-12)
    absent = ~np.isin(played.pages, rows)
    if absent.any():
        expected = np.maximum.accumulate(curves.table[~absent].mean(axis=0))
        assert curves.table[absent][0] == pytest.approx(expected)


def test_an_environment_of_a_site_starts_in_its_middle_with_the_budget() -> None:
    played = sites.second_half("garden-handbook")
    alive = played.alive
    env = sites.replayed("garden-handbook", form="scores", bandwidth=alive / 10.0, batch=2)
    result, _ = ledgers(env, lambda env: bind(UniformRefresh(), env), 0)
    length = played.split.end - played.split.start
    assert result[-1].crawls == pytest.approx(length * alive / 10.0, rel=0.02)
    assert result[-1].alive_time / result[-1].time == pytest.approx(alive, rel=0.02)
    assert result[-1].wasted == 0
