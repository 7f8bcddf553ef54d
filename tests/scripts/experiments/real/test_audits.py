"""The check of bands at all audits of a crawl, against the bands themselves; and the crawls."""

from __future__ import annotations

import numpy as np
import pytest

from policies.estimators import measure_freshness
from policies.live.scheduler.states import STALE
from scripts.experiments.real import audits
from scripts.experiments.real.audits import LAWS, SETTINGS, changed_pages, crawl, has_truth


@pytest.mark.parametrize(("truth", "is_mixed"), [(0.05, True), (0.15, True), (0.2, False)])
def test_the_check_of_all_audits_is_that_of_each_band(truth, is_mixed):
    rng = np.random.default_rng(round(100.0 * truth))
    believed, mean = rng.beta(0.5, 2.0, 300), rng.beta(0.5, 2.0, (300, 256)).mean(axis=1)
    stale = rng.random(300) < believed
    has = has_truth(stale - believed, mean + stale - believed - truth)
    bands = [measure_freshness(stale[:n], believed[:n], mean[:n]) for n in range(1, 301)]
    assert has.tolist() == [band.low <= 1.0 - truth <= band.high for band in bands]
    assert (not has.all()) == is_mixed


def test_the_check_changes_at_the_ends_of_the_band():
    rng = np.random.default_rng(4)
    believed, mean = rng.beta(0.5, 2.0, 300), rng.beta(0.5, 2.0, (300, 256)).mean(axis=1)
    stale = rng.random(300) < believed
    band = measure_freshness(stale, believed, mean)
    ends = np.array([band.low - 1e-6, band.low + 1e-6, band.high - 1e-6, band.high + 1e-6])
    last = [
        has_truth(stale - believed, mean + stale - believed - 1.0 + end)[-1]
        for end in ends.tolist()
    ]
    assert last == [False, True, True, False]


def test_a_crawl_has_the_truth_of_each_audit_and_beliefs_of_signals():
    arguments = SETTINGS["signals"] | {"pages": 400}
    scheduler, truth = crawl(0, "poisson", 20_000, **arguments)
    records = scheduler.audits.records()
    stale = records["answer"] == STALE
    assert truth.size == records.size == pytest.approx(200, abs=2)
    assert np.mean(stale) == pytest.approx(1.0 - truth.mean(), abs=0.08)
    signalled = records["page_belief"] > 0.5  # the precision is 0.7
    assert stale[signalled].mean() > 0.4 > 0.2 > stale[~signalled].mean()


def test_changes_of_the_record_are_copied_at_its_rates():
    changes, rate = changed_pages(np.random.default_rng(1), audits.SITE, 200, 450.0)
    assert rate.size == 195
    assert changes.page.max() < 195
    assert changes.page.size == 3 * 3 * 930  # sites, and repetitions of 200 days
    assert (changes.time < 450.0).mean() == pytest.approx(0.75, abs=0.05)
    assert rate.sum() * 600.0 == pytest.approx(changes.page.size, rel=0.05)


def test_all_laws_are_played_in_all_settings():
    for setting in audits.EXPERIMENT.playables(quick=False):
        assert tuple(setting.labels) == LAWS
