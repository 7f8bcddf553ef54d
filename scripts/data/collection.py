r"""Record the sites of the collection from clones of public git repositories.

The catalogue, OUT/catalogue.csv, has a row per site: ``site`` (a name), ``kind``, ``source``
(OWNER/NAME on GitHub), ``licence``, ``commit`` (or a branch; empty for HEAD), ``subdirs``,
``include`` and ``exclude`` (of scripts.data.trace_from_git, separated by semicolons), ``days``
(longest record; empty for 1096) and ``note``. The command writes the hash of the recorded commit
into the row. The same commit gives the same bytes.

A site is recorded by scripts.data.trace_from_git, cut to at most 1,000 pages (whole directories,
chosen by hashes), and its parameters are fitted to the first half. A site with fewer than 20
pages, 100 changes or 365 days is refused. Sites that are recorded as their row says are skipped.
Then sites.csv, the table of README.md and croissant.json are written.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from filecmp import cmpfiles
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crawl_envs.instances import traces
from crawl_envs.instances.traces.collection import RECORDED
from crawl_envs.system.files import replacing
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command
from scripts.cli.options import Fresh, words_of
from scripts.data.collection_pages import META, write_summaries
from scripts.data.fit_trace import fit
from scripts.data.git.git_history import main_line, open_repository
from scripts.data.git.recorded_history import DAY, choose_window, midnight
from scripts.data.site_tables import (
    draw_pages,
    read_tables,
    round_times,
    select_pages,
    write_tables,
)
from scripts.data.trace_from_git import TraceOptions, make_trace

CATALOGUE = "catalogue.csv"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SOURCE = re.compile(r"[\w.-]+/[\w.-]+")
HASH = re.compile(r"[0-9a-f]{40}")
MAX_PAGES = 1000
MIN_PAGES, MIN_CHANGES, MIN_DAYS = 20, 100, 365
SIGNIFICANT_BITS = 12
"""Binary digits of fitted parameters that are kept: a relative error of at most 1.2e-4."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the catalogue; the module's documentation describes its columns."""

    site: str
    kind: str
    source: str
    licence: str
    commit: str
    subdirs: str
    include: str
    exclude: str
    days: str
    note: str

    def __post_init__(self) -> None:
        for column, pattern, expected in (
            ("site", NAME, "lower-case words joined by hyphens"),
            ("kind", NAME, "lower-case words joined by hyphens"),
            ("source", SOURCE, "OWNER/NAME"),
            ("licence", re.compile(r"\S.*"), "a licence, as an SPDX identifier"),
            ("days", re.compile(r"([1-9]\d*)?"), "empty or a number of days"),
        ):
            value = getattr(self, column)
            if not pattern.fullmatch(value):
                where = f"column {column!r} of site {self.site!r}"
                raise ValueError(f"{where} must be {expected}, got {value!r}")

    @property
    def recipe(self) -> dict[str, str]:
        """The columns that determine the files of the site."""
        return {name: value for name, value in asdict(self).items() if name != "note"}

    def options(self, clone: Path, out: Path) -> TraceOptions:
        """Return the options that record the site, up to the last commit at most."""
        subdirs, include, exclude = map(_parts, (self.subdirs, self.include, self.exclude))
        links = main_line(open_repository(clone, subdirs, include, exclude, self.commit))
        window = choose_window(links, None, float(self.days) if self.days else None)
        last = max(link.committed for link in links)
        recorded = math.floor((last - midnight(window.start)) / DAY) + 1.0
        return TraceOptions(
            path=clone,
            out=out,
            start=window.start.isoformat(),
            days=min(window.days, recorded),
            subdir=subdirs,
            name=self.site,
            include=include,
            exclude=exclude,
            branch=self.commit,
            missing="skip",
            fragment_modulus=0,
        )


def _parts(text: str) -> list[str]:
    """Return the parts of a text that semicolons separate."""
    return [part.strip() for part in text.split(";") if part.strip()]


