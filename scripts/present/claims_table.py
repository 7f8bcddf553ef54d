"""Make a table for the terminal: the sentences of a paper, and what was measured for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from rich.markup import escape
from rich.table import Table

from scripts.present.verdicts import Sentence, Verdict

SIGNS = {"yes": "[green]✓[/]", "no": "[bold red]✗[/]", "open": "[yellow]?[/]"}
NOT_JUDGED = "A quick run is too small to be judged; it has {1} of {0} tests. "
LEGEND = "Smallest .. largest of (n) settings. By 95% intervals ✓ holds  ✗ does not  ? is open"


def claims_table(full: Sequence[Sentence], quick: Sequence[Sentence] | None = None) -> Table:
    """Return the table of an experiment's sentences with what was measured and whether they hold.

    Args:
        full: sentences by the rows of the full run; without verdicts if it has no rows.
        quick: sentences by the rows of a quick run, for a column without verdicts.
    """
    caption = LEGEND
    if quick is not None:
        tests, measured = _tests(full), _tests(quick)
        caption = NOT_JUDGED.format(len(tests | measured), len(measured)) + LEGEND
    table = Table("claim", caption=caption, caption_justify="left")
    for name in ("measured",) if quick is None else ("quick run", "full run"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds")
    has_rows = any(sentence.verdicts for sentence in full)
    for sentence, short in zip_longest(full, quick or ()):
        table.add_section()
        empty = [""] * (1 if quick is None else 2)
        answer = sentence.answer if has_rows or not sentence.claim.tests else ""
        table.add_row(f"[bold]{escape(sentence.claim.text)}[/]", *empty, f"[bold]{answer}[/]")
        quick_verdicts = short.verdicts if short else ()
        every = [*sentence.verdicts, *quick_verdicts]
        for text in dict.fromkeys(verdict.claim for verdict in every):
            judged = [verdict for verdict in sentence.verdicts if verdict.claim == text]
            cells = [_span(judged), _answers(judged)]
            if short:
                cells.insert(0, _span([item for item in quick_verdicts if item.claim == text]))
            settings = {item.setting for item in every if item.claim == text}
            where = f", {settings.pop()}" if len(settings) == 1 else ""
            table.add_row(f"  {escape(text + where)}", *cells)
    return table


def _tests(sentences: Sequence[Sentence]) -> set[tuple[str, str]]:
    """Return the text and setting of each test that has a measured number."""
    every = (verdict for sentence in sentences for verdict in sentence.verdicts)
    return {(item.claim, item.setting) for item in every if not math.isnan(item.measured)}


def _span(verdicts: Sequence[Verdict]) -> str:
    """Return as text a test's smallest and largest value over settings, and their number."""
    values = sorted(item.measured for item in verdicts if not math.isnan(item.measured))
    if not values:
        return "-"
    ends = dict.fromkeys(f"{value:.3g}" for value in (values[0], values[-1]))
    return f"{' .. '.join(ends)} ({len(values)})"


def _answers(verdicts: Sequence[Verdict]) -> str:
    answers = [verdict.holds for verdict in verdicts]
    return " ".join(f"{answers.count(word)} {SIGNS[word]}" for word in SIGNS if word in answers)
