"""From a crawl log to estimates, a backtest and a schedule, by the three commands."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from crawl_envs.types import FloatArray
from policies.live.adapters import messages
from policies.live.logs import read_page_table
from scripts import backtest, estimate, schedule
from scripts.live import backtesting, schedules
from scripts.live.backtesting import Backtest
from scripts.study.rows import read_rows
from tests.policies.live.logs.test_imputation import simulated
from tests.scripts import commands
from tests.scripts.commands import done, files_in, records, refused

START = np.datetime64("2026-03-01T00:00:00")


def stamp(day: float) -> str:
    """Return a day of the log as a date and time."""
    return f"{START + np.timedelta64(round(day * 86400), 's')}Z"


def url(page: int) -> str:
    return f"https://h{page % 4}.example/{page}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a log and its signals."""
    folder = tmp_path_factory.mktemp("own")
    log, _ = simulated(2, crawls=12, recall=0.6, false_rate=0.02)
    crawls = zip(log.page, log.time, log.changed, strict=True)
    rows = [f"{url(p)},{stamp(t)},{int(c)}" for p, t, c in crawls]
    (folder / "log.csv").write_text("\n".join(["page,at,changed", *rows]) + "\n")
    signals = zip(log.signal_page, log.signal_time, strict=True)
    heard = [f"{url(p)},{stamp(t)},feed" for p, t in signals]
    (folder / "signals.csv").write_text("\n".join(["url,time,source", *heard]) + "\n")
    return folder


def given(files: Path) -> list[object]:
    return [
        files / "log.csv",
        *("--column", "url=page", "--column", "time=at"),
        *("--events", files / "signals.csv"),
    ]


def spelled(arguments: list[object]) -> list[str]:
    return [str(argument) for argument in arguments]


def rows_of(path: Path) -> list[dict[str, str]]:
    return records(path)


def column(rows: list[dict[str, str]], name: str) -> FloatArray:
    return np.array([float(row[name]) for row in rows])


