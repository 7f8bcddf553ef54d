"""A predictor by a neural network: embedded ids and scaled history through three hidden layers.

Han et al. 2020, section 3.3: hidden layers of 256, 128 and 64 rectified units, cross-entropy,
Adagrad, L1 and L2 of 0.001. The paper omits the dimension of the embeddings (8 here), the batch and
the step size (TensorFlow's DNNClassifier: 0.05, squares from 0.1), and whether the penalties are
relative to the sum or the mean of the loss. The classifier then summed the loss over a batch
(TensorFlow r1.12, reduction ``SUM``), so the sum is the default. Relative to the mean, the same
penalty is stronger by the number of rows of a batch.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from agents.predictors.examples import Columns, Table
from agents.predictors.ids import Arrays, Vocabulary
from agents.sb3.torch_threads import threads
from crawl_envs.types.arguments import one_of, real, share, whole

CHUNK_ROWS = 8_192
PREDICTION_THREADS = 2
FIRST_SQUARES = 0.1
"""Initial value of Adagrad's accumulated squares, the same as in TensorFlow."""


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
    """Minimal number of examples of an id with a separate row, >= 1."""
    forget: float = 0.01
    """Probability that an id counts as unknown in a batch, in [0, 1], to train the shared rows."""
    threads: int = 1
    """Threads of torch for training, >= 1; the same seed and number give the same network. One is
    faster than several on a busy machine."""

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple | list):
            raise ValueError(f"hidden must be a tuple of integers >= 1, got {self.hidden!r}")
        object.__setattr__(
            self, "hidden", tuple(whole("hidden", units, 1) for units in self.hidden)
        )
        for name in ("dimension", "batch", "epochs", "patience", "least", "threads"):
            whole(name, getattr(self, name), 1)
        real("learning_rate", self.learning_rate, above=0.0)
        real("l1", self.l1, least=0.0)
        real("l2", self.l2, least=0.0)
        share("forget", self.forget)
        one_of("reduction", self.reduction, ("sum", "mean"))


