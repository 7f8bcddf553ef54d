"""One module per figure or table of a paper, as data; new modules are discovered.

A module ``<paper>.<figure>`` declares ``EXPERIMENT``, an
:class:`scripts.present.experiment.Experiment`, whose attributes are described there: a name, a
title, a claim, what is played, what is expected, and pictures. What is played is a function of
whether the run is quick:

* :func:`scripts.present.experiment.policy_settings`: policies in an environment, and bounds;
* :func:`scripts.present.experiment.measure_settings`: functions of a seed that return numbers by
  metric. :mod:`scripts.experiments.measures` has functions for several experiments;
* any other function that returns settings and measurements of :mod:`scripts.study.settings`.

The runner plays them in worker processes, saves rows as they arrive and can resume. Kept rows are
recognised by the declared name, and functions by their :func:`scripts.study.specs.spec`. Arrays of
numbers, such as one per page, are indexed metrics (:func:`scripts.study.rows.indexed` and
``gathered``). Rows should hold raw numbers as far as possible, so that everything else can be
derived without simulation. :mod:`scripts.experiments.figures` makes the usual pictures.

Public modules: reproducing.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Sequence
from pathlib import Path

from crawl_envs.types.arguments import one_of
from scripts.present.experiment import Experiment

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


def find(name: str) -> Experiment:
    """Return an experiment by its full name, or by its name without the paper.

    Raises:
        ValueError: no such experiment, a name that several papers have, or a module without one.
    """
    matching = [full for full in names() if name in (full, full.partition("_")[2])]
    if len(matching) > 1:
        raise ValueError(f"figure {name!r} is in several papers: name {' or '.join(matching)}")
    if not matching:  # a module may have another name than its experiment
        matching = [each for each in names() if _load(each).name == name.replace("_", "-", 1)]
    if not matching:
        one_of("figure", name, tuple(dict.fromkeys((*_shortest(), *names(), *papers()))))
    return _load(matching[0])


def _load(full: str) -> Experiment:
    """Return the experiment of a module, by the module's full name."""
    module = importlib.import_module(f"{__name__}.{full.replace('_', '.', 1)}")
    experiment = vars(module).get("EXPERIMENT")
    if not isinstance(experiment, Experiment):
        raise ValueError(f"{module.__name__} must declare EXPERIMENT = Experiment(...)")
    if experiment.paper != (folder := full.partition("_")[0]):
        raise ValueError(
            f"name of {module.__name__} must begin with {folder + '-'!r}, got {experiment.name!r}"
        )
    return experiment


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


def of_paper(paper: str) -> tuple[Experiment, ...]:
    """Return the experiments of a paper, in order; ValueError if two have one name."""
    modules: dict[str, str] = {}
    every = [(full, _load(full)) for full in names() if full.partition("_")[0] == paper]
    for full, experiment in every:
        other = modules.setdefault(experiment.name, full)
        if other != full:
            raise ValueError(f"{other} and {full} must have two names, got {experiment.name!r}")
    return tuple(experiment for _, experiment in every)


def select(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments of these names, each once; a paper's name selects all its figures.

    Raises:
        ValueError: an unknown name, or two experiments of one name.
    """
    selected = [each for name in names for each in of_paper(name) or (find(name),)]
    for paper in {experiment.paper for experiment in selected}:
        of_paper(paper)
    return list({experiment.name: experiment for experiment in selected}.values())
