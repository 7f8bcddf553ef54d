"""Measure the speed of the suite against other implementations, in one run on one core.

Thresholds are for ratios and not for seconds, since machines differ; see
:mod:`scripts.timing.turns` for the method. Writes ``speed.csv`` (ratios, speeds and the parts of a
step), ``growth.csv``, ``provenance.json`` (the machine), ``speed.png``, ``parts.png`` and
``growth.png``; with ``--against`` only ``against.csv``, the speed over that of another checkout,
and its entry of ``provenance.json``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli.commands import command
from scripts.timing import checkouts, figures
from scripts.timing.commands import Case, Measurement, Out, Quick, chosen, folder_of, measure
from scripts.timing.comparisons import INSTANCE
from scripts.timing.figures import cases, timing
from scripts.timing.growth import Cost, draw

OF = Measurement(
    "scripts.speed",
    {"speed": figures.Figure, "growth": Cost},
    "Speed on one core",
    draw=draw,
    shown=figures.table,
    pinned=True,
)
BESIDE = Measurement(
    "scripts.speed",
    {"against": checkouts.Against},
    "Speed over that of the other checkout, and seconds of a step in both",
    pinned=True,
)
OtherCheckout = Annotated[
    Path | None,
    typer.Option(help="Folder of another checkout; measure the speed over that of it alone."),
]


def main(
    quick: Quick = False, case: Case = None, out: Out = None, against: OtherCheckout = None
) -> None:
    """Measure, write and print.

    Cold starts come first, since processes started later would inherit the pinned core.
    """
    folder = folder_of(out, quick or bool(case))
    if case:
        every = cases(quick) if against is None else checkouts.cases(against, *timing(quick))
        of = OF if against is None else BESIDE
        measure(of._replace(draw=None), chosen(every, case), folder, against=str(against or ""))
    elif against is None:
        measure(OF, cases(quick), folder, figures.starts(quick), instance=INSTANCE)
    else:
        beside = checkouts.cases(against, *timing(quick))
        measure(BESIDE, beside, folder, against=str(against))


app = command(main, __doc__)

if __name__ == "__main__":
    app()
