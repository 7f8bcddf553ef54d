"""Schedules from tables of pages."""

from __future__ import annotations

import numpy as np
import pytest

from policies.live.adapters import page_tables
from policies.live.logs import PageTable, hosts_of
from policies.live.scheduler import CrawlScheduler
from policies.values import greedy_ncis
from scripts.live import planning, schedules
from tests.naive import source_values


def table(m: int = 20, **more: object) -> PageTable:
    rng = np.random.default_rng(0)
    urls = np.array([f"https://h{page % 3}.example/{page}" for page in range(m)], np.object_)
    known = {
        "importance": rng.uniform(0.5, 2.0, m),
        "change_rate": rng.uniform(0.1, 2.0, m),
        "recall": rng.uniform(0.2, 0.8, (1, m)),
        "false_signal_rate": rng.uniform(0.1, 0.5, (1, m)),
        "last_crawl": np.zeros(m),
        "sources": ("signals",),
    }
    return PageTable(urls=urls, host=hosts_of(urls), **{**known, **more})  # type: ignore[arg-type]


def test_a_schedule_takes_the_largest_value_in_turn() -> None:
    """A plain loop over all crawl values, as no signals come."""
    pages = table()
    scheduler = planning.Schedule(pages, "GreedyNCIS", 10.0, 0.0).scheduler(ids=np.arange(20))
    found = planning.plan(scheduler, page_tables.copies_of(pages), 20.0)
    given = page_tables.columns_of(pages, np.arange(20))
    known = {name: given[name] for name in planning.OF_INSTANCE}
    copies, expected = np.zeros(20), []
    for time in found.time:
        page = int(np.argmax(greedy_ncis(time - copies, **known)))
        expected.append(page)
        copies[page] = time
    assert found.page.tolist() == expected
    assert abs(found.page.size - 200) <= 1
    np.testing.assert_allclose(found.time, np.arange(1, found.page.size + 1) / 10.0, atol=1e-6)


def test_ages_are_those_since_the_copy_or_the_fetch_before() -> None:
    copies = np.full(20, -3.0)
    copies[4] = np.nan
    pages = table(last_crawl=copies)
    scheduler = planning.Schedule(pages, "Greedy", 10.0, 0.0).scheduler(ids=np.arange(20))
    found = planning.plan(scheduler, copies, 8.0)
    last = dict(enumerate(copies))
    for page, time, elapsed in zip(*(values.tolist() for values in found), strict=True):
        np.testing.assert_equal(elapsed, time - last[page])
        last[page] = time
    words = planning.reasons(found, pages, 0.0)
    first = found.page.tolist().index(4)
    assert words[first] == "no copy yet"
    assert words[0].startswith("copy 3.1 days old; ") or words[0] == "no copy yet"


def test_many_fetches_are_chosen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MOST_TIMES", 20)
    pages = table()
    scheduler = planning.Schedule(pages, "Greedy", 10.0, 0.0).scheduler(ids=np.arange(20))
    found = planning.plan(scheduler, page_tables.copies_of(pages), 20.0)
    assert abs(found.page.size - 200) <= 10
    assert np.unique(found.time).size <= 25


def test_pages_that_are_gone_are_asked_again_at_even_times() -> None:
    copies = np.array([0.0, 1.5, np.nan, 3.0])
    gone = np.array([False, True, True, True])
    pages = table(4, gone=gone, last_crawl=copies, recall=None, false_signal_rate=None)
    again = planning.rechecks(pages, 2.0, 4.0, 8.0)
    assert list(
        zip(again.page.tolist(), again.time.tolist(), again.elapsed.tolist(), strict=True)
    ) == [
        (1, 4.0, 2.5),
        (2, 4.0, 2.0),
        (3, 5.0, 2.0),
        (1, 6.0, 2.0),
        (2, 6.0, 2.0),
        (3, 7.0, 2.0),
        (1, 8.0, 2.0),
        (2, 8.0, 2.0),
    ]
    scheduler = planning.Schedule(pages, "Greedy", 1.0, 4.0).scheduler(ids=np.arange(4))
    found = planning.plan(scheduler, copies, 8.0)
    assert set(found.page.tolist()) == {0}
    whole = planning.merged(found, again)
    assert whole.time.tolist() == sorted([*found.time.tolist(), *again.time.tolist()])
    assert (
        planning.reasons(whole, pages, 4.0)[whole.page.tolist().index(1)]
        == "gone at its last fetch, 2.5 days ago"
    )
    assert planning.cautions(pages) == ["3 pages gone: fetched only with --recheck-gone DAYS"]
    with pytest.raises(ValueError, match="recheck-gone must be above 0, got 0"):
        planning.rechecks(pages, 0.0, 4.0, 8.0)
    with pytest.raises(ValueError, match="recheck-gone must be used with a column gone"):
        planning.rechecks(table(), 2.0, 4.0, 8.0)


