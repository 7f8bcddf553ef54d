"""Predictors of events of an offer within a day: price change, click, impression.

After Han et al. 2020, section 3.3. Importing the package imports neither torch nor scikit-learn:
:func:`load` does, when a predictor needs them.

Public modules: auc, examples, predicted_rates, predictor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.runs import read_object, replace_text
from crawl_envs.types.own_packages import check_own

if TYPE_CHECKING:
    from agents.predictors.predictor import Predictor

check_own("agents")

__all__ = ["FEATURES", "MODELS", "PROVENANCE", "TASKS", "load", "made", "names", "save"]

TASKS = ("price", "click", "impression")
"""Predicted events of an offer within the day."""
FEATURES = ("metadata", "history", "both")
"""Features of a predictor: the two halves of Han et al. 2020, Table 3, or both."""
MODELS = ("network", "trees")
"""Models: the paper's network, or gradient-boosted trees."""

SHIPPED = Path(__file__).parent / "shipped"
PROVENANCE = "provenance.json"
"""A folder of predictors has it, and a file per task."""


def names() -> tuple[str, ...]:
    """Return the names of the predictors that come with the package, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/provenance.json")))


def save(folder: str | Path, predictors: Mapping[str, Predictor], made: Mapping[str, Any]) -> None:
    """Write predictors to a folder, made if need be; files there are replaced one by one.

    Args:
        folder: the folder.
        predictors: by task, one of each.
        made: provenance, plain values as JSON has them.

    Raises:
        ValueError: a task is missing, or a predictor has another's name.
        TypeError: ``made`` holds values that JSON has not.
        OSError: it cannot be written.
    """
    check_tasks(predictors)
    text, folder = json.dumps(dict(made), indent=2) + "\n", Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for task, predictor in predictors.items():
        predictor.save(folder / f"{task}.npz")
    replace_text(folder / PROVENANCE, text)


def check_tasks(predictors: Mapping[str, Predictor]) -> None:
    """Raise ValueError unless there is one predictor of each task, under its name."""
    if not isinstance(predictors, Mapping):
        raise ValueError(
            f"predictors must be a mapping by task, a folder or a name, got {predictors!r}"
        )
    given = {name: getattr(each, "task", each) for name, each in predictors.items()}
    if given != {task: task for task in TASKS}:
        raise ValueError(f"predictors must be one each of {', '.join(TASKS)}, got {given}")


def load(folder_or_name: str | Path) -> dict[str, Predictor]:
    """Return trained predictors by task.

    Args:
        folder_or_name: a folder, or one of :func:`agents.predictors.names`.

    Raises:
        ValueError: there are none, or a file is missing, damaged or foreign, or of another task.
    """
    from agents.predictors.predictor import Predictor

    folder, predictors = find(folder_or_name), {}
    for task in TASKS:
        path = folder / f"{task}.npz"
        predictors[task] = Predictor.load(path)
        if predictors[task].task != task:
            raise ValueError(f"{path} is a predictor of another task, {predictors[task].task!r}")
    return predictors


def made(folder_or_name: str | Path) -> dict[str, Any]:
    """Return the provenance of predictors; ValueError if there are none, or it is damaged."""
    return read_object(find(folder_or_name) / PROVENANCE)


def find(folder_or_name: str | Path) -> Path:
    """Return the folder of predictors.

    Raises:
        ValueError: there is none.
    """
    if not isinstance(folder_or_name, str | Path):
        raise ValueError(
            f"predictors must be a folder or one of the names {', '.join(names())}, "
            f"got {folder_or_name!r}"
        )
    folder = SHIPPED / folder_or_name if folder_or_name in names() else Path(folder_or_name)
    if not (folder / PROVENANCE).exists():
        raise ValueError(f"there is no {PROVENANCE} in {folder} (the names {', '.join(names())})")
    return folder
