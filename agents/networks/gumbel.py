"""Actions that sample b of m pages in order, without replacement.

The b largest of the logits plus Gumbel noise are b pages, drawn one after the other from the
softmax over the remaining pages (Kool, van Hoof and Welling, "Stochastic Beams and Where to Find
Them", 2019, section 3). The probability of the ordered sample is Plackett and Luce's,

    P(p_1, ..., p_b) = prod over k of exp(s_{p_k}) / (sum over pages not among p_1 .. p_{k-1}).
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.distributions import Distribution
from torch import Tensor, nn

from agents.networks.encoder import NEVER


class GumbelTop(Distribution):
    """Draw the b pages to crawl by their logits, as actions of the form ``scores``.

    An action is (N, m): 1, 1 - 1/b, 1 - 2/b, ... for the pages in the order in which they were
    drawn, -1 for the rest. So the environment crawls the drawn pages, and the action shows their
    order, on which the probability depends. Pages with the logit NEVER are drawn last; the
    probability does not count them.

    Args:
        num_pages: m.
        batch: b, in [1, m].

    Raises:
        ValueError: ``batch`` outside that range.
    """

    def __init__(self, num_pages: int, batch: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no annotations
        if not 1 <= batch <= num_pages:
            raise ValueError(f"batch must lie in [1, {num_pages}], got {batch!r}")
        self.num_pages, self.batch = num_pages, batch
        self.logits = torch.zeros(1, num_pages)
        self._steps = 1.0 - torch.arange(batch) / batch

    def proba_distribution_net(self, *args: Any, **kwargs: Any) -> nn.Module:
        """Return the identity: the scores are the logits."""
        return nn.Identity()

    def proba_distribution(self, action_logits: Tensor) -> GumbelTop:
        """Set the distribution to the one with given logits of pages, (N, m)."""
        self.logits = action_logits
        return self

    def _encoded(self, pages: Tensor) -> Tensor:
        """Return the actions that encode pages in their order of drawing, (N, b) to (N, m)."""
        actions = torch.full_like(self.logits, -1.0)
        return actions.scatter_(1, pages, self._steps.to(actions).expand_as(pages))

    def sample(self) -> Tensor:
        """Draw b pages in each lane; return the actions, (N, m)."""
        noise = -torch.log(torch.empty_like(self.logits).exponential_())
        return self._encoded(torch.topk(self.logits + noise, self.batch).indices)

    def mode(self) -> Tensor:
        """Return the likeliest sample: the b highest pages, ties by lowest index."""
        if self.batch == 1:
            return self._encoded(torch.argmax(self.logits, 1, keepdim=True))
        order = torch.sort(self.logits, dim=1, descending=True, stable=True).indices
        return self._encoded(order[:, : self.batch])

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probability of actions, which encode drawn pages in their order, (N,)."""
        pages = torch.topk(actions, self.batch, dim=1).indices
        logits = self.logits.gather(1, pages)
        rest = torch.logsumexp(self.logits.scatter(1, pages, NEVER), 1, keepdim=True)
        # Log-sum over the remaining pages before each draw.
        remaining = torch.logcumsumexp(torch.cat([rest, logits.flip(1)], 1), 1)[:, 1:].flip(1)
        logs = torch.where(logits > 0.5 * NEVER, logits - remaining, torch.zeros_like(logits))
        return logs.sum(1)

    def entropy(self) -> Tensor:
        """Return the entropy of the first draw, (N,); that of all draws has no closed form."""
        logs = torch.log_softmax(self.logits, 1)
        return -(logs.exp() * logs).sum(1)

    def actions_from_params(self, action_logits: Tensor, deterministic: bool = False) -> Tensor:
        """Return a sample, or the likeliest action, for given logits."""
        return self.proba_distribution(action_logits).get_actions(deterministic=deterministic)

    def log_prob_from_params(self, action_logits: Tensor) -> tuple[Tensor, Tensor]:
        """Draw actions for logits; return them and the logarithms of their probabilities."""
        actions = self.actions_from_params(action_logits)
        return actions, self.log_prob(actions)
