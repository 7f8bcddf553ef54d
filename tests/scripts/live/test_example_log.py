"""The example of a crawl log is what a crawler of the included site would have seen."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from scripts.live import example_log
from scripts.live.example_log import thinned_log
from tests.scripts import commands
from tests.scripts.commands import done


@pytest.fixture(scope="module")
def record() -> Trace:
    return traces.load(traces.find(example_log.SITE))


def changes_of(record: Trace, page: int) -> np.ndarray:
    born = max(record.created[page], 0.0)
    times = record.change_time[record.change_page == page]
    return times[times > born]


@pytest.mark.parametrize("schedule", ["regular", "Poisson"])
def test_each_crawl_says_whether_the_page_changed_since_the_last_one(
    record: Trace, schedule: str
) -> None:
    log, true = thinned_log(record, 5.0, schedule, np.random.default_rng(3))
    assert np.all(np.diff(log.time) >= 0.0)
    steps = []
    for page in range(record.num_pages):
        mine = log.page == page
        times, changed, gone = log.time[mine], log.changed[mine], log.gone[mine]
        changes = changes_of(record, page)
        assert np.array_equal(true.time[true.page == page], changes)
        assert times[0] == max(record.created[page], 0.0)
        assert np.array_equal(gone, times >= record.deleted[page])
        assert gone.sum() <= 1
        seen = [np.any((changes > a) & (changes <= b)) for a, b in itertools.pairwise(times)]
        assert np.array_equal(changed, np.append(False, seen) & ~gone)
        steps.append(np.diff(times)[1:])
        assert times[-1] <= record.days
        assert gone[-1] or times[-1] > record.days - (5.0 if schedule == "regular" else np.inf)
    between = np.concatenate(steps)
    if schedule == "regular":
        np.testing.assert_allclose(between, 5.0, rtol=1e-9)
    else:
        assert between.mean() == pytest.approx(5.0, rel=0.05)
        assert between.std() == pytest.approx(5.0, rel=0.1)
    assert 0.0 < log.changed.mean() < 0.5


def test_the_files_are_those_of_the_seed(record: Trace, tmp_path: Path) -> None:
    outputs = [
        done(commands.run(example_log.app, "--days", "9", "--seed", seed, out=tmp_path / name))
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    ]
    texts = [(tmp_path / name / "log.csv").read_bytes() for name in "abc"]
    assert texts[0] == texts[1] != texts[2]
    log, _ = thinned_log(record, 9.0, "regular", np.random.default_rng(1))
    table = pd.read_csv(tmp_path / "a" / "log.csv", parse_dates=["time"])
    start = pd.Timestamp("2026-01-01", tz="UTC")
    days = (table.time - start).dt.total_seconds() / 86400.0
    np.testing.assert_allclose(days, log.time, atol=0.6 / 86400.0)
    assert np.array_equal(table.changed == 1, log.changed)
    assert np.array_equal(table.status == 404, log.gone)
    assert pd.factorize(table.url)[0].tolist() == pd.factorize(log.page)[0].tolist()
    signals = pd.read_csv(tmp_path / "a" / "signals.csv")
    assert len(signals) == record.mention_time.size
    assert set(signals.url) <= set(table.url)
    assert f"{len(table)} crawls, {len(signals)} signals" in outputs[0].output


def test_an_unknown_schedule_is_refused(tmp_path: Path) -> None:
    result = commands.run(example_log.app, "--schedule", "weekly", out=tmp_path / "new")
    assert result.exit_code == 2
    assert "schedule" in result.stderr
    assert "'weekly'" in result.stderr
    assert not (tmp_path / "new").exists()
