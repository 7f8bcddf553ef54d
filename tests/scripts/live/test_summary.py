"""What a log contains, in lines, a file and a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policies.live.logs import CrawlLog
from policies.live.logs.crawl_log import OUTCOMES, Dropped, History
from scripts.live.summary import date_of, facts, print_summary, write_summary
from tests.naive.replayed_logs import make_log
from tests.scripts.commands import records


def example() -> CrawlLog:
    """Four pages: never changed, always changed, both and then gone, crawled once."""
    crawls = [(0, 0.0, False), (0, 10.0, False), (1, 1.0, False), (1, 2.0, True), (1, 4.0, True)]
    crawls += [(2, 0.0, False), (2, 2.0, True), (2, 3.0, False), (2, 9.0, False), (3, 5.0, False)]
    log = make_log(
        crawls,
        [(0, 1.0 + 0.3 * k, 0) for k in range(7)] + [(1, 4.0, 0)],
        num_pages=4,
        num_sources=2,
        gone={(2, 9.0)},
    )
    rows = [(page, time, 2 if changed else 1) for page, time, changed in crawls]
    rows[8] = (2, 9.0, OUTCOMES.index("gone"))
    rows += [(3, 6.0, OUTCOMES.index("redirected")), (-1, 7.0, OUTCOMES.index("failed"))]
    page, time, outcome = (
        np.array(column) for column in zip(*sorted(rows, key=lambda r: r[1]), strict=True)
    )
    return replace(
        log,
        origin="2026-01-01T12:00:00Z",
        history=History(page, time.astype(np.float64), outcome.astype(np.int8)),
        redirect=np.array(["", "", "", "https://a.example/new"], np.object_),
        redirected=np.arange(4) == 3,
        notes=("column time: 8 digits taken for yyyymmdd",),
        dropped=Dropped(failed=1, redirected=1, unreadable=2, absent=1),
    )


def test_every_number_is_there() -> None:
    lines = {fact.name.strip(): fact for fact in facts(example())}
    numbers = {name: fact.value for name, fact in lines.items()}
    assert numbers == {
        "rows with a time": "12",
        "first": "0",
        "unchanged": "6",
        "changed": "3",
        "failed": "1",
        "redirected": "1",
        "gone": "1",
        "no evidence": "0",
        "unreadable rows": "2",
        "pages never found": "1",
        "pages": "4",
        "crawled once": "1",
        "never changed": "1",
        "changed at every crawl": "1",
        "gone at the end": "1",
        "redirected at the end": "1",
        "first row": "2026-01-01 12:00",
        "last row": "2026-01-11 12:00",
        "shortest interval": "1 day",
        "median interval": "2 days",
        "longest interval": "10 days",
        "intervals with a change": "60.0%",
        "signals of source 0": "8",
        "signals of source 1": "0",
        "note": "",
    }
    assert "https://a.example/new (1 page)" in lines["redirected"].remark
    assert lines["note"].remark.startswith("column time: 8 digits")
    assert "digests exclude headers" in lines["changed at every crawl"].remark


def test_it_is_printed_written_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(example(), "crawls.csv")
    assert "crawls.csv: what the log contains" in capsys.readouterr().out
    write_summary(example(), "crawls.csv", tmp_path)
    rows = records(tmp_path / "summary.csv")
    assert [row["name"] for row in rows] == [fact.name for fact in facts(example())]
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")


def test_times_that_cannot_be_are_remarked() -> None:
    log = example()
    assert not any("a wrong time" in fact.remark for fact in facts(log))
    history = log.history._replace(
        time=np.append(-25_000.0, [*log.history.time[1:-1].tolist(), 100000.0])
    )
    lines = {fact.name: fact.remark for fact in facts(replace(log, history=history))}
    assert lines["first row"].startswith("before the Web: perhaps a wrong time")
    assert lines["last row"].startswith("in the future: perhaps a wrong time")


def test_a_silent_source_is_remarked() -> None:
    rng = np.random.default_rng(1)
    crawls = [(page, float(t), rng.random() < 0.4) for page in range(20) for t in range(0, 60, 2)]
    times = [float(t) for t in rng.uniform(0.0, 58.0, 300) if not 20.0 < t < 40.0]
    signals = [(int(rng.integers(20)), t, 0) for t in times]
    log = make_log(crawls, signals, num_pages=20, num_sources=1)
    fetches = History(log.page, log.time, np.ones(log.page.size, np.int8))
    log = replace(log, origin="2026-01-01T00:00:00Z", history=fetches)
    [remark] = [fact.remark for fact in facts(log) if fact.name == "signals of source 0"]
    low, high = max(t for t in times if t < 20.0), min(t for t in times if t > 40.0)
    dates = f"no signals from {date_of(log, low)} to {date_of(log, high)}"
    assert dates.startswith("no signals from 2026-01-20")
    assert remark.endswith(f"; {dates}: left out of recall")
