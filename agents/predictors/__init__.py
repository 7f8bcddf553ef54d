"""Predictors of an offer's price change, click or impression within a day.

Source: Han et al. 2020, section 3.3. Importing the package imports neither torch nor scikit-learn:
:func:`load` does, when a predictor needs them. A folder of predictors has a file for each task,
``price.npz``, ``click.npz`` and ``impression.npz``, and ``provenance.json``: how they were trained.

Public modules: examples, predicted_rates, predictor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crawl_envs.system.own_packages import check_own

if TYPE_CHECKING:
    from agents.predictors.predictor import Predictor

check_own("agents")

__all__ = ["FEATURES", "MODELS", "PROVENANCE", "TASKS", "load", "names"]

TASKS = ("price", "click", "impression")
"""Predicted events of an offer within the day."""
FEATURES = ("metadata", "history", "both")
"""Features of a predictor: the two halves of Han et al. 2020, Table 3, or both."""
MODELS = ("network", "trees")
"""Models: the paper's network, or gradient-boosted trees."""

SHIPPED = Path(__file__).parent / "shipped"
PROVENANCE = "provenance.json"


def names() -> tuple[str, ...]:
    """Return the names of the predictors that come with the package, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{PROVENANCE}")))


def load(predictors: str | Path | Mapping[str, Predictor]) -> dict[str, Predictor]:
    """Return trained predictors by task.

    Args:
        predictors: a folder, one of :func:`agents.predictors.names`, or the predictors by task.

    Raises:
        ValueError: there are none, or one is missing, damaged, foreign, or of another task.
    """
    from agents.predictors.predictor import Predictor

    if isinstance(predictors, str | Path):
        folder = SHIPPED / predictors if predictors in names() else Path(predictors)
        if not folder.is_dir():
            raise ValueError(f"there is no folder {folder} (the names {', '.join(names())})")
        predictors = {task: Predictor.load(folder / f"{task}.npz") for task in TASKS}
    if not isinstance(predictors, Mapping):
        raise ValueError(
            f"predictors must be a folder, a name or a mapping by task, got {predictors!r}"
        )
    tasks = {name: getattr(value, "task", value) for name, value in predictors.items()}
    if tasks != {task: task for task in TASKS}:
        raise ValueError(f"predictors must be one each of {', '.join(TASKS)}, got {tasks}")
    return dict(predictors)
