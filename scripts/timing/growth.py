"""Cost of a step by numbers of pages and lanes, and the pictures of all timings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.present.tables import counted
from scripts.timing.parts import PARTS
from scripts.timing.stepped import Case, ncis, stepping
from scripts.timing.turns import timed

if TYPE_CHECKING:
    import pandas as pd

SIZES = (10, 100, 1_000, 10_000, 100_000)
LANES = (1, 4, 16, 64, 256, 1024)
QUICK_SIZES, QUICK_LANES = (10, 100, 1_000), (1, 16)
MOST_CELLS = 2_000_000
"""Largest product of pages and lanes that is timed, to limit memory."""

REACHED = {"pass": "threshold reached", "fail": "not reached", "": "no threshold"}
THRESHOLD = "threshold"
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


class Cost(NamedTuple):
    """Seconds of an env-step at a number of pages and lanes."""

    pages: int
    lanes: int
    seconds: float


def cells(quick: bool) -> list[tuple[int, int]]:
    """Return the timed pairs (pages, lanes)."""
    sizes, lanes = (QUICK_SIZES, QUICK_LANES) if quick else (SIZES, LANES)
    return [(pages, many) for pages in sizes for many in lanes if pages * many <= MOST_CELLS]


def cost(pages: int, lanes: int, spell: float) -> list[Cost]:
    """Return the cost of a number of pages and lanes: the best of three measurements."""
    case = Case("CrawlNCIS", ncis(pages), lanes=lanes)
    seconds = timed({"step": stepping(case)}, 3, spell)["step"]
    return [Cost(pages, lanes, float(seconds.min()) / lanes)]


def draw(path: Path, rows: list[Any]) -> None:
    """Draw ratios with thresholds, and beside them the parts of a step of 64 lanes, and growth."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, bars, lines

    every = pd.DataFrame([row for row in rows if not isinstance(row, Cost)])
    _draw_ratios(every[every.kind == "ratio"], path)
    parts = every[(every.kind == "part") & (every.group == PARTS[0].name)]
    shares = zip(1e6 * parts["median"], parts["median"] / parts["median"].sum(), strict=True)
    texts = [f"{size:.1f} µs, {share:.0%}" for size, share in shares]
    frame = Frame("Parts of a step", Axis("microseconds per step of 64 lanes"))
    data = parts.assign(y=parts.name, x=1e6 * parts["median"], text=texts)
    bars(data, path.with_name("parts.png"), frame)
    costs = pd.DataFrame([row for row in rows if isinstance(row, Cost)])
    frame = Frame(
        "Cost of an env-step by size, best of three",
        Axis("pages", "log"),
        Axis("nanoseconds per env-step", "log"),
    )
    label = costs.lanes.map(lambda lanes: counted(lanes, "lane"))
    data = costs.assign(x=costs.pages, y=1e9 * costs.seconds, label=label)
    lines(data, path.with_name("growth.png"), frame)


def _draw_ratios(ratios: pd.DataFrame, path: Path) -> None:
    """Draw each ratio with its quartiles, and its threshold if it has one."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, Rule, dots

    compared = ratios.group + ": " + ratios.name + " / " + ratios.against
    ratios = ratios.assign(y=compared, x=ratios["median"], label=ratios.verdict.map(REACHED))
    bounded = ratios.dropna(subset="bound").assign(label=THRESHOLD)
    bounds = bounded.assign(x=bounded.bound, low=bounded.bound, high=bounded.bound)
    frame = Frame(
        "Speed over that of other programs, on one core",
        Axis("times as fast (logarithmic scale); bars: quartiles", "log", ticks=RATIOS),
        upright=[Rule(1.0)],
        size=(9.0, 0.0),
    )
    labels = (*REACHED.values(), THRESHOLD)
    dots(pd.concat([ratios, bounds]), path, frame, labels=labels, black=(THRESHOLD,))
