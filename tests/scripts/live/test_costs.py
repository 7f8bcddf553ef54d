"""Costs of crawls: read from logs, averaged by page, and answered by a backtest and a schedule."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from policies.live.logs import CrawlLog, read_crawl_log, read_page_table
from policies.live.logs.costs import expected_costs, with_unit
from policies.live.logs.imputation import Changes
from scripts import backtest as backtest_command
from scripts import estimate, schedule
from scripts.live import backtest_report, backtest_runs, backtesting
from scripts.live.backtesting import LOG, Backtest, backtest
from scripts.live.log_costs import BLIND, costs_within
from tests.naive.replayed_logs import make_log
from tests.policies.live.logs.test_imputation import simulated
from tests.scripts.commands import done, run

CSV = """\
url,time,changed,Size (bytes)
http://a.example/1,2026-01-01T00:00Z,0,100
http://a.example/1,2026-01-02T00:00Z,1,0
http://a.example/2,2026-01-01T12:00Z,0,
http://b.example/,2026-01-01T13:00Z,0,0
http://b.example/,2026-01-03T00:00Z,0,
"""
HERITRIX = """\
2026-01-01T00:00:00.500Z   200  1299 http://a/ L - text/html #014 2+225 sha1:X - -
2026-01-02T00:00:00.500Z    -2     - http://a/ L - no-type #014 - - - -
2026-01-03T00:00:00.500Z   200  1301 http://a/ L - text/html #014 2+225 sha1:Y - -
"""


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


# Logs


def test_costs_of_a_table_with_missing_and_zero_values(tmp_path: Path) -> None:
    path = written(tmp_path, CSV)
    log = read_crawl_log(path, cost="Size (bytes)")
    assert log.cost is not None
    assert log.unit == "bytes"
    nan = np.nan
    np.testing.assert_array_equal(log.cost, [100.0, nan, 0.0, 0.0, nan])
    assert log.notes[-1] == (
        "costs are those of column 'Size (bytes)', in bytes; missing, taken as the mean of the "
        "page: 2; 0, part of the mean of the page: 2, which is at least 0.001 of the mean of all"
    )
    # the mean of two, that of its host, and a thousandth of the mean of three
    assert expected_costs(log).tolist() == pytest.approx([50.0, 50.0, 0.1 / 3.0])
    plain = read_crawl_log(path)
    assert plain.cost is plain.history.cost is None
    assert "'Size (bytes)' may be costs; --cost 'Size (bytes)' answers in bytes" in plain.notes
    np.testing.assert_array_equal(plain.changed, log.changed)


def test_costs_of_lines_of_json_and_of_heritrix(tmp_path: Path) -> None:
    rows = [
        {"url": "u", "time": 1.5, "hash": "A", "meta": {"latency": 0.25}},
        {"url": "u", "time": 2.5, "hash": "B", "meta": {"latency": 0.5}},
    ]
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    log = read_crawl_log(path, cost="meta.latency")
    assert log.unit == "meta.latency"  # seconds or milliseconds: the name does not say
    np.testing.assert_array_equal(log.cost, [0.25, 0.5])
    log = read_crawl_log(written(tmp_path, HERITRIX, "crawl.log"), cost="size")
    assert log.unit == "bytes"
    np.testing.assert_array_equal(log.cost, [1299.0, 1301.0])
    assert log.history.cost is not None
    np.testing.assert_array_equal(log.history.cost, [1299.0, np.nan, 1301.0])


BAD = {
    "negative": ("-1", "bytes", "line 3, column 'bytes': got '-1', expected 0 or a number"),
    "text": ("1.2 MB", "bytes", "line 3, column 'bytes': got '1.2 MB', expected 0 or a number"),
    "infinite": ("1e13", "bytes", "got '1e13', expected 0 or a number from 1e-12 to 1e\\+12"),
    "absent": ("7", "size", r"column 'size' \(cost\) is missing, got .*; give --cost NAME"),
    "taken": ("7", "", "cost must name a column that is not read yet, got ''"),
    "nothing": ("", "bytes", r"'bytes' \(cost\) needs values above 0, got 2 missing and 1 of 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_costs_are_named(case: str, tmp_path: Path) -> None:
    value, column, words = BAD[case]
    rows = f"u,1,0,0\nu,2,1,{value}\nu,3,1,{value}\n"
    with pytest.raises(ValueError, match=words):
        read_crawl_log(written(tmp_path, f"url,time,changed,bytes\n{rows}"), cost=column)


def test_amounts_are_legible() -> None:
    texts = [with_unit(x, "bytes") for x in (0.0, 999.4, 999.6, 12_345.0, 1.234e9, 3e18)]
    assert texts == ["0 B", "999 B", "1.00 kB", "12.3 kB", "1.23 GB", "3.00e+03 PB"]
    assert [with_unit(x, "tokens") for x in (0.5, 999.6, 41e6)] == [
        *("0.5 tokens", "1,000 tokens", "41,000,000 tokens")
    ]


def test_costs_of_a_page_are_the_mean_of_its_last_crawls() -> None:
    log = make_log([(0, float(t), t % 2 == 1) for t in range(20)], num_pages=1)
    log = dataclasses.replace(log, cost=np.arange(20.0))
    assert expected_costs(log) == np.mean(range(12, 20))
    assert expected_costs(log, until=9.0) == np.mean(range(2, 10))


# Backtests


def with_costs(log: CrawlLog, cost: np.ndarray) -> CrawlLog:
    return dataclasses.replace(log, cost=cost, unit="bytes")


@pytest.fixture(scope="module")
def log() -> CrawlLog:
    return simulated(3, crawls=15, recall=0.5, false_rate=0.02)[0]


def measured(test: Backtest, names: list[str]) -> list[backtesting.Outcome]:
    """Return the outcomes of a backtest, as the command computes them."""
    runs = backtesting.measurements(test, "", names, backtesting.SHARES)
    rows = [
        row
        for run in runs
        for name in run.labels
        for k in range(len(test.changes))
        for row in run.play(name, k)
    ]
    return backtesting.outcomes(rows, names, backtesting.SHARES, 1.0, test.costs)


def test_equal_costs_give_the_answer_in_crawls(log: CrawlLog) -> None:
    names = ["RoundRobin", "GreedyNCIS"]
    plain = measured(backtest(log, draws=2), names)
    test = backtest(with_costs(log, np.full(log.page.size, 0.3)), draws=2)
    assert test.costs is not None
    count = test.crawls_per_day * (test.end - test.start)
    assert test.costs.spend == pytest.approx(0.3 * count)
    for item, other in zip(measured(test, names), plain, strict=True):
        assert item.numbers() == pytest.approx(other.numbers(), abs=1e-9)
        assert item.spend == pytest.approx(0.3 * max(1, round(item.share * count)))


def test_spends_and_ends_are_those_of_a_plain_replay(log: CrawlLog) -> None:
    """Round robin of an environment, whose last crawl is cut, is that of plain arithmetic."""
    cost = np.exp(np.random.default_rng(0).normal(size=log.num_pages))
    test = backtest(with_costs(log, cost[log.page]), draws=1)
    assert test.costs is not None
    np.testing.assert_allclose(test.costs.paid * test.costs.mean, cost)
    for share in (0.125, 1.0):
        freshness, spend = test.freshness_and_spend("RoundRobin", share, test.changes[0])
        again = test.freshness_and_spend(f"RoundRobin{BLIND}", share, test.changes[0])
        assert (freshness, spend) == pytest.approx(again, rel=1e-6)
        per_day, _ = test.budget(share)
        total, turn = 0.0, 0
        while 1.0 + total <= per_day * (test.end - test.start) - 1.0 + 1e-9:
            total, turn = total + test.costs.paid[turn % log.num_pages], turn + 1
        assert spend == pytest.approx(total * test.costs.mean)


def test_cheap_pages_are_crawled_and_the_price_is_worth_money() -> None:
    """Half of the pages cost 9 times as much: to know it pays, and not to know it costs."""
    log, true = simulated(5, crawls=15, recall=0.0, false_rate=0.0)
    cost = np.where(np.arange(log.num_pages) % 2 == 0, 1.0, 9.0)
    test = backtest(with_costs(log, cost[log.page]), draws=3)
    log_row, *rest = measured(test, ["Greedy", f"Greedy{BLIND}"])
    knowing, blind = (item for item in rest if item.share == 1.0)
    assert knowing.saved.mean > blind.saved.mean + 0.1
    assert knowing.freshness.mean > blind.freshness.mean
    assert test.costs is not None
    words = backtest_report.answer([log_row, *rest], test.costs)
    needed = backtest_report.needed_spend(knowing, test.costs)
    assert words.startswith(f"Your crawls spent {with_unit(test.costs.spend, 'bytes')}. Greedy ")
    assert f"for {with_unit(needed.mean, 'bytes')} [" in words
    shares = backtesting.SHARES
    fresh, spent = zip(
        *(test.freshness_and_spend("Greedy", share, true) for share in shares), strict=True
    )
    shared = [x / test.costs.spend for x in spent]
    saved = backtesting.fewer_crawls(test.own_freshness(true), shares, fresh, shared)
    assert abs(saved - knowing.saved.mean) <= knowing.saved.half_width  # the interval has the truth


def test_noise_of_costs_saves_nothing() -> None:
    """Costs of each crawl are noise, the same law for all pages: policies must not profit."""
    log, _ = simulated(6, crawls=15, recall=0.0, false_rate=0.0)
    rng = np.random.default_rng(1)
    noise = rng.lognormal(sigma=1.0, size=log.page.size)
    test = backtest(with_costs(log, noise), draws=1)
    assert test.costs is not None
    crawled = test.costs.paid
    assert abs(np.corrcoef(test.costs.expected, crawled)[0, 1]) < 0.3
    pages = test.freshness_and_spend("Greedy", 1.0, test.changes[0])
    equal = backtest(with_costs(log, np.ones(log.page.size)), draws=1)
    assert pages[0] < equal.freshness("Greedy", 1.0, test.changes[0]) + 0.01


def test_pages_born_later_cost_their_first_crawl() -> None:
    crawls = [(0, float(t), t % 2 == 1) for t in range(12)]
    crawls += [(1, 8.5, False), (1, 9.5, True)]
    log = make_log(crawls, num_pages=2, gone={(0, 11.0)})
    log = with_costs(log, np.where(log.page == 1, 7.0 + log.time, 2.0))
    costs = costs_within(log, 6.0, 11.0)
    assert costs.expected is not None
    assert (costs.expected * costs.mean).tolist() == pytest.approx([2.0, 15.5])
    assert (costs.paid * costs.mean).tolist() == pytest.approx([2.0, 16.5])
    assert costs.spend == pytest.approx(4 * 2.0 + 16.5)
    known = {name: np.ones(2) for name in backtesting.PARAMETERS} | {"recall": np.zeros(2)}
    test = Backtest(log, known, 6.0, 11.0, np.zeros(2, np.int64), costs=costs)
    none = Changes(np.empty(0, np.int64), np.empty(0))
    for name in ("Greedy", "BeliefNCIS", "RoundRobin"):
        assert test.freshness(name, 1.0, none) == pytest.approx(1.0)


def test_costs_are_drawn_within_the_errors_of_their_means() -> None:
    """Page 0 costs 1 or 3, page 1 always 2, each ten times: relative variance 1/4 * 10 / 18."""
    crawls = [(page, float(t) + page / 2, False) for t in range(20) for page in (0, 1)]
    log = make_log(crawls, num_pages=2)
    cost = np.where(log.page == 0, 1.0 + 2.0 * (np.floor(log.time) % 2), 2.0)
    costs = costs_within(with_costs(log, cost), 9.75, 19.75)
    assert costs.paid * costs.mean == pytest.approx(2.0)
    assert costs.error == pytest.approx(math.sqrt(0.25 * 10.0 / 18.0 / 10.0))
    draws = np.array([costs.drawn(seed) for seed in range(4000)]) * costs.mean
    assert draws.mean(axis=0) == pytest.approx(2.0, rel=0.01)
    assert draws.std(axis=0) / 2.0 == pytest.approx(costs.error, rel=0.05)
    assert np.array_equal(costs.drawn(3), costs.drawn(3))
    equal = costs_within(with_costs(log, np.full(log.page.size, 2.0)), 9.75, 19.75)
    assert np.array_equal(equal.drawn(3), equal.paid)


def test_costs_are_part_of_what_is_played(log: CrawlLog) -> None:
    plain, test = backtest(log, draws=0), backtest(with_costs(log, 1.0 + log.time), draws=0)
    other = backtest(with_costs(log, 2.0 + log.time), draws=0)
    assert len({x.digest(0) for x in (plain, test, other)}) == 3
    effort = backtesting.STANDARD
    assert backtest_runs.names_of("Greedy", None, test.log, effort)[-1] == f"Greedy{BLIND}"
    assert backtest_runs.names_of("Greedy", None, log, effort) == ["RoundRobin", "Greedy"]


# Commands


def test_commands_answer_in_the_unit_of_the_column(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(2), []
    for page in range(6):
        rows += [
            f"http://h{page % 2}/{page},{day},{int(rng.random() < 0.3)},{200 * (page + 1)}"
            for day in range(30)
        ]
    path = written(tmp_path, "\n".join(["url,time,changed,body_size", *rows, ""]))
    out = tmp_path / "out"
    more = "--cost", "body_size", "--out"
    output = done(run(estimate.app, str(path), *more, str(out))).output
    assert "126 kB" in output  # of 30 crawls of six pages
    assert "700 B" in output
    table = pd.read_csv(out / "pages.csv")
    assert sorted(table.cost) == [200.0 * k for k in range(1, 7)]
    options = "--policies", "Greedy", "--draws", "2", "--backend", "local", "--fresh"
    output = done(run(backtest_command.app, str(path), *options, *more, str(out))).output
    text = " ".join(output.split())
    spend = 15 * 4_200.0  # the crawls after the middle
    assert f"Your crawls spent {with_unit(spend, 'bytes')}." in text
    written_rows = pd.read_csv(out / "backtest.csv")
    assert list(written_rows.columns[:3]) == ["policy", "share of spend", "spend"]
    assert written_rows.spend[0] == pytest.approx(spend)
    assert set(written_rows.policy) == {LOG, "RoundRobin", "Greedy", f"Greedy{BLIND}"}
    assert (out / "backtest.png").exists()


def test_a_schedule_keeps_to_a_cost_per_day(tmp_path: Path) -> None:
    rows = [f"http://h/{k},1,0.5,{cost}" for k, cost in enumerate((1, 1, 4, ""))]
    path = written(tmp_path, "\n".join(["url,importance,change_rate,cost", *rows, ""]), "p.csv")
    table = read_page_table(path)
    assert table.cost is not None
    assert table.cost.tolist() == [1.0, 1.0, 4.0, 2.0]
    assert table.notes == (
        "missing costs, taken as the mean of the host: 1",
        "crawls have costs (column 'cost', on average 2): the bandwidth is cost per day",
    )
    options = "--bandwidth", "8", "--start", "2026-01-01", "--until", "10"
    output = done(run(schedule.app, str(path), *options, "--out", str(tmp_path / "out"))).output
    plan = pd.read_csv(tmp_path / "out" / "schedule.csv")
    cost = plan.url.str[-1].astype(int).map(dict(enumerate(table.cost)))
    assert (plan.cost == cost).all()
    assert abs(plan.cost.sum() - 80.0) <= 8.0
    days = (pd.to_datetime(plan.time) - pd.Timestamp("2026-01-01", tz="UTC")) / pd.Timedelta(days=1)
    np.testing.assert_allclose(np.diff(days), plan.cost[:-1] / 8.0, atol=2e-5)
    assert plan.url.str[-1].value_counts()["0"] > plan.url.str[-1].value_counts()["2"]
    assert f"for a cost of {plan.cost.sum():,.3g} with Greedy" in output
    bad = written(tmp_path, "url,cost\nu,0\n", "bad.csv")
    with pytest.raises(ValueError, match="line 2, column 'cost': got '0', expected a number from"):
        read_page_table(bad)