def test_a_page_whose_copy_is_the_newest_may_be_gone() -> None:
    pages = table(3, gone=np.arange(3) == 1, last_crawl=np.array([1.0, 4.0, 2.0]), dated=True)
    scheduler = planning.Schedule(pages, "Greedy", 10.0, 4.0).scheduler(np.arange(3), feeds=1)
    found = [scheduler.describe(page) for page in range(3)]
    assert [page["state"] for page in found] == ["ready", "gone", "ready"]
    assert [page["copy"] for page in found] == [1.0, None, 2.0]


@pytest.mark.parametrize(("days", "gap"), [(2.0, 0.0), (2.0, 0.25), (3.0, 0.7), (1.0, 0.4)])
def test_rechecks_are_a_gap_apart(days: float, gap: float) -> None:
    """A plain loop over the fetches that are due."""
    copies = np.array([0.0, 0.0, 1.0, np.nan, 3.5])
    pages = table(5, gone=np.arange(5) > 0, last_crawl=copies)
    again = planning.rechecks(pages, days, 4.0, 9.0, gap)
    due = sorted(
        max(copy + days, 4.0) + turn * days
        for copy in np.nan_to_num(copies[1:], nan=4.0 - days)
        for turn in range(9)
        if max(copy + days, 4.0) + turn * days <= 9.0
    )
    expected: list[float] = []
    for time in due:
        expected.append(max(time, expected[-1] + gap) if expected else time)
    np.testing.assert_allclose(again.time, [time for time in expected if time <= 9.0])


@pytest.mark.parametrize(("days", "end", "count"), [(0.1, 0.3, 3), (0.1, 0.7, 7), (0.3, 0.8, 2)])
def test_rechecks_at_the_end_are_kept_whatever_the_rounding(
    days: float, end: float, count: int
) -> None:
    pages = table(1, gone=np.array([True]), last_crawl=np.zeros(1))
    assert planning.rechecks(pages, days, 0.0, end).page.size == count


@pytest.mark.parametrize("start", [0.0, 20635.0])
@pytest.mark.parametrize(("bandwidth", "until"), [(10.0, 0.3), (10.0, 0.7), (7.0, 1.0)])
def test_a_fetch_at_the_end_is_kept_whatever_the_rounding(
    bandwidth: float, until: float, start: float
) -> None:
    pages = table(last_crawl=np.full(20, start))
    scheduler = planning.Schedule(pages, "Greedy", bandwidth, start).scheduler(ids=np.arange(20))
    found = planning.plan(scheduler, page_tables.copies_of(pages), start + until)
    assert found.page.size == round(bandwidth * until)


def test_rates_without_evidence_are_named() -> None:
    evidence = np.array(["never changed", "some changed", "never changed", "crawled once"], object)
    gone = np.array([False, False, True, False])
    said = planning.cautions(table(4, evidence=evidence, gone=gone))
    assert said[1].startswith("2 of 3 rates rest on similar pages")
    assert said[1].endswith("(1 crawled once, 1 never changed)")
    assert planning.cautions(table(4, evidence=np.full(4, "some changed", object))) == []
    assert planning.cautions(table(notes=("read as UTC",))) == ["read as UTC"]


def test_the_largest_freshness_grows_with_the_budget() -> None:
    rows, budgets = np.arange(20), (1.0, 10.0, 100.0)
    expected = [planning.optimum(table(), rows, budget).objective for budget in budgets]
    assert np.all(np.diff(expected) > 0.0)
    assert 0.0 < expected[0] < expected[-1] < 1.0


