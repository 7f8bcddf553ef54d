"""Find experiments: one module per figure or table of a paper, which declares it as data.

A module ``<paper>.<figure>`` declares ``EXPERIMENT``, an
:class:`scripts.present.experiment.Experiment`. Its attribute ``settings`` is a function of whether
the run is quick, made by one of:

* :func:`scripts.present.experiment.policy_settings`: policies in an environment, and bounds;
* :func:`scripts.present.experiment.measure_settings`: functions of a seed that return numbers by
  metric. :mod:`scripts.experiments.measures` has functions for several experiments;
* any other function that returns settings and measurements of :mod:`scripts.study.settings`.

The runner simulates them in worker processes, saves rows as they arrive and can resume. Saved rows
are identified by the declared name, and by the :func:`scripts.study.specs.spec` of functions.
Arrays of numbers, such as one per page, are indexed metrics (:func:`scripts.study.rows.indexed`
and ``gathered``). Save raw numbers where possible: everything else can be derived from them.
:mod:`scripts.experiments.figures` makes pictures.

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
"""The folder of functions that experiments share."""


def names() -> tuple[str, ...]:
    """Return the full names of all experiments, in natural order: fig9 comes before fig10."""
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
        ValueError: there is no such experiment, several papers have one of this name, or the
            module declares none.
    """
    matching = [full for full in names() if name in (full, full.partition("_")[2])]
    if len(matching) > 1:
        raise ValueError(f"figure {name!r} is in several papers: name {' or '.join(matching)}")
    if not matching:  # a module may have another name than its experiment
        matching = [full for full in names() if _load(full).name == name.replace("_", "-", 1)]
    if not matching:
        one_of("figure", name, tuple(dict.fromkeys((*_shortest(), *names(), *papers()))))
    return _load(matching[0])


def _load(full: str) -> Experiment:
    """Return the experiment that a module declares, by the module's full name."""
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
    """Return the name of each experiment, without the paper where the figure's name is unique."""
    short = [full.partition("_")[2] for full in names()]
    return [
        figure if short.count(figure) == 1 else full
        for full, figure in zip(names(), short, strict=True)
    ]


def papers() -> tuple[str, ...]:
    """Return the names of the papers that have experiments."""
    return tuple(dict.fromkeys(full.partition("_")[0] for full in names()))


def of_paper(paper: str) -> tuple[Experiment, ...]:
    """Return the experiments of the paper with this name, in natural order.

    Raises:
        ValueError: two experiments have the same name.
    """
    modules: dict[str, str] = {}
    every = [(full, _load(full)) for full in names() if full.partition("_")[0] == paper]
    for full, experiment in every:
        first = modules.setdefault(experiment.name, full)
        if first != full:
            raise ValueError(f"names of {first} and {full} must differ, got {experiment.name!r}")
    return tuple(experiment for _, experiment in every)


def select(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments with these names, each once; a paper's name selects all its figures.

    Raises:
        ValueError: a name is unknown, or two experiments have the same name.
    """
    selected = [experiment for name in names for experiment in of_paper(name) or (find(name),)]
    for paper in {experiment.paper for experiment in selected}:
        of_paper(paper)
    return list({experiment.name: experiment for experiment in selected}.values())
