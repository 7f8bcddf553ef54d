"""Gradient-boosted trees, the modern alternative to the paper's network.

Trees are grown by scikit-learn (HistGradientBoostingClassifier), and stored as plain arrays, so
that files can be read under any version of it, or without it. Ids, which may exceed its 255
categories, are replaced by target statistics; so is each pair of merchant and weekday, since the
separate statistics of merchants and weekdays do not identify the days of a merchant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.predictors.auc import auc
from agents.predictors.columns import Columns, FloatColumns, IdColumns, Report, Table
from agents.predictors.ids import TargetStatistics, Vocabulary
from agents.predictors.stored import Stored
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


class Nodes(NamedTuple):
    """Nodes of all trees in one list; a row goes left where its feature is <= the threshold.

    Every node stands before its children.

    Attributes:
        roots: first node of each tree.
        feature: column that each node compares, int64.
        threshold: largest value that goes left.
        left: node on the left, -1 in leaves, int64.
        right: node on the right, int64.
        value: of each leaf.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: FloatArray
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: FloatArray

    @classmethod
    def of(cls, trees: list[NDArray[Any]]) -> Nodes:
        """Return the nodes of trees of scikit-learn 1.5 to 1.9, arrays with named columns."""
        sizes = np.array([len(tree) for tree in trees], np.int64)
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        nodes, offset = np.concatenate(trees), np.repeat(roots, sizes)
        left, right = (
            np.where(nodes["is_leaf"].astype(bool), -1, nodes[side].astype(np.int64) + offset)
            for side in ("left", "right")
        )
        feature, threshold = nodes["feature_idx"].astype(np.int64), nodes["num_threshold"]
        return cls(roots, feature, threshold.copy(), left, right, nodes["value"].copy())

    @classmethod
    def take(cls, stored: Stored, columns: int) -> Nodes:
        """Return the nodes in a file that compare a number of columns; see :meth:`Trees.take`."""
        roots = stored.take("model_node_roots", np.int64, None)
        value = stored.take("model_node_value", np.float64, None)
        size = len(value)
        feature, left, right = (
            stored.take(f"model_node_{name}", np.int64, size)
            for name in ("feature", "left", "right")
        )
        threshold = stored.take("model_node_threshold", np.float64, size)
        node, inner = np.arange(size), left != -1
        fits = (roots >= 0).all() and (roots < size).all()
        for side in (left, right):
            fits &= ((side > node) & (side < size))[inner].all()
        if not (fits and ((feature >= 0) & (feature < columns))[inner].all()):
            raise ValueError("model_node must be trees: nodes before their children, of columns")
        return cls(roots, feature, threshold, left, right, value)


@compiled()
def add_trees(table: FloatColumns, nodes: Nodes, first: int, stop: int, out: FloatArray) -> None:
    """Add the values of the trees ``first`` to ``stop - 1`` of rows, (n, c), to ``out``, (n,).

    scikit-learn, which needs its own class of trees for it, takes 1.8 times as long.
    """
    for start in range(0, len(table), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(table))
        for root in nodes.roots[first:stop]:
            for row in range(start, end):
                node = root
                while nodes.left[node] >= 0:
                    here = np.float64(table[row, nodes.feature[node]])
                    goes_left = here <= nodes.threshold[node]
                    node = nodes.left[node] if goes_left else nodes.right[node]
                out[row] += nodes.value[node]


@dataclass(eq=False)
class Trees:
    """Trained trees.

    Attributes:
        settings: of the training.
        statistics: numbers in place of ids.
        nodes: of the trees.
        baseline: log-odds without trees.
    """

    settings: TreeSettings
    statistics: TargetStatistics
    nodes: Nodes
    baseline: float

    @classmethod
    def fit(
        cls,
        settings: TreeSettings,
        train: Table,
        validation: Table,
        seed: int,
        report: Report = lambda done, text: None,
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
        nodes = Nodes.of([tree[0].nodes for tree in grown._predictors])
        trees = cls(settings, statistics, nodes, float(grown._baseline_prediction.item()))
        report(1.0, f"validation AUC {trees._keep_best(validation):.4f}")
        return trees

    def _keep_best(self, validation: Table) -> float:
        """Drop the last trees where the validation AUC is better without; return that AUC."""
        table, nodes = self._table(validation[0]), self.nodes
        odds, before, best = np.zeros(len(table)), 0, -1.0
        for size in np.unique(np.linspace(0, len(nodes.roots), CHOICES + 1).astype(int))[1:]:
            add_trees(table, nodes, before, size, odds)
            score, before = auc(validation[1], odds), size
            if score > best:
                best, self.nodes = score, nodes._replace(roots=nodes.roots[:size].copy())
        return best

    def _table(self, columns: Columns) -> FloatColumns:
        """Return the table of features, (n, c) float32."""
        return np.hstack([columns.history, self.statistics(with_weekdays(columns.metadata))])

    def log_odds(self, columns: Columns) -> FloatArray:
        """Return log-odds of scaled columns, (n,) float64."""
        odds = np.full(len(columns), self.baseline)
        add_trees(self._table(columns), self.nodes, 0, len(self.nodes.roots), odds)
        return odds

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what :meth:`take` reads."""
        return {
            **self.statistics.vocabulary.arrays(),
            "model_shares": self.statistics.shares,
            **{f"model_node_{name}": array for name, array in self.nodes._asdict().items()},
            "model_baseline": np.array(self.baseline),
        }

    @classmethod
    def take(cls, settings: TreeSettings, stored: Stored, history: int, ids: int) -> Trees:
        """Return the trees in a file, of a number of columns of history and of ids.

        Raises:
            KeyError: an array is missing.
            ValueError: one does not fit; a row might not reach a leaf.
        """
        columns = ids + 1 if ids else 0  # with each merchant on each weekday
        vocabulary = Vocabulary.take(stored, columns)
        shares = stored.take("model_shares", np.float64, vocabulary.size)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ValueError("model_shares must lie in [0, 1]")
        nodes = Nodes.take(stored, history + columns)
        baseline = float(stored.take("model_baseline", np.float64))
        return cls(settings, TargetStatistics(vocabulary, shares), nodes, baseline)
