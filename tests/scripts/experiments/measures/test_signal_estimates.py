"""The set-up of appendix E: what is drawn, what is counted of it, and what is drawn of that."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.experiments.measures import signal_estimates
from scripts.experiments.measures.signal_estimates import EVEN, MLE, POISSON, TRUTH

SIZE = {"pages": 6, "horizon": 3_000.0}


def test_drawn_pages_follow_the_paper():
    pages = signal_estimates.drawn(np.random.default_rng(0), 4000)
    for values, low, high in (
        (pages.precision, 0.2, 0.95),
        (pages.recall, 0.2, 0.95),
        (1.0 / pages.change_rate, 2.0, 20.0),
        (np.log2(pages.crawls_per_change), -2.0, 2.0),
    ):
        assert low <= values.min() < values.max() <= high
        spread = (high - low) / math.sqrt(12.0 * len(values))
        assert abs(values.mean() - (low + high) / 2.0) < 4.0 * spread


@pytest.mark.parametrize("crawls", [EVEN, POISSON])
def test_histories_have_the_rates_of_their_pages(crawls):
    rng = np.random.default_rng(1)
    pages = signal_estimates.drawn(rng, 10)
    gamma = pages.recall * pages.change_rate / pages.precision
    histories = list(signal_estimates.crawled(rng, pages, 50_000.0, crawls))
    for i, history in enumerate(histories):
        time = history.elapsed.sum()
        assert time == pytest.approx(50_000.0, rel=0.15)
        rate = pages.crawls_per_change[i] * pages.change_rate[i]
        assert abs(len(history.elapsed) - 50_000.0 * rate) < 4.5 * math.sqrt(50_000.0 * rate)
        assert abs(history.signals.sum() - gamma[i] * time) < 4.5 * math.sqrt(gamma[i] * time)
        chance = -np.expm1(-pages.change_rate[i] * history.elapsed)
        spread = math.sqrt((chance * (1.0 - chance)).sum())
        assert abs(history.changed.sum() - chance.sum()) < 4.5 * spread
        # eq. 1: fresh with probability exp(-alpha tau) (nu / gamma)^n
        unsignalled = (1.0 - pages.recall[i]) * pages.change_rate[i]
        fresh = np.exp(-unsignalled * history.elapsed)
        fresh *= (1.0 - pages.precision[i]) ** history.signals
        for several in (False, True):
            taken = (history.signals > 1) == several
            spread = math.sqrt((fresh * (1.0 - fresh))[taken].sum())
            assert abs((~history.changed)[taken].sum() - fresh[taken].sum()) < 4.5 * spread


def test_labels_of_a_seed_use_the_same_events():
    """The naive shares and the fit are of the same crawls: both follow from them here."""
    for crawls in (EVEN, POISSON):
        rng = np.random.default_rng([3, signal_estimates.STREAM])
        pages = signal_estimates.drawn(rng, 6)
        first = next(signal_estimates.crawled(rng, pages, SIZE["horizon"], crawls))
        share = ((first.signals > 0) & first.changed).sum() / first.changed.sum()
        naive = signal_estimates.naive(3, crawls=crawls, **SIZE)
        assert naive["recall[0]"] == pytest.approx(share)
        known = signal_estimates.truth(3, crawls=crawls, **SIZE)
        assert known["recall[0]"] == pages.recall[0]
        fit = signal_estimates.mle(3, crawls=crawls, **SIZE)
        gap = abs(fit["evidence[0]"] - known["evidence[0]"])
        assert 0.0 < gap < 4.0 * fit["evidence_stderr[0]"]
        assert signal_estimates.mle(3, crawls=crawls, **SIZE) == fit


def test_errors_over_the_pages_of_a_seed():
    def row(policy, metric, value):
        return Row("", EVEN, policy, 0, metric, value)

    given = [
        row(TRUTH, "recall[0]", 0.5),
        row(TRUTH, "recall[1]", 0.5),
        row(TRUTH, "evidence[0]", 1.0),
        row(TRUTH, "evidence[1]", 1.0),
        row(MLE, "recall[0]", 0.4),
        row(MLE, "recall[1]", 0.7),
        row(MLE, "recall_stderr[0]", 0.1),
        row(MLE, "recall_stderr[1]", 0.3),
        row(MLE, "evidence[0]", 1.5),
        row(MLE, "evidence[1]", math.inf),
    ]
    result = {row.metric: row.value for row in signal_estimates.derive(given)}
    promised = 0.2 * math.sqrt(2.0 / math.pi)
    assert result == pytest.approx(
        {
            "recall_bias": 0.05,
            "recall_absolute_error": 0.15,
            "recall_squared_error": 0.025,
            "recall_expected_error": promised,
            "recall_error_ratio": 0.15 / promised,
            "evidence_bias": 0.5,
            "evidence_absolute_error": 0.5,
            "evidence_squared_error": 0.25,
        }
    )
