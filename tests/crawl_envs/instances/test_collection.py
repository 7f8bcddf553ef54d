from __future__ import annotations

import csv
from hashlib import sha256
from pathlib import Path

import pytest

from crawl_envs.instances import traces
from crawl_envs.instances.traces import collection, loading
from crawl_envs.instances.traces.collection import RECORDED, site_table, split_of

HEAD = "site,kind,split"


def test_families_of_each_kind_are_dealt_by_the_hash_of_their_names() -> None:
    # sha256 begins: d 18ac, f 252f, c 2e7d, b 3e23, e 3f79, a ca97; g is of another kind
    sites = {f"{family}1": ("blog", family) for family in "abcdef"}
    sites |= {"f2": ("blog", "f"), "g1": ("docs", "g"), "e2": ("docs", "e")}
    assert split_of(sites) == {
        **{"d1": "train", "f1": "test", "f2": "test", "c1": "train", "b1": "test", "e1": "dev"},
        **{"a1": "train", "e2": "train", "g1": "test"},
    }


def test_splits_of_the_collection_follow_the_rule() -> None:
    rows = site_table()
    written = {row["site"]: row["split"] for row in rows}
    assert written == split_of({row["site"]: (row["kind"], row["family"]) for row in rows})
    for kind in {row["kind"] for row in rows}:
        members = [row for row in rows if row["kind"] == kind]
        names = sorted(
            {row["family"] for row in members},
            key=lambda name: sha256(name.encode()).hexdigest(),
        )
        dealt = dict(zip(names, ["train", "test", "train", "test", "dev"] * 9, strict=False))
        assert [row["split"] for row in members] == [dealt[row["family"]] for row in members]


def test_the_sites_of_an_owner_lie_in_one_split_of_their_kind() -> None:
    splits: dict[tuple[str, str], set[str]] = {}
    for row in site_table():
        owner = row["source"].partition("/")[0]
        assert row["family"] in (owner, "business-terms")
        splits.setdefault((row["kind"], row["family"]), set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())


def test_every_recorded_site_can_be_loaded_with_its_parameters() -> None:
    rows = site_table()
    assert {path.parent.name for path in RECORDED.glob("*/meta.json")} == {*traces.sites()}
    for row in rows:
        folder = traces.find(row["site"])
        trace = traces.load(folder)
        assert trace.name == row["site"]
        assert trace.num_pages == int(row["pages"]) <= 1000
        assert trace.change_page.size == int(row["changes"])
        assert trace.days == float(row["days"])
        for signals in traces.SIGNALS:
            path = traces.parameters_path(folder, signals)
            fitted = traces.load_parameters(path, trace)
            assert (fitted.start, fitted.end) == (0.0, trace.days / 2.0)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = ["pear,fruit,train", "leek,roots,dev", "apple,fruit,test"]
    (tmp_path / "sites.csv").write_text("\n".join([HEAD, *rows, ""]), "utf-8")
    monkeypatch.setattr(collection.site_table, "__defaults__", (tmp_path,))
    monkeypatch.setattr(loading, "RECORDED", tmp_path)
    return tmp_path


def test_sites_are_selected_by_split_and_kind(recorded: Path) -> None:
    assert traces.sites() == ("apple", "leek", "pear")
    assert traces.sites("test") == ("apple",)
    assert traces.sites(kind="fruit") == ("apple", "pear")
    assert traces.sites("dev", "fruit") == ()
    with pytest.raises(ValueError, match=r"split must be one of train, dev, test, got 'tests'"):
        traces.sites("tests")
    with pytest.raises(ValueError, match=r"kind must be one of fruit, roots, got 'fruits'"):
        traces.sites(kind="fruits")


def test_sites_are_found_by_name_and_unknown_names_are_explained(recorded: Path) -> None:
    assert traces.find("leek") == recorded / "leek"
    with pytest.raises(ValueError, match=r"'apple'\].*traces\.sites\(\), got 'aple'"):
        traces.find("aple")
    assert "leek" not in traces.shipped()


def test_without_sites_there_are_none(tmp_path: Path) -> None:
    assert site_table(tmp_path) == []
    (tmp_path / "sites.csv").write_text(HEAD + "\n", "utf-8")
    with (tmp_path / "sites.csv").open() as lines:
        assert list(csv.DictReader(lines)) == site_table(tmp_path)
