from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import policies
from crawl_envs.evaluation import Row
from scripts.study import workers as places
from scripts.study.bounds import baseline
from scripts.study.rows import indexed, read_rows, write_rows
from scripts.study.runner import Store, check_kept, run
from scripts.study.settings import Measurement, Playable, Setting
from scripts.study.specs import spec
from scripts.study.workers import Workers, workers_of


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


def play(
    path: Path,
    settings: Sequence[Playable],
    count: int,
    workers: int = 1,
    backend: str = "processes",
) -> int:
    store = Store(path, "test", settings)
    store.load()
    check_kept(settings, count, store)
    return run(settings, count, store, Workers(backend, workers), Console(file=io.StringIO()))


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


def test_the_file_says_which_runs_added_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    for count in (1, 3, 3):  # the last adds none
        play(path, [setting()], count)
    rows, about = read_rows(path)
    first, second = about["runs"]
    assert (first["rows"], second["rows"]) == (len(rows) // 3, len(rows) - len(rows) // 3)
    assert first["seconds"] + second["seconds"] == pytest.approx(about["seconds"])
    assert first.keys() == second.keys()
    assert {"commit", "cpu", "date", "python", "versions"} <= first.keys()
    assert first["versions"]["numpy"] == np.__version__


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    play(tmp_path / "one.parquet", [setting()], 4)
    play(tmp_path / "two.parquet", [setting()], 4, workers=2)
    assert read_rows(tmp_path / "one.parquet")[0] == read_rows(tmp_path / "two.parquet")[0]


@spec("failing")
def failing(seed: int, *, kind: str) -> dict[str, float]:
    raise {"ValueError": ValueError, "KeyError": KeyError}[kind]("a slip")


@pytest.mark.parametrize(("workers", "kind"), [(1, "ValueError"), (2, "KeyError")])
def test_an_error_in_a_run_is_not_taken_for_bad_input(
    tmp_path: Path, workers: int, kind: str
) -> None:
    slips = Measurement("s", {"slip": partial(failing, kind=kind)})
    named = rf"^slip in s, seed [01] failed: {kind}: '?a slip'?$"
    with pytest.raises(RuntimeError, match=named):
        play(tmp_path / "rows.parquet", [slips], 2, workers)


def test_ray_gives_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is an extra")
    play(tmp_path / "here.parquet", [setting()], 4, backend="local")
    play(tmp_path / "ray.parquet", [setting()], 4, workers=2, backend="ray")
    assert read_rows(tmp_path / "here.parquet")[0] == read_rows(tmp_path / "ray.parquet")[0]


@pytest.mark.parametrize(
    ("backend", "count", "said"),
    [
        ("threads", None, "--backend must be one of local, processes, ray, got 'threads'"),
        ("processes", 0, "--workers must be >= 1, got 0"),
        ("local", 2, "--workers must be 1 with --backend local, got 2"),
    ],
)
def test_workers_that_cannot_be(backend: str, count: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        workers_of(backend, count)


def test_ray_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="install it with the extra"):
        workers_of("ray", 2)


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
    with pytest.raises(ValueError, match=r"GREEDY, m=3, seed 0 must be .*: the code has changed"):
        play(path, [setting()], 1)


def test_rows_of_another_job_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    play(path, [setting()], 1)
    with pytest.raises(ValueError, match="'m=3' with the same arguments"):
        play(path, [setting(horizon=3.0)], 1)
    with pytest.raises(ValueError, match="rows of 'another', got those of 'test'"):
        Store(path, "another", [setting()]).load(keep=False)
    fresh = Store(path, "test", [setting(horizon=3.0)])
    fresh.load(keep=False)
    assert fresh.rows == []


def test_true_is_not_one_in_what_rows_are_recognised_by(tmp_path: Path) -> None:
    def numbers(first: Any) -> list[Measurement]:
        return [
            Measurement("s", {"square": partial(squares, power=2, offsets=[first])}, {"scale": 1.0})
        ]

    def offsets(first: Any) -> list[Measurement]:
        measure = partial(squares, power=2)
        return [Measurement("s", {"square": measure}, {"scale": 1.0, "offsets": [first]})]

    for settings, named in ((numbers, "square"), (offsets, "arguments")):
        path = tmp_path / named / "rows.parquet"
        assert play(path, settings(1), 1) == 1
        assert play(path, settings(1.0), 1) == 0
        with pytest.raises(ValueError, match=f"'s' with the same {named}"):
            play(path, settings(True), 1)


def test_workers_compute_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with places.pool(1) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
    assert "OMP_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with places.pool(1) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"


def test_workers_end_with_their_parent() -> None:
    """The watch is started in a worker process, whose parent is known."""
    with places.pool(1) as pool:
        names = pool.submit(_thread_names).result()
    assert any("watch" in name for name in names)


def _thread_names() -> list[str]:
    import threading

    return [thread.name for thread in threading.enumerate()]


@spec("powers")
def squares(seed: int, *, scale: float, offsets: Sequence[float], power: int) -> dict[str, float]:
    values = indexed("value", [scale * seed**power + offset for offset in offsets])
    return values | {"seed": float(seed), "nothing": float("nan")}


def measured(scale: float = 2.0) -> Measurement:
    measures = {"square": partial(squares, power=2), "cube": partial(squares, power=3)}
    return Measurement("all", measures, {"scale": scale, "offsets": (0.5, 4.0)}, "some", most=3)


def test_a_measurement_is_played_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    assert play(path, [measured()], 2) == 4
    assert play(path, [measured()], 9) == 2
    rows, _ = read_rows(path)
    assert len(rows) == 2 * 3 * 3
    values = {(row.policy, row.seed, row.metric): row.value for row in rows}
    assert values["cube", 2, "value[1]"] == 20.0
    assert {(row.id, row.setting) for row in rows} == {("some", "all")}
    with pytest.raises(ValueError, match="'all' with the same arguments"):
        play(path, [measured(3.0)], 2)


def test_measured_rows_of_other_code_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    play(path, [measured()], 2)
    rows, about = read_rows(path)
    slightly = [row._replace(value=row.value * (1.0 + 1e-4)) for row in rows]
    write_rows(path, slightly, about)
    assert play(path, [measured()], 2) == 0
    write_rows(path, [row._replace(value=row.value * 1.1) for row in rows], about)
    with pytest.raises(ValueError, match=r"value\[1\] of square, all, seed 0 must be 4.0, got 4.4"):
        play(path, [measured()], 2)
    write_rows(path, [row for row in rows if row.metric != "value[1]"], about)
    with pytest.raises(ValueError, match=r"value\[1\] of square, all, seed 0 must be .*, got None"):
        play(path, [measured()], 2)