def test_an_unknown_change_rate_is_refused() -> None:
    bare = table(change_rate=None, recall=None, false_signal_rate=None, sources=())
    with pytest.raises(
        ValueError, match=r"change_rate must be given: .* needs it; scripts.estimate"
    ):
        planning.Schedule(bare, "Greedy", 1.0, 0.0).scheduler()


def test_pages_without_importance_are_fetched_once_at_most() -> None:
    copies = np.array([0.0, np.nan, 0.0])
    pages = table(3, importance=np.array([1.0, 0.0, 0.0]), last_crawl=copies)
    scheduler = planning.Schedule(pages, "Greedy", 10.0, 0.0).scheduler(ids=np.arange(3))
    count = np.bincount(planning.plan(scheduler, copies, 5.0).page, minlength=3)
    assert count[1:].tolist() == [1, 0]
    assert planning.cautions(pages) == [
        "2 pages of importance 0: fetched only for a first copy or a promise"
    ]
    gone = np.array([True, False, False])
    none = table(3, importance=np.array([1.0, 0.0, 0.0]), last_crawl=copies, gone=gone)
    with pytest.raises(ValueError, match="importance must be > 0 for a page that is not gone"):
        schedules.choose(planning.Schedule(none, "Greedy", 1.0, 1.0), 2.0, None)


def test_pages_that_are_added_need_no_signals_where_the_table_has_none() -> None:
    bare = table(recall=None, false_signal_rate=None, sources=())
    scheduler = planning.Schedule(bare, "Greedy", 1.0, 0.0).scheduler()
    scheduler.add(["new"], change_rate=1.0)
    assert "new" in scheduler.next_batch(2.0, 2)
    scheduler = planning.Schedule(bare, "GreedyNCIS", 1.0, 0.0).scheduler()
    with pytest.raises(ValueError, match="recall, false_signal_rate must be given: the policy"):
        scheduler.add(["new"], change_rate=1.0)


def test_signals_since_the_copies_decide_what_is_fetched_first() -> None:
    """Two sources, one never false, against the sums as printed in 60 digits; all pages each time.

    Without the signals, pages 0 and 3 would come last: their copies are new.
    """
    rate, copies = np.array([0.3, 0.5, 0.2, 0.4, 0.6, 0.1]), np.array([9.8, 4, 5, 9.9, 6, 9])
    recall = np.array([[0.5, 0.4, 0.5, 0.3, 0.2, 0.5], [0.3, 0.3, 0.2, 0.5, 0.5, 0.2]])
    false = np.array([np.zeros(6), [0.05, 0.3, 0.1, 0.2, 0.3, 0.02]])
    signals, names = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 0, 3, 1, 1]]), ("push", "rumour")
    more = {"recall": recall, "false_signal_rate": false, "signals": signals, "sources": names}
    weight = {"importance": np.ones(6), "change_rate": rate, "last_crawl": copies}
    pages = table(6, **weight, **more)
    asked = planning.Schedule(pages, "GreedyNCIS", 4.0, 10.0)
    plan = schedules.choose(asked, 12.0, None)
    counts, copied, expected = signals.copy(), copies.copy(), []

    def value(page: int, time: float) -> float:
        known = (rate[page], recall[:, page], false[:, page])
        level = source_values.level(time - copied[page], counts[:, page].tolist(), known)
        return float(source_values.greedy_ncis(level, known) if level < np.inf else 1 / rate[page])

    for time in plan.time.tolist():
        page = max(range(6), key=lambda page: value(page, time))
        expected.append(page)
        copied[page], counts[:, page] = time, 0
    assert plan.page.tolist() == expected
    assert expected.index(0) < 2
    assert expected.index(3) < 4
    words = dict(
        zip(plan.page[::-1].tolist(), planning.reasons(plan, pages, 10.0)[::-1], strict=True)
    )
    later, ratio = plan.time[expected.index(3)] - 10.0, 0.2 / (0.5 * 0.4 + 0.2)
    level = 0.2 * 0.4 * (10.0 - 9.9) + 0.4 * later  # no signal after the start is known
    changes = level + 3 * (1 - ratio)
    assert words[0].split("; ")[1:] == [
        "1 signal of push before the start",
        f"{1 + 0.2 * 0.3 * 0.2 + 0.3 * (plan.time[expected.index(0)] - 10.0):.3g} changes expected "
        "since, "
        "stale with probability 1",
    ]
    assert words[3].split("; ")[1:] == [
        "3 signals of rumour before the start",
        f"{changes:.3g} changes expected since, stale with probability "
        f"{1 - np.exp(-level) * ratio**3:.3g}",
    ]
    again = planning.reasons(planning.merged(plan, plan), pages, 10.0)[1]
    assert "signal" not in again
    silent = schedules.choose(
        asked._replace(table=table(6, **weight, **more | {"signals": None})), 12.0, None
    )
    assert silent.page.tolist().index(3) > 3


