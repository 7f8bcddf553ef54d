"""Parts of networks and trees, each against a slow reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import TargetEncoder

from agents.predictors import load, names, network, trees
from agents.predictors.examples import Columns
from agents.predictors.ids import Vocabulary
from agents.predictors.network import FIRST_SQUARES, Network, NetworkSettings, proximal_adagrad
from agents.predictors.trees import (
    Nodes,
    Trees,
    TreeSettings,
    across_folds,
    add_trees,
    inputs,
    target_statistics,
    with_weekdays,
)


def naive_adagrad(weight, gradients, rate, l1, l2):
    """One weight, one gradient after the other; None where its row takes no part."""
    squares = 0.1
    for gradient in gradients:
        if gradient is None:
            continue
        squares += gradient**2
        size = rate / np.sqrt(squares)
        moved = weight - size * gradient
        weight = np.sign(moved) * max(abs(moved) - size * l1, 0.0) / (1.0 + size * l2)
    return weight


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.1, 0.2)])
def test_adagrad_steps_are_those_of_single_weights(l1, l2):
    rng = np.random.default_rng(0)
    table, dense = rng.normal(size=(4, 3)), rng.normal(size=5)
    weights = [torch.tensor(table, requires_grad=True), torch.tensor(dense, requires_grad=True)]
    squares = [torch.full_like(weight, FIRST_SQUARES) for weight in weights]
    settings = NetworkSettings(learning_rate=0.2, l1=l1, l2=l2)
    touched = rng.random((6, 4)) < 0.6
    gradients = rng.normal(size=(6, 4, 3)) * touched[..., None], rng.normal(size=(6, 5))
    for step in range(6):
        for weight, own in zip(weights, gradients, strict=True):
            weight.grad = torch.tensor(own[step])
        rows = torch.tensor(np.repeat(np.flatnonzero(touched[step]), 2))
        proximal_adagrad(weights, squares, rows, settings)
        assert all(weight.grad is None for weight in weights)
    for row in range(4):
        for column in range(3):
            both = zip(gradients[0][:, row, column], touched[:, row], strict=True)
            own = [gradient if part else None for gradient, part in both]
            expected = naive_adagrad(table[row, column], own, 0.2, l1, l2)
            assert weights[0][row, column].item() == pytest.approx(expected, abs=1e-12)
    for column in range(5):
        expected = naive_adagrad(dense[column], gradients[1][:, column], 0.2, l1, l2)
        assert weights[1][column].item() == pytest.approx(expected, abs=1e-12)


def test_adagrad_without_penalties_is_that_of_torch():
    torch.manual_seed(0)
    mine, theirs = (torch.ones((7, 2), requires_grad=True) for _ in range(2))
    squares = [torch.full_like(mine, FIRST_SQUARES)]
    other = torch.optim.Adagrad([theirs], lr=0.05, initial_accumulator_value=0.1)
    for _ in range(5):
        gradient = torch.randn((7, 2))
        mine.grad, theirs.grad = gradient.clone(), gradient.clone()
        proximal_adagrad([mine], squares, torch.arange(7), NetworkSettings(l1=0.0, l2=0.0))
        other.step()
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("least", [1, 3])
def test_ids_that_are_unknown_or_rare_share_a_row(least):
    rng = np.random.default_rng(0)
    ids = rng.geometric(0.2, (60, 3)).astype(np.int32) * [1, 100, 3]
    vocabulary = Vocabulary.learn(ids.astype(np.int32), least)
    asked = np.vstack([ids[:20], [[-1, 0, 10**6], [1, 100, 2**31 - 1]]]).astype(np.int32)
    rows = vocabulary.rows(asked)
    numbers: dict[tuple[int, int], int] = {}
    first = 0
    for column in range(3):
        known = [i for i in sorted(set(ids[:, column])) if (ids[:, column] == i).sum() >= least]
        assert vocabulary.shared[column] == first
        for position, one in enumerate(known):
            numbers[column, int(one)] = first + 1 + position
        first += 1 + len(known)
    assert vocabulary.size == first
    for row in range(len(asked)):
        for column in range(3):
            expected = numbers.get((column, int(asked[row, column])), vocabulary.shared[column])
            assert rows[row, column] == expected
    again = Vocabulary.take(vocabulary.arrays(), 3)
    np.testing.assert_array_equal(again.rows(asked), rows)


def separable(rows, seed, *, merchants=6):
    """Labels that depend on one merchant in three, and on one of two history columns."""
    rng = np.random.default_rng(seed)
    history = rng.normal(size=(rows, 2)).astype(np.float32)
    ids = rng.integers(merchants, size=(rows, 2)).astype(np.int32)
    odds = 2.0 * history[:, 0] + 3.0 * (ids[:, 0] % 3 == 0) - 2.0
    return Columns(history, ids), rng.random(rows) < 1.0 / (1.0 + np.exp(-odds))


SMALL_NETWORK = {"hidden": (16, 8), "dimension": 4, "batch": 128, "threads": 1}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Network, NetworkSettings(**SMALL_NETWORK, epochs=6)),
        (Trees, TreeSettings(trees=40, threads=1)),
    ],
)
def test_models_learn_from_ids_and_history(kind, settings):
    train, validation, test = (separable(4000, seed) for seed in range(3))
    model = kind.fit(settings, train, validation, 0)
    best = roc_auc_score(
        test[1], 2.0 * test[0].history[:, 0] + 3.0 * (test[0].metadata[:, 0] % 3 == 0)
    )
    history_alone = roc_auc_score(test[1], test[0].history[:, 0])
    score = roc_auc_score(test[1], model.log_odds(test[0]))
    assert best - score < 0.2 * (best - history_alone)
    again = kind.fit(settings, train, validation, 0)
    np.testing.assert_array_equal(again.log_odds(test[0]), model.log_odds(test[0]))
    loaded = kind.take(settings, model.arrays(), 2, 2)
    np.testing.assert_array_equal(loaded.log_odds(test[0]), model.log_odds(test[0]))


def test_seeds_give_different_networks():
    train, validation = separable(500, 0), separable(500, 1)
    settings = NetworkSettings(**SMALL_NETWORK, epochs=1)
    one, two = (Network.fit(settings, train, validation, s).log_odds(train[0]) for s in (0, 1))
    assert not np.array_equal(one, two)


def test_a_network_is_its_layers():
    train, validation = separable(600, 0), separable(300, 1)
    model = Network.fit(NetworkSettings(**SMALL_NETWORK, epochs=2), train, validation, 0)
    table, *layers = (weight.numpy().astype(np.float64) for weight in model.weights)
    columns = separable(50, 2, merchants=9)[0]
    odds = model.log_odds(columns)
    for row in range(50):
        values = list(columns.history[row])
        for place in model.vocabulary.rows(columns.metadata)[row]:
            values += list(table[place])
        for position in range(0, len(layers), 2):
            if position:
                values = [max(value, 0.0) for value in values]
            values = np.array(values) @ layers[position] + layers[position + 1]
        assert odds[row] == pytest.approx(values[0], abs=1e-5)


def test_many_rows_are_predicted_as_few_are(monkeypatch):
    train, validation = separable(600, 0), separable(300, 1)
    model = Network.fit(NetworkSettings(**SMALL_NETWORK, epochs=1), train, validation, 0)
    history, ids = separable(1000, 2)[0]
    whole = model.log_odds(Columns(history, ids))
    monkeypatch.setattr(network, "CHUNK_ROWS", 64)
    before = torch.get_num_threads()
    in_parts = model.log_odds(Columns(history, ids))
    assert torch.get_num_threads() == before
    np.testing.assert_allclose(in_parts, whole, atol=1e-5)
    assert model.log_odds(Columns(history[:0], ids[:0])).shape == (0,)


def test_an_unknown_merchant_counts_as_the_shared_one():
    train, validation = separable(3000, 0), separable(1000, 1)
    model = Network.fit(NetworkSettings(**SMALL_NETWORK, epochs=4), train, validation, 0)
    history, ids = train[0]
    unknown = np.full_like(ids, 50)
    stranger = np.full_like(ids, -7)
    odds = model.log_odds(Columns(history, unknown))
    np.testing.assert_array_equal(odds, model.log_odds(Columns(history, stranger)))
    by_merchant = [
        model.log_odds(Columns(history, np.full_like(ids, one))).mean() for one in range(6)
    ]
    assert min(by_merchant) < odds.mean() < max(by_merchant)


def test_the_best_pass_is_kept():
    """Labels without any pattern: later passes learn the noise, and the first best one stays."""
    rng = np.random.default_rng(0)
    columns = separable(400, 0)[0]
    train, validation = ((columns, rng.random(400) < 0.5) for _ in range(2))
    settings = {**SMALL_NETWORK, "learning_rate": 0.3, "l1": 0.0, "l2": 0.0}
    scores = []
    for epochs in (1, 2, 3, 4, 5):
        chosen = NetworkSettings(**settings, epochs=epochs, patience=5)
        model = Network.fit(chosen, train, validation, 0)
        scores.append(roc_auc_score(validation[1], model.log_odds(columns)))
    assert scores == sorted(scores)


def test_penalties_stand_against_the_sum_unless_said_otherwise():
    """Against the mean over 128 rows, 0.3 kills every weight that 0.3 against the sum leaves."""
    train, validation = separable(2000, 0), separable(1000, 1)

    def share_of_zeros(reduction):
        settings = NetworkSettings(
            **SMALL_NETWORK, l1=0.3, l2=0.0, epochs=3, patience=3, reduction=reduction
        )
        model = Network.fit(settings, train, validation, 0)
        last = [weight.numpy() for weight in model.weights[1::2]]
        return np.mean(np.concatenate([weight.ravel() for weight in last]) == 0.0)

    assert NetworkSettings().reduction == "sum"
    assert share_of_zeros("sum") < 0.9
    assert share_of_zeros("mean") > 0.99


def test_penalties_are_those_of_the_paper():
    settings = NetworkSettings()
    assert (settings.l1, settings.l2) == (0.001, 0.001)
    for name in names():
        for predictor in load(name).values():
            assert predictor.settings == type(predictor.settings)()


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.02, 0.0), (0.0, 0.05), (0.02, 0.05)])
def test_a_step_of_training_is_that_of_penalised_logistic_regression(l1, l2, reduction):
    """Without hidden layers the gradient is known; a penalty of another size would fail."""
    (history, _), labels = separable(60, 0)
    table = Columns(history, np.zeros((60, 0), np.int32)), labels
    settings = {"hidden": (), "batch": 60, "epochs": 1, "reduction": reduction, "l1": l1, "l2": l2}
    still = Network.fit(NetworkSettings(**settings, learning_rate=1e-30), table, table, 0)
    moved = Network.fit(NetworkSettings(**settings, learning_rate=0.5), table, table, 0)
    first, bias = (weight.numpy().astype(float) for weight in still.weights[1:])
    errors = 1.0 / (1.0 + np.exp(-(history @ first[:, 0]))) - labels
    gradients = np.append(errors @ history, errors.sum()) / (60 if reduction == "mean" else 1)
    expected = [
        naive_adagrad(weight, [gradient], 0.5, l1, l2)
        for weight, gradient in zip(np.append(first, bias), gradients, strict=True)
    ]
    result = np.concatenate([weight.numpy().ravel() for weight in moved.weights[1:]])
    np.testing.assert_allclose(result, expected, rtol=3e-6)


def test_target_statistics_are_smoothed_shares():
    rng = np.random.default_rng(0)
    ids = rng.integers(5, size=(300, 2)).astype(np.int32)
    labels = rng.random(300) < 0.2
    vocabulary = Vocabulary.learn(with_weekdays(ids))
    rows = vocabulary.rows(with_weekdays(ids))
    shares = target_statistics(rows, labels, vocabulary.size, 10.0)
    asked = np.array([[0, 4], [3, 99], [-1, 2]], np.int32)
    table = inputs(Columns(np.zeros((3, 1), np.float32), asked), vocabulary, shares)[:, 1:]
    overall = labels.mean()
    for row in range(3):
        first, second = asked[row]
        for column, own in enumerate(
            (ids[:, 0] == first, ids[:, 1] == second, (ids == asked[row]).all(axis=1))
        ):
            expected = (labels[own].sum() + 10.0 * overall) / (own.sum() + 10.0)
            assert table[row, column] == pytest.approx(expected, rel=1e-6)


def test_target_statistics_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    ids = rng.geometric(0.3, size=(500, 3))
    labels = rng.random(500) < 0.3
    vocabulary = Vocabulary.learn(ids)
    rows = vocabulary.rows(ids)
    encoder = TargetEncoder(target_type="continuous", smooth=20.0).fit(ids, labels.astype(float))
    shares = target_statistics(rows, labels, vocabulary.size, 20.0)
    np.testing.assert_allclose(shares[rows], encoder.transform(ids), rtol=1e-12)


def test_no_label_is_in_its_own_statistic():
    """With its own label turned over, an example's statistics stay; those of others move."""
    rng = np.random.default_rng(0)
    rows = rng.integers(4, size=(80, 2)).astype(np.int32) + np.array([0, 4], np.int32)
    labels = rng.random(80) < 0.4
    settings = TreeSettings(strength=5.0, folds=4)
    before = across_folds(rows, labels, 8, settings, 1)
    for row in range(10):
        turned = labels.copy()
        turned[row] = not turned[row]
        after = across_folds(rows, turned, 8, settings, 1)
        np.testing.assert_array_equal(after[row], before[row])
        assert (after != before).any()


