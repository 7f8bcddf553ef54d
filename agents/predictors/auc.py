"""Area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def both_classes(labels: ArrayLike) -> NDArray[np.bool_]:
    """Return labels as bool; ValueError unless both classes are present."""
    happened = np.asarray(labels, bool)
    if happened.all() or not happened.any():
        raise ValueError(f"labels must hold both classes, got {len(happened)} of one")
    return happened


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve, by scikit-learn.

    It is the probability that a positive example scores above a negative one, ties counting half.

    Args:
        labels: (n,) bool, both classes present.
        scores: (n,), larger for likelier positives.

    Raises:
        ValueError: shapes that disagree, scores that are not finite, labels of one class.
    """
    from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]  # slow to import

    return float(roc_auc_score(both_classes(labels), scores))
