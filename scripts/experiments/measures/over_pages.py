"""Settings for several numbers of pages, as in Busa-Fekete et al., and known accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.present.experiment import Picture
from scripts.present.verdicts import Level
from scripts.study.bounds import BASELINE, OPTIMUM

ID = "CrawlNCIS-v0"
NUM_PAGES = (100, 200, 300, 500, 750, 1000, 10000)
PAGES = {f"m={num_pages}": num_pages for num_pages in NUM_PAGES}
"""Numbers of pages by setting."""


def sweep(instance: str, sizes: Sequence[int] = NUM_PAGES) -> dict[str, dict[str, Any]]:
    """Return the arguments of the environment for each number of pages, by the setting's name."""
    return {
        name: {
            "instance": instance,
            "num_pages": num_pages,
            "bandwidth": 100.0,
            "horizon": 1000.0,
        }
        for name, num_pages in PAGES.items()
        if num_pages in sizes
    }


QUICK = {"horizon": 20.0}
QUICK_SETTINGS = tuple(PAGES)[:3]

LEVELS = {
    "m=100": (0.8340, 0.8340, 0.8337, 0.7979, 0.9229),
    "m=300": (0.6254, 0.6254, 0.6253, 0.5640, 0.7525),
    "m=1000": (0.3663, 0.3671, 0.3671, 0.2905, 0.4404),
}
"""Accuracies of LEVEL_LABELS by independent code: means over 100 other instances."""
LEVEL_LABELS = ("BASELINE", "GREEDY", "LDS", "round robin", "GREEDY-CIS")
"""GREEDY-CIS is without false signals; the others use no signals."""
TOLERANCE = 0.005
"""The standard error of means over 100 other instances is .0012 to .0020, by setting."""


def levels(*labels: str) -> tuple[Level, ...]:
    """Return known accuracies of labels, computed by independent code, by number of pages."""
    return tuple(
        Level(setting, label, value, TOLERANCE, "independent code, 100 repetitions")
        for setting, values in LEVELS.items()
        for label, value in zip(LEVEL_LABELS, values, strict=True)
        if label in labels
    )


PAGES_AXIS = Axis(
    "pages m (logarithmic scale), 100 crawls per unit of time", "log", None, NUM_PAGES
)


def accuracy(title: str) -> Picture:
    """Return a function that draws accuracy, and its difference to BASELINE, by number of pages."""
    level, difference = "accuracy", f"accuracy minus {BASELINE}, same seeds"
    served = Axis("share of requests served fresh")
    return figures.lines(
        [Series("accuracy", level), Series("accuracy", difference, minus=BASELINE)],
        Frame(
            f"{title}\n95% intervals over {{seeds}} repetitions",
            PAGES_AXIS,
            {level: served._replace(limits=(0.0, None)), difference: served},
            shared="x",
            across=[Rule(0.0, panel=difference)],
        ),
        positions=PAGES,
        black=(BASELINE, OPTIMUM),
    )
