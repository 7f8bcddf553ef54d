"""The particle filter of deploys against simulated hosts with the same log."""

from __future__ import annotations

import numpy as np
import pytest

from policies.informed.chains import STEP
from policies.informed.deploys import DeployFilter

SHARE, RATES, HOSTS = (0.2, 0.5), np.array([0.1, 0.3, 0.2]), 400_000
TIMES = (0.4, 0.9, 1.5)
"""Deploys at the first two times; crawls of pages 0 and 1 after them; the end."""


@pytest.mark.parametrize("results", [(False, False), (True, False), (False, True), (True, True)])
def test_share_of_fresh_pages_of_hosts_with_the_same_log(results: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    share = rng.beta(*SHARE, (HOSTS, 2))
    by_deploy = rng.random((HOSTS, 3, 2)) < share[:, None]
    lengths = np.diff((0.0, *TIMES))
    own = rng.random((HOSTS, 3, 3)) < -np.expm1(-RATES[:, None] * lengths)
    changed = own[:, :, 0] | by_deploy[:, :, 0]
    same = changed[:, 0] == results[0]
    stale = np.where(np.arange(3) == 0, False, changed) | own[:, :, 1] | by_deploy[:, :, 1]
    same &= stale[:, 1] == results[1]
    stale = (np.where(np.arange(3) == 1, False, stale) | own[:, :, 2])[same]
    law = DeployFilter(RATES, np.zeros(3, np.int64), SHARE, particles=20_000)
    for crawled, (time, length) in enumerate(zip(TIMES[:2], lengths, strict=False)):
        law.wait(round(length / STEP))
        for page in range(3):
            law.signal(page, time)
        law.crawl(crawled, results[crawled])
    law.wait(round(lengths[2] / STEP))
    error = 3.5 * stale.std(axis=0) / np.sqrt(len(stale))
    assert np.all(np.abs(1.0 - law.fresh() - stale.mean(axis=0)) < error + 0.003)