@torch.no_grad()
def proximal_adagrad(
    weights: list[Tensor], squares: list[Tensor], rows: Tensor, settings: NetworkSettings
) -> None:
    r"""Take Adagrad's step on the loss, then the proximal step of the penalties of the same size.

    With the gradient g of the loss, the accumulated squares A += g² and the step size
    s = learning_rate / √A, a weight w becomes u = w - s·g and then
    sign(u)·max(\|u\| - s·l1, 0) / (1 + s·l2) (Duchi and Singer 2009, Efficient online and batch
    learning using forward backward splitting; also TensorFlow's ProximalAdagradOptimizer). Weights
    and squares change in place, and gradients are cleared. In the table of embeddings, the first of
    the weights, only ``rows`` change: the rows of the batch's ids. So the penalties do not shrink
    the rows of rare ids in every batch.
    """
    touched = torch.zeros(len(weights[0]), 1).index_fill_(0, rows.flatten(), 1.0)
    for weight, square in zip(weights, squares, strict=True):
        assert weight.grad is not None
        square.addcmul_(weight.grad, weight.grad)
        size = settings.learning_rate * square.rsqrt()
        if weight is weights[0]:
            size *= touched
        weight.addcmul_(weight.grad, size, value=-1.0)
        weight.copy_(weight.sign() * (weight.abs() - size * settings.l1).clamp_(min=0.0))
        weight.div_(size.mul_(settings.l2).add_(1.0))
        weight.grad = None


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network.

    Attributes:
        vocabulary: the ids with separate rows.
        weights: the table of embeddings, (rows, dimension), then the weights (in, out) and the
            biases (out,) of each layer.
    """

    vocabulary: Vocabulary
    weights: list[Tensor]

    @classmethod
    def fit(cls, settings: NetworkSettings, train: Table, validation: Table, seed: int) -> Network:
        """Train on a table, and return the network after the pass with the best validation AUC.

        Tables have labels of both classes. The seed draws weights, order and forgotten ids.
        """
        from sklearn.metrics import roc_auc_score  # slow to import

        (columns, happened), generator = train, torch.Generator().manual_seed(seed)
        vocabulary = Vocabulary.learn(columns.metadata, settings.least)
        rows = torch.from_numpy(vocabulary.rows(columns.metadata)).long()
        shared = torch.from_numpy(vocabulary.shared)
        history = torch.from_numpy(np.ascontiguousarray(columns.history))
        labels = torch.from_numpy(happened.astype(np.float32))
        sizes = vocabulary.size, history.shape[1], rows.shape[1]
        network = cls(vocabulary, initial(settings, *sizes, generator))
        squares = [torch.full_like(weight, FIRST_SQUARES) for weight in network.weights]
        best, best_weights, waited = -1.0, network.weights, 0
        with threads(settings.threads):
            for _ in range(settings.epochs):
                order = torch.randperm(len(labels), generator=generator)
                for batch in torch.split(order, settings.batch):
                    forgotten = torch.rand(rows[batch].shape, generator=generator) < settings.forget
                    batch_rows = torch.where(forgotten, shared, rows[batch])
                    odds = network._forward(history[batch], batch_rows)
                    loss = functional.binary_cross_entropy_with_logits(
                        odds, labels[batch], reduction=settings.reduction
                    )
                    loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
                    proximal_adagrad(network.weights, squares, batch_rows, settings)
                score = roc_auc_score(validation[1], network.log_odds(validation[0]))
                waited += 1
                if score > best:
                    best, waited = score, 0
                    best_weights = [weight.detach().clone() for weight in network.weights]
                elif waited == settings.patience:
                    break
        return cls(vocabulary, best_weights)

    def _forward(self, history: Tensor, rows: Tensor) -> Tensor:
        """Return the log-odds of n examples from scaled history and rows of ids, (n,)."""
        table, *layers = self.weights
        values = torch.cat([history, functional.embedding(rows, table).flatten(1)], dim=1)
        for position in range(0, len(layers), 2):
            if position:
                values = functional.relu(values)
            values = torch.addmm(layers[position + 1], values, layers[position])
        return values.squeeze(1)

    def log_odds(self, columns: Columns) -> NDArray[np.float64]:
        """Return log-odds of scaled columns, (n,) float64."""
        odds = np.empty(len(columns.history))

        @torch.inference_mode()
        def fill(start: int) -> None:
            part = slice(start, start + CHUNK_ROWS)
            rows = torch.from_numpy(self.vocabulary.rows(columns.metadata[part]))
            history = torch.from_numpy(np.ascontiguousarray(columns.history[part]))
            odds[part] = self._forward(history, rows).numpy()

        # one thread of torch per part is faster than several
        with threads(1), ThreadPoolExecutor(PREDICTION_THREADS) as pool:
            list(pool.map(fill, range(0, len(odds), CHUNK_ROWS)))
        return odds

    def arrays(self) -> Arrays:
        """Return the weights and known ids as arrays by name, to be stored in a file."""
        weights = {f"model_weight_{i}": weight.numpy() for i, weight in enumerate(self.weights)}
        return {**self.vocabulary.arrays(), **weights}

    @classmethod
    def take(cls, settings: NetworkSettings, arrays: Arrays, history: int, ids: int) -> Network:
        """Build a network from the arrays of a file; KeyError if an array is missing."""
        numbers = range(2 * len(settings.hidden) + 3)
        weights = [torch.from_numpy(arrays[f"model_weight_{number}"]) for number in numbers]
        return cls(Vocabulary.take(arrays, ids), weights)


def initial(
    settings: NetworkSettings, rows: int, history: int, ids: int, generator: torch.Generator
) -> list[Tensor]:
    """Return initial weights: small embeddings, layers by Glorot's uniform law, biases 0."""
    dimension = settings.dimension
    weights = [torch.randn((rows, dimension), generator=generator) * dimension**-0.5]
    for shape in itertools.pairwise((history + ids * dimension, *settings.hidden, 1)):
        limit = (6.0 / sum(shape)) ** 0.5
        weights.append((2.0 * torch.rand(shape, generator=generator) - 1.0) * limit)
        weights.append(torch.zeros(shape[1]))
    return [weight.requires_grad_() for weight in weights]
