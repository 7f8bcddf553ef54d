"""The loop of a crawler with faults, on the included site."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from crawl_envs.instances.traces import find, load
from scripts.timing import live_loop


def test_faults_cost_little_and_no_host_is_asked_too_soon() -> None:
    trace = load(find("garden-handbook"))
    without, faults = (live_loop.Loop(trace, 60.0, each).play() for each in (False, True))
    assert min(without.used, faults.used) >= 0.97
    assert min(without.gap, faults.gap) >= 1.0
    assert without.failed == 0.0
    assert 0.02 < faults.failed < 0.2
    assert faults.stale - without.stale < 0.03  # 55 pages for 60 days: a page is .018


def test_stale_time_is_counted_from_the_first_change_after_a_copy() -> None:
    loop = live_loop.Loop(load(find("garden-handbook")), 10.0, False)
    loop.changes[0], loop.since[0], loop.copies[0] = np.array([1.0, 4.0]), 0.0, 0.0
    loop.trace.deleted[0] = np.inf
    loop._count(0, 3.0)
    assert loop.stale[0] == 2.0
    loop.copies[0] = 3.0
    loop._count(0, 4.5)
    assert loop.stale[0] == 2.5
    loop.copies[0] = np.nan
    loop._count(0, 5.0)
    assert loop.stale[0] == 3.0
    assert loop._changed(0, 9.0) is False
    loop.copies[0] = 2.0
    assert loop._changed(0, 9.0) is True
    assert loop._changed(0, 3.9) is False


def test_the_command_writes_rows(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        live_loop.app, ["garden-handbook", "--days", "5", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "live_loop.csv").read_text().count("\n") == 3
    assert (tmp_path / "out" / "provenance.json").exists()
