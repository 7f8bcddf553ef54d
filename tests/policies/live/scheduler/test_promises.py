"""Longest intervals of pages: no copy gets older, and what was late is counted."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

from policies.live.adapters.messages import answers
from policies.live.scheduler import (
    CrawlScheduler,
    DurableScheduler,
    ShardedScheduler,
    page_promises,
)
from policies.live.scheduler.files import Record

PAGES, BANDWIDTH = 400, 40.0


def pages_of(seed=0, share=0.3):
    """Return columns of pages and longest intervals of half of them, which take a share."""
    rng = np.random.default_rng(seed)
    longest = np.where(rng.random(PAGES) < 0.5, rng.uniform(5.0, 60.0, PAGES), math.inf)
    longest *= (1.0 / longest).sum() / BANDWIDTH / share
    rates = {"importance": rng.uniform(0.01, 1.0, PAGES) ** 3, "change_rate": rng.random(PAGES)}
    return rates, longest


def oldest(scheduler, longest, turns, batch=1, costs=None):
    """Play fetches; return by how much copies were older than promised when fetched, (turns,)."""
    copies, late, now = np.zeros(len(longest)), [], 0.0
    for _ in range(turns):
        now += batch / scheduler.bandwidth
        chosen = scheduler.next_batch(now, batch).astype(np.int64)
        late.extend(now - copies[chosen] - longest[chosen])
        copies[chosen] = now
        scheduler.report(chosen, now, cost=None if costs is None else costs[chosen])
    late.extend(now - copies - longest)
    return np.array(late)


@pytest.mark.parametrize("policy", ["Greedy", "LambdaCrawl", "RoundRobin"])
@pytest.mark.parametrize("batch", [1, 10, 60])
def test_no_copy_gets_older_than_promised(policy, batch):
    rates, longest = pages_of()
    late = {}
    for promised in (False, True):
        scheduler = CrawlScheduler(policy, BANDWIDTH, burst=60 / BANDWIDTH, new_share=0.9)
        more = {"most_interval": longest} if promised else {}
        rates = {name: rates[name] for name in ("importance", *scheduler.pages.values.needs)}
        scheduler.add(np.arange(PAGES), last_crawl=0.0, **rates, **more)
        late[promised] = oldest(scheduler, longest, 4000 // batch, batch).max()
    assert late[False] > 0.0 > late[True]
    facts = scheduler.overview()
    assert (facts["promised"], facts["overdue"]) == (np.isfinite(longest).sum(), 0)
    assert (facts["late_fetches"], facts["most_late"]) == (0, 0.0)
    assert facts["promised_share"] == pytest.approx(0.3)


def test_costs_count_in_what_promises_need():
    rates, longest = pages_of(share=0.1)
    costs = np.random.default_rng(1).uniform(1.0, 5.0, PAGES)
    scheduler = CrawlScheduler("Greedy", BANDWIDTH)
    scheduler.add(np.arange(PAGES), last_crawl=0.0, **rates, cost=costs, most_interval=longest)
    assert oldest(scheduler, longest, 6000, costs=costs).max() < 0.0
    expected = (costs / longest).sum() / BANDWIDTH
    assert scheduler.overview()["promised_share"] == pytest.approx(expected)


def test_pages_that_are_due_come_before_pages_without_a_copy():
    """u is 1/9 + 1/12, rounded up to 50/256, and w a fetch: due at 1 + 8 - 9 u and 11 - 12 u."""
    scheduler = CrawlScheduler("Greedy", 1.0, new_share=1.0, burst=0.0, timeout=99.0)
    scheduler.add(["b", "a"], change_rate=1.0, last_crawl=[1.0, 0.0], most_interval=[9.0, 12.0])
    scheduler.add(list("nopqrstuvwxyz"), change_rate=1.0)
    chosen = [scheduler.next(float(time)).id for time in range(1, 10)]
    assert [page for page in chosen if page in "ab"] == ["b", "a"]
    assert (chosen.index("b"), chosen.index("a")) == (7, 8)  # at 8 and 9
    assert scheduler.pages.choices.lines["credit"][0] == 1.0
    many = CrawlScheduler("Greedy", 1.0, new_share=1.0, burst=99.0, timeout=99.0)
    many.add(["c", "b", "a"], change_rate=1.0, last_crawl=0.0, most_interval=[math.inf, 9.0, 12.0])
    many.add(list("nopqrstuvwxyz"), change_rate=1.0)
    assert "".join(many.next_batch(11.0, 11)) == "banopqrstuv"
    assert "".join(many.next_batch(16.0, 5)) == "wxyzc"


def test_a_promise_that_cannot_be_kept_is_refused_and_changes_nothing():
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add([1, 2], change_rate=1.0, last_crawl=0.0, most_interval=0.5, least_interval=0.1)
    before = {name: array.tobytes() for name, array in scheduler.state().arrays.items()}
    wrong = {
        "got 1.4: .* bandwidth of at least 14 in all, not 10": lambda: scheduler.add(
            [3], change_rate=1.0, most_interval=0.1
        ),
        "got 1.2: .* at least 12 in all": lambda: scheduler.update([1], most_interval=0.1),
        "at least least_interval, 2, got 0.5": lambda: scheduler.update([2], least_interval=2.0),
        "at least least_interval, 3, got 1": lambda: scheduler.add(
            [3], change_rate=1.0, most_interval=1.0, least_interval=3.0
        ),
        "most_interval must be > 0": lambda: scheduler.update([1], most_interval=0.0),
        "got 1.6": lambda: scheduler.update([1, 2], cost=4.0),
    }
    for words, call in wrong.items():
        with pytest.raises(ValueError, match=words):
            call()
    assert before == {name: array.tobytes() for name, array in scheduler.state().arrays.items()}
    with pytest.raises(ValueError, match="most_interval must be finite and > 0"):
        CrawlScheduler("Greedy", 1.0, most_interval=-1.0)
    scheduler.update([1, 2], most_interval=[math.inf, 0.2])  # what one gives up, another has
    assert scheduler.overview()["promised_share"] == pytest.approx(0.5)


def test_an_interval_shorter_than_a_fetch_of_the_largest_cost_is_refused():
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add([1, 2], change_rate=1.0, cost=[8.0, 0.1])
    with pytest.raises(ValueError, match=r"at least 0\.8, the time of a fetch .* got 0\.5"):
        scheduler.update([2], most_interval=0.5)
    with pytest.raises(ValueError, match=r"at least 3, the time .* got 2"):
        scheduler.add([3, 4], change_rate=1.0, cost=[30.0, 0.1], most_interval=[math.inf, 2.0])
    scheduler.update([2], most_interval=0.8)
    plain = CrawlScheduler("Greedy", 2.0)
    with pytest.raises(ValueError, match="most_interval must leave u"):
        plain.add([1], change_rate=1.0, most_interval=0.4)


@pytest.mark.parametrize(("share", "total"), [(0.0, "9"), (0.25, "12")])
def test_the_error_names_the_whole_bandwidth_that_would_do(share, total):
    scheduler = CrawlScheduler("Greedy", 8.0, audit_share=share)
    with pytest.raises(ValueError, match=f"bandwidth of at least {total} in all, not 8$"):
        scheduler.add(range(9), change_rate=1.0, most_interval=1.0)


def test_ids_that_come_twice_count_once():
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add([1, 2], change_rate=1.0, most_interval=1.0)
    scheduler.update([1, 2, 1, 1], most_interval=[0.1, 2.0, 0.15, 0.25])
    assert scheduler.pages.choices.promises["rate"][0] == pytest.approx(4.0 + 0.5)
    assert scheduler.describe(1)["most_interval"] == 0.25


def test_near_all_of_the_bandwidth_few_changes_renew_all_rows(monkeypatch):
    scheduler, sizes = CrawlScheduler("Greedy", 100.0), []
    scheduler.add(range(4000), change_rate=1.0, last_crawl=0.0, most_interval=4000 / 96.9)

    def promise_rows(intervals, rows, lead):
        sizes.append(rows.size)
        return page_promises_rows(intervals, rows, lead)

    page_promises_rows = page_promises.promise_rows
    monkeypatch.setattr(page_promises, "promise_rows", promise_rows)
    for page in range(4000, 4300):
        scheduler.add([page], change_rate=1.0, last_crawl=0.0, most_interval=100.0)
    assert sum(size > 1 for size in sizes) < 20
    assert scheduler.overview()["promised_share"] > 0.998
    scheduler.configure(0.0, bandwidth=50.0)
    monkeypatch.setattr(page_promises, "count_promises", None)  # not even when u > 1
    scheduler.update([0], importance=2.0)
    scheduler.update([0], most_interval=100.0)


def test_too_many_promises_are_warned_of_once(caplog):
    scheduler = CrawlScheduler("Greedy", 10.0, keep_gone=99.0)
    scheduler.add(range(9), change_rate=1.0, last_crawl=0.0, most_interval=1.0)
    scheduler.configure(0.0, bandwidth=8.0)
    scheduler.configure(0.0, bandwidth=7.0)
    scheduler.update([0], importance=2.0)
    words = "promises are too many: u = 1.125"
    assert caplog.messages == [words]
    scheduler.configure(0.0, bandwidth=9.0)
    scheduler.report([1, 2], 0.5, "gone")
    scheduler.configure(0.5, bandwidth=8.0)  # enough for those that are there
    assert len(caplog.messages) == 1
    scheduler.revive([1])
    assert len(caplog.messages) == 1
    scheduler.revive([2])
    assert caplog.messages[1:] == [words]


def test_copies_that_are_overdue_count_in_the_largest_delay():
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add([1, 2], change_rate=1.0, last_crawl=0.0, most_interval=[2.0, math.inf])
    facts = scheduler.overview(7.0)
    assert (facts["overdue"], facts["late_fetches"], facts["most_late"]) == (1, 0, 5.0)
    scheduler.configure(7.0)
    assert "1 overdue, 0 fetches late so far; by at most 5" in scheduler.why()


def test_a_lower_bandwidth_keeps_promises_and_says_that_they_are_too_many():
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add(np.arange(4), change_rate=1.0, last_crawl=0.0, most_interval=1.0)
    scheduler.configure(0.0, bandwidth=2.0)
    copies, late, most = np.zeros(4), 0, 0.0
    for turn in range(1, 100):
        now = turn / 2.0
        page = int(scheduler.next(now).id)
        late += now - copies[page] > 1.0
        most = max(most, now - copies[page] - 1.0)
        copies[page] = now
        scheduler.report([page], now)
    facts = scheduler.overview()
    assert facts["promised_share"] == pytest.approx(2.0)
    most = max(most, (now - copies - 1.0).max())
    assert (facts["late_fetches"], facts["most_late"]) == (late, most)
    assert (late, facts["overdue"]) == (99 - 2, (now - copies > 1.0).sum())
    said = f"4 promises need 2 of the bandwidth, {facts['overdue']} overdue, {late} fetches late"
    assert f"{said} so far; by at most {most:g}" in scheduler.why()
    scheduler.update([0], most_interval=4.0)  # a step back to what can be kept


def test_lateness_after_faults_is_counted():
    """Failures, lost fetches and hosts with gaps: the counts are those of another arithmetic."""
    rng, (rates, longest) = np.random.default_rng(3), pages_of(share=0.5)
    scheduler = CrawlScheduler("Greedy", BANDWIDTH, timeout=2.0)
    scheduler.limit_hosts(gap=0.3)
    hosts = np.array([f"host{k}" for k in range(20)])[np.arange(PAGES) % 20]
    scheduler.add(np.arange(PAGES), host=hosts, last_crawl=0.0, **rates, most_interval=longest)
    copies, late, most, failed = np.zeros(PAGES), 0, 0.0, 0
    for turn in range(1, 8000):
        now = turn / BANDWIDTH
        page = scheduler.next(now).id
        if page is None:
            continue
        page, outcome = int(page), rng.random()
        excess = now - (copies[page] + longest[page])
        late, most = late + (excess > 0.0), max(most, excess)
        if outcome > 0.06:
            copies[page] = now
            scheduler.report([page], now)
        elif outcome > 0.01:
            failed += 1
            scheduler.report([page], now, "failed")
    assert failed > 100
    assert late > 0
    facts = scheduler.overview()
    most = max(most, (now - copies - longest).max())
    assert (facts["late_fetches"], facts["most_late"]) == (late, most)
    assert facts["overdue"] == (now - copies > longest).sum()


def test_a_due_page_of_a_closed_host_comes_as_soon_as_it_may():
    scheduler = CrawlScheduler("Greedy", 10.0)
    weights = {"importance": [1e-6, 1.0], "change_rate": 1.0, "last_crawl": 0.0}
    scheduler.add(["late", "other"], host=["a", "b"], **weights, most_interval=[2.0, math.inf])
    scheduler.hold("a", 5.0)
    for turn in range(1, 50):
        page = scheduler.next(turn / 10.0).id
        assert page in (None, "other")
        if page:
            scheduler.report([page], turn / 10.0)
    assert scheduler.next(5.0).id == "late"
    assert scheduler.overview()["most_late"] == 3.0


def test_due_pages_do_not_set_the_level_or_the_price():
    scheduler = CrawlScheduler("Greedy", 10.0, burst=2.0)
    scheduler.add([0, 1, 2], importance=[1.0, 0.1, 1e-9], change_rate=1.0, last_crawl=0.0)
    scheduler.update([2], most_interval=4.0)
    assert scheduler.next_batch(1.0, 2).tolist() == [0, 1]
    level = float(scheduler.pages.choices.lines["level"][0])
    due = scheduler.describe(2, 1.0)
    assert (due["deadline"], due["most_interval"]) == (4.0, 4.0)
    assert 3.0 < due["due"] < 4.0
    assert due["why"] == f"it is due by its promise at {due['due']:g}"
    assert scheduler.next(3.95).id in (0, 1, 2)
    assert scheduler.describe(1)["deadline"] == math.inf
    scheduler.report([0, 1, 2], [3.95, 3.95, 0.5])
    assert scheduler.next(4.4).id == 2
    assert level <= scheduler.pages.choices.lines["level"][0] < 1.0


def test_a_due_page_that_is_asked_for_is_granted_at_any_price():
    scheduler = CrawlScheduler("Greedy", 10.0, burst=2.0)
    scheduler.add([0, 1, 2], importance=[1.0, 1.0, 1e-9], change_rate=1.0, last_crawl=0.0)
    scheduler.update([2], most_interval=4.0)
    assert scheduler.ask(2.0, 0).id == 0
    price = scheduler.price.log
    refused = scheduler.ask(2.1, 2)
    assert refused.id is None
    assert scheduler.price.log != price  # it falls while pages are asked for
    price = scheduler.price.log
    assert scheduler.ask(scheduler.describe(2)["due"] + 1e-9, 2).id == 2
    assert scheduler.time < 4.0
    assert scheduler.price.log == price
    assert scheduler.ask(scheduler.time, 1).id == 1


def test_states_are_as_small_as_before_and_older_ones_are_read():
    rates, longest = pages_of()
    scheduler = CrawlScheduler("Greedy", BANDWIDTH)
    scheduler.add(np.arange(PAGES), last_crawl=0.0, **rates)
    state = scheduler.state()
    assert not {"most_interval", "choices.most_interval", "choices.promises"} & state.named.keys()
    scheduler = CrawlScheduler.from_state(state)
    scheduler.add([PAGES], last_crawl=0.0, importance=1.0, change_rate=1.0, most_interval=3.0)
    assert scheduler.overview()["promised"] == 1
    scheduler.update(np.arange(PAGES), most_interval=longest)
    oldest(scheduler, np.append(longest, 3.0), 500)
    other = CrawlScheduler.from_state(scheduler.state())
    assert oldest(other, np.append(longest, 3.0), 0).size
    time = scheduler.time
    for turn in range(1, 300):
        now = time + turn / BANDWIDTH
        page = scheduler.next(now).id
        assert page == other.next(now).id
        for each in (scheduler, other):
            each.report([page], now)
    named = Record(scheduler.state().values, dict(scheduler.state().arrays))
    named.arrays["choices.deadlines"] = np.zeros(3)
    with pytest.raises(ValueError, match="which differs in"):
        CrawlScheduler.from_state(named)


def test_a_folder_keeps_promises_when_its_process_is_killed(tmp_path):
    loop = DurableScheduler(tmp_path, CrawlScheduler("Greedy", 4.0, most_interval=3.0))
    loop.add([1, 2, 3], importance=[9.0, 9.0, 1e-6], change_rate=1.0, last_crawl=0.0)
    loop.update([1], most_interval=math.inf)
    loop.move([3], [4])
    loop.remove([2])
    chosen = [loop.next(turn / 4.0).id for turn in range(1, 3)]
    os.close(loop._lock)  # as when its process ends
    with DurableScheduler(tmp_path) as again:
        assert chosen[0] == 1
        assert again.describe(4)["most_interval"] == 3.0
        assert again.describe(1)["most_interval"] == math.inf
        assert again.overview()["promised"] == 1
        again.add([5], change_rate=1.0)
        assert again.describe(5)["most_interval"] == 3.0  # the scheduler's


def test_a_gone_page_takes_no_bandwidth_and_keeps_its_promise():
    scheduler = CrawlScheduler("Greedy", 10.0, keep_gone=100.0)
    scheduler.add([1, 2], change_rate=1.0, last_crawl=0.0, most_interval=0.5)
    scheduler.report([1], 1.0, "gone")
    assert scheduler.overview()["promised_share"] == pytest.approx(0.2)
    scheduler.add([3], change_rate=1.0, last_crawl=1.0, most_interval=0.125)  # 8 of the 8 left
    scheduler.revive([1])
    assert scheduler.describe(1)["most_interval"] == 0.5
    assert scheduler.overview()["promised_share"] == pytest.approx(1.2)
    scheduler.report([1], 2.0, "gone")
    scheduler.add([1], change_rate=1.0)  # a new page
    assert scheduler.describe(1)["most_interval"] == math.inf


def test_a_clock_that_is_taken_back_keeps_promises():
    rates, longest = pages_of()
    scheduler = CrawlScheduler("Greedy", BANDWIDTH)
    scheduler.add(np.arange(PAGES), last_crawl=0.0, **rates, most_interval=longest)
    scheduler.configure(1000.0)
    scheduler.reset_clock(0.0)
    assert oldest(scheduler, longest, 3000).max() < 0.0


def test_shards_make_no_promises():
    with pytest.raises(ValueError, match="most_interval must be left out: only a CrawlScheduler"):
        ShardedScheduler("Greedy", 10.0, most_interval=1.0)
    with ShardedScheduler("Greedy", 10.0) as shards:
        with pytest.raises(ValueError, match="most_interval must be left out: shards make no"):
            shards.add([1], change_rate=1.0, most_interval=1.0)
        assert len(shards) == 0
        shards.add([1], change_rate=1.0)
        with pytest.raises(ValueError, match="most_interval must be left out: shards make no"):
            shards.update([1], most_interval=1.0)


def test_messages_take_promises():
    scheduler = CrawlScheduler("RoundRobin", 10.0)
    lines = [
        {"add": [{"url": "http://a.example/", "most_interval": 2.5}]},
        {"update": [{"url": "http://a.example/", "most_interval": 3.5}]},
        {"describe": "http://a.example/"},
        {"update": [{"url": "http://a.example/", "most_interval": 0.01}]},
    ]
    *_, facts, refused = map(json.loads, answers(scheduler, map(json.dumps, lines)))
    assert facts["most_interval"] == 3.5
    assert "promise longer intervals or fewer pages" in refused["error"]
