from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from crawl_envs.instances import traces
from crawl_envs.instances.traces.collection import RECORDED
from scripts.data.collection import app
from scripts.data.fit_trace import fit
from scripts.data.site_tables import (
    TICKS,
    draw_pages,
    round_times,
    select_pages,
    write_tables,
)
from tests.scripts.commands import done, records, refused, run
from tests.scripts.data.repositories import Scratch, prose

COLUMNS = "site,kind,source,licence,commit,subdirs,include,exclude,days,family,note"
DAYS, PAGES = 400, 24


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of clones: ann+orchard has 24 pages and a change every third day, bob+bare one."""
    folder = tmp_path_factory.mktemp("clones")
    large = Scratch(folder / "ann+orchard" / "repo")
    names = [f"{'abc'[number % 3]}/page{number}.md" for number in range(PAGES)]
    large.commit(0.25, {name: prose(name) for name in names})
    for number in range(130):
        name = names[number % PAGES]
        large.commit(3.0 * number + 1.1, {name: prose(f"{name} {number}")}, f"Edit {name}")
    large.commit(DAYS - 0.5, {"a/last.md": "last"})
    small = Scratch(folder / "bob" / "bare")
    small.commit(0.25, {"only.md": "a page"})
    return folder


def write_catalogue(folder: Path, *rows: str, columns: str = COLUMNS) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "catalogue.csv").write_text("\n".join([columns, *rows, ""]), "utf-8")


@pytest.fixture(scope="module")
def built(clones: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built")
    for name in ("croissant.json", "README.md"):
        (out / name).write_text((RECORDED / name).read_text("utf-8"), "utf-8")
    write_catalogue(out, "orchard,fruit,ann/orchard,CC0-1.0,,,*.md,,,,a note")
    done(run(app, "--clones", clones, out=out))
    return out


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_site_is_recorded_with_what_readers_need(built: Path) -> None:
    trace = traces.load(built / "orchard")
    assert (trace.name, trace.num_pages, trace.days) == ("orchard", PAGES + 1, float(DAYS))
    days = np.sort(trace.change_time)
    assert np.abs(days - (3.0 * np.arange(130) + 1.1)).max() < 1.0 / TICKS + 1e-6
    assert set(trace.created[:PAGES]) == {0.25}
    columns = {path.stem: pq.read_schema(path).names for path in built.glob("orchard/*.parquet")}
    assert {name: columns[name] for name in collection_tables()} == collection_tables()
    meta = json.loads((built / "orchard" / "meta.json").read_text("utf-8"))
    assert (meta["kind"], meta["source"], meta["licence"]) == ("fruit", "ann/orchard", "CC0-1.0")
    assert meta["counts"] == {"pages": 25, "changes": 130, "signals": 134, "mentions": 130}
    assert b"page1" not in b"".join(contents(built / "orchard").values())


def collection_tables() -> dict[str, list[str]]:
    return {
        "pages": ["page_id", "dir_id", "created", "deleted"],
        "changes": ["page_id", "t", "kind"],
        "signals": ["dir_id", "t"],
        "mentions": ["page_id", "t"],
    }


@pytest.mark.parametrize("signals", traces.SIGNALS)
def test_parameters_are_those_of_the_first_half(built: Path, signals: traces.Signals) -> None:
    trace = traces.load(built / "orchard")
    stored = traces.load_parameters(traces.parameters_path(trace.folder, signals), trace)
    fitted = fit(trace, 0.0, DAYS / 2.0, signals)
    for name in ("change_rate", "recall", "false_signal_rate", "observed_days"):
        value, exact = getattr(stored, name), getattr(fitted, name)
        assert (value <= exact).all()
        np.testing.assert_allclose(value, exact, rtol=2.0**-11)


def test_the_tables_of_the_collection_are_written(built: Path) -> None:
    head = json.loads((built / "orchard" / "meta.json").read_text("utf-8"))["head"]
    (row,) = records(built / "sites.csv")
    assert row == {
        **{"site": "orchard", "kind": "fruit", "family": "ann", "split": "train"},
        "source": "ann/orchard",
        **{"licence": "CC0-1.0", "commit": head, "window_start": "2024-01-01", "days": "400"},
        **{"pages": "25", "changes": "130", "signals": "134", "mentions": "130"},
    }
    assert records(built / "catalogue.csv")[0]["commit"] == head
    line = "| [orchard](https://github.com/ann/orchard) | fruit | train | CC0-1.0 | 25 | 130 |"
    assert line in (built / "README.md").read_text("utf-8")


def test_the_description_has_the_columns_and_the_hash_of_the_table(built: Path) -> None:
    described = json.loads((built / "croissant.json").read_text("utf-8"))
    assert described["license"] == ["https://spdx.org/licenses/CC0-1.0.html"]
    assert described["distribution"][0]["sha256"] == sha(built / "sites.csv")
    fields = {
        record["@id"]: [entry["@id"].split("/")[1] for entry in record["field"]]
        for record in described["recordSet"]
    }
    with (built / "sites.csv").open() as lines:
        assert fields.pop("sites") == next(csv.reader(lines))
    tables = collection_tables()
    assert fields == {name: ["site", *columns] for name, columns in tables.items()}
    for files in described["distribution"][1:]:
        assert {path.parent.name for path in built.glob(files["includes"])} == {"orchard"}


def sha(path: Path) -> str:
    from hashlib import sha256

    return sha256(path.read_bytes()).hexdigest()


def test_a_recorded_site_is_skipped_and_a_check_compares_bytes(
    built: Path, clones: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(built)
    assert (
        "1/1 orchard: 400 days" in done(run(app, "--clones", clones, "--check", out=built)).output
    )
    assert "recorded before" in done(run(app, "--clones", clones / "none", out=built)).output
    assert contents(built) == before
    file = built / "orchard" / "mentions.parquet"
    file.write_bytes(b"other")
    result = run(app, "--clones", clones, "--check", out=built)
    refused(result, "1 sites were refused: orchard", code=1)
    assert "differs from a new record in mentions.parquet" in result.stdout
    done(run(app, "--clones", clones, "--fresh", out=built))
    assert contents(built) == before


def test_a_site_that_is_too_small_is_refused_and_the_others_are_recorded(
    clones: Path, tmp_path: Path
) -> None:
    write_catalogue(
        tmp_path,
        "bare,fruit,bob/bare,MIT,,,,,,,",
        "gone,fruit,eve/gone,MIT,,,,,,,",
        "short,fruit,ann/orchard,MIT,,,,,200,,",
        "part,fruit,ann/orchard,MIT,,a;b,,,,,",
        "orchard,fruit,ann/orchard,MIT,main,,,,500,,",
    )
    result = run(app, "--clones", clones, out=tmp_path)
    refused(result, "4 sites were refused: bare, gone, short, part", code=1)
    assert "1/5 bare: refused: a site must have at least 365 days, got 1" in result.stdout
    assert "2/5 gone: refused:" in result.stdout
    assert "a clone of eve/gone, as one of eve+gone/repo, eve/gone, gone.git" in result.stdout
    assert "3/5 short: refused: a site must have at least 365 days, got 200" in result.stdout
    assert "4/5 part: refused: a site must have at least 20 pages" in result.stdout
    assert [row["site"] for row in records(tmp_path / "sites.csv")] == ["orchard"]
    assert records(tmp_path / "sites.csv")[0]["days"] == "400"
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    write_catalogue(tmp_path, "orchard,fruit,ann/orchard,GPL-3.0-only,,,,,,,")
    result = run(app, "--clones", tmp_path, out=tmp_path)
    assert "orchard is not recorded as the catalogue says" in result.stderr
    assert records(tmp_path / "sites.csv") == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Orchard,fruit,ann/orchard,MIT,,,,,,,", ("row 2", "'site'", "hyphens", "'Orchard'")),
        ("orchard,,ann/orchard,MIT,,,,,,,", ("row 2", "'kind'", "got ''")),
        ("orchard,fruit,orchard,MIT,,,,,,,", ("row 2", "'source'", "OWNER/NAME", "'orchard'")),
        ("orchard,fruit,ann/orchard,,,,,,,,", ("row 2", "'licence'", "got ''")),
        ("orchard,fruit,ann/orchard,MIT,,,,,-3,,", ("row 2", "'days'", "'-3'")),
        ("orchard,fruit,ann/orchard,MIT", ("row 2", "11 cells")),
        ("garden-handbook,fruit,ann/orchard,MIT,,,,,,,", ("row 2", "exists already")),
    ],
)
def test_a_bad_row_of_the_catalogue_is_one_clear_line(
    row: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    write_catalogue(tmp_path, row)
    refused(run(app, "--clones", tmp_path, out=tmp_path), "catalogue.csv", *words)


def test_other_bad_input_is_one_clear_line(tmp_path: Path) -> None:
    refused(run(app, "--clones", tmp_path, out=tmp_path), "catalogue.csv: no such file")
    write_catalogue(tmp_path, columns="site,kind")
    refused(run(app, "--clones", tmp_path, out=tmp_path), "columns must be", "['site', 'kind']")
    row = "orchard,fruit,ann/orchard,MIT,,,,,,,"
    write_catalogue(tmp_path, row, row)
    refused(run(app, "--clones", tmp_path, out=tmp_path), "row 3", "'orchard' exists already")
    write_catalogue(tmp_path, row)
    result = run(app, "--clones", tmp_path, "--only", "pear", out=tmp_path)
    refused(result, "only must be one of orchard, got 'pear'")


def test_whole_directories_are_drawn_in_an_order_that_numbers_do_not_change() -> None:
    rng = np.random.default_rng(5)
    path_hash = rng.integers(2**63, size=400).astype(np.uint64)
    directory = rng.integers(40, size=400)
    rows = draw_pages(path_hash, directory, 150)
    assert 130 < rows.size <= 150
    drawn = set(directory[rows].tolist())
    assert rows.tolist() == np.flatnonzero(np.isin(directory, list(drawn))).tolist()
    order = rng.permutation(400)
    again = draw_pages(path_hash[order], 39 - directory[order], 150)
    assert sorted(path_hash[order][again]) == sorted(path_hash[rows])
    assert draw_pages(path_hash, directory, 400).tolist() == list(range(400))


def test_a_directory_that_is_too_large_has_its_pages_of_least_hashes() -> None:
    path_hash = np.array([9, 3, 8, 1, 5], np.uint64)
    assert draw_pages(path_hash, np.zeros(5, np.int64), 3).tolist() == [1, 3, 4]


def tables_of(moments: list[float]) -> dict[str, dict[str, Any]]:
    times = np.array(moments)
    return {
        "pages": {
            "page_id": np.arange(3),
            "dir_id": np.array([4, 7, 4]),
            "created": np.array([-2.0, *times[:2]]),
            "deleted": np.array([np.nan, np.nan, times[-1]]),
        },
        "changes": {"page_id": np.array([1, 2]), "t": times[:2], "kind": np.full(2, "creation")},
        "signals": {"dir_id": np.array([7, 4, 4]), "t": times[[0, 1, -1]]},
        "mentions": {"page_id": np.array([0, 2]), "t": times[:2]},
    }


def test_commits_of_one_second_stay_apart_and_in_order_even_at_the_end() -> None:
    moments = [1.0, 1.0 + 1e-6, 1.5, 2.0 - 2e-6, 2.0 - 1e-6, 2.0]
    rounded = round_times(tables_of(moments), 2.0)
    tick = 1.0 / TICKS
    assert rounded["signals"]["t"].tolist() == [1.0, 1.0 + tick, 2.0]
    assert rounded["pages"]["created"].tolist() == [-2.0, 1.0, 1.0 + tick]
    assert rounded["changes"]["t"].tolist() == [1.0, 1.0 + tick]
    assert np.isnan(rounded["pages"]["deleted"]).tolist() == [True, True, False]
    crowded = {"mentions": {"page_id": np.zeros(4), "t": np.array(moments[-4:])}}
    times = round_times(crowded, 2.0)["mentions"]["t"]
    assert times.tolist() == [1.5, 2.0 - 2 * tick, 2.0 - tick, 2.0]


def test_selected_pages_and_directories_get_new_numbers() -> None:
    chosen = select_pages(tables_of([0.5, 1.0, 1.5]), np.array([0, 2]))
    assert chosen["pages"]["page_id"].tolist() == [0, 1]
    assert chosen["pages"]["dir_id"].tolist() == [0, 0]
    assert chosen["changes"]["page_id"].tolist() == [1]
    assert (chosen["signals"]["dir_id"].tolist(), chosen["signals"]["t"].tolist()) == (
        [0, 0],
        [1.0, 1.5],
    )
    assert chosen["mentions"]["page_id"].tolist() == [0, 1]


def test_written_tables_are_read_as_they_were(tmp_path: Path) -> None:
    tables = round_times(tables_of([0.5, 1.0, 1.5]), 2.0)
    tables["changes"]["kind"] = np.array(["creation", "content"], object)
    write_tables(tmp_path, tables)
    for name, columns in tables.items():
        table = pq.read_table(tmp_path / f"{name}.parquet")
        for column, values in columns.items():
            np.testing.assert_array_equal(table[column].to_numpy(), values)
