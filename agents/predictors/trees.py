"""A predictor by gradient-boosted trees, the modern alternative to the paper's network.

scikit-learn grows the trees (HistGradientBoostingClassifier). They are stored as plain arrays, so
any version of it can read the files, and prediction does not need it. Target statistics replace
ids, which may exceed its 255 categories. They also replace pairs of merchant and weekday, since
separate statistics of merchants and weekdays do not identify the days of a merchant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.predictors.examples import Columns, FloatColumns, Table
from agents.predictors.ids import Arrays, Vocabulary
from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import real, whole

NUM_CANDIDATES = 10
"""Number of candidates for the number of trees; the best validation AUC decides."""


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


def with_weekdays(ids: NDArray[np.int32]) -> IntArray:
    """Append a column of ids of pairs of merchant and weekday, the last two columns, to ids.

    Ids are in the order of :data:`crawl_envs.types.offer_features.METADATA_FEATURES`; ids (n, 0)
    have no pairs. A negative merchant gives a negative pair.
    """
    wide = ids.astype(np.int64)
    return np.hstack([wide, 7 * wide[:, -2:-1] + wide[:, -1:]])


def target_statistics(
    rows: NDArray[np.int32], labels: BoolArray, size: int, strength: float
) -> FloatArray:
    """Return the smoothed share of positives of each of ``size`` rows of a vocabulary.

    A row with k positives in n examples has (k + s·q) / (n + s), with q the overall share of
    positives and s the strength. (scikit-learn's TargetEncoder does the same with other folds, and
    looks up 20 times as slowly.)
    """
    counts = np.bincount(rows.ravel(), minlength=size)
    positives = np.bincount(rows[labels].ravel(), minlength=size)
    shares: FloatArray = (positives + strength * float(labels.mean())) / (counts + strength)
    return shares


def across_folds(
    rows: NDArray[np.int32], labels: BoolArray, size: int, settings: TreeSettings, seed: int
) -> FloatColumns:
    """Return the target statistics of the training table's own ids, (n, c), without leaks.

    The statistics of each fold come from the labels of the other folds, so that rare ids do not
    reveal their labels.
    """
    fold = np.random.default_rng(seed).integers(0, settings.folds, len(rows))
    table = np.empty(rows.shape, np.float32)
    for number in range(settings.folds):
        inside = fold == number
        outside = rows[~inside], labels[~inside]
        table[inside] = target_statistics(*outside, size, settings.strength)[rows[inside]]
    return table


def inputs(columns: Columns, vocabulary: Vocabulary, shares: FloatArray) -> FloatColumns:
    """Return the inputs of trees, (n, c) float32: history columns, and the ``shares`` of ids."""
    rows = vocabulary.rows(with_weekdays(columns.metadata))
    return np.hstack([columns.history, shares[rows].astype(np.float32)])


class Nodes(NamedTuple):
    """Nodes of all trees in one list, with parents before children.

    A row goes left if its ``feature`` is <= the ``threshold``, and gets the ``value`` of its leaf.
    In leaves ``left`` is -1. ``roots`` are the first nodes of the trees.
    """

    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray

    @classmethod
    def read(cls, trees: list[NDArray[Any]]) -> Nodes:
        """Convert the trees of scikit-learn 1.5 to 1.9, arrays with named columns, to nodes."""
        sizes = np.array([len(tree) for tree in trees], np.int64)
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        nodes, offset = np.concatenate(trees), np.repeat(roots, sizes)
        left, right = (
            np.where(nodes["is_leaf"].astype(bool), -1, nodes[side].astype(np.int64) + offset)
            for side in ("left", "right")
        )
        feature, threshold = nodes["feature_idx"].astype(np.int64), nodes["num_threshold"]
        return cls(roots, feature, threshold.copy(), left, right, nodes["value"].copy())

    def check(self, columns: int) -> None:
        """Raise ValueError unless every row of so many columns reaches a leaf of every tree."""
        size, inner = len(self.value), np.flatnonzero(self.left != -1)
        bounds = (
            (self.roots, 0, size),
            (self.feature[inner], 0, columns),
            (self.left[inner], inner + 1, size),
            (self.right[inner], inner + 1, size),
        )
        valid = all(((low <= array) & (array < high)).all() for array, low, high in bounds)
        if not valid or any(array.shape != (size,) for array in self[1:]):
            raise ValueError("model_node must be trees: nodes before their children, of columns")


@compiled()
def add_trees(table: FloatColumns, nodes: Nodes, out: FloatArray) -> None:
    """Add the values of the leaves of rows, (n, c), to ``out``, (n,).

    scikit-learn takes 1.4 times as long, and needs its class of trees.
    """
    for row in range(len(table)):
        for root in nodes.roots:
            node = root
            while nodes.left[node] >= 0:
                goes_left = table[row, nodes.feature[node]] <= nodes.threshold[node]
                node = nodes.left[node] if goes_left else nodes.right[node]
            out[row] += nodes.value[node]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trained trees.

    Attributes:
        vocabulary: the known ids.
        shares: target statistics for ids, by row of the vocabulary, (rows,) float64.
        nodes: nodes of the trees.
        baseline: log-odds without trees.
    """

    vocabulary: Vocabulary
    shares: FloatArray
    nodes: Nodes
    baseline: float

    @classmethod
    def fit(cls, settings: TreeSettings, train: Table, validation: Table, seed: int) -> Trees:
        """Grow trees on a table, and keep the number with the best validation AUC.

        Tables have labels of both classes. The seed draws the folds.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
        from sklearn.metrics import roc_auc_score
        from threadpoolctl import threadpool_limits  # scikit-learn needs it, too

        (history, metadata), labels = train
        crossed = with_weekdays(metadata)
        vocabulary = Vocabulary.learn(crossed)
        examples = vocabulary.rows(crossed), labels, vocabulary.size
        shares = target_statistics(*examples, settings.strength)
        grown = HistGradientBoostingClassifier(
            max_iter=settings.trees,
            max_leaf_nodes=settings.leaves,
            learning_rate=settings.learning_rate,
            l2_regularization=settings.l2,
            min_samples_leaf=settings.least,
            early_stopping=False,
            random_state=seed,
        )
        sizes = set(np.linspace(0, settings.trees, NUM_CANDIDATES + 1).astype(int))
        later = inputs(validation[0], vocabulary, shares)
        with threadpool_limits(limits=settings.threads, user_api="openmp"):
            grown.fit(np.hstack([history, across_folds(*examples, settings, seed)]), labels)
            stages = enumerate(grown.staged_decision_function(later), 1)
            scores = {size: roc_auc_score(validation[1], z) for size, z in stages if size in sizes}
        best = max(scores, key=scores.__getitem__)
        nodes = Nodes.read([tree[0].nodes for tree in grown._predictors[:best]])
        return cls(vocabulary, shares, nodes, float(grown._baseline_prediction.item()))

    def log_odds(self, columns: Columns) -> FloatArray:
        """Return log-odds of scaled columns, (n,) float64."""
        odds = np.full(len(columns.history), self.baseline)
        add_trees(inputs(columns, self.vocabulary, self.shares), self.nodes, odds)
        return odds

    def arrays(self) -> Arrays:
        """Return the trees as arrays by name, to be stored in a file."""
        return {
            **self.vocabulary.arrays(),
            "model_shares": self.shares,
            **{f"model_node_{name}": array for name, array in self.nodes._asdict().items()},
            "model_baseline": np.array(self.baseline),
        }

    @classmethod
    def take(cls, settings: TreeSettings, arrays: Arrays, history: int, ids: int) -> Trees:
        """Build trees from the arrays of a file; KeyError or ValueError if they are damaged."""
        columns = ids + 1 if ids else 0  # with the pairs of merchant and weekday
        nodes = Nodes(*(arrays[f"model_node_{name}"] for name in Nodes._fields))
        nodes.check(history + columns)
        baseline = float(arrays["model_baseline"])
        return cls(Vocabulary.take(arrays, columns), arrays["model_shares"], nodes, baseline)
