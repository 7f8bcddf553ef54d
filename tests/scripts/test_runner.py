from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import policies
from crawl_envs.evaluation import Row
from scripts.comparing import runner
from scripts.comparing.bounds import baseline
from scripts.comparing.rows import read_rows, write_rows
from scripts.comparing.runner import Store, check_kept, run
from scripts.comparing.settings import Setting


def setting(num_pages: int = 3, **more: Any) -> Setting:
    return Setting(
        f"m={num_pages}",
        "CrawlNCIS-v0",
        {"num_pages": num_pages, "bandwidth": 5.0, "horizon": 2.0, **more},
        {
            "GREEDY": partial(policies.make, "Greedy"),
            "round robin": partial(policies.make, "RoundRobin"),
        },
        {"BASELINE": baseline},
    )


def play(path: Path, settings: list[Setting], count: int, workers: int = 1) -> int:
    store = Store(path, "test", settings)
    store.load()
    check_kept(settings, count, store)
    return run(settings, count, store, workers, Console(file=io.StringIO()))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    settings = [setting(3), setting(4)]
    assert play(tmp_path / "whole.parquet", settings, 3) == 18
    assert play(tmp_path / "parts.parquet", settings[:1], 1) == 3
    assert play(tmp_path / "parts.parquet", settings, 2) == 9
    assert play(tmp_path / "parts.parquet", settings, 3) == 6
    assert play(tmp_path / "parts.parquet", settings, 3) == 0
    whole, parts = (read_rows(tmp_path / f"{name}.parquet")[0] for name in ("whole", "parts"))
    assert whole == parts
    assert {row.policy for row in whole} == {"GREEDY", "round robin", "BASELINE"}


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    play(tmp_path / "one.parquet", [setting()], 4)
    play(tmp_path / "two.parquet", [setting()], 4, workers=2)
    assert read_rows(tmp_path / "one.parquet")[0] == read_rows(tmp_path / "two.parquet")[0]


def test_a_run_that_breaks_off_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Setting.play

    def failing(self: Setting, label: str, seed: int) -> list[Row]:
        if seed == 1 and label == "round robin":
            raise KeyboardInterrupt
        return whole(self, label, seed)

    monkeypatch.setattr(Setting, "play", failing)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path / "rows.parquet", [setting()], 2)
    monkeypatch.undo()
    assert play(tmp_path / "rows.parquet", [setting()], 2) == 1


def test_rows_of_other_code_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    play(path, [setting()], 1)
    rows, about = read_rows(path)
    changed = [row._replace(value=row.value / 2) if row.policy == "GREEDY" else row for row in rows]
    write_rows(path, changed, about)
    with pytest.raises(ValueError, match=r"of GREEDY, m=3, seed 0 is .* by this code"):
        play(path, [setting()], 1)


def test_rows_of_another_job_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    play(path, [setting()], 1)
    with pytest.raises(ValueError, match="'m=3' with another arguments"):
        play(path, [setting(horizon=3.0)], 1)
    with pytest.raises(ValueError, match="rows of 'test', not of 'another'"):
        Store(path, "another", [setting()]).load(keep=False)
    anew = Store(path, "test", [setting(horizon=3.0)])
    anew.load(keep=False)
    assert anew.rows == []


def test_workers_end_with_their_parent() -> None:
    """The watch is started in a worker process, whose parent is known."""
    with runner._pool(1) as pool:
        names = pool.submit(_thread_names).result()
    assert any("watch" in name for name in names)


def _thread_names() -> list[str]:
    import threading

    return [thread.name for thread in threading.enumerate()]
