"""Experiment on Table 4: its samples of training examples, and its AUCs by another computation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from agents import predictors
from agents.predictors import TASKS
from agents.predictors.predictor import Predictor
from agents.runs import read_object
from crawl_envs.instances.market import market
from crawl_envs.worlds.offers.log import record
from scripts.data.offer_samples import FIRST_DAY, UniformSample
from scripts.experiments.offers import table4 as experiment
from scripts.experiments.offers.table4 import ALL, BOTH, METADATA, UNIFORM, Size

SIZE = Size(offers=1_500, test_offers=600, days=24, training=60, testing=300)


@pytest.fixture(scope="module")
def log():
    return record(market(1_500, seed=4), 3, 4)


def pages_of(label, log, draws=40):
    """Training pages of many draws of one day, and the day's clicks per page in 30 days."""
    offers, sample = log.features(2), experiment.sample_of(label, SIZE)
    drawn = [sample(offers, np.random.default_rng(seed)) for seed in range(draws)]
    for pages in drawn:
        assert len(pages) == SIZE.training
        assert (np.diff(pages) > 0).all()
    return np.concatenate(drawn), offers.clicks_30


def test_samples_have_the_named_share_by_clicks(log):
    """Offers without clicks come from the uniform part alone."""
    unclicked = {}
    for label in (UNIFORM, BOTH, ALL):
        pages, clicks = pages_of(label, log)
        unclicked[label] = (clicks[pages] == 0.0).mean()
    overall = (clicks == 0.0).mean()
    assert 0.2 < overall < 0.98
    assert unclicked[UNIFORM] == pytest.approx(overall, abs=0.05)
    assert 0.3 * overall < unclicked[BOTH] < 0.9 * overall
    assert unclicked[ALL] == 0.0


def test_the_mix_is_that_of_the_shipped_predictors():
    for name in experiment.SHIPPED.values():
        made = read_object(predictors.SHIPPED / name / predictors.PROVENANCE)
        assert made["per_day"] == experiment.SAMPLED * made["offers"]
        assert made["share_by_clicks"] == experiment.SHARE


def test_thinning_keeps_pages_at_random(log):
    offers, whole = log.features(1), UniformSample(50)
    kept = experiment.thinned(whole, 10)
    counts = np.zeros(log.num_pages)
    for seed in range(400):
        pages = kept(offers, np.random.default_rng(seed))
        assert len(pages) == 10
        assert set(pages) <= set(whole(offers, np.random.default_rng(seed)))
        counts[pages] += 1
    assert counts.mean() == pytest.approx(400 * 10 / log.num_pages)
    assert counts.var() == pytest.approx(counts.mean(), rel=0.2)  # about Poisson
    assert len(experiment.thinned(whole, 90)(offers, np.random.default_rng(0))) == 50


@pytest.mark.parametrize("task", TASKS)
def test_aucs_are_those_of_predictors_on_the_test_market(task):
    first = experiment.FIRST_MARKET + 3
    known = experiment.logs(1, SIZE)
    assert known.train.num_pages == SIZE.offers
    np.testing.assert_array_equal(
        known.train.clicks,
        record(market(1_500, seed=first, first_day=FIRST_DAY), 14, first).clicks,
    )
    test = known.test
    for label, predictor in (
        ("shipped trees", predictors.load("offers-trees")[task]),
        (METADATA, Predictor(task, METADATA, seed=1)),
        (ALL, Predictor(task, BOTH, seed=1)),
    ):
        result = experiment.measured(1, label=label, task=task, size=list(SIZE))
        if label in (METADATA, ALL):
            train = experiment.training(1, BOTH if label == METADATA else ALL, SIZE)
            predictor.fit(train, known.validation)
            assert result["positives"] == train.labels(task).mean()
        chances = predictor.predict(test)
        assert result["auc"] == pytest.approx(roc_auc_score(test.labels(task), chances), abs=1e-12)
