r"""Record the sites of the collection from clones of public git repositories.

The catalogue, OUT/catalogue.csv, has a row per site: ``site`` (a name), ``kind``, ``source``
(OWNER/NAME on GitHub), ``licence``, ``commit`` (or a branch; empty for HEAD), ``subdirs``,
``include`` and ``exclude`` (of scripts.data.trace_from_git, separated by semicolons), ``days``
(longest record; empty for 1096), ``family`` (sites that lie in the same split; empty for the owner
of the source) and ``note``. The command writes the hash of the recorded commit
into the row. The same commit gives the same bytes.

A site is recorded by scripts.data.trace_from_git, cut to at most 1,000 pages (whole directories,
chosen by hashes), and its parameters are fitted to the first half. A site with fewer than 20
pages, 100 changes or 365 days is refused. Sites that are recorded as their row says are skipped.
Then sites.csv, the table of README.md and croissant.json are written.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from filecmp import cmpfiles
from pathlib import Path
from re import fullmatch
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from crawl_envs.instances import traces
from crawl_envs.instances.traces.collection import RECORDED
from crawl_envs.instances.traces.loading import ALTERATIONS, TABLES
from crawl_envs.system.files import replacing
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command
from scripts.cli.options import Fresh, words_of
from scripts.data.collection_pages import META, write_summaries
from scripts.data.fit_trace import fit
from scripts.data.git.git_history import open_repository
from scripts.data.git.recorded_history import DEFAULT_DAYS
from scripts.data.site_tables import Tables, draw_pages, round_times, select_pages, write_tables
from scripts.data.trace_from_git import TraceOptions, read_trace

CATALOGUE = "catalogue.csv"
NAME = r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by hyphens"
TEXT = r"(?s).*", "text"
COLUMNS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("site", "kind"), NAME),
    "source": (r"[\w.-]+/[\w.-]+", "OWNER/NAME"),
    "licence": (r"\S.*", "a licence, as an SPDX identifier"),
    **dict.fromkeys(("commit", "subdirs", "include", "exclude"), TEXT),
    "days": (r"([1-9]\d*)?", "empty or a number of days"),
    "family": (f"({NAME[0]})?", f"empty or {NAME[1]}"),
    "note": TEXT,
}
"""Columns of the catalogue: a pattern of their values, and the pattern in words."""
Entry: TypeAlias = dict[str, str]
"""A row of the catalogue, by column."""
MAX_PAGES = 1000
MIN_PAGES, MIN_CHANGES, MIN_DAYS = 20, 100, 365
SIGNIFICANT_BITS = 12
"""Binary digits of fitted parameters that are kept: a relative error below 4.9e-4."""


def read_catalogue(path: Path) -> dict[str, Entry]:
    """Return the rows of a catalogue by site.

    Raises:
        ValueError: the file is missing, has other columns, a bad value, or a site twice.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected the catalogue of the collection")
    with path.open(encoding="utf-8", newline="") as lines:
        header, *rows = [*csv.reader(lines)] or [[]]
    if header != [*COLUMNS]:
        raise ValueError(f"{path}: columns must be {[*COLUMNS]}, got {header}")
    entries: dict[str, Entry] = {}
    for number, cells in enumerate(rows, 2):
        where = f"{path}: row {number}"
        if len(cells) != len(COLUMNS):
            raise ValueError(f"{where} must have {len(COLUMNS)} cells, got {cells}")
        entry = dict(zip(COLUMNS, cells, strict=True))
        for column, (pattern, expected) in COLUMNS.items():
            if not fullmatch(pattern, entry[column]):
                raise ValueError(f"{where}: {column!r} must be {expected}, got {entry[column]!r}")
        if entry["site"] in (*entries, *traces.shipped()):
            raise ValueError(f"{where}: site {entry['site']!r} exists already")
        entries[entry["site"]] = entry
    return entries


def _write_catalogue(path: Path, entries: Mapping[str, Entry]) -> None:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS], lineterminator="\n")
        writer.writeheader()
        writer.writerows(entries.values())


def _recipe(entry: Entry) -> Entry:
    """Return the columns that determine the files of the site."""
    return {name: value for name, value in entry.items() if name not in ("family", "note")}


def find_clone(clones: Path, source: str) -> Path:
    """Return the folder of the clone of OWNER/NAME in ``clones``; ValueError if there is none."""
    places = (f"{source.replace('/', '+')}/repo", source, f"{source.partition('/')[2]}.git")
    for place in places:
        if (clones / place).is_dir():
            return clones / place
    raise ValueError(f"{clones} must have a clone of {source}, as one of {', '.join(places)}")


def _read_site(entry: Entry, clone: Path) -> tuple[Tables, NDArray[np.uint64], dict[str, Any]]:
    """Return the tables of a site, the hashes of its pages' paths, (m,), and the ``meta.json``."""
    subdir, include, exclude = (
        [part.strip() for part in entry[column].split(";") if part.strip()]
        for column in ("subdirs", "include", "exclude")
    )
    options = TraceOptions(
        path=clone,
        out=Path(),
        subdir=subdir,
        name=entry["site"],
        include=include,
        exclude=exclude,
        branch=entry["commit"],
        missing="skip",
        fragment_modulus=0,
    )
    contents, meta = read_trace(options, int(entry["days"] or DEFAULT_DAYS))
    tables = {
        name: {column: contents[name][column].to_numpy() for column in columns}
        for name, columns in TABLES.items()
    }
    return tables, contents["pages"]["path_hash"].to_numpy(), meta


