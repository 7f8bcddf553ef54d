"""Write Markdown tables of rows into a page, between two lines with the table's name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from crawl_envs.system.files import replacing
from scripts.study.equal_freshness import ENDS as ENDS_OF_SAVED
from scripts.study.intervals import ENDS

Key = tuple[str, str, str]
"""Setting, policy and metric of a cell."""


def grid(head: Sequence[str], lines: Iterable[Sequence[str]], rule: str = "---") -> str:
    """Return a Markdown table of a head and lines; ``rule`` aligns all columns after the first."""
    table = [head, ["---", *[rule] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def markdown(rows: Sequence[Row], heads: Sequence[str], lines: Mapping[str, Sequence[Key]]) -> str:
    """Return a Markdown table of rows that have one seed; lines without any row are left out.

    By the rows that exist, a cell has a value with its interval, a range of percentages, or a
    value with one decimal.

    Args:
        rows: rows, with the derived ones.
        heads: headings of the columns after the first.
        lines: cells of the lines, by the name of the line.
    """
    value = {(row.setting, row.policy, row.metric): row.value for row in rows}
    cells = {name: [_cell(value, *key) for key in keys] for name, keys in lines.items()}
    return grid(["", *heads], [[name, *line] for name, line in cells.items() if any(line)])


def _cell(value: Mapping[Key, float], setting: str, policy: str, metric: str) -> str:
    interval = [value.get((setting, policy, metric + end)) for end in ENDS]
    share = [value.get((setting, policy, metric + end)) for end in ENDS_OF_SAVED]
    match [number for number in (*interval, *share) if number is not None]:
        case [mean, low, high]:
            return f"{spelled(mean, 3)} [{spelled(low, 2)}, {spelled(high, 2)}]"
        case [low, high]:
            return _range(low, high)
        case [mean]:
            return f"{mean:.1f}"
    return ""


def spelled(number: float, digits: int) -> str:
    """Return a number as text with so many digits, without the zero before its point."""
    return re.sub(r"\b0\.", ".", f"{number:.{digits}f}")


def _range(low: float, high: float) -> str:
    """Return a percentage or its bounds as text; bounds of -inf and 100 are unknown."""
    if math.isinf(low):
        return f"< {high:.0f}%"
    if high == 100.0:
        return f"> {low:.0f}%"
    return f"{low:.0f}%" if low == high else f"{low:.0f} to {high:.0f}%"


def fill(page: Path, tables: Mapping[str, str]) -> None:
    """Write tables into a page, between the lines ``<!-- NAME -->`` and ``<!-- end of NAME -->``.

    Raises:
        ValueError: the page lacks the two lines of a table.
    """
    text = page.read_text("utf-8")
    for name, table in tables.items():
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, start, rest = text.partition(first)
        _, end, after = rest.partition(last)
        if not (start and end):
            raise ValueError(f"{page} must have the lines {first.strip()} and {last.strip()}")
        text = f"{before}{first}\n{table}\n\n{last}{after}"
    with replacing(page) as unfinished:
        unfinished.write_text(text, "utf-8")
