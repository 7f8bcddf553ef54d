"""Measure the speed and memory of the suite on one core.

Each case times several tasks in turn and compares them within a turn; see
:mod:`scripts.timing.turns`. Thresholds are for ratios of speeds, since machines differ. Writes
``speed.csv``, ``speed.png`` (the ratios; none with ``--case``) and ``provenance.json`` (the
machine). With ``--against`` it compares environments with another checkout and writes
``against.csv`` only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scripts.cli.commands import command
from scripts.timing import checkouts, scale
from scripts.timing.cases import QUICK_SPELL, QUICK_TURNS, SPELL, TURNS, Row, draw, runs
from scripts.timing.commands import Measurement, Out, Quick, Words, folder_of, measure, select_cases

SPEED = Measurement(
    "scripts.speed", "speed", Row, "Speed on one core: medians and quartiles", 2, draw, True
)
AGAINST = Measurement(
    "scripts.speed",
    "against",
    checkouts.Against,
    "Speed over that of the other checkout, and seconds of a step in both",
    pinned=True,
)
OtherCheckout = Annotated[
    Path | None,
    typer.Option(help="Folder of another checkout; only compare environments with it."),
]


def main(
    quick: Quick = False, case: Words = None, out: Out = None, against: OtherCheckout = None
) -> None:
    """Measure the selected cases, and write and print their rows."""
    folder = folder_of(out, quick or bool(case))
    if against is not None:
        turns = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
        cases = select_cases(checkouts.cases(against, *turns), case)
        measure(AGAINST, cases, folder, against=str(against))
        return
    measurement = SPEED._replace(draw=None) if case else SPEED
    measure(measurement, select_cases(runs(scale.CASES, quick), case), folder)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
