"""The table of scale cases: each one in small, ratios within a turn, and what is committed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policies
from crawl_envs.evaluation import make_env, play
from scripts.timing import cases, environments, first_use, live_scheduler, offers, scale, stepped
from scripts.timing.cases import Case, Ratio, Row, Value, measured, runs, smallest
from tests.scripts.commands import records

COMMITTED = Path(__file__).resolve().parents[3] / "results" / "speed"
IN_SMALL = [case for case in scale.CASES if not case.new_process]


@cache
def in_small(name: str) -> list[Row]:
    """Return the rows of a short run of the quick form of a case."""
    [case] = [case for case in IN_SMALL if case.name == name]
    return list(measured(case, smallest(case), 2, 1e-4))


@pytest.mark.parametrize("case", IN_SMALL, ids=lambda case: case.name)
def test_a_case_measures_its_ratios_and_speeds(case: Case) -> None:
    rows = in_small(case.name)
    assert {row.case for row in rows} == {case.name}
    ratios = [(row.name, row.against, row.floor) for row in rows if row.against]
    assert ratios == [tuple(ratio) for ratio in case.ratios]
    speeds = {row.name for row in rows if row.unit == f"{case.unit}/s"}
    assert {name for ratio in case.ratios for name in ratio[:2]} <= speeds
    assert min(row.median for row in rows) > 0.0


def test_speeds_are_compared_within_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 10 units in 2, 4, 8 s beside 3 units in 6, 1, 3 s."""
    seconds = {"ours": np.array([2.0, 4.0, 8.0]), "theirs": np.array([6.0, 1.0, 3.0])}
    monkeypatch.setattr(cases, "timed", lambda tasks, turns, spell: seconds)

    def tasks(pages: int) -> cases.Tasks:
        return {"ours": (lambda times: None, 10.0), "theirs": (lambda times: None, 3.0)}

    case = Case("some", (7,), tasks, "pages", (Ratio("ours", "theirs", 2.0),))
    ratio, ours, theirs = measured(case, 7)
    # 5 / .5, 2.5 / 3 and 1.25 / 1; the ratio of the medians of the speeds is 2.5
    assert ratio[:6] == ("some", 7, "ours", "theirs", "times as fast", 1.25)
    assert ratio[6:] == pytest.approx(((5 / 6 + 1.25) / 2, 5.625, 2.0))
    assert ours == Row("some", 7, "ours", "", "pages/s", 2.5, 1.875, 3.75)
    assert theirs == Row("some", 7, "theirs", "", "pages/s", 1.0, 0.75, 2.0)


def process_of(pages: int) -> Iterator[Value]:
    yield "process", "number", float(os.getpid())


@pytest.mark.parametrize("new", [False, True])
def test_values_are_measured_once_after_a_small_run(new: bool) -> None:
    asked = []

    def values(pages: int) -> Iterator[Value]:
        asked.append(pages)
        yield "pages", "number", float(pages)

    [row] = measured(Case("some", (7, 8), values=values, quick_size=3), 8)
    assert (row, asked) == (Row("some", 8, "pages", "", "number", 8.0), [3, 8])
    [row] = measured(Case("some", (7,), values=process_of, new_process=new), 7)
    assert (row.median != os.getpid()) == new


def test_every_size_is_measured_and_one_in_the_quick_form() -> None:
    two = [Case("a", (10, 2_000)), Case("b", (5,), quick_size=1)]
    assert [*runs(two, quick=False)] == ["a, 10 pages", "a, 2,000 pages", "b, 5 pages"]
    assert [*runs(two, quick=True)] == ["a, 10 pages", "b, 1 pages"]


def test_committed_rows_are_those_of_the_table() -> None:
    """No committed number is without its command."""
    assert {path.name for path in COMMITTED.glob("*.csv")} == {"speed.csv", "first_use.csv"}
    rows = records(COMMITTED / "speed.csv")
    assert [*rows[0]] == [*Row._fields]
    sizes = [(case.name, str(pages)) for case in scale.CASES for pages in case.sizes]
    assert [*dict.fromkeys((row["case"], row["pages"]) for row in rows)] == sizes
    assert [*records(COMMITTED / "first_use.csv")[0]] == [*first_use.FirstUse._fields]
    for case in IN_SMALL:
        small = {row[2:5] for row in in_small(case.name)}
        for pages in case.sizes:
            one = [row for row in rows if (row["case"], row["pages"]) == (case.name, str(pages))]
            assert {(row["name"], row["against"], row["unit"]) for row in one} == small


def test_pages_of_the_table_are_those_of_the_environments() -> None:
    for name, case in stepped.CASES.items():
        env = stepped.make_env(case._replace(lanes=case.lanes and 2))
        assert env.unwrapped.tracker(0).elapsed.size == case.pages, name
    with pytest.raises(ValueError, match=r"pages must be those of trace, 65, got 66"):
        environments.beside_cartpole(("trace",), 66)


def test_pages_with_fragments_change_as_often_as_those_without() -> None:
    families = "CrawlLongevity", "CrawlNCIS"
    env, plain = (stepped.make_env(environments.fragment_case(name, 200)) for name in families)
    assert np.array_equal(env.instance.change_rate, plain.instance.change_rate)
    assert env.instance.bandwidth == plain.instance.bandwidth == 20.0


def test_bytes_are_those_of_all_arrays() -> None:
    nested: dict[str, Any] = {"a": [np.zeros(2), {"b": np.zeros(3, np.int8)}], "c": 4, "d": "text"}
    assert list(environments.array_sizes(nested)) == [16, 3]
    (_, _, state), (_, _, read) = environments.fragment_bytes(30)
    env = stepped.make_env(environments.fragment_case("CrawlLongevity", 30))
    updates = np.isfinite(env.contents().death).sum()
    assert read > state > 8.0 * updates / 30


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_crawler_fetches_what_its_bandwidth_allows(
    one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = live_scheduler.Crawl(live_scheduler.noisy_pages(200), one_by_one)
    times: list[float] = []
    report, batch = crawl.scheduler.report, 1 if one_by_one else 20

    def reported(pages: list[int], time: float) -> None:
        assert len(pages) == batch
        assert report(pages, time) == 0  # none was ignored
        times.append(time)

    monkeypatch.setattr(crawl.scheduler, "report", reported)
    crawl.play(3)
    assert len(times) == 60 // batch
    assert crawl.now == pytest.approx(33 * 1.0)  # a tenth of the pages per unit of time
    assert np.diff(times) == pytest.approx(batch / 20.0)


def test_a_month_of_offers_is_that_of_the_environment() -> None:
    env = make_env("CrawlOffers-v1", num_pages=250, bandwidth=25.0, horizon=3.0)
    env.reset(seed=0)
    ledger: Any = play(env, policies.make("DiscreteLambdaCrawl", env), 0)
    crawled = offers.crawl(250, 3)
    assert (crawled.hits, crawled.requests) == (ledger.hits, ledger.requests)
    assert crawled.offer_freshness == ledger.offer_freshness


def test_a_month_is_timed_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "DAYS", 1)
    seconds, memory = offers.month(200)
    assert seconds[:2] == ("1 days", "s")
    assert seconds[2] > 0.0
    assert memory[:2] == ("peak memory", "GB")
    assert 0.03 < memory[2] < 100.0