def read_catalogue(path: Path) -> list[Entry]:
    """Read the rows of a catalogue.

    Raises:
        ValueError: the file is missing, has other columns, a bad value, or a site twice.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected the catalogue of the collection")
    columns = [entry.name for entry in fields(Entry)]
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
    if reader.fieldnames != columns:
        raise ValueError(f"{path}: columns must be {columns}, got {reader.fieldnames}")
    entries: list[Entry] = []
    for number, row in enumerate(rows, 2):
        if set(row) != set(columns) or None in row.values():
            raise ValueError(f"{path}: row {number} must have {len(columns)} cells, got {row}")
        try:
            entries.append(Entry(**row))
        except ValueError as error:
            raise ValueError(f"{path}: row {number}: {error}") from None
        if row["site"] in {entry.site for entry in entries[:-1]} | {*traces.shipped()}:
            raise ValueError(f"{path}: row {number}: site {row['site']!r} exists already")
    return entries


def _write_catalogue(path: Path, entries: Sequence[Entry]) -> None:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Entry)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, entries))


def find_clone(clones: Path, source: str) -> Path:
    """Return the folder of the clone of OWNER/NAME in ``clones``.

    Raises:
        ValueError: there is none.
    """
    owner, name = source.split("/")
    places = (f"{owner}+{name}/repo", f"{owner}/{name}", f"{name}.git")
    for place in places:
        if (clones / place).is_dir():
            return clones / place
    raise ValueError(f"{clones} must have a clone of {source}, as one of {', '.join(places)}")


def record_site(entry: Entry, clone: Path, folder: Path) -> dict[str, Any]:
    """Write the files of a site to an existing folder, and return its ``meta.json``.

    Raises:
        ValueError: the repository cannot be read, or the site is too small or too short.
    """
    with tempfile.TemporaryDirectory() as scratch:
        recorded = make_trace(entry.options(clone, Path(scratch) / "trace"))
        tables, path_hash = read_tables(Path(scratch) / "trace")
    days = float(recorded["window_days"])
    pages = draw_pages(path_hash, tables["pages"]["dir_id"], MAX_PAGES)
    tables = round_times(select_pages(tables, pages), days)
    write_tables(folder, tables)
    altered = np.isin(tables["changes"]["kind"], ("content", "whitespace"))
    counts = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    names = ("command_version", "head", "window_start", "window_days", "missing_versions")
    meta = {
        **{name: recorded[name] for name in names if name in recorded},
        "recipe": entry.recipe,
        "counts": counts | {"changes": int(altered.sum())},
        "pages_of_source": path_hash.size,
        **{name: getattr(entry, name) for name in ("site", "kind", "source", "licence")},
    }
    text = json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / META).write_text(text + "\n", "utf-8")
    trace = traces.load(folder)
    _check_size(trace)
    for signals in traces.SIGNALS:
        fitted = fit(trace, signals=signals)
        rounded = {
            name: _rounded(getattr(fitted, name))
            for name in ("change_rate", "recall", "false_signal_rate")
        }
        path = traces.parameters_path(folder, signals)
        traces.save_parameters(path, replace(fitted, **rounded), trace)
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
    return file.is_file() and json.loads(file.read_text("utf-8")).get("recipe") == entry.recipe


def build(
    entry: Entry, out: Path, clones: Path, check: bool = False, fresh: bool = False
) -> tuple[Entry, str]:
    """Record a site into ``out``, or compare a new record; return its row and a sentence.

    The row has the commit. Without ``fresh``, a site that is recorded as its row says is skipped.

    Raises:
        ValueError: the site is refused, or differs in a check.
    """
    folder, started = out / entry.site, time.monotonic()
    if not HASH.fullmatch(entry.commit):
        clone = find_clone(clones, entry.source)
        head = open_repository(clone, branch=entry.commit or "HEAD").head
        entry = replace(entry, commit=head)
    if not (check or fresh) and _is_recorded(entry, folder):
        return entry, "recorded before"
    clone = find_clone(clones, entry.source)
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=out) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        meta = record_site(entry, clone, new)
        if check:
            _compare(new, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    counts = ", ".join(f"{count} {name}" for name, count in meta["counts"].items())
    seconds = time.monotonic() - started
    return entry, f"{meta['window_days']:g} days, {counts}, {size} bytes, {seconds:.0f} s"


def _summarize(out: Path, entries: Sequence[Entry]) -> None:
    """Write the tables of the sites that are recorded as their rows say; name other folders."""
    names = [entry.site for entry in entries if _is_recorded(entry, out / entry.site)]
    write_summaries(out, names)
    for stray in sorted({path.parent.name for path in out.glob(f"*/{META}")} - {*names}):
        typer.echo(
            f"warning: {out / stray} is not recorded as the catalogue says; left out", err=True
        )


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
    entries = read_catalogue(out / CATALOGUE)
    names = words_of("--only", only) or [entry.site for entry in entries]
    for name in names:
        one_of("only", name, [entry.site for entry in entries])
    refused = []
    for place, name in enumerate(names, 1):
        row = [entry.site for entry in entries].index(name)
        try:
            entries[row], sentence = build(entries[row], out, clones, check, fresh)
        except ValueError as error:
            refused.append(name)
            sentence = f"refused: {' '.join(str(error).split())}"
        typer.echo(f"{place}/{len(names)} {name}: {sentence}")
        if not check:
            _write_catalogue(out / CATALOGUE, entries)
    if not check:
        _summarize(out, entries)
    if refused:
        typer.echo(f"error: {len(refused)} sites were refused: {', '.join(refused)}", err=True)
        raise typer.Exit(1)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
