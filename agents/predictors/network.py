"""The paper's network: embedded ids and scaled history through three hidden layers.

Han et al. 2020, section 3.3: hidden layers of 256, 128 and 64 rectified units, cross-entropy,
Adagrad, L1 and L2 of 0.001. The paper does not give the embeddings' dimension (8 here), the batch
and the step size (those of TensorFlow's DNNClassifier, 0.05 and squares from 0.1), and whether the
penalties are relative to the sum or the mean of the loss. At that time the classifier summed the
loss over a batch (TensorFlow r1.12, reduction ``SUM``), so the sum is the default. Relative to the
mean, the same number is a penalty stronger by the number of rows of a batch.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from agents.predictors.auc import auc
from agents.predictors.columns import Columns, FloatColumns, Report, Table
from agents.predictors.ids import Vocabulary
from agents.predictors.stored import Stored
from agents.sb3.torch_threads import threads
from crawl_envs.types.arguments import one_of, real, whole

ROWS_AT_ONCE = 8_192
PREDICTING_THREADS = 2
FIRST_SQUARES = 0.1
"""Initial value of the accumulated squares, that of TensorFlow."""


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Settings of a network and its training.

    Raises:
        ValueError: a value outside its range.
    """

    hidden: tuple[int, ...] = (256, 128, 64)
    """Units of the hidden layers."""
    dimension: int = 8
    """Dimension of the embeddings of ids, >= 1."""
    learning_rate: float = 0.05
    """Step size of Adagrad, > 0."""
    l1: float = 0.001
    """Strength of the L1 penalty, >= 0."""
    l2: float = 0.001
    """Strength of the L2 penalty, >= 0."""
    reduction: str = "sum"
    """Loss that the penalties are added to: the ``sum`` over a batch, or its ``mean``."""
    batch: int = 1024
    """Examples of a batch, >= 1."""
    epochs: int = 10
    """Maximal number of passes over the training table, >= 1."""
    patience: int = 2
    """Passes without a better validation AUC before training stops, >= 1."""
    least: int = 5
    """Minimal number of examples of an id with a row of its own, >= 1."""
    forget: float = 0.01
    """Probability that an id counts as unknown in a batch, in [0, 1]: trains the shared rows."""
    threads: int = 1
    """Threads of torch for training, >= 1; the same seed and number give the same network. On a
    busy machine, one is faster than several."""

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple | list):
            raise ValueError(f"hidden must be a tuple of integers >= 1, got {self.hidden!r}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            whole("hidden", units, 1)
        for name in ("dimension", "batch", "epochs", "patience", "least", "threads"):
            whole(name, getattr(self, name), 1)
        real("learning_rate", self.learning_rate, above=0.0)
        for name in ("l1", "l2", "forget"):
            real(name, getattr(self, name), least=0.0)
        if self.forget > 1.0:
            raise ValueError(f"forget must lie in [0, 1], got {self.forget!r}")
        one_of("reduction", self.reduction, ("sum", "mean"))


class ProximalAdagrad:
    r"""Adagrad's step on the loss, then the proximal step of the penalties at the same step size.

    With the gradient g of the loss, the accumulated squares A += g² and the step size
    s = learning_rate / √A, a weight w becomes u = w - s·g and then
    sign(u)·max(\|u\| - s·l1, 0) / (1 + s·l2) (Duchi and Singer 2009, Efficient online and batch
    learning using forward backward splitting; also TensorFlow's ProximalAdagradOptimizer). In the
    table of embeddings only the rows of a batch's ids take part, so that other batches do not
    shrink the rows of rare ids.

    Args:
        weights: the tensors to train, in place.
        learning_rate: > 0.
        l1, l2: strengths of the penalties l1·\|w\| + l2·w²/2, >= 0, relative to the loss as it
            is given: the sum over a batch or its mean.
    """

    def __init__(
        self, weights: list[Tensor], learning_rate: float, *, l1: float, l2: float
    ) -> None:
        self.weights, self.learning_rate, self.l1, self.l2 = weights, learning_rate, l1, l2
        self.squares = [torch.full_like(weight, FIRST_SQUARES) for weight in weights]

    @torch.no_grad()
    def step(self, touched: dict[int, Tensor]) -> None:
        """Take a step, and clear the gradients.

        Args:
            touched: by the position of a weight, the rows that take part, (rows,) bool; all rows
                of other weights do.
        """
        for position, (weight, squares) in enumerate(zip(self.weights, self.squares, strict=True)):
            if weight.grad is None:
                continue
            squares.addcmul_(weight.grad, weight.grad)
            size = self.learning_rate * squares.rsqrt()
            if position in touched:
                size *= touched[position].unsqueeze(1)
            weight.addcmul_(weight.grad, size, value=-1.0)
            if self.l1 > 0.0:
                shrunk = (weight.abs() - size * self.l1).clamp_(min=0.0)
                weight.copy_(weight.sign() * shrunk)
            if self.l2 > 0.0:
                weight.div_(size.mul_(self.l2).add_(1.0))
            weight.grad = None


@dataclass(eq=False)
class Network:
    """A trained network.

    Attributes:
        settings: of the training.
        vocabulary: the ids with rows of their own.
        weights: the table of embeddings, then weights and biases, layer by layer, of
            :func:`shapes`.
    """

    settings: NetworkSettings
    vocabulary: Vocabulary
    weights: list[Tensor]

    @classmethod
    def fit(
        cls,
        settings: NetworkSettings,
        train: Table,
        validation: Table,
        seed: int,
        report: Report = lambda done, text: None,
    ) -> Network:
        """Train on one table, and keep the weights of the best AUC on another.

        Args:
            settings: of the training.
            train: scaled columns and labels, (n,) bool.
            validation: the same for the other table, both classes present.
            seed: seed of weights, order of examples and forgetting, >= 0.
            report: called after every batch.
        """
        vocabulary = Vocabulary.learn(train[0].metadata, settings.least)
        width = train[0].history.shape[1], train[0].metadata.shape[1]
        with threads(settings.threads):
            generator = torch.Generator().manual_seed(seed)
            initial = _initial(shapes(settings, vocabulary.size, *width), generator)
            network = cls(settings, vocabulary, initial)
            network._learn(train, validation, generator, report)
        return network

    def _learn(
        self, train: Table, validation: Table, generator: torch.Generator, report: Report
    ) -> None:
        """Pass over the training table until the validation AUC no longer rises."""
        settings, best, kept, waited = self.settings, -1.0, self.weights, 0
        history = torch.from_numpy(np.ascontiguousarray(train[0].history))
        rows = torch.from_numpy(self.vocabulary.rows(train[0].metadata))
        labels = torch.from_numpy(train[1].astype(np.float32))
        for weight in self.weights:
            weight.requires_grad_(True)
        penalties = {"l1": settings.l1, "l2": settings.l2}
        adagrad = ProximalAdagrad(self.weights, settings.learning_rate, **penalties)
        batches = -(-len(labels) // settings.batch)
        for epoch in range(settings.epochs):
            order = torch.randperm(len(labels), generator=generator)
            for number, batch in enumerate(torch.split(order, settings.batch)):
                chosen = self._forget(rows[batch], generator)
                self._step(adagrad, history[batch], chosen, labels[batch])
                done = (epoch + (number + 1) / batches) / settings.epochs
                report(done, f"validation AUC {best:.4f}" if epoch else "first pass")
            score = auc(validation[1], self.log_odds(validation[0]))
            if score > best:
                best, waited = score, 0
                kept = [weight.detach().clone() for weight in self.weights]
            else:
                waited += 1
                if waited == settings.patience:
                    break
        self.weights = kept
        report(1.0, f"validation AUC {best:.4f}")

    def _forget(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the rows, a random share replaced by the shared ones."""
        if not self.settings.forget or not rows.shape[1]:
            return rows
        forgotten = torch.rand(rows.shape, generator=generator) < self.settings.forget
        return torch.where(forgotten, torch.from_numpy(self.vocabulary.shared), rows)

    def _step(
        self, adagrad: ProximalAdagrad, history: Tensor, rows: Tensor, labels: Tensor
    ) -> None:
        """Learn from one batch."""
        loss = functional.binary_cross_entropy_with_logits(
            self._forward(history, rows), labels, reduction=self.settings.reduction
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        touched = torch.zeros(self.vocabulary.size, dtype=torch.bool)
        touched[rows.flatten().long()] = True
        adagrad.step({0: touched})

    def _forward(self, history: Tensor, rows: Tensor) -> Tensor:
        """Return log-odds, (n,)."""
        table, *layers = self.weights
        embedded = functional.embedding(rows, table).flatten(1)
        values = torch.cat([history, embedded], dim=1)
        for position in range(0, len(layers), 2):
            if position:
                values = functional.relu(values)
            values = torch.addmm(layers[position + 1], values, layers[position])
        return values.squeeze(1)

    def log_odds(self, columns: Columns) -> NDArray[np.float64]:
        """Return log-odds of scaled columns, (n,) float64."""
        odds = np.empty(len(columns))

        @torch.inference_mode()
        def fill(start: int) -> None:
            part = slice(start, start + ROWS_AT_ONCE)
            rows = torch.from_numpy(self.vocabulary.rows(columns.metadata[part]))
            history: FloatColumns = np.ascontiguousarray(columns.history[part])
            odds[part] = self._forward(torch.from_numpy(history), rows).numpy()

        # one thread of torch per part is faster than several
        with threads(1), ThreadPoolExecutor(PREDICTING_THREADS) as pool:
            for _ in pool.map(fill, range(0, len(columns), ROWS_AT_ONCE)):
                pass
        return odds

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what :meth:`take` reads."""
        weights = {f"model_weight_{i}": weight.numpy() for i, weight in enumerate(self.weights)}
        return {**self.vocabulary.arrays(), **weights}

    @classmethod
    def take(cls, settings: NetworkSettings, stored: Stored, history: int, ids: int) -> Network:
        """Return the network in a file, of a number of columns of history and of ids.

        Raises:
            KeyError: an array is missing.
            ValueError: one does not fit.
        """
        vocabulary = Vocabulary.take(stored, ids)
        weights = [
            torch.from_numpy(stored.take(f"model_weight_{position}", np.float32, *shape))
            for position, shape in enumerate(shapes(settings, vocabulary.size, history, ids))
        ]
        return cls(settings, vocabulary, weights)


def shapes(settings: NetworkSettings, rows: int, history: int, ids: int) -> list[tuple[int, ...]]:
    """Return the shapes of weights: (rows, dimension), then (in, out) and (out,) of each layer."""
    sizes = (history + ids * settings.dimension, *settings.hidden, 1)
    layers = (((inward, outward), (outward,)) for inward, outward in itertools.pairwise(sizes))
    return [(rows, settings.dimension), *itertools.chain.from_iterable(layers)]


def _initial(wanted: list[tuple[int, ...]], generator: torch.Generator) -> list[Tensor]:
    """Return the initial weights: Glorot's uniform ones, biases 0, embeddings small."""
    table, *layers = wanted
    weights = [torch.randn(table, generator=generator) * table[1] ** -0.5]
    for shape in layers:
        if len(shape) == 1:
            weights.append(torch.zeros(shape))
        else:
            limit = (6.0 / sum(shape)) ** 0.5
            weights.append((2.0 * torch.rand(shape, generator=generator) - 1.0) * limit)
    return weights