def test_signals_are_reported_once_where_a_feed_has_them_too() -> None:
    """As many as the table counts; of a copy at the start too; and never to pages without one."""
    counts = np.array([[0, 2, 1, 5, 300]])
    copies, gone = np.array([0.0, 0.0, 3.0, np.nan, 0.0]), np.arange(5) == 0
    pages = table(5, signals=counts, last_crawl=copies, gone=gone)
    scheduler = planning.Schedule(pages, "GreedyNCIS", 1.0, 3.0).scheduler()
    scheduler.signal(pages.urls[[1]], 2.5)
    for _ in range(2):
        page_tables.report_signals(scheduler, pages, pages.urls, 3.0)
        told = [scheduler.describe(url)["signals"] for url in pages.urls[1:]]
        assert told == [2, 1, 0, 256]
    assert planning.policy_cautions(pages, "GreedyNCIS") == [
        "5 signals since the last crawls not used: their pages are gone or have no copy"
    ]
    assert planning.policy_cautions(pages, "Greedy") == [
        "308 signals since the last crawls not used: Greedy uses none"
    ]
    pairs = {"signals": np.array([[0, 1], [2, 0]]), "sources": ("a", "b")}
    learns = table(2, **pairs, recall=None, false_signal_rate=None)
    scheduler = planning.Schedule(learns, "GreedyNCIS", 1.0, 3.0).scheduler(learn=True)
    page_tables.report_signals(scheduler, learns, learns.urls, 3.0)
    assert scheduler.describe(learns.urls[0])["recall"] > [0.0, 0.0]  # assumed, not 0
    assert [scheduler.describe(url)["signals"] for url in learns.urls] == [2, 1]
    planning.Schedule(learns, "Greedy", 1.0, 3.0).scheduler()
    bare = table(5, signals=counts, recall=None, false_signal_rate=None)
    [words] = planning.policy_cautions(bare, "GreedyNCIS")
    assert words.endswith("not used: there is no column recall")
    assert planning.policy_cautions(bare, "GreedyNCIS", learn=True) == []
    [words] = planning.policy_cautions(table(5), "GreedyNCIS")
    assert words == "no column signals: assuming no signals since the last crawls"
    empty = table(5, signals=counts, last_crawl=None)
    page_tables.report_signals(scheduler, empty, empty.urls, 3.0)  # no copy is known


def test_hosts_are_limited_by_texts() -> None:
    scheduler = CrawlScheduler("Greedy", 1e3, burst=1.0)
    pages = np.arange(6)
    scheduler.add(pages, host=["a", "a", "a", "b", "b", "b"], change_rate=1.0, last_crawl=0.0)
    planning.limit_hosts(scheduler, [":0.5:2", "b:1e-1:1"])
    assert sorted(page // 3 for page in scheduler.next_batch(1.0, 6)) == [0, 1]
    assert planning.plan(scheduler, np.zeros(6), 3.0).page.size > 0
    for text in ("a", "a:1.2.3", "a:e", "a:"):
        with pytest.raises(
            ValueError, match=f"limit must be HOST:GAP or HOST:GAP:MOST, got '{text}'"
        ):
            planning.limit_hosts(scheduler, [text])
    with pytest.raises(ValueError, match=r"limit must name a host of a page, one of .*, got 'A'"):
        planning.limit_hosts(scheduler, ["a:1", "A:1"], ["a", "b"])