@pytest.fixture(scope="module")
def estimated(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimated")
    result = done(commands.run(estimate.app, *given(files), out=folder))
    assert "100 pages on 4 hosts" in result.stdout
    assert "feed" in result.stdout
    return folder


def test_estimates_are_a_table_of_pages(estimated: Path) -> None:
    names = {"summary.csv", "log.png", "pages.csv", "audit.csv", "audit.png"}
    assert files_in(estimated) == names
    rows = rows_of(estimated / "pages.csv")
    table = read_page_table(estimated / "pages.csv")
    assert table.sources == ("feed",)
    assert table.recall is not None
    assert table.last_crawl is not None
    assert table.dated
    np.testing.assert_allclose(table.recall[0], column(rows, "recall:feed"))
    assert 0.3 < table.recall.mean() < 0.9
    assert column(rows, "crawls").tolist() == [12.0] * 100
    assert np.all(column(rows, "change_rate_stderr") > 0.0)
    assert table.gone is not None
    assert not table.gone.any()
    assert table.evidence is not None
    assert table.change_rate_low is not None
    assert table.change_rate_high is not None
    bounded = table.evidence == "some changed"
    assert bounded.sum() > 50
    own = column(rows, "change_rate_own")
    inside = (table.change_rate_low < own) & (own < table.change_rate_high)
    assert inside[bounded].all()
    assert np.all(own[table.evidence == "never changed"] == 0.0)
    first = START.astype("datetime64[us]").astype(np.int64) / 86400e6
    assert np.all((table.last_crawl > first) & (table.last_crawl <= first + 100.0))


def test_signals_after_the_last_crawl_are_counted(files: Path, estimated: Path) -> None:
    """A plain loop over the log and its signals."""
    table, last = read_page_table(estimated / "pages.csv"), dict[str, str]()
    for row in rows_of(files / "log.csv"):
        last[row["page"]] = max(row["at"], last.get(row["page"], ""))
    heard = [row["url"] for row in rows_of(files / "signals.csv") if row["time"] > last[row["url"]]]
    assert table.signals is not None
    assert table.signals.tolist() == [[heard.count(page) for page in table.urls]]
    assert len(heard) > 20


def test_the_audit_trusts_signals_that_follow_changes(estimated: Path) -> None:
    [row] = rows_of(estimated / "audit.csv")
    assert row["source"] == "feed"
    assert row["verdict"] in ("trust", "discount")
    assert float(row["precision, low"]) < float(row["precision"]) <= float(row["precision, high"])
    assert float(row["precision"]) > 0.6


def test_columns_of_events_have_an_option(files: Path, tmp_path: Path) -> None:
    text = (files / "signals.csv").read_text().replace("url,time,source", "about,1,source")
    (tmp_path / "signals.csv").write_text(text)
    arguments = [*given(files)[:-1], tmp_path / "signals.csv"]
    names = ("--event-column", "url=about", "--event-column", "time=1", "--event-column", "source=")
    done(commands.run(estimate.app, *arguments, *names, out=tmp_path / "out"))
    [row] = rows_of(tmp_path / "out" / "audit.csv")
    assert row["source"] == "events"
    result = commands.run(estimate.app, *arguments, "--column", "time=At", out=tmp_path)
    refused(result, "'At'", "--column time=NAME")
    refused(commands.run(backtest.app, *arguments, out=tmp_path), "--event-column url=NAME")


def test_a_schedule_is_written(estimated: Path, tmp_path: Path) -> None:
    arguments = ("--bandwidth", 50, "--start", "2026-07-01", "--until", 2)
    result = done(commands.run(schedule.app, estimated / "pages.csv", *arguments, out=tmp_path))
    assert "with GreedyNCIS" in result.stdout
    rows = rows_of(tmp_path / "schedule.csv")
    assert abs(len(rows) - 100) <= 1
    assert rows[0]["time"].startswith("2026-07-01T00:28:48")
    assert all("days old" in row["why"] for row in rows)
    times = [row["time"] for row in rows]
    assert times == sorted(times)
    assert (tmp_path / "schedule.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_that_a_signal_names_after_its_last_crawl_is_fetched_first(tmp_path: Path) -> None:
    """From the log to the schedule; neither failures nor redirects end what is since a copy."""
    rng, log, events = np.random.default_rng(1), [], []
    for page in range(12):
        for day in range(1, 30):
            changed = int(rng.random() < 0.3)
            log.append(f"{url(page)},{stamp(day + page / 100)},{changed},200")
            events += [f"{url(page)},{stamp(day + page / 100 - 0.4)},push"] * (changed and day > 1)
            events += [f"{url(page)},{stamp(day - 0.7)},noise"] * int(rng.random() < 0.2)
    for page, status in ((3, 500), (5, 301), (7, 410)):
        log.append(f"{url(page)},{stamp(30)},0,{status}")
        events.append(f"{url(page)},{stamp(29.5)},push")
    events += [f"{url(7)},{stamp(30.2)},push", f"{url(9)},{stamp(29.09)},push"]  # a crawl's time
    events += [f"{url(2)},{stamp(29.9)},noise", f"{url(2)},{stamp(30.2)},noise"]
    (tmp_path / "log.csv").write_text("\n".join(["url,time,changed,status", *log]) + "\n")
    (tmp_path / "events.csv").write_text("\n".join(["url,time,source", *events]) + "\n")
    given = (tmp_path / "log.csv", "--events", tmp_path / "events.csv")
    done(commands.run(estimate.app, *given, out=tmp_path))
    rows = {row["url"]: row for row in rows_of(tmp_path / "pages.csv")}
    for source, counts in (("push", {3: 1, 5: 1, 7: 1}), ("noise", {2: 2})):
        for page in range(12):
            assert int(rows[url(page)][f"signals:{source}"]) == counts.get(page, 0), (source, page)
    span = ("--bandwidth", 6, "--start", stamp(30.5), "--until", 2, "--recheck-gone", 1)
    pages = (schedule.app, tmp_path / "pages.csv", *span)
    result = done(commands.run(*pages, out=tmp_path / "out"))
    fetches = rows_of(tmp_path / "out" / "schedule.csv")
    first = [row["url"] for row in fetches if "gone" not in row["why"]]
    assert set(first[:2]) == {url(3), url(5)}
    assert all("; 1 signal of push before the start; " in row["why"] for row in fetches[:2])
    [gone, *_] = [row["why"] for row in fetches if row["url"] == url(7)]
    assert gone.startswith("gone at its last fetch, 1")
    assert gone.endswith("; 1 signal of push before the start")
    assert "1 signal of push since the last crawls not used: their pages are gone" in result.stdout
    result = done(commands.run(*pages, "--policy", "Greedy", out=tmp_path / "out"))
    assert (
        "3 signals of push, 2 signals of noise since the last crawls not used: Greedy uses none"
        in (" ".join(result.stdout.split()))
    )


@pytest.mark.parametrize(
    ("header", "row", "order"),
    [
        ("url", "", [0, 1, 2, 0, 1, 2]),
        ("url,importance", ",{page}", [2, 1, 0, 2, 1, 0]),
        ("url,last_crawl", ",{last}", [1, 2, 0, 1, 2, 0]),
        ("url,gone,recall,false_signal_rate", ",false,0.5,0.1", [0, 1, 2, 0, 1, 2]),
    ],
)
def test_a_table_without_rates_is_scheduled_in_turn(
    header: str, row: str, order: list[int], tmp_path: Path
) -> None:
    rows = [url(k) + row.format(page=k, last=(3, 1, 2)[k]) for k in range(3)]
    (tmp_path / "pages.csv").write_text("\n".join([header, *rows]) + "\n")
    span = ("--bandwidth", 6, "--start", 4, "--until", 1.0)
    pages = (schedule.app, tmp_path / "pages.csv", *span)
    result = done(commands.run(*pages, out=tmp_path / "out"))
    assert "with RoundRobin" in result.stdout
    assert "no column change_rate (python -m scripts.estimate LOG writes it)" in result.stdout
    assert "importance 0" not in result.stdout
    assert [row["url"] for row in rows_of(tmp_path / "out" / "schedule.csv")] == [*map(url, order)]
    refused(
        commands.run(*pages, "--policy", "Greedy", out=tmp_path / "out"),
        "change_rate must be given: the policy needs it; scripts.estimate writes it for the pages "
        "of a crawl log; RoundRobin needs none",
    )


def test_pages_that_are_gone_are_not_scheduled(tmp_path: Path) -> None:
    """The last row of a page decides; a date as a start is a whole day."""
    log = "url,time,changed,status\n"
    for day, changed in ((1, 0), (11, 1), (21, 0), (31, 1)):
        log += f"http://a.example/live,2026-01-{day:02d},{changed},200\n"
        log += f"http://a.example/back,2026-01-{day:02d},{changed},{404 if day == 21 else 200}\n"
        log += f"http://a.example/gone,2026-01-{day:02d},{changed},{410 if day > 20 else 200}\n"
    (tmp_path / "log.csv").write_text(log)
    done(commands.run(estimate.app, tmp_path / "log.csv", out=tmp_path))
    table = read_page_table(tmp_path / "pages.csv")
    assert table.gone is not None
    assert table.urls[table.gone].tolist() == ["http://a.example/gone"]
    span = ("--bandwidth", 2, "--start", "2026-01-31", "--until", "2026-02-10")
    result = done(commands.run(schedule.app, tmp_path / "pages.csv", *span, out=tmp_path))
    urls = {row["url"] for row in rows_of(tmp_path / "schedule.csv")}
    assert urls == {"http://a.example/live", "http://a.example/back"}
    assert "1 page gone: fetched only with --recheck-gone DAYS" in result.stdout
    again = (*span, "--recheck-gone", 4)
    done(commands.run(schedule.app, tmp_path / "pages.csv", *again, out=tmp_path))
    rows = [row for row in rows_of(tmp_path / "schedule.csv") if row["url"].endswith("gone")]
    assert [row["time"][:10] for row in rows] == ["2026-02-04", "2026-02-08"]
    assert rows[0]["why"] == "gone at its last fetch, 4 days ago"


def test_a_schedule_of_gone_pages_alone_spaces_them_by_the_budget(tmp_path: Path) -> None:
    rows = [f"http://a.example/{page},1,0.5,2026-01-31,true" for page in range(4)]
    header = "url,importance,change_rate,last_crawl,gone"
    (tmp_path / "pages.csv").write_text("\n".join([header, *rows]) + "\n")
    span = ("--bandwidth", 4, "--start", "2026-01-31", "--until", 7.9)
    result = commands.run(schedule.app, tmp_path / "pages.csv", *span, out=tmp_path / "out")
    refused(result, "must not all be gone, got 4 gone pages")
    again = (*span, "--recheck-gone", 4)
    done(commands.run(schedule.app, tmp_path / "pages.csv", *again, out=tmp_path / "out"))
    times = [row["time"][:16] for row in rows_of(tmp_path / "out" / "schedule.csv")]
    assert times == [f"2026-02-04T{hour:02d}:00" for hour in (0, 6, 12, 18)]


@pytest.mark.parametrize(
    ("start", "day"),
    [
        ("20260206", np.datetime64("2026-02-06").astype(float)),
        ("19991231", np.datetime64("1999-12-31").astype(float)),
        ("2026020", 2026020.0),
        ("20654.5", 20654.5),
    ],
)
def test_a_start_of_eight_digits_is_a_date(start: str, day: float) -> None:
    assert schedules.first_day(None, start) == day


def test_pages_outside_the_table_have_no_importance(files: Path, tmp_path: Path) -> None:
    kept = [f"{url(page)},{page + 1}" for page in range(60)]
    known = "\n".join(["url,importance", *kept, "https://h0.example/new,5"])
    (tmp_path / "known.csv").write_text(known + "\n")
    given_pages = (*given(files), "--pages", tmp_path / "known.csv")
    result = done(commands.run(estimate.app, *given_pages, out=tmp_path / "out"))
    said = " ".join(result.stdout.split())
    assert "40 pages of the log not in" in said
    assert "importance 0, never fetched; 1 row of it not in the log" in said
    rows = rows_of(tmp_path / "out" / "pages.csv")
    weights = {row["url"]: float(row["importance"]) for row in rows}
    assert weights == {url(page): (page + 1.0) * (page < 60) for page in range(100)}
    (tmp_path / "known.csv").write_text(f"url,importance,weight\n{url(3)},0,1\n")
    for app in (estimate.app, backtest.app):
        result = commands.run(app, *given_pages, out=tmp_path / "none")
        refused(result, "known.csv must have importance > 0 for a page of the log, got none")
        assert "columns that are not read: 'weight'" in " ".join(result.stdout.split())


def test_a_log_that_tells_no_rate_is_refused_after_its_summary(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("url,time,hash\nu,2026-01-01,A\nu,2026-01-05,A\n")
    result = commands.run(estimate.app, tmp_path / "log.csv", out=tmp_path / "out")
    refused(result, "got none in 1 interval between crawls: rates are below 0.75 per day")
    assert "never changed" in result.stdout
    assert not (tmp_path / "out").exists()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw after few passes; that these forget the start is tested with the draws."""
    effort = backtesting.STANDARD._replace(first=60, passes=10)
    monkeypatch.setattr(backtesting, "STANDARD", effort)


@pytest.mark.usefixtures("soon")
def test_a_slip_in_a_policy_ends_a_backtest_in_a_line(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slips.py").write_text(
        "class Late:\n"
        "    def __init__(self, env):\n"
        "        self.left = 9\n"
        "    def predict(self, observation, state=None, start=None, deterministic=False):\n"
        "        self.left -= 1\n"
        "        return 0 // self.left, None\n"
        "class Never(Late):\n"
        "    def predict(self, *_, **__):\n"
        "        return self.nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    for name, line, error in (("Late", 6, "ZeroDivisionError"), ("Never", 9, "AttributeError")):
        few = ("--draws", 2, "--workers", 1, "--policies", f"slips:{name}", "--fresh")
        result = commands.run(backtest.app, *given(files), *few, out=out)
        refused(result, f"slips:{name} in ", f" failed: {error}: ", f"(slips.py, line {line})")


@pytest.mark.usefixtures("soon")
def test_a_backtest_compares_policies_with_the_log(files: Path, tmp_path: Path) -> None:
    few = ("--draws", 3, "--workers", 1, "--policies", "GreedyNCIS")
    result = done(commands.run(backtest.app, *given(files), *few, out=tmp_path))
    names = {"summary.csv", "log.png", "backtest.csv", "backtest.png", "provenance.json"}
    names.add("rows.parquet")
    assert files_in(tmp_path) == names
    rows = rows_of(tmp_path / "backtest.csv")
    assert [row["policy"] for row in rows if row["share of crawls"] == "1.0"] == [
        "your crawls",
        "RoundRobin",
        "GreedyNCIS",
    ]
    for policy in ("RoundRobin", "GreedyNCIS"):
        fresh = column([row for row in rows if row["policy"] == policy], "freshness")
        assert np.all(np.diff(fresh) > 0.0)
    assert "crawls saved" in result.stdout
    assert "bursts" in result.stdout
    before = (tmp_path / "rows.parquet").read_bytes()
    done(commands.run(backtest.app, *given(files), *few, out=tmp_path))
    assert (tmp_path / "rows.parquet").read_bytes() == before
    assert files_in(tmp_path) == names
    refused(commands.run(backtest.app, *given(files), *few, "--seed", 1, out=tmp_path), "--fresh")
    done(commands.run(backtest.app, *given(files), *few, "--seed", 1, "--fresh", out=tmp_path))
    assert (tmp_path / "rows.parquet").read_bytes() != before


@pytest.mark.usefixtures("soon")
def test_an_interrupted_backtest_goes_on(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by a signal after some rows; the same command ends with the rows of one run."""
    freshness, played = Backtest.freshness, []

    def stopping(test: Backtest, *arguments: object) -> float:
        played.append(arguments)
        if len(played) == 20:  # 12 are timed beforehand
            signal.raise_signal(signal.SIGINT)
        return freshness(test, *arguments)

    few = ["--draws", "4", "--workers", "1", "--policies", "Greedy"]
    arguments = spelled(given(files)) + few
    done(commands.run(backtest.app, *arguments, out=tmp_path / "whole"))
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Backtest, "freshness", stopping)
            stopped = commands.run(backtest.app, *arguments, out=tmp_path / "parts")
    finally:
        signal.signal(signal.SIGINT, heard)
    assert stopped.exit_code == 130, stopped.output
    assert "the same command resumes" in stopped.stderr
    some, _ = read_rows(tmp_path / "parts" / "rows.parquet")
    done(commands.run(backtest.app, *arguments, out=tmp_path / "parts"))
    parts, _ = read_rows(tmp_path / "parts" / "rows.parquet")
    whole, _ = read_rows(tmp_path / "whole" / "rows.parquet")
    assert 0 < len(some) < len(parts)
    assert parts == whole


def test_a_log_that_does_not_aim_at_freshness_is_noted(tmp_path: Path) -> None:
    """Half of the pages are crawled ten times as often as the others, which change as fast."""
    rng, rows = np.random.default_rng(0), []
    for page in range(40):
        changes = np.sort(rng.random(rng.poisson(20.0)) * 100.0)
        times = np.append(0.0, np.sort(rng.random(40 if page % 2 else 4)) * 100.0)
        found = np.append(False, np.diff(np.searchsorted(changes, times)) > 0)
        rows += [f"{url(page)},{stamp(t)},{int(c)}" for t, c in zip(times, found, strict=True)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["url,time,changed", *rows]) + "\n")
    few = ("--draws", 3, "--workers", 1, "--policies", "Greedy")
    result = done(commands.run(backtest.app, log, *few, out=tmp_path / "out"))
    assert "less fresh than as many of RoundRobin" in " ".join(result.stdout.split())


def test_a_live_scheduler_answers_lines(estimated: Path, tmp_path: Path) -> None:
    lines = ['{"next": 2, "time": "2026-07-02"}', '{"next": 1, "time": 3}']
    first_day: list[object] = ["--start", "2026-07-01"]
    arguments: list[object] = [estimated / "pages.csv", "--bandwidth", 50, "--live", *first_day]
    folder: list[object] = ["--folder", tmp_path / "state"]
    table = read_page_table(estimated / "pages.csv")
    assert table.signals is not None
    named = int(table.signals[0].argmax())
    lines.append(json.dumps({"describe": table.urls[named]}))
    first = CliRunner().invoke(schedule.app, spelled(arguments + folder), input="\n".join(lines))
    answers = [json.loads(line) for line in done(first).stdout.splitlines()]
    assert answers.pop()["signals"] == table.signals[0, named] > 0
    assert len(answers[0]["fetch"]) == 2
    assert answers[1]["clock"] == messages.day_of("2026-07-02")  # it had gone back
    assert "clock" not in answers[0]
    later = [lines[0].replace("07-02", "07-02T12"), lines[-1]]
    again = CliRunner().invoke(schedule.app, spelled(arguments + folder), input="\n".join(later))
    answer, named_page = [json.loads(line) for line in done(again).stdout.splitlines()]
    assert named_page["signals"] == table.signals[0, named]  # and not again those of the table
    assert "its pages, signals, policy and bandwidth replace these" in again.stderr
    assert "0.01 of the fetches are audits: audit_share changes it" in again.stderr
    assert len(answer["fetch"]) == 2
    assert set(answer["fetch"]).isdisjoint(answers[0]["fetch"])


def test_a_live_scheduler_keeps_a_cap_of_the_spend(tmp_path: Path) -> None:
    table = tmp_path / "pages.csv"
    rows = [f"https://a.example/{k},{cost},1" for k, cost in enumerate((400, 300, 200, 100))]
    table.write_text("\n".join(["url,cost,change_rate", *rows]))
    lines = ['{"next": 9, "time": 100.5}', '{"describe": "https://a.example/3"}']
    report = {"report": ["https://a.example/0"], "time": 100.5, "cost": 150}
    lines += [json.dumps(report), lines[0], lines[0]]
    live: list[object] = [table, "--bandwidth", 1e9, "--live", "--start", 100, "--cap", 1000]
    limits: list[object] = ["--max-cost", 400, "--cap-period", 3]
    result = CliRunner().invoke(schedule.app, spelled(live + limits), input="\n".join(lines))
    first, page, _, second, last = [json.loads(x) for x in done(result).stdout.splitlines()]
    assert first["fetch"] == ["https://a.example/0", "https://a.example/1"]  # 400 are reserved each
    assert page["cost"] == 100.0
    assert len(second["fetch"]) == 1  # 150 + 400 + 400
    assert last["fetch"] == []
    assert "the cap is used up until 102" in last["why"]
    for bad, message in (
        ([], "max_cost must be given with cap"),
        (["--max-cost", 2000], "cap must be at least max_cost, 2000, got 1000"),
        (["--max-cost", -1], "max_cost must be"),
    ):
        result = CliRunner().invoke(schedule.app, spelled([*live, *bad]), input="")
        assert result.exit_code == 2
        assert message in result.stderr
    result = CliRunner().invoke(schedule.app, spelled([table, "--bandwidth", 9, "--max-cost", 4]))
    assert "max_cost must be left out without --live" in result.stderr
    folder: list[object] = ["--folder", tmp_path / "state"]
    for _ in range(2):
        result = done(CliRunner().invoke(schedule.app, spelled(live + limits + folder), input=""))
    assert "so do its cap and its promises" in result.stderr


def test_a_feed_tells_pages_and_signals(tmp_path: Path) -> None:
    table, feed = tmp_path / "pages.csv", tmp_path / "feed.xml"
    known, gone, new = (f"https://a.example/{word}" for word in ("known", "gone", "new"))
    rows = [f"{known},0.1,2026-07-01T00:00,false", f"{gone},0.1,2026-07-01T00:00,true"]
    table.write_text("\n".join(["url,change_rate,last_crawl,gone", *rows]))
    listed = "".join(
        f"<url><loc>{url}</loc><lastmod>2026-07-02T03:04:05Z</lastmod></url>"
        for url in (known, gone, new)
    )
    feed.write_text(f"<urlset>{listed}</urlset>")
    asked = "\n".join(json.dumps({"describe": url}) for url in (known, gone, new))
    folder: list[object] = ["--folder", tmp_path / "state"]
    arguments: list[object] = ["--bandwidth", 50, "--live", "--learn", "--feed", feed, *folder]
    for given in ([table], []):  # it goes on, and what was told is not told again
        result = CliRunner().invoke(schedule.app, spelled([*given, *arguments]), input=asked)
        told = [json.loads(line) for line in done(result).stdout.splitlines()]
        assert [page["signals"] for page in told] == [1, 0, 0]
        assert [page["state"] for page in told] == ["ready", "waiting", "new"]  # listed anew
    feed.write_text("<html>")
    polls = tmp_path / "state" / "feeds" / "polls.json"
    time, *rest = json.loads(polls.read_text())[str(feed)]
    polls.write_text(json.dumps({str(feed): [time - 1.0, *rest]}))  # it is due again
    result = CliRunner().invoke(schedule.app, spelled(arguments), input=asked)
    assert f"{feed} must be a feed or a sitemap" in done(result).stderr
    lone: list[object] = [*arguments, "--feed", feed]
    refused(
        CliRunner().invoke(schedule.app, spelled(lone), input=""),
        "at most 1 times, once for each source of signals, got 2",
    )


TWO = ("--feed", "f", "--feed", "g")


@pytest.mark.parametrize(
    ("app", "arguments", "message"),
    [
        (estimate.app, ["nowhere.csv"], "nowhere.csv"),
        (backtest.app, ["LOG", "--draws", 1], "draws must be"),
        (backtest.app, ["LOG", "--policies", "Best"], "Best"),
        (backtest.app, ["LOG", "--policies", "CurveFitting"], "pages with fragments"),
        (
            backtest.app,
            ["LOG", "--policies", "ThresholdNCIS"],
            "must crawl page by page in a budget",
        ),
        (backtest.app, ["LOG", "--start", 1000], "start must lie in the log"),
        (estimate.app, ["LOG", "--column", "url"], "column must be name=value"),
        (schedule.app, ["--bandwidth", 1], "PAGES must be given"),
        (schedule.app, ["PAGES", "--bandwidth", 0], "bandwidth must be"),
        (schedule.app, ["PAGES", "--bandwidth", 1, "--start", "2026-03-02"], "start must be"),
        (
            schedule.app,
            ["PAGES", "--bandwidth", 1, "--audit-share", 0.1],
            "audit_share must be left",
        ),
        (
            schedule.app,
            ["PAGES", "--bandwidth", 1, "--most-interval", 0.5],
            "most_interval must leave",
        ),
        (schedule.app, ["PAGES", "--bandwidth", 1, "--feed", "f"], "feed must be left out"),
        (schedule.app, ["PAGES", "--bandwidth", 1, "--live", *TWO], "feed must be given with"),
        (schedule.app, ["PAGES", "--bandwidth", 1, "--until", "-1"], "until must be a number of"),
        (schedule.app, ["PAGES", "--bandwidth", 1, "--until", "soon"], "time must be days"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    app: object, arguments: list[object], message: str, files: Path, estimated: Path, tmp_path: Path
) -> None:
    named = {"LOG": given(files), "PAGES": [estimated / "pages.csv"]}
    words = [word for item in arguments for word in named.get(str(item), [item])]
    out = tmp_path / "out"
    refused(commands.run(app, *words, out=out), message)
    assert not out.exists() or not any(out.iterdir())


def test_options_of_a_live_scheduler_are_refused_without_it(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_text("url,change_rate\nhttp://a/,1\n")
    for option in (["--learn"], ["--folder", tmp_path / "state"], ["--poll", 3]):
        given = (tmp_path / "pages.csv", "--bandwidth", 1, *option)
        said = f"{option[0].strip('-')} must be left out without --live"
        refused(commands.run(schedule.app, *given, out=tmp_path / "out"), said)
