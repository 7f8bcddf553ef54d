"""The outcomes as a table for the terminal, and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from scripts.libraries.interfaces import ABSENT, FAILS, LIBRARIES, WORKS, Outcome
from scripts.present.filled_tables import grid

SIGNS = {WORKS: "✓", FAILS: "✗", ABSENT: "-"}
HEAD, TAIL = 50, 110
"""Characters of the beginning and of the end of a long message in the page."""
PAGE = """# Compatibility

{table}

✓: built and stepped with the library's own wrapper; ✗: failed; -: not installed. Made by
`python -m scripts.compatibility`; versions are in [rows.csv](rows.csv).

## What is tried

{tried}

## What fails

{failed}
"""


def _cells(rows: Sequence[Outcome]) -> list[list[str]]:
    """Return a line per id, with the sign of each library."""
    found = {(row.id, row.library): SIGNS[row.outcome] for row in rows}
    names = dict.fromkeys(row.library for row in rows)
    ids = dict.fromkeys(row.id for row in rows)
    return [[id.partition(":")[2], *(found[id, name] for name in names)] for id in ids]


def table_of(rows: Sequence[Outcome]) -> Table:
    """Return the counts by library for the terminal."""
    table = Table("library", "version", title="Environments in other libraries")
    for kind in SIGNS:
        table.add_column(kind, justify="right")
    for name, last in {row.library: row for row in rows}.items():
        kinds = [row.outcome for row in rows if row.library == name]
        found = last.message if last.outcome == ABSENT else last.version
        table.add_row(name, found, *(str(kinds.count(kind)) for kind in SIGNS))
    return table


def page_of(rows: Sequence[Outcome]) -> str:
    """Return the page."""
    names = dict.fromkeys(row.library for row in rows)
    lines = [[f"`{id}`", *signs] for id, *signs in _cells(rows)]
    tried = []
    for name, last in {row.library: row for row in rows}.items():
        found = f"{LIBRARIES[name].package} {last.version}".rstrip()
        of = last.message if last.outcome == ABSENT else found
        tried.append(f"- {name} ({of}): {LIBRARIES[name].about}.")
    return PAGE.format(
        table=grid(["id", *names], lines, ":-:"),
        tried="\n".join(tried),
        failed="\n".join(failures(rows)) or "Nothing.",
    )


def failures(rows: Sequence[Outcome]) -> list[str]:
    """Return a line per library and message, with its ids."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.outcome == FAILS:
            said = row.message
            said = said if len(said) <= HEAD + TAIL else f"{said[:HEAD]} ... {said[-TAIL:]}"
            found.setdefault((row.library, said), []).append(f"`{row.id.partition(':')[2]}`")
    return [f"- {name}, {', '.join(ids)}: `{said}`" for (name, said), ids in found.items()]
