"""Adagrad with L1 and L2 penalties applied as proximal steps."""

from __future__ import annotations

import torch
from torch import Tensor

INITIAL = 0.1
"""Initial value of the accumulated squares, that of TensorFlow."""


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
        self.squares = [torch.full_like(weight, INITIAL) for weight in weights]

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
