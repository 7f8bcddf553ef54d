"""One module per figure or table of a paper, as data; a new module is found by itself.

A module ``<paper>_<figure>`` says what is played, what is expected, and how it is drawn.

What is played, one of two:

* policies in an environment: ``ID`` (an environment), ``SETTINGS`` (for each name, arguments of
  the environment), ``policies()`` and ``bounds()`` (as in
  :class:`scripts.reporting.settings.Setting`);
* anything else: ``measurements(quick)``, a sequence of
  :class:`scripts.reporting.settings.Measurement`. Each gives, for its labels, functions of a seed
  that return numbers by metric; the runner calls them over processes, keeps the rows as they come
  and goes on where it stopped. ``quick`` asks for something that takes a few seconds in all.

Many numbers of one kind, one per page or a course over time, are indexed metrics
(:func:`scripts.reporting.rows.indexed` and ``gathered``); ``derive(rows)``, which a module may
have, returns further rows that follow from the rows, such as a correlation over pages. Rows hold
raw numbers as far as possible, so that all the rest can be told anew without simulation.

What is expected: ``TITLE``; ``CLAIM`` (what the figure claims, in a sentence or two); ``METRIC``
(what is scored where nothing else is said); ``REFERENCE`` (the label against which it is; optional)
and ``FURTHER_REFERENCES`` (those against which the summary has differences too; optional);
``CLAIMS``, a tuple of :class:`scripts.reporting.verdicts.Claim`, the paper's sentences with the
levels, trends and ranges that test them; ``EXPECTED``, a tuple of further ones, which no sentence
of the paper stands behind. Without the name ``CLAIMS``, ``CLAIM`` is one that ``EXPECTED`` tests;
an experiment that is not the paper's has none, ``()``.

How it is drawn: ``plot(rows, path)``, for ``<METRIC>.png``; or ``PICTURES``, for each name of a
file a function ``(rows, path)``. Both are given the derived rows too.

``REPETITIONS`` and ``QUICK_REPETITIONS`` may say how many seeds are played; 100 and 5 otherwise.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

FIRST_PAPER = "ncis"
"""Whose figure is meant by a number that several papers have; the others need their whole name."""


def names() -> tuple[str, ...]:
    """Names of the experiments, numbers in order: fig9 comes before fig10."""
    papers = (paper.name for paper in pkgutil.iter_modules(__path__))
    figures = (
        f"{paper}_{module.name}"
        for paper in papers
        for module in pkgutil.iter_modules([str(Path(__file__).parent / paper)])
        if not module.ispkg
    )
    return tuple(sorted(figures, key=_natural))


def _natural(name: str) -> list[tuple[str, int]]:
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(number or -1)) for text, number in parts]


def find(name: str) -> ModuleType:
    """Return an experiment by its name, or by what follows the paper's name in it.

    Raises:
        ValueError: there is none, or more than one, and none of FIRST_PAPER.
    """
    matching = [full for full in names() if name in (full, full.partition("_")[2])]
    if len(matching) > 1:
        matching = [full for full in matching if full == f"{FIRST_PAPER}_{name}"]
    if len(matching) != 1:
        known = ", ".join((*_shortest(), *papers()))
        raise ValueError(f"figure must be one of {known}, got {name!r}")
    return importlib.import_module(f"{__name__}.{matching[0].replace('_', '.', 1)}")


def _shortest() -> list[str]:
    """Names without the paper's, where only one paper has such a figure."""
    short = [full.partition("_")[2] for full in names()]
    return [
        figure if short.count(figure) == 1 else full
        for full, figure in zip(names(), short, strict=True)
    ]


def papers() -> tuple[str, ...]:
    """Names of the papers."""
    return tuple(dict.fromkeys(full.partition("_")[0] for full in names()))


def of_paper(paper: str) -> tuple[ModuleType, ...]:
    """Return the experiments of a paper, in order."""
    return tuple(find(full) for full in names() if full.partition("_")[0] == paper)


def paper_and_figure(experiment: ModuleType) -> tuple[str, str]:
    """Return the two parts of an experiment's name."""
    paper, _, figure = experiment.__name__.rpartition(".")[2].partition("_")
    return paper, figure
