"""The sentences of a paper beside what was measured, as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from rich.markup import escape
from rich.table import Table

from crawl_envs.evaluation import Row
from scripts.present.claims import verdict_of
from scripts.present.experiment import claims_of, judged
from scripts.present.verdicts import Expected, Verdict

SIGNS = {"yes": "[green]✓[/]", "no": "[bold red]✗[/]", "open": "[yellow]?[/]"}
LEGEND = "Least .. largest of (so many) settings. By 95% intervals ✓ holds  ✗ does not  ? is open"


def claims_table(
    experiment: ModuleType, rows: Sequence[Row], quick: Sequence[Row] | None = None
) -> Table:
    """Return the table of an experiment's claims.

    Args:
        experiment: module of :mod:`scripts.experiments`.
        rows: of the full run, the derived ones included; empty where there was none.
        quick: of a quick run, for a column that nothing is judged by.
    """
    table = Table("claim", caption=LEGEND, caption_justify="left")
    for name in ("measured",) if quick is None else ("quick run", "full run"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds")
    for says, tests in _claims(experiment):
        full = judged(experiment, rows, tests, False)
        short = judged(experiment, quick or (), tests, True)
        table.add_section()
        empty = [""] * (1 if quick is None else 2)
        word = verdict_of(full) if rows or not tests else ""
        table.add_row(f"[bold]{escape(says)}[/]", *empty, f"[bold]{word}[/]")
        for text in dict.fromkeys(verdict.claim for verdict in (*full, *short)):
            of_text = [verdict for verdict in full if verdict.claim == text]
            cells = [_span(of_text), _answers(of_text)]
            if quick is not None:
                cells.insert(0, _span([verdict for verdict in short if verdict.claim == text]))
            settings = {item.setting for item in (*full, *short) if item.claim == text}
            where = f", {settings.pop()}" if len(settings) == 1 else ""
            table.add_row(f"  {escape(text + where)}", *cells)
    return table


def _claims(experiment: ModuleType) -> Iterator[tuple[str, Iterable[Expected]]]:
    """Yield the sentences of the paper with their tests, and last those of our own."""
    claims = claims_of(experiment)
    for claim in claims:
        yield claim.says, claim.tests
    claimed = {test for claim in claims for test in claim.tests}
    others = [test for test in getattr(experiment, "EXPECTED", ()) if test not in claimed]
    if others:
        yield "Not in the paper" if claims else "Expected", others


def _span(verdicts: Sequence[Verdict]) -> str:
    """Return the least and the largest measured value of a test over its settings."""
    known = sorted(item.measured for item in verdicts if not math.isnan(item.measured))
    if not known:
        return "-"
    ends = dict.fromkeys(f"{value:.3g}" for value in (known[0], known[-1]))
    return f"{' .. '.join(ends)} ({len(known)})"


def _answers(verdicts: Sequence[Verdict]) -> str:
    answers = [verdict.holds for verdict in verdicts]
    return " ".join(f"{answers.count(word)} {SIGNS[word]}" for word in SIGNS if word in answers)
