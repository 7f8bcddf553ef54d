"""Logs of simulated pages: rates and shapes of the laws, and logs that agree with the changes."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.experiments.measures import simulated_logs
from scripts.experiments.measures.simulated_logs import SETTINGS, simulated_log
from tests.naive.replayed_logs import change_times

RATE, DAYS = np.full(400, 0.5), 70.0


@pytest.mark.parametrize("name", ["poisson", "weekly", "deploys", "bursts"])
def test_pages_change_at_their_mean_rate(name: str) -> None:
    changes = getattr(simulated_logs, name)(np.random.default_rng(0), RATE, DAYS)
    spread = 7.0 if name == "deploys" else 1.0
    expected = 0.5 * 400 * DAYS
    assert abs(changes.page.size - expected) < 4.0 * spread * np.sqrt(expected * 3.0)


def test_laws_have_their_shapes() -> None:
    rng = np.random.default_rng(0)
    time = simulated_logs.weekly(rng, RATE, DAYS).time
    assert np.all((time % 7.0 < 5.0) & (time % 1.0 * 24.0 >= 8.0) & (time % 1.0 * 24.0 < 18.0))
    time = simulated_logs.slowing(rng, RATE, DAYS).time
    early, late = (time < DAYS / 8.0).mean(), (time > DAYS * 7.0 / 8.0).mean()
    shape = 1.0 / 8.0 + 7.0 / 8.0 * np.exp(-np.linspace(0.0, 8.0, 8001))
    assert early / late == pytest.approx(shape[:1000].sum() / shape[7000:].sum(), rel=0.1)
    found = simulated_logs.bursts(rng, RATE, DAYS)
    order = np.lexsort((found.time, found.page))
    apart = np.diff(found.time[order])[np.diff(found.page[order]) == 0]
    assert (apart < 0.3).mean() > 0.45
    common = np.unique(simulated_logs.deploys(rng, RATE, DAYS).time, return_counts=True)[1]
    assert common.max() == pytest.approx(80, abs=35)


@pytest.mark.parametrize("name", SETTINGS)
def test_crawls_find_the_true_changes(name: str) -> None:
    log, true = simulated_log(name, np.random.default_rng(3), num_pages=12, crawls=8)
    assert np.all(np.diff(log.time) >= 0.0)
    assert np.all(np.diff(log.signal_time) >= 0.0)
    assert np.all(np.diff(true.time) >= 0.0)
    for page in range(12):
        own = log.page == page
        found = np.diff(np.searchsorted(change_times(true, page), log.time[own])) > 0
        assert log.changed[own].tolist() == [False, *found.tolist()]
        assert log.time[own][0] == 0.0
        assert own.sum() == 9
