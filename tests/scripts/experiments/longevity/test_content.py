"""The content of pages: sets, records, and the figures that are made of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy import stats

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.evaluation import Row
from policies.values.divergence.regions import RegionCurves
from scripts import experiments
from scripts.experiments.longevity import (
    fig1 as longevity_fig1,
)
from scripts.experiments.longevity import (
    fig2 as longevity_fig2,
)
from scripts.experiments.longevity import (
    fig4 as longevity_fig4,
)
from scripts.experiments.longevity import (
    fig5 as longevity_fig5,
)
from scripts.experiments.longevity import (
    interpolation as longevity_interpolation,
)
from scripts.experiments.longevity.setup import fragment_pages, fragment_records
from scripts.experiments.longevity.setup.fragment_snapshots import drawn_set
from scripts.present.experiment import pictures_of, settings_of, with_derived
from tests.naive.fragments import distance, mean_divergence, version_at, versions_of
from tests.scripts.experiments.longevity.test_fragment_measures import drawn_spells


def test_a_drawn_set_is_that_of_the_environment() -> None:
    env: Any = gymnasium.make("CrawlLongevity-v0", num_pages=40, instance="random", horizon=20.0)
    env.reset(seed=5)
    regions, contents = env.unwrapped.instance.regions, env.unwrapped.contents()
    instance, own = drawn_set("random", 40, 20.0, 5)
    assert np.array_equal(instance.regions.rate, regions.rate)
    early = own.birth <= 20.0
    assert np.array_equal(own.birth[early], contents.birth[contents.birth <= 20.0])
    assert np.array_equal(own.key[early], contents.key[contents.birth <= 20.0])


def test_recorded_pages_exist_throughout() -> None:
    [site] = fragment_records.sites(shipped=True)
    assert site in fragment_records.sites()
    record = fragment_records.fragment_record(site)
    stretches = fragment_records.windows(site, 60.0)
    assert stretches == ((0.0, 60.0), (60.0, 120.0), (120.0, 180.0))
    start, end = stretches[1]
    contents = fragment_records.lasting(site, stretches[1])
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
        version = versions_of(fragment_pages.of_page(contents, number))[0]
        keys = {key for key, _ in version_at(version, 30.0)}
        assert keys == {*record.fragments.fragment[there].tolist()}
    with pytest.raises(ValueError, match="site must be one of"):
        fragment_records.fragment_record("elsewhere")
    with pytest.raises(ValueError, match="days must be at most 200"):
        fragment_records.windows(site, 201.0)
    with pytest.raises(ValueError, match="pages must be rows below"):
        fragment_records.of_pages(contents, np.array([contents.num_pages]))


def test_stripes_cover_all_that_was_there() -> None:
    contents = drawn_spells(2)
    for page, history in enumerate(versions_of(contents)):
        result = longevity_fig1.stripes(contents, page, 20.0)
        columns = {
            name: [value for metric, value in result.items() if metric.startswith(f"{name}[")]
            for name in longevity_fig1.STRIPES
        }
        seen: set[Any] = set()
        for time in np.arange(0.01, 20.0, 0.01) if history else ():
            seen |= version_at(history, time)
        assert sum(columns["size"]) == pytest.approx(len(seen), abs=3)  # some last for less
        assert columns["birth"] == sorted(columns["birth"])
        assert columns["first"] == pytest.approx(np.cumsum([0, *columns["size"][:-1]])[: len(seen)])


def test_drawn_pages_are_updated_equally_often() -> None:
    rate = fragment_pages.REGIONS.change_rate
    assert rate == pytest.approx([fragment_pages.UPDATES_PER_DAY] * 2)
    curves = RegionCurves(fragment_pages.REGIONS)
    low, high = curves.utility(60.0)
    for seed in range(2):
        result = [
            longevity_fig2.drawn(seed, label=page, present=60.0) for page in ("page A", "page B")
        ]
        assert [one["expected_utility"] for one in result] == pytest.approx([low, high])
        assert result[0]["holistic_utility"] == result[1]["holistic_utility"]
        assert result[0]["occurred_minus_expected"] == pytest.approx(result[0]["utility"] - low)
    lived = [longevity_fig1.drawn(0, label=page, days=120.0) for page in ("page A", "page B")]
    assert lived[0]["static_share"] == pytest.approx(20 / 160)
    assert lived[1]["static_share"] == pytest.approx(80 / 160)


@pytest.mark.parametrize("items", [1, 10])
def test_lifetimes_of_regions(items: int) -> None:
    lived = longevity_fig4.first_lifetimes(items, 3000, 1)
    assert lived.size == 3000
    law = stats.gamma(items, scale=1.0 / longevity_fig4.RATE)
    tested = stats.kstest(lived, law.cdf)
    assert longevity_fig4.distance(lived, items) == pytest.approx(tested.statistic, abs=1e-12)
    assert tested.pvalue > 1e-3


def test_what_is_late_by_the_end_of_the_record() -> None:
    rows = [
        Row("", longevity_fig5.QUALITY, "K > 2", 0, "late", 0.05),
        Row("", longevity_fig5.LONGER, "K > 2", 0, "late", 0.02),
        Row("", longevity_fig5.QUALITY, "K > 2", 1, "late", 0.05),
    ]
    [row] = longevity_fig5.derive(rows)
    assert (row.metric, row.seed, row.value) == (longevity_fig5.CUT_OFF, 0, pytest.approx(0.03))


def test_exact_divergence_is_that_of_the_sets() -> None:
    contents, end, exact = longevity_interpolation.played("random", 6, 2, 3)
    assert end == 62.0
    total = 0.0
    for history in versions_of(contents):
        for start in np.arange(0.0, end, 4.0):
            held = version_at(history, start)
            total += mean_divergence(history, held, start, min(start + 4.0, end))
    assert exact == pytest.approx(total / 6 / end)


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", "fig4", "fig5", "interpolation"])
def test_figures_are_drawn(name: str, tmp_path: Path) -> None:
    experiment = experiments.find(f"longevity_{name}")
    rows = [
        row
        for setting in settings_of(experiment, quick=True)
        for label in setting.labels
        for seed in setting.seeds(1)
        for row in setting.play(label, seed)
    ]
    for picture, draw in pictures_of(experiment).items():
        draw(with_derived(experiment, rows), tmp_path / f"{picture}.png")
        assert (tmp_path / f"{picture}.png").stat().st_size > 10_000


def test_how_often_divergence_falls() -> None:
    [site] = fragment_records.sites(shipped=True)
    stretch = fragment_records.windows(site, 60.0)[0]
    falls = []
    for history in versions_of(fragment_records.lasting(site, stretch)):
        held = version_at(history, 0.0)
        later = [0.0] + [
            distance(fragments, held) for since, fragments in history if 0.0 <= since < 60.0
        ]
        falls.append(max([0.0, *(one - other for one, other in itertools.pairwise(later))]))
    result = longevity_fig2.falling(0, site=site)
    assert result["largest_fall"] == pytest.approx(max(falls))
    assert result["falling_share"] == pytest.approx(np.mean(np.array(falls) > 0.0))
