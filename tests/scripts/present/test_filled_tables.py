from __future__ import annotations

import math
from pathlib import Path

import pytest

from crawl_envs.evaluation import Row
from scripts.present.filled_tables import fill, markdown
from scripts.study.equal_freshness import Saved
from scripts.study.intervals import Interval


def test_a_cell_is_an_interval_a_range_or_a_number() -> None:
    rows = [
        *Interval(-0.0704, -0.23, 1.061).rows("id", "s", "A", "score"),
        *Saved(0.333, 0.333).rows("id", "s", "A", "known"),
        *Saved(0.7, 1.0).rows("id", "s", "A", "more"),
        *Saved(-math.inf, -0.04).rows("id", "s", "A", "less"),
        *Saved(0.1, 0.55).rows("id", "s", "A", "between"),
        Row("id", "s", "A", 0, "stale", 10.04),
    ]
    metrics = ("score", "known", "more", "less", "between", "stale", "none")
    lines = {name: [("s", name, metric) for metric in metrics] for name in "AB"}
    assert markdown(rows, metrics, lines).splitlines() == [
        "|  | score | known | more | less | between | stale | none |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| A | -.070 [-.23, 1.06] | 33% | > 70% | < -4% | 10 to 55% | 10.0 |  |",
    ]


def test_tables_leave_the_rest_of_a_page_unchanged(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    text = "# A\n<!-- x -->\nold\n<!-- end of x -->\nB\n<!-- y -->\n<!-- end of y -->\n"
    page.write_text(text, "utf-8")
    for cells in ("| 1 |", "| \\1 |"):  # also a second time, and nothing is a pattern
        fill(page, {"x": cells, "y": "| 2 |"})
        assert page.read_text("utf-8") == (
            f"# A\n<!-- x -->\n\n{cells}\n\n<!-- end of x -->\nB\n"
            "<!-- y -->\n\n| 2 |\n\n<!-- end of y -->\n"
        )
    with pytest.raises(ValueError, match="must have the lines <!-- z --> and <!-- end of z -->"):
        fill(page, {"z": "| 3 |"})
