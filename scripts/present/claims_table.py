"""The sentences of a paper beside what was measured, as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from rich.markup import escape
from rich.table import Table

from scripts.present.verdicts import Sentence, Verdict

SIGNS = {"yes": "[green]✓[/]", "no": "[bold red]✗[/]", "open": "[yellow]?[/]"}
NOT_JUDGED = "The quick run is not judged, with few seeds and small sizes; of {} tests it has {}. "
LEGEND = "Least .. largest of (so many) settings. By 95% intervals ✓ holds  ✗ does not  ? is open"


def claims_table(full: Sequence[Sentence], quick: Sequence[Sentence] | None = None) -> Table:
    """Return the table of an experiment's sentences.

    Args:
        full: by the rows of the full run, without verdicts where there was none.
        quick: by those of a quick run, for a column that nothing is judged by.
    """
    caption = LEGEND
    if quick is not None:
        tests, measured = _tests(full), _tests(quick)
        caption = NOT_JUDGED.format(len(tests | measured), len(measured)) + LEGEND
    table = Table("claim", caption=caption, caption_justify="left")
    for name in ("measured",) if quick is None else ("quick run", "full run"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds")
    played = any(sentence.verdicts for sentence in full)
    for sentence, short in zip_longest(full, quick or ()):
        table.add_section()
        empty = [""] * (1 if quick is None else 2)
        answer = sentence.answer if played or not sentence.claim.tests else ""
        table.add_row(f"[bold]{escape(sentence.claim.says)}[/]", *empty, f"[bold]{answer}[/]")
        beside = short.verdicts if short else ()
        every = [*sentence.verdicts, *beside]
        for text in dict.fromkeys(verdict.claim for verdict in every):
            judged = [verdict for verdict in sentence.verdicts if verdict.claim == text]
            cells = [_span(judged), _answers(judged)]
            if short:
                cells.insert(0, _span([verdict for verdict in beside if verdict.claim == text]))
            settings = {item.setting for item in every if item.claim == text}
            where = f", {settings.pop()}" if len(settings) == 1 else ""
            table.add_row(f"  {escape(text + where)}", *cells)
    return table


def _tests(sentences: Sequence[Sentence]) -> set[tuple[str, str]]:
    """Return the tests that rows have numbers for, by their texts and settings."""
    every = (verdict for sentence in sentences for verdict in sentence.verdicts)
    return {(item.claim, item.setting) for item in every if not math.isnan(item.measured)}


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
