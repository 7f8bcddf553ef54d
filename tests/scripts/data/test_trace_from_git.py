from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from crawl_envs.instances import traces
from scripts.data.git.trace_writing import path_hash
from scripts.data.git.versions import read_version
from scripts.data.trace_from_git import TraceOptions, app, make_trace
from tests.scripts.commands import done, files_in, refused, run
from tests.scripts.data.repositories import Scratch, prose

START = "2024-01-01"
TABLES = ("pages", "changes", "signals", "mentions")


def record(path: Path, out: Path, **options: Any) -> dict[str, Any]:
    return make_trace(TraceOptions(path=path, out=out, **options))


def made(scratch: Scratch, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table of the repository's trace, which the loader must accept."""
    out = scratch.folder.parent / "trace"
    record(scratch.folder, out, **{"start": START, "force": True} | options)
    traces.load(out)
    return {name: pq.read_table(out / f"{name}.parquet").to_pylist() for name in TABLES}


def changes(rows: dict[str, list[dict[str, Any]]]) -> list[tuple[int, float, str]]:
    return [(row["page_id"], round(row["t"], 5), row["kind"]) for row in rows["changes"]]


def test_a_page_s_life(scratch: Scratch) -> None:
    scratch.commit(0.5, {"docs/a.md": prose("a"), "docs/b.md": prose("b")})
    scratch.commit(1.0, {"docs/a.md": prose("a") + "one more line\nand another\n"}, authored=0.75)
    scratch.commit(2.0, {"docs/b.md": prose("b").replace(" of ", "  of\t")})
    scratch.commit(3.0, {"docs/a.md": None}, authored=2.5)
    rows = made(scratch)
    assert changes(rows) == [
        (0, 0.5, "creation"),
        (1, 0.5, "creation"),
        (0, 1.0, "content"),
        (1, 2.0, "whitespace"),
        (0, 3.0, "deletion"),
    ]
    assert [row["t_author"] for row in rows["changes"]] == [0.5, 0.5, 0.75, 2.0, 2.5]
    lines = [(row["lines_added"], row["lines_removed"]) for row in rows["changes"]]
    assert lines == [(12, 0), (12, 0), (2, 0), (12, 12), (0, 14)]
    assert [row["deleted"] for row in rows["pages"]] == [3.0, None]
    assert [row["path_hash"] for row in rows["pages"]] == [
        path_hash("docs/a.md"),
        path_hash("docs/b.md"),
    ]
    truth = [(row["t"], row["dir_id"], row["n_dir"], row["n_site"]) for row in rows["signals"]]
    assert truth == [(0.5, 0, 0, 2), (1.0, 0, 1, 1), (2.0, 0, 1, 1), (3.0, 0, 0, 1)]


def test_staleness_is_the_share_of_shingles_that_differ(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": "one two three four five\n"})
    scratch.commit(1.5, {"a.md": "one, two; three four six\n"})
    scratch.commit(2.5, {"a.md": "one two three four six\n"})
    rows = made(scratch)
    stale = [row["staleness"] for row in rows["changes"]]
    assert stale == pytest.approx([1.0, 1.0 - 2 / 4, 0.0])
    assert rows["pages"][0]["n_fragments"] == 3


def test_a_rename_keeps_the_page_and_its_last_directory_counts(scratch: Scratch) -> None:
    scratch.commit(0.5, {"old/a.md": prose("a"), "old/b.md": prose("b")})
    scratch.move("old/a.md", "new/c.md")
    scratch.commit(1.0, subject="Rename c.md")
    scratch.move("old/b.md", "new/d.md")
    scratch.commit(2.0, {"new/d.md": prose("b") + "a line more\n"})
    rows = made(scratch)
    assert changes(rows) == [(0, 0.5, "creation"), (1, 0.5, "creation"), (1, 2.0, "content")]
    assert [row["dir_id"] for row in rows["pages"]] == [0, 0]
    assert [row["t"] for row in rows["signals"]] == [0.5, 1.0, 2.0]
    assert [row["n_site"] for row in rows["signals"]] == [2, 0, 1]
    assert [(row["page_id"], row["t"]) for row in rows["mentions"]] == [(0, 1.0)]


def test_a_path_that_returns_soon_is_the_same_page(scratch: Scratch) -> None:
    for name in ("same", "other", "late"):
        scratch.write(f"{name}.md", prose(name))
    scratch.commit(0.5, {"stays.md": prose("stays")})
    for name in ("same", "other", "late"):
        scratch.remove(f"{name}.md")
    scratch.commit(1.0)
    scratch.commit(2.0, {"same.md": prose("same")})
    scratch.commit(31.0, {"other.md": prose("different")})
    scratch.commit(31.5, {"late.md": prose("late")})
    rows = made(scratch)
    late, other = 0, 1
    assert changes(rows) == [
        *((page, 0.5, "creation") for page in range(4)),
        (late, 1.0, "deletion"),
        (other, 31.0, "content"),
        (4, 31.5, "creation"),
    ]
    assert [row["n_site"] for row in rows["signals"]] == [4, 1, 0, 1, 1]


def test_a_merge_is_one_change_when_it_lands(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    scratch.git("checkout", "--quiet", "-b", "topic")
    scratch.commit(1.0, {"a.md": prose("a") + "first draft of it\n"})
    scratch.commit(2.0, {"a.md": prose("a") + "second draft of it\n"}, authored=1.5)
    scratch.git("checkout", "--quiet", "main")
    scratch.commit(3.0, {"b.md": prose("b")})
    scratch.merge("topic", 4.0)
    rows = made(scratch)
    assert changes(rows) == [(0, 0.5, "creation"), (1, 3.0, "creation"), (0, 4.0, "content")]
    assert rows["changes"][2]["t_author"] == 1.5
    assert rows["signals"][2]["t_author"] == 1.5


def test_time_never_runs_back_and_equal_times_are_parted(scratch: Scratch) -> None:
    for row, day in enumerate((1.0, 2.0, 1.5, 2.0, 3.0)):
        scratch.commit(day, {"a.md": prose(str(row))})
    rows = made(scratch)
    times = [row["t"] for row in rows["changes"]]
    assert times == pytest.approx([1.0, 2.0, 2.0 + 1e-6, 2.0 + 2e-6, 3.0], abs=1e-12)
    assert [row["t_author"] for row in rows["changes"]] == [1.0, 2.0, 1.5, 2.0, 3.0]


def test_odd_names_are_pages_like_any_other(scratch: Scratch) -> None:
    names = [
        "two words.md",
        "Übersicht.md",
        'quo"te.md',
        "tab\there.md",
        "line\nbreak.md",
        ":x",
        "-y",
    ]
    for name in names:
        scratch.write(f"some dir/{name}", prose(name.encode().hex()))
    scratch.commit(0.5)
    scratch.commit(
        1.0, {f"some dir/{names[4]}": prose("changed")}, subject="Change two  WORDS and übersicht"
    )
    scratch.commit(2.0, {"some dir/two words.md": prose("again")}, subject="Change Two Words")
    rows = made(scratch)
    assert len(rows["pages"]) == len(names)
    order = sorted(f"some dir/{name}" for name in names)
    number = {name: order.index(f"some dir/{name}") for name in names}
    assert changes(rows)[len(names) :] == [
        (number["line\nbreak.md"], 1.0, "content"),
        (number["two words.md"], 2.0, "content"),
    ]
    mentions = [(row["page_id"], row["t"]) for row in rows["mentions"]]
    assert mentions == [(number["Übersicht.md"], 1.0), (number["two words.md"], 2.0)]


def test_names_that_are_no_unicode_are_read(scratch: Scratch) -> None:
    path = os.fsencode(scratch.folder) + b"/caf\xe9.md"
    with open(path, "w") as file:
        file.write(prose("a"))
    scratch.commit(0.5)
    assert len(made(scratch)["pages"]) == 1


def test_links_are_no_pages_but_signal_their_directory(scratch: Scratch) -> None:
    scratch.commit(0.5, {"docs/a.md": prose("a")})
    (scratch.folder / "docs" / "link.md").symlink_to("a.md")
    (scratch.folder / "elsewhere").symlink_to("docs")
    scratch.commit(1.0)
    scratch.remove("docs/link.md")
    scratch.commit(2.0, {"docs/link.md": prose("link")})
    rows = made(scratch)
    assert changes(rows) == [(0, 0.5, "creation"), (1, 2.0, "creation")]
    assert [row["t"] for row in rows["signals"]] == [0.5, 1.0, 2.0]


def test_what_was_there_before_the_window(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": prose("a"), "gone.md": prose("gone"), "back.md": prose("back")})
    scratch.move("a.md", "b.md")
    scratch.commit(8.0, {"gone.md": None, "back.md": None})
    scratch.commit(12.0, {"back.md": prose("back"), "b.md": prose("b")})
    scratch.commit(25.0, {"b.md": prose("beyond"), "back.md": None})
    rows = made(scratch, start="2024-01-11", days=10.0)
    assert [row["created"] for row in rows["pages"]] == [-9.5, -9.5]
    assert [row["path_hash"] for row in rows["pages"]] == [path_hash("b.md"), path_hash("back.md")]
    assert [row["deleted"] for row in rows["pages"]] == [None, None]
    assert changes(rows) == [(0, 2.0, "content")]
    assert rows["pages"][0]["n_fragments"] == read_version(prose("a").encode()).shingles.size


def test_only_the_named_folders(scratch: Scratch) -> None:
    scratch.commit(0.5, {"docs/a.md": prose("a"), "code/b.py": prose("b")})
    scratch.commit(1.0, {"code/b.py": prose("c")})
    scratch.move("docs/a.md", "code/a.md")
    scratch.commit(2.0)
    rows = made(scratch, subdir=["docs/"])
    assert changes(rows) == [(0, 0.5, "creation"), (0, 2.0, "deletion")]
    assert len(rows["signals"]) == 2
    assert len(made(scratch, subdir=["docs", "code"])["pages"]) == 2


def test_by_default_the_window_ends_with_the_last_day(scratch: Scratch) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    scratch.commit(1500.25, {"a.md": prose("b")})
    out = scratch.folder.parent / "trace"
    assert record(scratch.folder, out)["window_days"] == 1096.0
    assert traces.load(out).change_time.tolist() == [1095.25]
    meta = record(scratch.folder, out, days=1501.0, force=True)
    assert (meta["window_start"], meta["window_start_weekday"]) == ("2024-01-01", "Mon")
    meta = record(scratch.folder, out, start="2023-12-31", force=True)
    assert meta["window_days"] == 1502.0


def test_bare_repositories_are_read_alike(scratch: Scratch, tmp_path: Path) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    expected = made(scratch)
    scratch.git("clone", "--quiet", "--bare", str(scratch.folder), str(tmp_path / "bare.git"))
    meta = record(tmp_path / "bare.git", tmp_path / "of-bare", start=START)
    assert meta["site"] == "bare"
    assert meta["head"] == scratch.git("rev-parse", "HEAD").strip()
    for name in TABLES:
        assert pq.read_table(tmp_path / "of-bare" / f"{name}.parquet").to_pylist() == expected[name]


def test_a_user_s_settings_change_nothing(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch.commit(0.5, {"docs/a.md": prose("a"), "b.md": prose("b")}, subject="Begin with a.md")
    scratch.move("docs/a.md", "docs/ä.md")
    scratch.commit(1.0)
    expected = made(scratch)
    for key, value in (("diff.renames", "false"), ("log.showRoot", "false"),
                       ("diff.noprefix", "true"), ("core.quotePath", "true"),
                       ("diff.relative", "true"), ("log.date", "iso"), ("color.ui", "always"),
                       ("log.decorate", "full"), ("format.pretty", "fuller")):  # fmt: skip
        scratch.git("config", key, value)
    assert made(scratch) == expected


def naive_record(scratch: Scratch) -> tuple[dict[str, list[Any]], set[tuple[float, str]]]:
    """Every path's births, changes and deaths, and touched folders, from whole trees."""
    events: dict[str, list[Any]] = {}
    touched: set[tuple[float, str]] = set()
    before: dict[str, str] = {}
    for line in scratch.git("log", "--reverse", "--first-parent", "--format=%H %ct").splitlines():
        commit, second = line.split()
        day = (int(second) - 1704067200) / 86400
        after = {}
        for row in scratch.git("ls-tree", "-r", "-z", commit).split("\0")[:-1]:
            head, path = row.split("\t")
            after[path] = head.split()[2]
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                kind = ("creation" if path not in before else
                        "deletion" if path not in after else "content")  # fmt: skip
                events.setdefault(path, []).append((day, kind))
                touched.add((day, path.rpartition("/")[0]))
        before = after
    return events, touched


def test_a_random_history_agrees_with_whole_trees(scratch: Scratch) -> None:
    dice = random.Random(5)
    alive: set[str] = set()
    unused = [f"d{dice.randrange(3)}/p{number}" for number in range(30)]
    for step in range(30):
        for _ in range(dice.randrange(4)):
            act = dice.random()
            if act < 0.4 or not alive:
                alive.add(unused[-1])
                scratch.write(unused.pop(), prose(f"new{step}x{len(unused)}"))
            elif act < 0.85:
                scratch.write(dice.choice(sorted(alive)), prose(f"edit{step}x{dice.random()}"))
            else:
                path = dice.choice(sorted(alive))
                alive.remove(path)
                scratch.remove(path)
        scratch.commit(step + 0.5)
    rows = made(scratch)
    events, touched = naive_record(scratch)
    path_of = {path_hash(path): path for path in events}
    paths = [path_of[row["path_hash"]] for row in rows["pages"]]
    recorded: dict[str, list[Any]] = {path: [] for path in paths}
    for row in rows["changes"]:
        recorded[paths[row["page_id"]]].append((row["t"], row["kind"]))
    assert recorded == events
    folder = {
        row["dir_id"]: path.rpartition("/")[0]
        for row, path in zip(rows["pages"], paths, strict=True)
    }
    assert {(row["t"], folder[row["dir_id"]]) for row in rows["signals"]} == touched


def test_the_command_writes_a_trace_and_says_so(scratch: Scratch, tmp_path: Path) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    out = tmp_path / "trace"
    arguments = [str(scratch.folder), "--out", str(out), "--start", "2024-01-01", "--days", "3"]
    result = done(run(app, *arguments))
    assert "site: 3 days from 2024-01-01, 1 commits, 1 pages" in result.stdout
    trace = traces.load(out)
    assert (trace.name, trace.days) == ("site", 3.0)
    assert files_in(tmp_path) == {"site", "trace"}


@pytest.mark.parametrize("modulus", ["1", "4000000000"])
def test_it_warns_where_no_fragment_was_sampled(
    scratch: Scratch, tmp_path: Path, modulus: str
) -> None:
    for day in range(5):
        scratch.commit(
            day + 0.5, {"docs/a.md": prose("a") + f"and line {day} of several\n" * (day + 1)}
        )
    out = tmp_path / "trace"
    more = ["--start", "2024-01-01", "--fragment-modulus", modulus]
    result = done(run(app, str(scratch.folder), *more, out=out))
    sampled = pq.read_table(out / "fragments.parquet").num_rows
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert (sampled > 0) == (modulus == "1")
    assert len(warnings) == (0 if sampled else 1)
    assert all("the trace has no fragments" in line and modulus in line for line in warnings)


def test_folders_without_a_history_are_refused(scratch: Scratch, tmp_path: Path) -> None:
    plain, out = tmp_path / "plain", tmp_path / "trace"
    plain.mkdir()
    refused(run(app, plain, out=out), "not a git repository")
    refused(run(app, tmp_path / "none", out=out), "repository must be a folder")
    refused(run(app, scratch.folder, out=out), "must have commits, got none")
    scratch.commit(0.5, {"docs/a.md": prose("a")})
    refused(run(app, scratch.folder / "docs", out=out), "--subdir 'docs/'")
    refused(run(app, scratch.folder, out=plain), "use --force")
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--start 2025-01-01", "must have a commit, got none"),
        ("--start 2020-01-01 --days 5", "must have a commit, got none"),
        ("--start soon", "start must be a date"),
        ("--days 0", "days must be a number > 0"),
        ("--days nan", "days must be a number > 0"),
        ("--subdir src", "must select files, got none"),
        ("--include *.rst", "must select files, got none"),
    ],
)
def test_bad_options_are_refused(
    scratch: Scratch, tmp_path: Path, words: str, message: str
) -> None:
    scratch.commit(0.5, {"docs/a.md": prose("a")})
    refused(run(app, scratch.folder, *words.split(), out=tmp_path / "trace"), message)
    assert not (tmp_path / "trace").exists()


def test_a_window_after_every_file_is_gone_is_refused(scratch: Scratch, tmp_path: Path) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    scratch.commit(1.0, {"a.md": None})
    scratch.commit(9.0)
    with pytest.raises(ValueError, match="must have files in"):
        record(scratch.folder, tmp_path / "trace", start="2024-01-08")


def test_force_replaces_traces_and_nothing_else(scratch: Scratch, tmp_path: Path) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    out = tmp_path / "trace"
    out.mkdir()
    record(scratch.folder, out, force=True)
    record(scratch.folder, out, force=True)
    other = tmp_path / "letters"
    other.mkdir()
    (other / "dear.txt").write_text("keep me")
    with pytest.raises(ValueError, match="out must be a trace"):
        record(scratch.folder, other, force=True)
    assert (other / "dear.txt").read_text() == "keep me"
    with pytest.raises(ValueError, match="out must be a folder"):
        record(scratch.folder, other / "dear.txt", force=True)


def test_a_failed_run_leaves_the_old_trace(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch.commit(0.5, {"a.md": prose("a")})
    out = tmp_path / "trace"
    record(scratch.folder, out, start=START)
    kept = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scripts.data.git.trace_writing.json.dumps", fail)
    said = f"cannot read or write {out}: No space left on device"
    refused(run(app, scratch.folder, "--force", out=out), said, code=1)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept
    assert files_in(tmp_path) == {"site", "trace"}


def test_without_git_the_command_says_so(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(app, scratch.folder, out=tmp_path / "trace")
    refused(result, "git is not installed, or not on the PATH")


def test_missing_objects_are_an_error(scratch: Scratch, tmp_path: Path) -> None:
    for day, name in enumerate("ab"):
        scratch.commit(day + 0.5, {f"{name}.md": prose(name)})
    blob = scratch.git("rev-parse", "HEAD:a.md").strip()
    (scratch.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    first = scratch.git("rev-parse", "--short", "HEAD~1").strip()
    missing = f"lacks 1 version of 1 file: 'a.md' in commit {first};"
    refused(run(app, scratch.folder, out=tmp_path / "trace"), missing)
    done(run(app, scratch.folder, "--exclude", "a.md", out=tmp_path / "b"))
    result = done(run(app, scratch.folder, "--missing", "skip", out=tmp_path / "partial"))
    assert "warning: 1 version of files missing and skipped" in result.stderr


def delete_version(scratch: Scratch, name: str) -> None:
    """Delete the loose object of a version, such as ``HEAD:a.md``."""
    blob = scratch.git("rev-parse", name).strip()
    (scratch.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def test_one_error_names_all_files_with_missing_versions(scratch: Scratch, tmp_path: Path) -> None:
    names = [f"docs/{row:02}.md" for row in range(12)]
    for day in (0.5, 1.5):
        scratch.commit(day, {name: prose(f"{name}{day}") for name in names} | {"b.md": f"{day}"})
    for name in names:
        delete_version(scratch, f"HEAD~1:{name}")
    delete_version(scratch, f"HEAD:{names[0]}")
    result = run(app, scratch.folder, "--missing", "error", out=tmp_path / "trace")
    refused(result, "lacks 13 versions of 12 files: ")
    first = scratch.git("rev-parse", "HEAD~1").strip()[:7]
    for row, name in enumerate(names):
        assert (f"'{name}' in commit {first}" in result.stderr) == (row < 10)
    assert "and 2 more; skip these versions with --missing skip" in result.stderr
    done(run(app, scratch.folder, "--missing", "skip", out=tmp_path / "trace"))
    meta = json.loads((tmp_path / "trace" / "meta.json").read_text())
    assert meta["missing_versions"] == 13
    rows = pq.read_table(tmp_path / "trace" / "changes.parquet").to_pylist()
    assert [row["kind"] for row in rows].count("content") == 13
    assert [row["staleness"] for row in rows[13:]] == [1.0, *[None] * 12]
    refused(run(app, scratch.folder, "--missing", "no", out=tmp_path / "b"), "missing must be")


def test_only_versions_that_the_window_needs_can_be_missing(
    scratch: Scratch, tmp_path: Path
) -> None:
    scratch.commit(0.5, {"a.md": prose("a"), "b.md": prose("b"), "back.md": prose("back")})
    scratch.commit(1.5, {"a.md": prose("a1"), "b.md": prose("b1")})
    scratch.commit(90.5, {"a.md": prose("a2"), "back.md": None})
    scratch.commit(100.5, {"a.md": prose("a3"), "back.md": prose("back2")})
    delete_version(scratch, "HEAD~3:a.md")  # replaced long before the window
    words = ["--start", "2024-04-05", "--missing", "skip"]  # day 95
    done(run(app, scratch.folder, *words, out=tmp_path / "a"))
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    assert (meta["missing_versions"], meta["returned"]) == (0, 1)
    delete_version(scratch, "HEAD~2:b.md")  # there at the start, never touched again
    delete_version(
        scratch, "HEAD~3:back.md"
    )  # removed shortly before the window, and returns in it
    refused(run(app, scratch.folder, *words[:2], out=tmp_path / "b"), "lacks 2 versions of 2 files")
    done(run(app, scratch.folder, *words, out=tmp_path / "b"))


@pytest.mark.parametrize("limit", [1 << 20, 100])
def test_a_trace_without_fragments_has_the_other_tables(
    scratch: Scratch, tmp_path: Path, limit: int
) -> None:
    edited(scratch)
    scratch.commit(
        6.0, {"docs/a.md": None, "large.md": prose("large", 500).replace(" of ", "  of ")}
    )
    whole = made(scratch, max_bytes=limit)
    words = ["--start", START, "--fragment-modulus", 0, "--max-bytes", limit]
    result = done(run(app, scratch.folder, *words, out=tmp_path / "none"))
    assert "warning" not in result.stderr
    assert "fragments.parquet" not in files_in(tmp_path / "none")
    assert traces.load(tmp_path / "none").fragments is None
    for name in TABLES:
        table = pq.read_table(tmp_path / "none" / f"{name}.parquet").to_pylist()
        if name == "pages":
            assert {row.pop("n_fragments") for row in table} == {None}
            for row in whole[name]:
                del row["n_fragments"]
        assert table == whole[name]


def test_a_missing_version_that_a_rename_is_compared_with(scratch: Scratch, tmp_path: Path) -> None:
    """Git reads both files of a possible rename, also when it looks for the missing version."""
    scratch.commit(0.5, {"a.md": prose("a")})
    first = scratch.git("rev-parse", "HEAD").strip()
    (scratch.folder / "a.md").unlink()
    scratch.commit(1.5, {"b.md": prose("a") + "and more\n"})
    scratch.commit(90.5, {"b.md": prose("b")})
    delete_version(scratch, "HEAD~2:a.md")
    missing = f"lacks 1 version of 1 file: 'a.md' in commit {first[:7]};"
    for words in ((), ("--start", "2024-03-25")):
        refused(run(app, scratch.folder, *words, out=tmp_path / "trace"), missing)
    words = ("--start", "2024-03-25", "--missing", "skip")
    done(run(app, scratch.folder, *words, out=tmp_path / "trace"))


def test_a_branch_is_chosen_and_a_larger_one_named(scratch: Scratch, tmp_path: Path) -> None:
    scratch.commit(0.5, {"README.md": prose("front")})
    scratch.git("checkout", "--quiet", "-b", "develop")
    for page in range(12):
        scratch.write(f"{page}.md", prose(str(page)))
    scratch.commit(1.5)
    scratch.git("checkout", "--quiet", "main")
    said = done(run(app, scratch.folder, out=tmp_path / "main")).stderr
    assert "HEAD has 1 files, develop has 13: use --branch develop" in said
    other = done(run(app, scratch.folder, "--branch", "develop", out=tmp_path / "other"))
    assert "HEAD" not in other.stderr
    meta = json.loads((tmp_path / "other" / "meta.json").read_text())
    assert (meta["branch"], meta["rows"]["pages"]) == ("develop", 13)
    for name in ("--all", "^main", "main..develop"):
        result = run(app, scratch.folder, "--branch", name, out=tmp_path / "none")
        refused(result, f"branch must be one of develop, main, got '{name}'")


@pytest.mark.parametrize("name", ["--output=x", "-r", "--name-only"])
def test_a_branch_with_the_name_of_an_option_is_a_branch(
    scratch: Scratch, tmp_path: Path, name: str
) -> None:
    scratch.commit(0.5, {"README.md": prose("front")})
    for page in range(12):
        scratch.write(f"{page}.md", prose(str(page)))
    scratch.commit(1.5)
    scratch.git("update-ref", f"refs/heads/{name}", "HEAD")
    scratch.git("reset", "--quiet", "--hard", "HEAD~1")
    result = done(run(app, scratch.folder, out=tmp_path / "main"))
    assert f"HEAD has 1 files, {name} has 13" in result.stderr


def edited(scratch: Scratch) -> None:
    """Two pages and a program, three of which change every day; a large page at the end."""
    for day in range(4):
        for name in ("docs/a.md", "docs/deep/b.md", "code/c.py"):
            scratch.write(name, prose(f"{name}{day}"))
        scratch.commit(day + 0.5)
    scratch.commit(5.0, {"large.md": prose("large", 500)})


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ({"include": ["*.md"]}, ["docs/a.md", "docs/deep/b.md", "large.md"]),
        ({"include": ["*.py", "docs/?.md"]}, ["code/c.py", "docs/a.md"]),
        ({"exclude": ["*.md"]}, ["code/c.py"]),
        ({"include": ["*.md"], "exclude": ["docs/deep/*"]}, ["docs/a.md", "large.md"]),
        ({"include": ["*.md"], "subdir": ["docs"]}, ["docs/a.md", "docs/deep/b.md"]),
        ({"include": ["deep/*"], "subdir": ["docs", "code"]}, ["docs/deep/b.md"]),
    ],
)
def test_only_files_that_match(scratch: Scratch, options: Any, paths: list[str]) -> None:
    edited(scratch)
    rows = made(scratch, **options)
    assert {row["path_hash"] for row in rows["pages"]} == {path_hash(path) for path in paths}
    days = 4 * len(set(paths) - {"large.md"}) + ("large.md" in paths)
    assert len(rows["changes"]) == days


def test_filters_of_the_command_are_recorded(scratch: Scratch, tmp_path: Path) -> None:
    edited(scratch)
    out = tmp_path / "new" / "folder" / "trace"
    words = "--include *.md --exclude large* --name guide --max-bytes 1000"
    assert "warning" not in done(run(app, scratch.folder, *words.split(), out=out)).stderr
    meta = json.loads((out / "meta.json").read_text())
    assert (meta["site"], meta["include"], meta["exclude"]) == ("guide", ["*.md"], ["large*"])
    assert meta["max_bytes"] == 1000


def test_the_size_of_files_is_bounded(scratch: Scratch) -> None:
    edited(scratch)
    text = prose("large", 500).encode()
    for limit in (200, 10**6):
        rows = made(scratch, include=["large.md"], max_bytes=limit)
        expected = read_version(text[:limit]).shingles.size
        assert rows["pages"][0]["n_fragments"] == expected


def test_a_shallow_clone_is_refused(scratch: Scratch, tmp_path: Path) -> None:
    edited(scratch)
    scratch.git("clone", "--quiet", "--depth", "1", scratch.folder.as_uri(), str(tmp_path / "cut"))
    result = run(app, tmp_path / "cut", out=tmp_path / "trace")
    refused(result, "must not be a shallow clone; complete it with git fetch --unshallow")


def test_missing_versions_of_a_partial_clone_are_skipped_and_counted(
    scratch: Scratch, tmp_path: Path
) -> None:
    edited(scratch)
    scratch.git("config", "uploadpack.allowFilter", "true")
    place = tmp_path / "partial"
    scratch.git("clone", "--quiet", "--filter=blob:none", scratch.folder.as_uri(), str(place))
    whole = made(scratch)
    out = tmp_path / "of-partial"
    refused(run(app, place, "--start", "2024-01-01", out=out), "lacks 9 versions of 3 files")
    words = ["--start", "2024-01-01", "--fragment-modulus", 1, "--missing", "skip"]
    result = done(run(app, place, *words, out=out))
    assert "warning: 9 versions of files missing and skipped" in result.stderr
    assert json.loads((out / "meta.json").read_text())["missing_versions"] == 9
    traces.load(out)
    changes = pq.read_table(out / "changes.parquet").to_pylist()
    names = "page_id", "t", "kind"
    assert [[row[name] for name in names] for row in changes] == [
        [row[name] for name in names] for row in whole["changes"]
    ]
    assert {row["staleness"] for row in changes if row["kind"] == "content"} == {None}
    assert pq.read_table(out / "signals.parquet").to_pylist() == whole["signals"]
    assert pq.read_table(out / "fragments.parquet").num_rows == 0


def test_progress_is_lines_without_a_terminal(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(scratch)
    monkeypatch.setattr("agents.progress.LINE_SECONDS", 0.0)
    result = done(run(app, scratch.folder, "--start", "2024-01-01", out=tmp_path / "trace"))
    lines = result.stderr.splitlines()
    assert any(line.startswith("commits 1/5") for line in lines)
    assert "commits 5/5" in lines
