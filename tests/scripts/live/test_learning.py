"""An index learned from the example log: what it learns from, the two commands, small logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import agents
from agents.index import StoredIndex, learning
from agents.index.learning import STALENESS_ROUNDS, VALUE_ROUNDS, fit_index
from policies.live.logs import CrawlLog, hosts_of, read_crawl_log
from policies.live.scheduler import CrawlScheduler
from scripts import backtest, train
from scripts.live import backtest_report, backtesting, example_log
from scripts.live.learning import HELD_OUT, HIDDEN, LEARNING_RATE, histories_of
from scripts.study.rows import read_rows
from tests.scripts import commands
from tests.scripts.commands import done, records, refused


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the example log and its signals."""
    folder = tmp_path_factory.mktemp("example")
    done(commands.run(example_log.app, out=folder))
    return folder


@pytest.fixture(scope="module")
def log(example: Path) -> CrawlLog:
    return read_crawl_log([example / "log.csv"], events=example / "signals.csv")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "STEPS", 30)
    standard = backtesting.STANDARD._replace(first=2, passes=1, shares=(0.5, 1.0))
    for module in (backtesting, backtest_report):
        monkeypatch.setattr(module, "STANDARD", standard)


def test_crawls_and_signals_of_a_log(log: CrawlLog) -> None:
    """Counted crawl by crawl; the last quarter of the crawls is apart, from its first day on."""
    known, held_out = histories_of(log, np.zeros(log.num_pages, np.int64), 150.0)
    split = known.end
    assert split + held_out.end == 150.0
    gone = set(log.page[log.gone & (log.time <= 150.0)])
    last: dict[int, float] = {}
    expected = []
    for page, time, changed in zip(log.page, log.time, log.changed, strict=True):
        own = (log.signal_page == page) & (log.signal_time <= time)
        if page in last and time > last[page] and time <= 150.0 and page not in gone:
            count = np.sum(own & (log.signal_time > last[page]))
            expected.append((page, time, time - last[page], count, changed))
        last[page] = time
    both = []
    for part, first in ((known, 0.0), (held_out, split)):
        record = part.record
        both += zip(
            *(record.page, record.time + first, record.elapsed, record.signals[0], record.changed),
            strict=True,
        )
        heard = (log.signal_time > first) & (log.signal_time <= first + part.end)
        np.testing.assert_allclose(record.signal_time + first, log.signal_time[heard])
        np.testing.assert_array_equal(record.signal_page, log.signal_page[heard])
    np.testing.assert_allclose(np.array(sorted(both)), np.array(sorted(expected)), atol=1e-9)
    share = held_out.record.page.size / len(both)
    assert share == pytest.approx(HELD_OUT, abs=0.01)


def test_from_a_log_to_a_backtest_and_a_scheduler(
    example: Path, log: CrawlLog, tmp_path: Path, quick: None
) -> None:
    given = "--events", example / "signals.csv"
    own = ("index", "--log", example / "log.csv", *given, "--until", 100)
    done(commands.run(train.app, *own, out=tmp_path / "own"))
    curve = records(tmp_path / "own" / "curve.csv")
    groups = np.unique(hosts_of(log.urls).astype(str), return_inverse=True)[1]
    history, held_out = histories_of(log, groups.astype(np.int64), 100.0)
    rng = np.random.default_rng(0)
    rounds = list(fit_index([history], HIDDEN, LEARNING_RATE, rng, [held_out]))
    losses = [float(row["held_out_loss"]) for row in curve]
    assert losses == pytest.approx([each.loss for each in rounds])
    assert len(losses) == STALENESS_ROUNDS + 1 + VALUE_ROUNDS + 1
    best = rounds[STALENESS_ROUNDS + 1 + int(np.argmin(losses[STALENESS_ROUNDS + 1 :]))]
    np.testing.assert_array_equal(StoredIndex.read(tmp_path / "own").weights, best.weights)
    refused(commands.run(train.app, *own, out=tmp_path / "own"), "holds an agent already")

    played = (example / "log.csv", *given, "--agents", tmp_path / "own", "--workers", 1)
    played += ("--policies", "GreedyNCIS", "--draws", 2)
    early = commands.run(backtest.app, *played, "--start", 60, out=tmp_path / "early")
    refused(early, "must be learned from days before 60", "until day 100", "--until 60")
    result = done(commands.run(backtest.app, *played, "--start", 100, out=tmp_path / "test"))
    assert "GreedyNCIS" in result.stdout
    rows, _ = read_rows(tmp_path / "test" / "rows.parquet")
    fresh = {row.policy: row.value for row in rows if "1 of" in row.setting and row.seed == 0}
    assert fresh[str(tmp_path / "own")] > fresh["RoundRobin"]

    scheduler = CrawlScheduler(agents.load(tmp_path / "own"), bandwidth=10.0)
    scheduler.add([0, 1], importance=1.0, change_rate=[0.01, 1.0], recall=0.5, false_signal_rate=0)
    scheduler.report([0, 1], 0.0, changed=[False] * 2)
    assert scheduler.next(1.0).id == 1


def few_crawls(path: Path, pages: int, days: int, changes: int) -> Path:
    """Write a log of all pages every day, the first crawls of which found changes."""
    rows = ["url,time,changed"]
    for day in range(days):
        for page in range(pages):
            changed = day > 0 and (day - 1) * pages + page < changes
            rows.append(
                f"https://a.example/{page},2026-01-{day + 1:02d}T0{page % 8}:00Z,{changed:d}"
            )
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("pages", "days", "changes", "words"),
    [
        (7, 10, 20, ["at least 400 crawls of pages crawled before", "got 63"]),
        (50, 12, 30, ["at least 40 changes", "got 30"]),
        (50, 12, 540, ["at least 40 crawls without a change", "got 10"]),
        (300, 3, 200, ["at least 20 crawls of pages crawled twice before", "got 0"]),
    ],
)
def test_a_small_log_gets_one_line(
    tmp_path: Path, pages: int, days: int, changes: int, words: list[str]
) -> None:
    log = few_crawls(tmp_path / "log.csv", pages, days, changes)
    refused(commands.run(train.app, "index", "--log", log, out=tmp_path / "own"), *words)
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["index", "CrawlNCIS-v0", "--log", "x"], ["CrawlNCIS-v0", "index --log"]),
        (["ppo", "--log", "x"], ["--log", "ppo"]),
        (["index", "--log", "x", "--width", "3"], ["--width", "--log"]),
        (["index", "--log", "x", "--env-arg", "num_pages=3"], ["--env-arg", "--log"]),
        (["index", "CrawlNCIS-v0", "--until", "3"], ["--until", "of index"]),
        (["index", "CrawlNCIS-v0", "--max-bad", "0.5"], ["--max-bad", "of index"]),
    ],
)
def test_options_of_the_other_kind_are_refused(
    tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    refused(commands.run(train.app, *arguments, out=tmp_path / "own"), *words)
