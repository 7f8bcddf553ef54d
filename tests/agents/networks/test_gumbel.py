"""Drawing the top pages: frequencies, probabilities and gradients against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from agents.networks.actor_critic import PageCategorical
from agents.networks.encoder import NEVER
from agents.networks.gumbel import GumbelTop
from crawl_envs.spaces.actions import top_pages


def probability(logits, pages):
    """Of drawing those pages in that order, one softmax after the other."""
    weights = np.exp(np.asarray(logits, np.float64))
    left, chance = weights.sum(), 1.0
    for page in pages:
        chance *= weights[page] / left
        left -= weights[page]
    return chance


def action_of(pages, num_pages):
    action = torch.full((num_pages,), -1.0)
    for k, page in enumerate(pages):
        action[page] = 1.0 - k / len(pages)
    return action


LOGITS = (0.3, -1.0, 1.2, 0.0)


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_probabilities_are_those_of_one_draw_after_the_other(batch):
    orders = list(itertools.permutations(range(4), batch))
    dist = GumbelTop(4, batch).proba_distribution(torch.tensor([LOGITS]).repeat(len(orders), 1))
    logs = dist.log_prob(torch.stack([action_of(order, 4) for order in orders]))
    expected = [probability(LOGITS, order) for order in orders]
    np.testing.assert_allclose(logs.exp().numpy(), expected, rtol=2e-6)
    assert sum(expected) == pytest.approx(1.0)


def test_frequencies_are_the_probabilities():
    torch.manual_seed(0)
    draws = 200_000
    dist = GumbelTop(4, 2).proba_distribution(torch.tensor([LOGITS]).repeat(draws, 1))
    actions = dist.sample()
    first, second = (actions == 1.0).int().argmax(1), (actions == 0.5).int().argmax(1)
    counts = np.bincount((4 * first + second).numpy(), minlength=16)
    for order in itertools.permutations(range(4), 2):
        chance = probability(LOGITS, order)
        spread = np.sqrt(draws * chance * (1.0 - chance))
        assert abs(counts[4 * order[0] + order[1]] - draws * chance) < 4.5 * spread
    assert counts.sum() == draws
    assert counts[[0, 5, 10, 15]].sum() == 0


def test_the_environment_crawls_the_pages_that_were_drawn_in_their_order():
    torch.manual_seed(1)
    logits = torch.randn(50, 7)
    dist = GumbelTop(7, 3).proba_distribution(logits)
    actions = dist.sample()
    pages = top_pages(actions.double().numpy(), 3)
    for row, order, log in zip(logits, pages, dist.log_prob(actions), strict=True):
        assert log.exp().item() == pytest.approx(probability(row, order), rel=1e-5)


def test_the_best_sample_is_the_top_with_ties_to_the_lowest_index():
    logits = torch.tensor([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0]])
    for batch, expected in ((1, [[1], [0]]), (2, [[1, 2], [0, 1]]), (3, [[1, 2, 0], [0, 1, 2]])):
        actions = GumbelTop(4, batch).proba_distribution(logits).mode()
        assert top_pages(actions.double().numpy(), batch).tolist() == expected
        torch.testing.assert_close(
            actions, torch.stack([action_of(order, 4) for order in expected])
        )


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_gradients_are_those_of_the_enumerated_formula(batch):
    orders = list(itertools.permutations(range(4), batch))
    logits = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    rows = logits.expand(len(orders), 4)
    actions = torch.stack([action_of(order, 4) for order in orders]).double()
    weights = torch.linspace(-1.0, 2.0, len(orders), dtype=torch.float64)
    logs = GumbelTop(4, batch).proba_distribution(rows).log_prob(actions)
    (gradient,) = torch.autograd.grad((weights * logs).sum(), logits)
    expected, step = np.zeros(4), 1e-6
    for page in range(4):
        for sign in (1.0, -1.0):
            moved = np.array(LOGITS)
            moved[page] += sign * step
            for weight, order in zip(weights.tolist(), orders, strict=True):
                expected[page] += sign * weight * np.log(probability(moved, order)) / (2.0 * step)
    np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-7)


def test_pages_that_do_not_exist_are_drawn_last_and_count_nothing():
    torch.manual_seed(2)
    logits = torch.tensor([[0.3, NEVER, 1.2, NEVER]]).repeat(2000, 1).requires_grad_()
    dist = GumbelTop(4, 3).proba_distribution(logits)
    with torch.no_grad():
        actions = dist.sample()
    pages = top_pages(actions.double().numpy(), 3)
    assert set(np.unique(pages[:, :2])) == {0, 2}
    assert set(np.unique(pages[:, 2])) <= {1, 3}
    logs = dist.log_prob(actions)
    expected = [np.log(probability((0.3, 1.2), (int(p == 2),))) for p in pages[:, 0]]
    np.testing.assert_allclose(logs.detach().numpy(), expected, rtol=1e-5)
    (gradient,) = torch.autograd.grad(logs.sum(), logits)
    assert torch.isfinite(gradient).all()
    assert (gradient[:, [1, 3]] == 0.0).all()


def test_far_logits_stay_finite():
    logits = torch.tensor([[500.0, -500.0, 0.0, 80.0]], requires_grad=True)
    dist = GumbelTop(4, 3).proba_distribution(logits)
    log = dist.log_prob(action_of((1, 2, 0), 4)[None])
    assert log.item() == pytest.approx(-1000.0 - 500.0 + 0.0, rel=1e-6)
    (gradient,) = torch.autograd.grad(log.sum(), logits)
    assert torch.isfinite(gradient).all()


def test_entropy_is_that_of_the_first_draw():
    dist = GumbelTop(4, 2).proba_distribution(torch.tensor([LOGITS]))
    chances = np.array([probability(LOGITS, (page,)) for page in range(4)])
    assert dist.entropy().item() == pytest.approx(-(chances * np.log(chances)).sum(), rel=1e-5)


def test_one_page_is_drawn_as_by_torch():
    torch.manual_seed(3)
    logits = torch.randn(7, 4, requires_grad=True)
    logits_with_dead = logits + torch.tensor([0.0, 0.0, NEVER, 0.0])
    for rows in (logits, logits_with_dead):
        mine = PageCategorical(4).proba_distribution(rows)
        theirs = Categorical(logits=rows)
        pages = torch.tensor([0, 1, 3, 0, 1, 3, 0])
        torch.testing.assert_close(mine.log_prob(pages), theirs.log_prob(pages))
        torch.testing.assert_close(mine.entropy(), theirs.entropy())
        torch.testing.assert_close(mine.mode(), theirs.mode)
        for function in ("log_prob", "entropy"):
            arguments = () if function == "entropy" else (pages,)
            one, two = (getattr(d, function)(*arguments).sum() for d in (mine, theirs))
            (first,) = torch.autograd.grad(one, logits, retain_graph=True)
            (second,) = torch.autograd.grad(two, logits, retain_graph=True)
            torch.testing.assert_close(first, second)
            assert torch.isfinite(first).all()
    draws = (
        PageCategorical(4).proba_distribution(torch.tensor([LOGITS]).repeat(100_000, 1)).sample()
    )
    share = np.bincount(draws.numpy(), minlength=4) / 100_000
    chances = np.array([probability(LOGITS, (page,)) for page in range(4)])
    assert np.all(abs(share - chances) < 4.5 * np.sqrt(chances * (1.0 - chances) / 100_000))
