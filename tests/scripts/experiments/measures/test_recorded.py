"""Recorded histories as an experiment: splits, thinning, environments, and what formulas assume."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from scripts.data.replays import Split
from scripts.experiments.longevity import real as fragments
from scripts.experiments.measures import recorded as histories
from scripts.experiments.measures.assumptions import assumptions
from scripts.experiments.real import histories as of_quarters
from tests.crawl_envs.instances.recorded import tiny_tables, write


def made(folder, days, changes, *, pages=4, created=None, signals=((), ()), mentions=((), ())):
    """A trace of pages in two directories that all exist throughout."""
    tables = tiny_tables()
    tables["pages"] = {
        "page_id": list(range(pages)),
        "dir_id": [page % 2 for page in range(pages)],
        "created": created or [-1.0] * pages,
        "deleted": [days] * pages,
    }
    page, time = changes
    tables["changes"] = {"page_id": page, "t": time, "kind": ["content"] * len(page)}
    for name, column, (which, when) in (
        ("signals", "dir_id", signals),
        ("mentions", "page_id", mentions),
    ):
        tables[name] = {column: np.array(which, np.int64), "t": np.array(when, np.float64)}
    meta = {"site": "made", "window_start": "2024-01-01", "window_days": days}
    return traces.load(write(folder, tables, meta))


def test_quarters_follow_each_other_after_the_days_fitted():
    quarters = [histories.quarter(80.0, number) for number in range(4)]
    assert [(split.start, split.end) for split in quarters] == [
        (40.0, 50.0),
        (50.0, 60.0),
        (60.0, 70.0),
        (70.0, 80.0),
    ]
    assert all((split.fit_start, split.fit_end) == (0.0, split.start) for split in quarters)
    assert histories.halves(80.0) == Split(0.0, 40.0, 40.0, 80.0)


def test_thinning_keeps_whole_directories_with_all_their_events():
    trace = traces.load(traces.find("garden-handbook"))
    thin = histories.thinned(trace, 30)
    assert 0 < thin.num_pages <= max(30, np.bincount(trace.directory).max())
    kept = np.isin(trace.directory, np.unique(thin.directory))
    assert thin.num_pages == kept.sum()
    assert thin.change_page.size == kept[trace.change_page].sum()
    np.testing.assert_array_equal(trace.created[kept], thin.created)
    numbers = np.flatnonzero(kept)
    np.testing.assert_array_equal(
        numbers[thin.mention_page], trace.mention_page[kept[trace.mention_page]]
    )
    assert histories.thinned(trace, trace.num_pages) is trace


def test_environment_of_a_split_plays_its_days_with_rates_of_those_before():
    trace = traces.load(traces.find("garden-handbook"))
    split = histories.quarter(trace.days, 1)
    fitted, true = (
        histories.replayed(
            trace,
            split,
            signals="both",
            days_per_crawl=10.0,
            importance="uniform",
            fit_to_played=fit_to_played,
        )
        for fit_to_played in (False, True)
    )
    for env in (fitted, true):
        env.reset(seed=0)
    assert fitted.instance.num_sources == 2
    assert fitted.lanes.horizon == pytest.approx(split.end - split.start)
    alive = trace.alive_days(split.start, split.end).sum() / (split.end - split.start)
    assert fitted.instance.bandwidth == pytest.approx(alive / 10.0)
    assert not np.allclose(fitted.instance.change_rate, true.instance.change_rate)


def test_another_folder_of_traces_is_read(monkeypatch, tmp_path):
    monkeypatch.setenv(histories.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="nowhere"):
        histories.sites()
    monkeypatch.setenv(histories.FOLDER_VARIABLE, str(tmp_path))
    write(tmp_path / "tiny", tiny_tables())
    assert "tiny" in histories.sites()


def test_assumptions_by_hand(tmp_path):
    """Pages 0 and 1 change twice before day 20 and four times after; 2 and 3 once and never."""
    page = [0, 0, 1, 1, 2, *[0, 1] * 4]
    time = [1.0, 2.0, 3.0, 4.0, 5.0, *np.linspace(21.0, 38.0, 8)]
    mentions = ([0, 3], [time[5], 30.0])
    signals = ([0], [time[5]])
    trace = made(tmp_path, 40.0, (page, time), mentions=mentions, signals=signals)
    result = assumptions(trace, Split(0.0, 20.0, 20.0, 40.0))
    assert result["rate_ratio"] == pytest.approx(8 / 5)
    assert result["persistence"] == pytest.approx(
        np.corrcoef([3.5, 3.5, 2.0, 1.0], [3.5, 3.5, 1.5, 1.5])[0, 1]
    )
    assert result["bulk"] == 0.0
    assert result["mention_precision"] == 0.5
    assert result["mention_recall"] == pytest.approx(1 / 8)
    assert (
        result["directory_precision"] == 0.5
    )  # it reaches pages 0 and 2, and page 2 had not changed


def test_poisson_changes_do_not_clump_and_bulk_commits_do(tmp_path):
    rng = np.random.default_rng(0)
    pages, days = 40, 700.0
    times = np.sort(rng.uniform(0.0, days, 4000))
    alone = made(
        tmp_path / "alone", days, (rng.integers(0, pages, 4000).tolist(), times), pages=pages
    )
    split = Split(0.0, days / 2.0, days / 2.0, days)
    result = assumptions(alone, split)
    assert result["clumping"] == pytest.approx(1.0, abs=0.1)
    assert result["bulk"] == 0.0
    together = np.repeat(np.sort(rng.uniform(0.0, days, 100)), pages)
    bulk = made(tmp_path / "bulk", days, (list(range(pages)) * 100, together), pages=pages)
    assert assumptions(bulk, split)["bulk"] == 1.0


def test_parameters_are_looked_up_by_name(monkeypatch):
    site = "news, 3 days, zipf"
    monkeypatch.setattr(histories, "sites", lambda: {site: None})
    name = histories.name_of(site, 10, "uniform")
    assert histories.cells_of([name]) == {name: (site, 10, "uniform")}
    ends = (fragments.name_of("", 3), fragments.SWEEP)
    row = Row("", "", fragments.UNIFORM, 0, fragments.EXPERIMENT.metric, 2.0)
    rows = [row._replace(setting=site + end) for end in ends]
    derived = {(row.setting, row.metric) for row in fragments.derive(rows)}
    assert (fragments.TOGETHER + ends[0], fragments.RELATIVE) in derived
    fresh = [
        Row("", name, label, seed, "freshness", value)
        for label, value in ((of_quarters.REFERENCE, 0.2), ("GREEDY", 0.3))
        for seed in (0, 1)
    ]
    together = histories.name_of(histories.ALL_SITES, 10, "uniform")
    assert [(row.setting, row.value) for row in of_quarters.derive(fresh)] == [
        *[(together, 0.2)] * 2,
        *[(together, 0.3)] * 2,
    ]


def test_rows_of_an_unknown_site_are_an_error():
    names = [histories.name_of(site, 3, "zipf") for site in ("garden-handbook", "elsewhere")]
    with pytest.raises(ValueError, match=r"'elsewhere, 3 days, zipf' need the trace of their"):
        histories.cells_of(names)