@pytest.mark.parametrize("count", [1, 7])
def test_trees_say_what_scikit_learn_says(count):
    rng = np.random.default_rng(0)
    table = np.round(rng.normal(size=(5000, 6)), 2).astype(np.float32)
    labels = rng.random(5000) < 1.0 / (1.0 + np.exp(-table[:, 0] * table[:, 1]))
    grown = HistGradientBoostingClassifier(max_iter=count, early_stopping=False).fit(table, labels)
    nodes = Nodes.read([tree[0].nodes for tree in grown._predictors])
    out = np.full(5000, float(grown._baseline_prediction.item()))
    add_trees(table, nodes, out)
    np.testing.assert_allclose(out, grown.decision_function(table), atol=1e-12)


@pytest.mark.parametrize("l2", [0.0, 1.0, 20.0])
def test_leaves_are_newton_steps_with_the_penalty(l2):
    (history, _), labels = separable(200, 0)
    table = Columns(history, np.zeros((200, 0), np.int32)), labels
    settings = TreeSettings(trees=1, leaves=4, l2=l2, learning_rate=0.3, least=5)
    odds = Trees.fit(settings, table, table, 0).log_odds(table[0])
    share = labels.mean()
    steps = odds - np.log(share / (1.0 - share))
    assert len(np.unique(steps)) == 4
    for step in np.unique(steps):
        leaf = steps == step
        errors, curvature = (share - labels[leaf]).sum(), leaf.sum() * share * (1.0 - share)
        assert step == pytest.approx(-0.3 * errors / (curvature + l2), rel=1e-5)


