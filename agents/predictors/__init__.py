"""Predictors of events of an offer within a day: price change, click, impression.

After Han et al. 2020, section 3.3. Importing the package imports neither torch nor scikit-learn:
:func:`load` does, when a predictor needs them.

Public modules: auc, examples, predicted_rates, predictor, saving.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawl_envs.types.own_packages import check_own

if TYPE_CHECKING:
    from agents.predictors.predictor import Predictor

check_own("agents")

__all__ = ["FEATURES", "MODELS", "TASKS", "load", "names"]

TASKS = ("price", "click", "impression")
"""Predicted events of an offer within the day."""
FEATURES = ("metadata", "history", "both")
"""Features of a predictor: the two halves of Han et al. 2020, Table 3, or both."""
MODELS = ("network", "trees")
"""Models: the paper's network, or gradient-boosted trees."""

SHIPPED = Path(__file__).parent / "shipped"


def names() -> tuple[str, ...]:
    """Return the names of the predictors that come with the package, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/provenance.json")))


def load(folder_or_name: str | Path) -> dict[str, Predictor]:
    """Return trained predictors by task; see :func:`agents.predictors.saving.load`."""
    from agents.predictors.saving import load as load_predictors

    return load_predictors(folder_or_name)
