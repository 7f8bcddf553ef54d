"""One module per figure or table of a paper, as data; new modules are discovered.

A module ``<paper>.<figure>`` defines what is simulated, what is expected, and how it is drawn.

What is simulated, one of three:

* policies in an environment: ``ID`` (an environment), ``SETTINGS`` (for each name, arguments of
  the environment), ``POLICIES`` (for each label, a policy in the form ``Name`` or
  ``Name:key=value`` of the command line) and ``BOUNDS`` (for each label, a function of an
  instance, such as those of :mod:`scripts.study.bounds`; optional);
* functions of a seed that return numbers by metric: ``SETTINGS`` (for each name, arguments of
  the functions), ``MEASURES`` (for each label, a function, see
  :class:`scripts.study.settings.Measurement`), and optionally ``ID`` (an environment, for the
  rows), ``ONLY`` (settings that have some of the labels only, and which) and ``MOST`` (the
  largest useful number of repetitions of a setting). :mod:`scripts.experiments.measures` has
  functions for several experiments;
* anything else: ``measurements(quick)``, a sequence of measurements.

The runner plays them in worker processes, saves rows as they arrive and can resume. ``QUICK``
replaces arguments in all settings of a quick run, ``QUICK_SETTINGS`` are the names of those that
it plays (optional, all). All of it together should take a few seconds, once compiled.

Arrays of numbers, such as one per page or a time series, are indexed metrics
(:func:`scripts.study.rows.indexed` and ``gathered``). An optional ``derive(rows)`` returns
further rows computed from the rows, such as a correlation over pages. Rows should hold raw numbers
as far as possible, so that everything else can be recomputed without simulation.

``NAME`` is what kept rows are recognised by: chosen once, and not changed with the module or the
title. Functions are recognised by their :func:`scripts.study.specs.spec`.

Expectations: ``TITLE``; ``CLAIM`` (the claim of the figure in a sentence or two); ``METRIC`` (the
default metric); ``REFERENCE`` (the label that others are compared with; optional) and
``FURTHER_REFERENCES`` (further labels for differences in the summary; optional); ``INTERVALS`` (in
words, where they are not Student's over repetitions; optional); ``CLAIMS``, a
tuple of :class:`scripts.present.verdicts.Claim`: sentences of the paper with the levels, trends
and ranges that test them; ``EXPECTED``, a tuple of further expectations that are not in the paper.
One of these two is enough.

Pictures: ``PICTURES``, a mapping of file names to functions ``(rows, path)``, which also receive
the derived rows; :mod:`scripts.experiments.figures` makes the usual ones. Or ``plot(rows, path)``,
for ``<METRIC>.png``.

Tables: an optional ``TABLES``, a mapping of names to functions of all rows that return a Markdown
table. It is written to the README.md of the results, if there is one, between the lines ``<!-- NAME
-->`` and ``<!-- end of NAME -->``.

``REPETITIONS`` and ``QUICK_REPETITIONS`` are the numbers of seeds; 100 and 5 by default.

Public modules: reproducing.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from crawl_envs.types.arguments import one_of

SHARED = "measures"
"""The folder of what experiments share."""


def names() -> tuple[str, ...]:
    """Return the names of the experiments in natural order: fig9 before fig10."""
    figures = (
        f"{paper.name}_{figure.name}"
        for folder in __path__
        for paper in pkgutil.iter_modules([folder])
        for figure in pkgutil.iter_modules([str(Path(folder) / paper.name)])
        if paper.name != SHARED and not figure.ispkg
    )
    return tuple(sorted(figures, key=_natural))


def _natural(name: str) -> list[tuple[str, int]]:
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(number or -1)) for text, number in parts]


def find(name: str) -> ModuleType:
    """Return an experiment by its full name, or by its name without the paper.

    Raises:
        ValueError: no such experiment, or a name that several papers have.
    """
    matching = [full for full in names() if name in (full, full.partition("_")[2])]
    if len(matching) > 1:
        raise ValueError(f"figure {name!r} is in several papers: name {' or '.join(matching)}")
    if not matching:
        one_of("figure", name, tuple(dict.fromkeys((*_shortest(), *names(), *papers()))))
    return importlib.import_module(f"{__name__}.{matching[0].replace('_', '.', 1)}")


def _shortest() -> list[str]:
    """Return the names, without the paper where the rest is unique."""
    short = [full.partition("_")[2] for full in names()]
    return [
        figure if short.count(figure) == 1 else full
        for full, figure in zip(names(), short, strict=True)
    ]


def papers() -> tuple[str, ...]:
    """Return the names of the papers."""
    return tuple(dict.fromkeys(full.partition("_")[0] for full in names()))


def of_paper(paper: str) -> tuple[ModuleType, ...]:
    """Return the experiments of a paper, in order."""
    return tuple(find(full) for full in names() if full.partition("_")[0] == paper)


def chosen(names: Sequence[str]) -> list[ModuleType]:
    """Return the experiments of these names, each once; a paper's name means all of its figures.

    Raises:
        ValueError: an unknown name.
    """
    selected: dict[str, ModuleType] = {}
    for name in names:
        of_it = of_paper(name) if name in papers() else ()
        for experiment in of_it or (find(name),):
            selected[experiment.__name__] = experiment
    return list(selected.values())