def test_as_many_trees_are_kept_as_predict_best(monkeypatch):
    rng = np.random.default_rng(0)
    columns = separable(400, 0)[0]
    noise = (columns, rng.random(400) < 0.5)
    validation = (separable(400, 1)[0], rng.random(400) < 0.5)

    def fitted(count):
        return Trees.fit(TreeSettings(trees=count, least=5), noise, validation, 0)

    model, scores = fitted(50), {}
    monkeypatch.setattr(trees, "NUM_CANDIDATES", 1)  # all are kept
    for count in range(5, 51, 5):
        scores[count] = roc_auc_score(validation[1], fitted(count).log_odds(validation[0]))
    kept = len(model.nodes.roots)
    assert scores[kept] == max(scores.values())
    assert roc_auc_score(validation[1], model.log_odds(validation[0])) == scores[kept]


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        (NetworkSettings, {"hidden": (8, 0)}, "hidden must be an integer >= 1, got 0"),
        (NetworkSettings, {"batch": 0}, "batch must be an integer >= 1, got 0"),
        (NetworkSettings, {"l1": -1.0}, r"l1 must be finite and >= 0, got -1\.0"),
        (NetworkSettings, {"forget": 2.0}, r"forget must lie in \[0, 1\], got 2\.0"),
        (NetworkSettings, {"learning_rate": 0}, "learning_rate must be finite and > 0, got 0"),
        (NetworkSettings, {"reduction": "max"}, "reduction must be one of sum, mean, got 'max'"),
        (TreeSettings, {"leaves": 1}, "leaves must be an integer >= 2, got 1"),
        (TreeSettings, {"folds": 1}, "folds must be an integer >= 2, got 1"),
        (TreeSettings, {"strength": 0.0}, r"strength must be finite and > 0, got 0\.0"),
    ],
)
def test_bad_settings_are_named(settings, change, message):
    with pytest.raises(ValueError, match=message):
        settings(**change)
