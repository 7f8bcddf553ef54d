"""Gradient-boosted trees, the modern alternative to the paper's network.

Trees are grown by scikit-learn (HistGradientBoostingClassifier), and stored as plain arrays, so
that files can be read under any version of it, or without it. Ids, which may exceed its 255
categories, are replaced by target statistics; so is each pair of merchant and weekday, since the
separate statistics of merchants and weekdays do not identify the days of a merchant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.predictors.auc import auc
from agents.predictors.columns import Columns, FloatColumns, IdColumns
from agents.predictors.model import Report, Table
from agents.predictors.target_statistics import TargetStatistics
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.compiling import compiled

FloatArray = NDArray[np.float64]
ROWS_AT_ONCE = 2048
CHOICES = 10
"""Number of candidates for the number of trees; the best validation AUC decides."""
MOST_PAIRED = (np.iinfo(np.int32).max - 6) // 7


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """Settings of trees.

    Raises:
        ValueError: a value outside its range.
    """

    trees: int = 200
    """Maximal number of trees, >= 1."""
    leaves: int = 31
    """Maximal number of leaves of a tree, >= 2."""
    learning_rate: float = 0.1
    """Factor of each tree, > 0."""
    l2: float = 1.0
    """L2 penalty on leaves, >= 0."""
    least: int = 50
    """Minimal number of examples of a leaf, >= 1."""
    strength: float = 20.0
    """Weight of the overall share in a target statistic, in examples, > 0."""
    folds: int = 5
    """Folds of the target statistics of the training table, >= 2."""
    threads: int = 1
    """Threads for training, >= 1."""

    def __post_init__(self) -> None:
        for name, low in (("trees", 1), ("leaves", 2), ("least", 1), ("folds", 2), ("threads", 1)):
            whole(name, getattr(self, name), low)
        real("learning_rate", self.learning_rate, above=0.0)
        real("strength", self.strength, above=0.0)
        real("l2", self.l2, least=0.0)


def with_weekdays(ids: IdColumns) -> IdColumns:
    """Return ids with one more column: pairs of the last two, merchant and weekday.

    Ids are in the order of :data:`crawl_envs.types.offer_features.METADATA_FEATURES`; (n, 0) is
    returned unchanged. Merchants with a negative number, or too large a one for pairs, give -1.
    """
    if ids.shape[1] == 0:
        return ids
    merchant, weekday = ids[:, -2], ids[:, -1]
    numbered = (merchant >= 0) & (merchant <= MOST_PAIRED)
    return np.column_stack([ids, np.where(numbered, 7 * merchant + weekday, -1)])


@compiled()
def add_trees(
    table: FloatColumns,
    roots: NDArray[np.int64],
    feature: NDArray[np.int64],
    threshold: FloatArray,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    value: FloatArray,
    out: FloatArray,
) -> None:
    """Add the values of trees to ``out``, (n,).

    Nodes of all trees lie in one list; a row goes left where its feature is at most the threshold,
    and ``left`` is -1 in leaves.

    Args:
        table: (n, c).
        roots: first node of each tree.
        feature: column that each node compares.
        threshold: largest value that goes left.
        left: node on the left, -1 in leaves.
        right: node on the right.
        value: of each leaf.
        out: the sums, (n,).
    """
    for start in range(0, len(table), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(table))
        for root in roots:
            for row in range(start, stop):
                node = root
                while left[node] >= 0:
                    here = np.float64(table[row, feature[node]])
                    node = left[node] if here <= threshold[node] else right[node]
                out[row] += value[node]


class Trees:
    """Trained trees.

    Attributes:
        settings: of the training.
        statistics: numbers in place of ids.
        nodes: ``roots`` and, of each node, ``feature``, ``threshold``, ``left``, ``right`` and
            ``value``; see :func:`add_trees`.
        baseline: log-odds without trees.
    """

    def __init__(
        self,
        settings: TreeSettings,
        statistics: TargetStatistics,
        nodes: dict[str, NDArray[Any]],
        baseline: float,
    ) -> None:
        self.settings, self.statistics = settings, statistics
        self.nodes, self.baseline = nodes, baseline

    @classmethod
    def fit(
        cls,
        settings: TreeSettings,
        train: Table,
        validation: Table,
        seed: int,
        report: Report | None = None,
    ) -> Trees:
        """Grow trees on one table; keep the number of the best AUC on another.

        Arguments are those of :meth:`agents.predictors.network.Network.fit`; ``report`` is
        called at the end.
        """
        from sklearn.ensemble import (  # type: ignore[import-untyped]  # slow to import
            HistGradientBoostingClassifier,
        )
        from threadpoolctl import (  # type: ignore[import-untyped]  # scikit-learn needs it, too
            threadpool_limits,
        )

        columns, labels = train
        crossed = with_weekdays(columns.metadata)
        statistics = TargetStatistics.learn(crossed, labels, settings.strength)
        ids = statistics.of_training(crossed, labels, settings.strength, settings.folds, seed)
        grown = HistGradientBoostingClassifier(
            max_iter=settings.trees,
            max_leaf_nodes=settings.leaves,
            learning_rate=settings.learning_rate,
            l2_regularization=settings.l2,
            min_samples_leaf=settings.least,
            early_stopping=False,
            random_state=seed,
        )
        with threadpool_limits(limits=settings.threads, user_api="openmp"):
            grown.fit(np.hstack([columns.history, ids]), labels)
        per_tree = [tree[0].nodes for tree in grown._predictors]
        baseline = float(np.asarray(grown._baseline_prediction).item())
        trees = cls(settings, statistics, nodes_of(per_tree), baseline)
        best = trees._keep_best(validation)
        if report is not None:
            report(1.0, f"validation AUC {best:.4f}")
        return trees

    def _keep_best(self, validation: Table) -> float:
        """Drop the last trees where the validation AUC is better without; return that AUC."""
        table, roots = self._table(validation[0]), self.nodes["roots"]
        sizes = np.unique(np.linspace(0, len(roots), CHOICES + 1).astype(int))[1:]
        odds, before, best, kept = np.zeros(len(table)), 0, -1.0, 0
        for size in sizes:
            self._add(table, roots[before:size], odds)
            score, before = auc(validation[1], odds), size
            if score > best:
                best, kept = score, size
        self.nodes["roots"] = roots[:kept].copy()
        return best

    def _table(self, columns: Columns) -> FloatColumns:
        """Return the table of features, (n, c) float32."""
        return np.hstack([columns.history, self.statistics(with_weekdays(columns.metadata))])

    def _add(self, table: FloatColumns, roots: NDArray[np.int64], odds: FloatArray) -> None:
        """Add trees to log-odds."""
        nodes = self.nodes
        sides = nodes["left"], nodes["right"]
        add_trees(table, roots, nodes["feature"], nodes["threshold"], *sides, nodes["value"], odds)

    def log_odds(self, columns: Columns) -> FloatArray:
        """Return log-odds of scaled columns, (n,) float64."""
        odds = np.full(len(columns), self.baseline)
        self._add(self._table(columns), self.nodes["roots"], odds)
        return odds

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the argument of :meth:`from_arrays`."""
        nodes = {f"node_{name}": array for name, array in self.nodes.items()}
        return {**self.statistics.arrays(), **nodes, "baseline": np.array(self.baseline)}

    @classmethod
    def from_arrays(cls, settings: TreeSettings, arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """Return the trees of :meth:`arrays`."""
        nodes = {
            name.removeprefix("node_"): array
            for name, array in arrays.items()
            if name.startswith("node_")
        }
        statistics = TargetStatistics.from_arrays(arrays)
        return cls(settings, statistics, nodes, float(arrays["baseline"]))


def nodes_of(trees: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the nodes of scikit-learn's trees as one list; see :func:`add_trees`.

    Raises:
        ValueError: their layout is not that of scikit-learn 1.5 to 1.9.
    """
    sizes = np.array([len(tree) for tree in trees], np.int64)
    roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    nodes = np.concatenate(trees)
    needed = {"feature_idx", "num_threshold", "left", "right", "value", "is_leaf", "is_categorical"}
    if not needed <= set(nodes.dtype.names or ()) or nodes["is_categorical"].any():
        raise ValueError(f"trees must have the nodes that scikit-learn 1.9 has, got {nodes.dtype}")
    offset, leaf = np.repeat(roots, sizes), nodes["is_leaf"].astype(bool)
    return {
        "roots": roots,
        "feature": nodes["feature_idx"].astype(np.int64),
        "threshold": nodes["num_threshold"].astype(np.float64),
        "left": np.where(leaf, -1, nodes["left"].astype(np.int64) + offset),
        "right": np.where(leaf, -1, nodes["right"].astype(np.int64) + offset),
        "value": nodes["value"].astype(np.float64),
    }
