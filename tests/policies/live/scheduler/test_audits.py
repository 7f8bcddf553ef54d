"""Audits: which pages are drawn, when they are handed out, and what counts as their answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.estimators import measure_freshness
from policies.live.scheduler import CrawlScheduler, ShardedScheduler
from policies.live.scheduler import audits as audits_module

FRESH, STALE, MISSED, OPEN, DRAWN = range(5)


def filled(share=0.1, pages=40, policy="Greedy", columns=("change_rate",), **more):
    """Return a scheduler of pages with copies of time 0, of importance 1 to 4 in turn."""
    scheduler = CrawlScheduler(policy, 100.0, audit_share=share, burst=1e3, **more)
    given = {"importance": 1.0 + np.arange(pages) % 4, "change_rate": np.full(pages, 0.5)}
    given = {name: given[name] for name in ("importance", *columns)}
    scheduler.add(np.arange(pages), last_crawl=0.0, **given)
    return scheduler


def until_drawn(scheduler, time=1.0):
    """Fetch nine other pages of ten, so that the next fetch is an audit; return the time then."""
    for step in range(10):
        page = scheduler.next(time + 0.02 * step).id
        scheduler.report([page], time + 0.02 * step, changed=[False])
    return time + 0.2


def answers(scheduler):
    return scheduler.audits.records()["answer"].tolist()


def test_every_tenth_fetch_is_an_audit_and_importance_decides_which():
    scheduler, where = filled(), []
    for step in range(1, 8001):
        page = scheduler.next(step / 100.0).id
        count = scheduler.audits.count
        if count > len(where):
            where.append(step)
            assert scheduler.audits.records()["row"][-1] == page
        scheduler.report([page], step / 100.0, changed=[step % 3 == 0])
    assert where == list(range(11, 8001, 10))
    drawn = np.bincount(scheduler.audits.records()["row"] % 4, minlength=4) / len(where)
    assert drawn == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.06)
    records = scheduler.audits.records()
    expected = [int(step % 3 == 0) for step in where]
    assert records["answer"].tolist() == expected
    age = 1.0 - np.exp(-0.5 * 80.0)
    assert ((records["page_belief"] > 0.0) & (records["page_belief"] < age)).all()
    measured = scheduler.freshness()
    arrays = records["answer"] == STALE, records["page_belief"], records["mean_belief"]
    assert measured[:-1] == measure_freshness(*arrays)[:-1]
    late = scheduler.freshness(since=40.0, until=60.0)
    inside = (records["time"] >= 40.0) & (records["time"] <= 60.0)
    assert late[:-1] == measure_freshness(*(array[inside] for array in arrays))[:-1]


def test_without_audits_nothing_is_drawn_and_freshness_is_refused():
    scheduler = filled(0.0)
    assert scheduler.audits is None
    assert not any(name.startswith("audits") for name in scheduler.state().named)
    with pytest.raises(ValueError, match="audit_share must be > 0"):
        scheduler.freshness()


def test_a_page_without_a_copy_is_stale_at_once_without_a_fetch():
    scheduler = filled()
    time = until_drawn(scheduler)
    scheduler.remove(np.arange(40))
    scheduler.add([100], change_rate=0.5)
    assert scheduler.next(time).id == 100
    (record,) = scheduler.audits.records()
    assert (record["answer"], record["page_belief"], record["mean_belief"]) == (STALE, 1.0, 1.0)


@pytest.mark.parametrize("end", ["failed", "interrupted", "gone", "removed", "late", "unknown"])
def test_an_audit_without_an_answer_is_missed(end):
    scheduler = filled(timeout=1.0)
    time = until_drawn(scheduler)
    page = scheduler.next(time).id
    assert answers(scheduler) == [OPEN]
    assert scheduler.freshness()[4:6] == (1, 1)  # no answer yet
    if end == "removed":
        scheduler.remove([page])
    elif end == "late":
        scheduler.next(time + 1.01)
        scheduler.report([page], time + 1.02, changed=[True])  # too late
    elif end == "unknown":
        scheduler.report([page], time)
    else:
        scheduler.report([page], time, end)
    assert answers(scheduler)[0] == MISSED
    assert scheduler.freshness()[4:6] == (1, 1)


def test_a_failure_that_is_reported_again_ends_no_later_audit():
    scheduler = filled(pages=1, timeout=5.0, retry=0.001, most_retry=0.002)
    for step in range(1, 11):
        assert scheduler.next(step / 10.0).id == 0
        scheduler.report([0], step / 10.0, "failed")
    assert scheduler.next(1.1).id == 0
    assert answers(scheduler) == [OPEN]
    assert scheduler.report([0], 1.0, "failed") == 1
    assert answers(scheduler) == [OPEN]
    scheduler.report([0], 1.1, changed=[True])
    assert answers(scheduler) == [STALE]


def test_a_drawn_page_waits_for_its_host_and_then_comes_first():
    scheduler = filled(pages=1, timeout=5.0)
    for step in range(1, 11):
        scheduler.next(step / 10.0)
        scheduler.report([0], step / 10.0, changed=[False])
    scheduler.update([0], least_interval=2.0)
    scheduler.add([1], importance=1e-9, change_rate=9.0, last_crawl=0.0)
    assert scheduler.next(1.1).id == 1
    assert answers(scheduler) == [DRAWN]
    scheduler.report([1], 1.1, changed=[True])
    assert answers(scheduler) == [DRAWN]
    scheduler.update([0], importance=1e-9)
    assert scheduler.next(3.1).id == 0
    scheduler.update([0], group="late")
    scheduler.report([0], 3.2, changed=[True])
    (record,) = scheduler.audits.records()
    assert (record["time"], record["group"], record["unsure"]) == (1.1, 0, 1)
    assert record["page_belief"] == pytest.approx(-math.expm1(-0.5 * 0.1))


def test_the_report_of_a_fetch_under_way_answers():
    scheduler = filled(pages=2, timeout=5.0)
    for step in range(1, 10):
        page = scheduler.next(step / 10.0).id
        scheduler.report([page], step / 10.0, changed=[False])
    assert sorted([scheduler.next(1.0).id, scheduler.next(1.01).id]) == [0, 1]
    scheduler.add([2], importance=1e-9, change_rate=0.5, last_crawl=0.0)
    assert scheduler.next(1.1).id == 2
    (record,) = scheduler.audits.records()
    assert record["answer"] == OPEN
    scheduler.report([int(record["row"])], 1.1, changed=[True])
    assert answers(scheduler) == [STALE]


def test_a_drawn_page_is_granted_when_it_is_asked_for():
    scheduler = filled(pages=2, timeout=50.0)
    for step in range(1, 11):
        scheduler.report(scheduler.next_batch(step / 10.0, 1), step / 10.0, changed=[False])
    scheduler.update([0, 1], change_rate=0.0)  # worth no fetch
    granted = [scheduler.ask(1.1, 0).id, scheduler.ask(1.2, 1).id]
    row = int(scheduler.audits.records()["row"][0])
    assert granted == [page if page == row else None for page in (0, 1)]
    assert answers(scheduler) == [OPEN]


def test_groups_have_their_own_freshness():
    scheduler = filled(share=0.5, pages=0)
    rates = np.repeat([0.01, 4.0], 20)
    groups = ["slow"] * 20 + ["fast"] * 20
    scheduler.add(np.arange(40), change_rate=rates, last_crawl=0.0, group=groups)
    rng = np.random.default_rng(0)
    for step in range(1, 2001):
        page = scheduler.next(step / 100.0).id
        scheduler.report([page], step / 100.0, changed=[bool(page >= 20 and rng.random() < 0.8)])
    slow, fast = (scheduler.freshness(group=name) for name in ("slow", "fast"))
    records = scheduler.audits.records()
    assert slow.audits == np.sum(records["row"] < 20)
    assert slow.audits + fast.audits == scheduler.freshness().audits
    assert slow.believed > 0.9 > fast.believed
    assert (records["group_belief"] < records["mean_belief"])[records["row"] < 20].mean() > 0.9
    with pytest.raises(ValueError, match=r"group must be among \['', 'slow', 'fast'\], got 'big'"):
        scheduler.freshness(group="big")
    scheduler.update([0], group="fast")
    scheduler.remove([1])
    scheduler.add([1], change_rate=0.01)  # in its row, without a group
    codes = scheduler.pages.group[scheduler.pages.ids.rows(np.array([0, 1, 2]))]
    assert codes.tolist() == [2, 0, 1]
    again = CrawlScheduler.from_state(scheduler.state())
    assert again.pages.group.tolist() == scheduler.pages.group.tolist()
    assert str(again.freshness(group="fast")) == str(scheduler.freshness(group="fast"))


def test_a_policy_without_change_rates_has_no_beliefs():
    scheduler = filled(share=0.5, policy="RoundRobin", columns=())
    for step in range(1, 101):
        page = scheduler.next(step / 100.0).id
        scheduler.report([page], step / 100.0, changed=[step % 4 == 0])
    records, measured = scheduler.audits.records(), scheduler.freshness()
    assert measured.estimate == pytest.approx(1.0 - np.mean(records["answer"] == STALE))
    assert measured.gain == pytest.approx(1.0, abs=0.01)
    gap = measured.believed, measured.belief_gap, measured.gap_low, measured.gap_high
    assert np.isnan(gap).all()
    assert not measured.is_off
    assert measured.calibration.shape == (0, 3)
    empty = scheduler.freshness(since=9.0)
    assert (empty.audits, empty.is_off, math.isnan(empty.gap_low)) == (0, False, True)


def test_only_the_latest_records_are_kept_and_earlier_windows_are_refused(monkeypatch):
    monkeypatch.setattr(audits_module, "MAX_RECORDS", 30)
    scheduler = filled(share=0.5)
    for step in range(1, 201):
        page = scheduler.next(step / 100.0).id
        scheduler.report([page], step / 100.0, changed=[step % 3 == 0])
    records = scheduler.audits.records()
    assert len(records) == 30
    assert (np.diff(records["time"]) > 0.0).all()
    with pytest.raises(ValueError, match="since must be at least"):
        scheduler.freshness(since=0.1)
    again = CrawlScheduler.from_state(scheduler.state())
    for one in (scheduler, again):
        one.next_batch(2.5, 40)
    assert np.array_equal(again.audits.records(), scheduler.audits.records())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"audit_share": 1.0}, r"audit_share must lie in \[0, 1\), got 1.0"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**53 + 1}, "seed must be"),
    ],
)
def test_wrong_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CrawlScheduler("Greedy", 1.0, **arguments)


def crawl_with_waits(seed, held):
    """Crawl pages that wait often; return the scheduler and the true freshness at each draw.

    Reports come 5 steps after the requests. Either copies are younger than the least interval half
    of the time, or hosts are held half of the time.
    """
    rng, pages, step = np.random.default_rng(seed), 40, 0.01
    scheduler = CrawlScheduler("RoundRobin", 100.0, burst=0.1, audit_share=0.2, seed=seed)
    weight, hosts = rng.integers(1, 5, pages), [f"host{k % 4}" for k in range(pages)]
    waits = {"host": hosts} if held else {"least_interval": 0.8}
    scheduler.add(np.arange(pages), importance=weight, last_crawl=0.0, **waits)
    changed, copies, fetches, truth = np.full(pages, -1.0), np.zeros(pages), [], []
    for now in step * np.arange(1, 2001):
        changed[rng.random(pages) < 1.5 * step] = now - 0.5 * step
        if held and round(now / step) % 40 == 0:
            for host in rng.choice(hosts[:4], 2, replace=False):
                scheduler.hold(host, now + 0.4)
        fresh = 1.0 - weight @ (changed > copies) / weight.sum()
        page = scheduler.next(now).id
        truth += [fresh] * (scheduler.audits.count - len(truth))
        fetches.append((page, now, changed[page] > copies[page] if page is not None else None))
        page, sent, is_stale = fetches.pop(0) if len(fetches) > 5 else (None, 0.0, None)
        if page is not None:
            scheduler.report([page], sent, changed=[is_stale])
            copies[page] = sent
    return scheduler, np.array(truth)


@pytest.mark.parametrize("held", [False, True])
def test_the_band_covers_the_truth_at_all_draws_where_pages_wait(held):
    inside, widths = [], []
    for seed in range(10):
        scheduler, truth = crawl_with_waits(seed, held)
        records, means = scheduler.audits.records(), np.cumsum(truth) / np.arange(1, truth.size + 1)
        assert truth.size > 100
        assert records["unsure"][records["answer"] < MISSED].mean() > 0.1
        bands = [scheduler.freshness(until=time) for time in records["time"][::20]]
        inside.append(all(b.low <= means[b.audits - 1] <= b.high for b in bands))
        known = (records["unsure"] == 0) & (records["answer"] == FRESH)
        widths.append(bands[-1].high - bands[-1].low)
        assert known.sum() > 30
    assert all(inside)
    assert max(widths) < 0.9


@pytest.mark.parametrize(("is_stale", "answer"), [(False, 0), (True, 1)])
def test_a_report_from_before_the_draw_is_sure_only_of_a_stale_page(is_stale, answer):
    scheduler = filled(share=0.5, pages=1, timeout=5.0)
    for time in (1.0, 1.1, 1.2, 1.3):
        page = scheduler.next(time).id
        if time < 1.3:
            scheduler.report([page], time, changed=[False])
    scheduler.add([1], importance=1e-9, change_rate=0.5, last_crawl=0.0)
    scheduler.next_batch(1.4, 2)
    records = scheduler.audits.records()
    assert records["row"].tolist() == [0, 0]
    assert records["answer"].tolist() == [FRESH, OPEN]
    scheduler.report([0], 1.3, changed=[is_stale])
    record = scheduler.audits.records()[1]
    assert (record["answer"], record["unsure"]) == (answer, not is_stale)
    band = scheduler.freshness(since=1.4)
    assert (band.audits, band.missed, band.calibration.size) == (1, 0, 3 * is_stale)


def test_no_more_than_16_pages_wait_and_the_oldest_is_missed():
    scheduler = filled(share=0.5, pages=40, timeout=100.0)
    scheduler.add([99], importance=1e-9, change_rate=0.5, last_crawl=0.0)
    for step in range(1, 42):
        scheduler.report([scheduler.next(step / 100.0).id], step / 100.0, changed=[False])
    scheduler.update(np.arange(40), least_interval=50.0)
    before = scheduler.audits.count
    for step in range(42, 200):
        page = scheduler.next(step / 100.0).id
        if page is not None:
            scheduler.report([page], step / 100.0, changed=[False])
    records = scheduler.audits.records()[before:]
    waiting = np.unique(records["row"][records["answer"] == DRAWN])
    assert waiting.size == 16
    missed = records["answer"] == MISSED
    assert missed.any()
    assert np.flatnonzero(missed)[0] < np.flatnonzero(records["answer"] == DRAWN)[0]


def test_another_share_goes_on_with_the_same_audits():
    one, other = filled(share=0.2, seed=5), filled(share=0.2, seed=5)
    for step in range(1, 201):
        for scheduler in (one, other):
            page = scheduler.next(step / 100.0).id
            scheduler.report([page], step / 100.0, changed=[step % 3 == 0])
        if step == 100:
            other.configure(1.0, audit_share=0.0)
            assert other.freshness().audits == one.freshness().audits
            other = CrawlScheduler.from_state(other.state())
        if step == 150:
            assert other.audits.count == 19
            assert CrawlScheduler.from_state(other.state()).audits.count == 19
            other.configure(1.5, audit_share=0.4)
    records = other.audits.records()
    assert records["row"][19:].tolist() == one.audits.records()["row"][19:39].tolist()
    assert records.size == 39


def test_the_seed_is_of_the_start_unless_it_is_given():
    seeds = [filled(start=start).audits.seed for start in (0.0, 1.0, 20655.0, 20655.25, 0.0)]
    assert len(set(seeds)) == 4
    assert seeds[0] == seeds[-1]
    later = CrawlScheduler.from_state(filled(share=0.0, seed=3).state())
    later.configure(2.0, audit_share=0.1)
    assert (filled(seed=3).audits.seed, later.audits.seed) == (3, 3)
    late = CrawlScheduler.from_state(filled(start=7.0).state())
    assert late.audits.seed == filled(start=7.0).audits.seed


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"since": "2026-01-01"}, "since must be a number <= until, got '2026-01-01'"),
        ({"until": "2026-01-01"}, "got -inf and '2026-01-01'"),
        ({"since": math.nan}, "since must be a number <= until, got nan"),
        ({"since": 2.0, "until": 1.0}, "since must be a number <= until, got 2.0 and 1.0"),
        ({"group": ["g0"]}, r"group must be among \['', 'g0', .*'g8'\], \.\., got \['g0'\]$"),
        ({"group": np.array(["g0"])}, "group must be among"),
        ({"group": "new"}, r"'g8'\], \.\., got 'new'$"),
    ],
)
def test_wrong_windows_and_groups_are_refused(limits, message):
    scheduler = filled()
    scheduler.update(np.arange(40), group=[f"g{k}" for k in range(40)])
    with pytest.raises(ValueError, match=message):
        scheduler.freshness(**limits)


def test_none_is_no_group():
    scheduler = filled(pages=0)
    scheduler.add(["a", "b", "c"], change_rate=1.0, last_crawl=0.0, group=["x", None, ""])
    scheduler.add(["d"], change_rate=1.0, group=[None])
    assert scheduler.pages.groups == {"": 0, "x": 1}
    assert scheduler.pages.group[:4].tolist() == [1, 0, 0, 0]
    scheduler.update(["a"], group=None)
    assert scheduler.pages.group[:4].tolist() == [0, 0, 0, 0]
    scheduler.update(["a", "b"], group="x")
    scheduler.update(["a", "b"], group=[None, "x"])
    assert scheduler.pages.group[:4].tolist() == [0, 1, 0, 0]


def test_shards_do_not_audit():
    with pytest.raises(ValueError, match="audit_share must be left out"):
        ShardedScheduler("Greedy", 1.0, audit_share=0.01)