def record_site(entry: Entry, clone: Path, folder: Path) -> dict[str, Any]:
    """Write the files of a site to a new folder, and return its ``meta.json``.

    Raises:
        ValueError: the repository cannot be read, or the site is too small or too short.
    """
    tables, path_hash, recorded = _read_site(entry, clone)
    folder.mkdir()
    pages = draw_pages(path_hash, tables["pages"]["dir_id"], MAX_PAGES)
    tables = round_times(select_pages(tables, pages), float(recorded["window_days"]))
    write_tables(folder, tables)
    altered = np.isin(tables["changes"]["kind"], ALTERATIONS)
    counts = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    names = ("command_version", "head", "window_start", "window_days", "missing_versions")
    meta = {
        **{name: recorded[name] for name in names},
        "recipe": _recipe(entry),
        "counts": counts | {"changes": int(altered.sum())},
        "pages_of_source": path_hash.size,
        **{name: entry[name] for name in ("site", "kind", "source", "licence")},
    }
    text = json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / META).write_text(text + "\n", "utf-8")
    trace = traces.load(folder)
    _check_size(trace)
    columns = ("change_rate", "recall", "false_signal_rate")
    for signals in traces.SIGNALS:
        fitted = fit(trace, signals=signals)
        fitted = replace(fitted, **{name: _rounded(getattr(fitted, name)) for name in columns})
        traces.save_parameters(traces.parameters_path(folder, signals), fitted, trace)
    return meta


def _rounded(values: Any) -> Any:
    """Return values rounded down to ``SIGNIFICANT_BITS`` binary digits, which compress well."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.floor(np.ldexp(mantissa, SIGNIFICANT_BITS)), exponent - SIGNIFICANT_BITS)


def _check_size(trace: traces.Trace) -> None:
    """Raise ValueError if a site has too few pages in its second half, changes or days."""
    half = trace.days / 2.0
    pages = float(trace.alive_days(half, trace.days).sum()) / half
    for count, minimum, what in (
        (trace.days, MIN_DAYS, "days"),
        (pages, MIN_PAGES, "pages alive on average in its second half"),
        (trace.change_page.size, MIN_CHANGES, "changes"),
    ):
        if count < minimum:
            raise ValueError(f"a site must have at least {minimum} {what}, got {count:.4g}")


def _is_recorded(entry: Entry, folder: Path) -> bool:
    """Return whether the files in a folder are those of the catalogue's row."""
    file = folder / META
    return file.is_file() and json.loads(file.read_text("utf-8"))["recipe"] == _recipe(entry)


def build(entry: Entry, out: Path, clones: Path, check: bool = False, fresh: bool = False) -> str:
    """Record a site into ``out``, or compare a new record; return a sentence on it.

    The row gets the commit. Without ``fresh``, a site that is recorded as its row says is skipped.

    Raises:
        ValueError: the site is refused, or differs in a check.
    """
    folder, started = out / entry["site"], time.monotonic()
    if not fullmatch("[0-9a-f]{40}", entry["commit"]):
        clone = find_clone(clones, entry["source"])
        entry["commit"] = open_repository(clone, branch=entry["commit"] or "HEAD").head
    if not (check or fresh) and _is_recorded(entry, folder):
        return "recorded before"
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=out) as scratch:
        new = Path(scratch) / "new"
        meta = record_site(entry, find_clone(clones, entry["source"]), new)
        if check:
            _compare(new, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
    counts = ", ".join(f"{count} {name}" for name, count in meta["counts"].items())
    return f"{meta['window_days']:g} days, {counts}, {time.monotonic() - started:.0f} s"


def _compare(new: Path, folder: Path) -> None:
    """Raise ValueError unless two folders have the same files with the same bytes."""
    names = sorted({path.name for place in (new, folder) for path in place.glob("*")})
    _, different, missing = cmpfiles(new, folder, names, shallow=False)
    if different or missing:
        raise ValueError(f"{folder} differs from a new record in {', '.join(different + missing)}")


def main(
    clones: Annotated[
        Path, typer.Option(help="Folder of clones: OWNER+NAME/repo, OWNER/NAME or NAME.git.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the collection.")] = RECORDED,
    only: Annotated[str | None, typer.Option(help="Comma-separated sites.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; compare bytes with new records.")
    ] = False,
    fresh: Fresh = False,
) -> None:
    """Record the sites, print a sentence on each, and write the tables of the collection."""
    entries, refused = read_catalogue(out / CATALOGUE), []
    names = [one_of("only", name, entries) for name in words_of("--only", only) or entries]
    for place, name in enumerate(names, 1):
        try:
            sentence = build(entries[name], out, clones, check, fresh)
        except ValueError as error:
            refused.append(name)
            sentence = f"refused: {' '.join(str(error).split())}"
        typer.echo(f"{place}/{len(names)} {name}: {sentence}")
        if not check:
            _write_catalogue(out / CATALOGUE, entries)
    if not check:
        sites = {
            name: entry["family"] or entry["source"].partition("/")[0]
            for name, entry in entries.items()
            if _is_recorded(entry, out / name)
        }
        write_summaries(out, sites)
        for name in sorted({path.parent.name for path in out.glob(f"*/{META}")} - {*sites}):
            text = f"warning: {out / name} is not recorded as the catalogue says; left out"
            typer.echo(text, err=True)
    if refused:
        typer.echo(f"error: {len(refused)} sites were refused: {', '.join(refused)}", err=True)
        raise typer.Exit(1)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
