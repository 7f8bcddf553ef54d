"""Make the trace shipped with the package: 200 days of a synthetic garden handbook.

A git repository of about sixty pages is generated from a seed and read by
``scripts.data.trace_from_git``. The shipped trace has all features of a real one: pages that change
every few days and pages that never change, busy weekends, a slow spring and a fast summer, commits
that touch a directory or half of the site, commits with and without the name of the page, births,
deaths, a page that returns, renames, white-space edits and merged branches. Parameters are fitted
to the first half for every kind of signals; pages born later have the pooled values, as in the
recorded results of ``crawl-v1``.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from crawl_envs.instances import traces
from scripts.cli.commands import command
from scripts.data.fit_trace import fit
from scripts.data.git.git_history import git_output
from scripts.data.git.recorded_history import midnight
from scripts.data.git.trace_writing import check_target
from scripts.data.trace_from_git import TraceOptions, make_trace

NAME = "garden-handbook"
SEED = 20240304
START = date(2024, 3, 4)
DAYS = 200
DAYS_BEFORE = 40
DAY = 86400
SITE = {
    "vegetables": "tomato carrot leek cabbage pumpkin lettuce radish pea bean onion potato spinach",
    "herbs": "basil thyme sage mint parsley chives oregano dill",
    "fruit": "apple pear plum cherry raspberry currant gooseberry strawberry",
    "flowers": "dahlia peony tulip aster cosmos marigold lavender",
    "soil": "compost mulch lime clay sand",
    "pests": "slug aphid vole whitefly blight mildew",
    "tools": "spade hoe fork shears barrow",
    "calendar": "spring summer autumn winter",
}
NEWCOMERS = (
    "vegetables/chard.md herbs/lovage.md fruit/quince.md flowers/zinnia.md pests/weevil.md "
    "soil/biochar.md vegetables/kohlrabi.md calendar/harvest.md tools/dibber.md flowers/phlox.md"
)
WORDS = (
    "sow plant water thin feed prune stake cover lift store early late warm cold wet dry light "
    "heavy row bed pot seed root leaf stem bud week month frost rain sun shade deep shallow weekly "
    "often never again before after until rich poor sharp clean"
)
SMALL_NOTES = ("Small corrections", "Clearer wording", "Readers' questions", "Notes from last year")
MOVES = {
    50: ("tools/barrow.md", "tools/wheelbarrow.md"),
    140: ("soil/sand.md", "calendar/sand.md"),
}
"""Renames of files by day: old path, new path."""
WEEK = (0.7, 0.6, 0.7, 0.7, 0.9, 1.7, 1.7)
"""Relative activity of the days from Monday to Sunday."""

Item = TypeVar("Item")


class Handbook:
    """A repository under construction, as a stream of ``git fast-import`` commands."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._words = WORDS.split()
        self._marks = 0
        self._tip = 0
        self.stream = bytearray()
        self.pages: dict[str, list[str]] = {}
        self.rates: dict[str, float] = {}

    def chance(self) -> float:
        """Return a random number in [0, 1); other draws would differ between versions of Python."""
        return self._dice.random()

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items at random."""
        return items[int(self.chance() * len(items))]

    def begin(self, path: str) -> None:
        """Create a page with random text and a random change rate per day."""
        self.pages[path] = [self._line() for _ in range(8 + int(self.chance() * 12))]
        self.rates[path] = 0.0 if self.chance() < 0.15 else 0.004 * math.exp(4.2 * self.chance())

    def revise(self, path: str) -> None:
        """Change a page: rewrite a line and perhaps append a line, or rarely indent a line only."""
        lines = self.pages[path]
        row = int(self.chance() * len(lines))
        if self.chance() < 0.05:
            lines[row] = f"  {lines[row]}"
            return
        lines[row] = self._line()
        if self.chance() < 0.5:
            lines.append(self._line())

    def _line(self) -> str:
        return " ".join(self.pick(self._words) for _ in range(9))

    def commit(self, second: int, subject: str, edits: Sequence[str], drafted: int = 0) -> None:
        """Append a commit of ``edits`` (fast-import commands); with ``drafted`` it is a merge."""
        tip = self._tip
        if drafted:
            self._write("draft", drafted, subject, edits, [f"from :{tip}"])
            subject = "Merge a reader's draft"
        links = [f"from :{tip}"] if tip else []
        links += [f"merge :{self._marks}"] if drafted else []
        self._write("main", second, subject, edits, links)
        self._tip = self._marks

    def _write(
        self, branch: str, second: int, subject: str, edits: Sequence[str], links: Sequence[str]
    ) -> None:
        self._marks += 1
        stamp = f"The Gardeners <gardeners@example.org> {second} +0000"
        head = [f"commit refs/heads/{branch}", f"mark :{self._marks}"]
        head += [f"author {stamp}", f"committer {stamp}", f"data {len(subject.encode())}", subject]
        self.stream += "\n".join([*head, *links, *edits, "", ""]).encode()

    def written(self, path: str) -> str:
        """Return the fast-import command that writes the current version of a page."""
        text = "\n".join([f"# {Path(path).stem}", "", *self.pages[path], ""])
        return f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}"


def write_handbook(seed: int) -> bytes:
    """Return a synthetic repository as a stream for ``git fast-import``, fixed by the seed."""
    book = Handbook(seed)
    for directory, names in SITE.items():
        for name in names.split():
            book.begin(f"{directory}/{name}.md")
    origin = int(midnight(START))
    edits = [book.written(path) for path in book.pages]
    book.commit(origin - DAYS_BEFORE * DAY, "Begin the handbook", edits)
    for day in range(1 - DAYS_BEFORE, DAYS):
        _write_day(book, day, origin + day * DAY)
    return bytes(book.stream)


def _write_day(book: Handbook, day: int, dawn: int) -> None:
    """Append the commits of a day (number ``day``) to the repository."""
    season = 0.6 + 0.8 / (1.0 + math.exp(-(day - 90) / 15.0))
    busy = season * WEEK[(dawn // DAY + 3) % 7]
    due = [path for path in sorted(book.pages) if book.chance() < busy * book.rates[path]]
    moments = sorted(dawn + int((7 + 14 * book.chance()) * 3600) for _ in due)
    _write_occasions(book, day, dawn)
    for second, path in zip(moments, due, strict=True):
        if path not in book.pages:
            continue
        book.revise(path)
        named = book.chance() < 0.6
        subject = f"Revise {Path(path).stem}" if named else book.pick(SMALL_NOTES)
        drafted = second - int(book.chance() * 2 * DAY) if book.chance() < 0.1 else 0
        book.commit(second, subject, [book.written(path)], drafted)


def _write_occasions(book: Handbook, day: int, dawn: int) -> None:
    """Append a day's rare commits, made at night: bulk edits, births, deaths, renames."""
    if day % 23 == 11:
        directory = book.pick(list(SITE))
        paths = [path for path in sorted(book.pages) if path.startswith(directory)]
        _write_bulk(book, dawn + 3600, f"New season in {directory}", paths)
    if day % 61 == 40:
        paths = [path for path in sorted(book.pages) if book.chance() < 0.5]
        _write_bulk(book, dawn + 7200, "Update the common notes", paths)
    newcomers = NEWCOMERS.split()
    if day % 18 == 5 and 0 <= day // 18 < len(newcomers):
        path = newcomers[day // 18]
        book.begin(path)
        book.rates[path] = max(book.rates[path], 0.05)
        book.commit(dawn + 10800, f"Add {Path(path).stem}", [book.written(path)])
    if day in (31, 77, 128, 170):
        path = sorted(book.pages)[(7 * day) % len(book.pages)]
        del book.pages[path]
        book.commit(dawn + 14400, f"Drop {Path(path).stem}", [f"D {path}"])
    if day in MOVES:
        old, new = MOVES[day]
        book.pages[new], book.rates[new] = book.pages.pop(old), book.rates.pop(old)
        book.commit(dawn + 18000, "Put things in their place", [f"R {old} {new}"])
    if day in (90, 99):
        path = "flowers/lavender.md"
        edit = f"D {path}" if day == 90 else book.written(path)
        book.commit(dawn + 21600, "Think again about lavender", [edit])
        book.rates[path] = 0.0 if day == 90 else 0.03


def _write_bulk(book: Handbook, second: int, subject: str, paths: Sequence[str]) -> None:
    """Append a commit that revises all pages in ``paths``."""
    for path in paths:
        book.pages[path].append(book.pick(WORDS.split()) + " this season")
    book.commit(second, subject, [book.written(path) for path in paths])


def make_shipped_trace(folder: Path) -> None:
    """Generate the handbook's repository; write its trace and fitted parameters to ``folder``.

    An existing trace in ``folder`` is replaced.

    Raises:
        ValueError: git is missing or fails, or ``folder`` has other contents than a trace.
        OSError: the folder cannot be written.
    """
    check_target(folder, force=True)
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / f"{NAME}.git"
        repository.mkdir()
        git_output(repository, ["init", "--quiet", "--bare", "--object-format=sha1"])
        git_output(repository, ["symbolic-ref", "HEAD", "refs/heads/main"])
        git_output(repository, ["fast-import", "--quiet", "--force"], write_handbook(SEED))
        start, days = START.isoformat(), float(DAYS)
        make_trace(
            TraceOptions(
                path=repository, out=folder, start=start, days=days, force=True, fragment_modulus=1
            )
        )
    trace = traces.load(folder)
    for signals in traces.SIGNALS:
        parameters = fit(trace, signals=signals, newborn_prior=False)
        traces.save_parameters(traces.parameters_path(folder, signals), parameters, trace)


def main(
    out: Annotated[
        Path, typer.Option(help="Output folder; an existing trace is replaced.")
    ] = traces.SHIPPED / NAME,
) -> None:
    """Write the trace."""
    make_shipped_trace(out)
    typer.echo(f"{NAME} -> {out}")


app = command(main, "Make the trace shipped with the package, from a seed.")

if __name__ == "__main__":
    app()
