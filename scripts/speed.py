"""Measure the speed and memory of the suite: the table of scale cases, in one run on one core.

Tasks of a case take turns, and are compared within a turn; see :mod:`scripts.timing.turns`.
Thresholds are for ratios and not for seconds, since machines differ. Writes ``speed.csv``,
``speed.png`` (the ratios) and ``provenance.json`` (the machine); with ``--against`` only
``against.csv``, the speed of environments over that of another checkout, and its entry of
``provenance.json``. With ``--case`` there is no picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli.commands import command
from scripts.timing import checkouts, scale
from scripts.timing.cases import QUICK_SPELL, QUICK_TURNS, SPELL, TURNS, Row, draw, runs
from scripts.timing.commands import Measurement, Out, Quick, Words, chosen, folder_of, measure

OF = Measurement(
    "scripts.speed", "speed", Row, "Speed on one core: medians and quartiles", 2, draw, True
)
BESIDE = Measurement(
    "scripts.speed",
    "against",
    checkouts.Against,
    "Speed over that of the other checkout, and seconds of a step in both",
    pinned=True,
)
OtherCheckout = Annotated[
    Path | None,
    typer.Option(help="Folder of another checkout; measure the speed over that of it alone."),
]


def main(
    quick: Quick = False, case: Words = None, out: Out = None, against: OtherCheckout = None
) -> None:
    """Measure, write and print."""
    folder = folder_of(out, quick or bool(case))
    if against is not None:
        turns = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
        beside = chosen(checkouts.cases(against, *turns), case)
        measure(BESIDE, beside, folder, against=str(against))
        return
    of = OF._replace(draw=None) if case else OF
    measure(of, chosen(runs(scale.CASES, quick), case), folder)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
