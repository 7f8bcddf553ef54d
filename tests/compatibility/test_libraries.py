"""Each environment in each installed library: the outcome is that of the committed table.

With ``COMPATIBILITY=results/compatibility`` the rows and the page are written to that folder
instead, which takes one process and all tests of this file.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import gymnasium
import pytest

from scripts.present.filled_tables import grid
from scripts.study.rows import write_csv
from tests.compatibility.libraries import IDS, LIBRARIES, Library
from tests.scripts.commands import records

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "results" / "compatibility"
WORKS, FAILS, ABSENT = "works", "fails", "not installed"
SIGNS = {WORKS: "✓", FAILS: "✗", ABSENT: "-"}
MIDDLE = re.compile(r"(?<=^.{50}).+(?=.{110}$)")
"""What the page leaves out of a long message."""
PAGE = """# Compatibility

{table}

✓: built and stepped with the library's own wrapper; ✗: failed; -: not tried, as the library was not
installed. Versions are in [rows.csv](rows.csv). Made by

    COMPATIBILITY=results/compatibility python -m pytest tests/compatibility

## What is tried

{tried}

## What fails

{failed}
"""


class Outcome(NamedTuple):
    """The outcome of a library with an id, and the message of an error or the missing module."""

    library: str
    version: str
    id: str
    outcome: str
    message: str


def committed_rows() -> list[Outcome]:
    return [Outcome(**row) for row in records(COMMITTED / "rows.csv")]


def outcome_of(name: str, library: Library, id: str) -> Outcome:
    """Return the outcome of a library with an id; whatever the library raises is one."""
    missing = [module for module in (library.module, *library.needs) if find_spec(module) is None]
    if missing:
        return Outcome(name, "", id, ABSENT, f"no module {missing[0]}")
    release = version(library.package)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.play(id)
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(name, release, id, FAILS, message)
    return Outcome(name, release, id, WORKS, "")


def page_of(rows: Sequence[Outcome]) -> str:
    """Return the page: signs by id and library, what is tried, and messages with their ids."""
    last = {row.library: row for row in rows}
    signs = {(row.id, row.library): SIGNS[row.outcome] for row in rows}
    tried = []
    for name, row in last.items():
        release = f"{LIBRARIES[name].package} {row.version}".rstrip()
        note = row.message if row.outcome == ABSENT else release
        tried.append(f"- {name} ({note}): {LIBRARIES[name].about}.")
    failed: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.outcome == FAILS:
            key = row.library, MIDDLE.sub(" ... ", row.message)
            failed.setdefault(key, []).append(f"`{row.id.partition(':')[2]}`")
    ids = dict.fromkeys(row.id for row in rows)
    lines = [[f"`{id.partition(':')[2]}`", *(signs[id, name] for name in last)] for id in ids]
    failures = [f"- {name}, {', '.join(at)}: `{text}`" for (name, text), at in failed.items()]
    return PAGE.format(
        table=grid(["id", *last], lines, ":-:"),
        tried="\n".join(tried),
        failed="\n".join(failures) or "Nothing.",
    )


@pytest.fixture(scope="module")
def rows() -> Iterator[list[Outcome]]:
    """Collect the rows of the tests, and write them if the environment names a folder."""
    outcomes: list[Outcome] = []
    yield outcomes
    if out := os.environ.get("COMPATIBILITY"):
        if len(outcomes) < len(LIBRARIES) * len(IDS):
            pytest.fail(f"{len(outcomes)} outcomes are no whole table: leave out -n and -k")
        Path(out).mkdir(parents=True, exist_ok=True)
        write_csv(Path(out) / "rows.csv", Outcome._fields, outcomes)
        (Path(out) / "README.md").write_text(page_of(outcomes), "utf-8")


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_uses_an_environment(name: str, id: str, rows: list[Outcome]) -> None:
    row = outcome_of(name, LIBRARIES[name], id)
    rows.append(row)
    if row.outcome == ABSENT:
        pytest.skip(row.message)
    if "COMPATIBILITY" not in os.environ:
        expected = {(row.library, row.id): row.outcome for row in committed_rows()}
        if expected[name, id] == ABSENT:
            pytest.skip("the committed table has no outcome")
        assert row.outcome == expected[name, id], row.message


def test_the_ids_cover_families_observations_and_actions() -> None:
    spaces = [gymnasium.make(id) for id in IDS]
    assert {type(env.observation_space).__name__ for env in spaces} == {"Box", "Dict"}
    assert {len(env.observation_space.shape or ()) for env in spaces} >= {1, 2}
    assert {type(env.action_space).__name__ for env in spaces} == {"Box", "Discrete"}


def test_a_page_of_all_outcomes() -> None:
    def play(id: str) -> None:
        if id != "p:A-v0":
            raise RuntimeError(f"cannot use\n{'x' * 300}, the end")

    cases = {
        "Gymnasium": Library("gymnasium", "gymnasium", "", play),
        "skrl": Library("nosuch", "gymnasium", "", play, ("nosuch",)),
    }
    ids = [f"p:{letter}-v0" for letter in "ABC"]
    rows = [outcome_of(name, library, id) for name, library in cases.items() for id in ids]
    page = page_of(rows)
    assert "| `A-v0` | ✓ | - |\n| `B-v0` | ✗ | - |\n| `C-v0` | ✗ | - |\n" in page
    assert re.search(r"\n- Gymnasium, `B-v0`, `C-v0`: `RuntimeError: cannot use x+ \.\.\. ", page)
    assert len(max(page.splitlines(), key=len)) < 220
    assert "\n- skrl (no module nosuch): `wrap_env`" in page


def test_the_committed_pages_are_made_of_the_committed_rows() -> None:
    rows = committed_rows()
    assert {(row.library, row.id) for row in rows} == {(n, id) for n in LIBRARIES for id in IDS}
    page = (COMMITTED / "README.md").read_text("utf-8")
    assert page == page_of(rows)
    table = page.split("\n\n")[1]
    assert f"\n{table}\n\n" in (ROOT / "docs" / "ecosystem.md").read_text("utf-8")
