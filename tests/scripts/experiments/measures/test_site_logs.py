"""Logs of recorded sites: their signals, and what is learned from them."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import play
from crawl_envs.instances import traces
from policies import bind
from scripts.experiments.agents import real
from scripts.experiments.measures import recorded
from scripts.experiments.measures.site_logs import fitted_to_log, index_of_log, logged

[SHIPPED] = traces.shipped()


def test_both_kinds_of_signals_are_in_the_log():
    log = logged(SHIPPED, 10, 0)
    trace = recorded.record(SHIPPED)
    kept = (trace.mention_time > trace.created[trace.mention_page]) & (
        trace.mention_time < trace.deleted[trace.mention_page]
    )
    mentions = log.signal_source == 1
    assert log.sources == ("directory", "mentions")
    found = sorted(zip(log.signal_page[mentions], log.signal_time[mentions], strict=True))
    expected = zip(trace.mention_page[kept], trace.mention_time[kept], strict=True)
    assert found == sorted(pair for pair in expected if pair[1] > 0.0)
    for page in np.unique(log.signal_page[~mentions])[:5]:
        own = log.signal_time[~mentions & (log.signal_page == page)]
        sent = trace.signal_time[trace.signal_directory == trace.directory[page]]
        assert np.isin(own, sent).all()


def test_an_index_of_a_log_runs_on_the_days_after_it():
    start = real.split_of(recorded.record(SHIPPED).days, 0).start
    at = SHIPPED, 10, 0, start
    index, known = index_of_log(*at), fitted_to_log(*at)
    setting = {"site": SHIPPED, "days": 10, "importance": "uniform", "splitting": real.split_of}
    env = recorded.reset_env(0, **setting, signals="both", known=known)
    np.testing.assert_array_equal(env.instance.recall, known["recall"])
    row = real.by_log(0, index=True, site=SHIPPED, days=10, importance="uniform")
    policy = bind(real.LearnedIndex(index=index), env)
    assert row == {"freshness": play(env, policy, 0).freshness, real.REFUSED: 0.0}
    uninformed = real.crawled(
        0, policy="RoundRobin", signals="none", site=SHIPPED, days=10, importance="uniform"
    )
    assert row["freshness"] > uninformed["freshness"]
    with pytest.raises(ValueError, match="at least 400 crawls"):
        index_of_log(SHIPPED, 100, 0, start)
