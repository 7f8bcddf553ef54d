from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from crawl_envs.instances import traces
from scripts.data.shipped_trace import NAME, app, write_handbook
from tests.scripts.commands import done, files_in, refused, run

TABLES = ("pages", "changes", "signals", "mentions", "fragments")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shipped") / NAME
    done(run(app, out=out))
    return out


def test_the_committed_trace_is_what_the_command_makes(rebuilt: Path) -> None:
    committed = traces.find(NAME)
    assert files_in(rebuilt) == files_in(committed)
    for name in TABLES:
        made = pq.read_table(rebuilt / f"{name}.parquet")
        assert made.to_pylist() == pq.read_table(committed / f"{name}.parquet").to_pylist()
        assert made.schema.equals(pq.read_schema(committed / f"{name}.parquet"))
    meta = [json.loads((folder / "meta.json").read_text()) for folder in (rebuilt, committed)]
    assert meta[0] == meta[1]


@pytest.mark.parametrize("signals", traces.SIGNALS)
def test_the_committed_parameters_are_what_the_command_fits(
    rebuilt: Path, signals: traces.Signals
) -> None:
    both = []
    for folder in (rebuilt, traces.find(NAME)):
        path = traces.parameters_path(folder, signals)
        both.append(dataclasses.asdict(traces.load_parameters(path, traces.load(folder))))
    for name, value in both[0].items():
        if isinstance(value, str):
            assert value == both[1][name]
        else:
            np.testing.assert_allclose(value, both[1][name], rtol=1e-3, err_msg=name)
    assert (both[0]["start"], both[0]["end"]) == (0.0, 100.0)


def test_the_shipped_trace_is_small_and_shows_everything() -> None:
    folder = traces.find(NAME)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 250_000
    trace = traces.load(folder)
    meta = json.loads((folder / "meta.json").read_text())
    kinds = set(pq.read_table(folder / "changes.parquet")["kind"].to_pylist())
    assert kinds == {"creation", "content", "whitespace", "deletion"}
    assert meta["moves"] >= 2
    assert meta["returned"] >= 1
    assert meta["merges"] >= 10
    assert 55 <= trace.num_pages <= 70
    assert len(set(trace.directory.tolist())) == 8
    weekend = (trace.change_time % 7.0) >= 5.0
    assert weekend.mean() > 0.4
    author = pq.read_table(folder / "changes.parquet")["t_author"].to_numpy()
    times = pq.read_table(folder / "changes.parquet")["t"].to_numpy()
    assert np.count_nonzero(times - author > 0.1) > 20
    assert max(pq.read_table(folder / "signals.parquet")["n_site"].to_pylist()) > 20


def test_the_shipped_fragments_differ_by_the_recorded_staleness() -> None:
    folder = traces.find(NAME)
    versions: dict[int, set[tuple[int, float, float]]] = {}
    for row in pq.read_table(folder / "fragments.parquet").to_pylist():
        birth = -math.inf if row["birth"] is None else row["birth"]
        death = math.inf if row["death"] is None else row["death"]
        versions.setdefault(row["page_id"], set()).add((row["fragment"], birth, death))
    count: dict[int, int] = {}
    for row in pq.read_table(folder / "changes.parquet").to_pylist():
        if row["kind"] in ("content", "whitespace"):
            page, time = row["page_id"], row["t"]
            count[page] = count.get(page, 0) + 1
            if page in versions:
                old = {f for f, birth, death in versions[page] if birth < time <= death}
                new = {f for f, birth, death in versions[page] if birth <= time < death}
                distance = 1.0 - len(old & new) / len(old | new)
                assert distance == pytest.approx(row["staleness"], abs=1e-7)
    assert set(versions) == {page for page, changes in count.items() if changes >= 3}
    for page, row in enumerate(pq.read_table(folder / "pages.parquet").to_pylist()):
        first = {f for f, birth, _ in versions.get(page, ()) if birth <= max(row["created"], 0.0)}
        assert len(first) == row["n_fragments"] or page not in versions
    spells = [(page, f) for page, rows in versions.items() for f, _, _ in rows]
    assert len(set(spells)) < len(spells), "some fragments come back"


def test_the_handbook_depends_on_its_seed_alone() -> None:
    assert write_handbook(1) == write_handbook(1)
    assert write_handbook(1) != write_handbook(2)


def test_what_is_no_trace_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "dear.txt").write_text("keep me")
    refused(run(app, out=tmp_path), "out must be a trace")
    assert [path.name for path in tmp_path.iterdir()] == ["dear.txt"]
