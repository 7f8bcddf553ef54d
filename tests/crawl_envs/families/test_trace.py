"""CrawlTrace-v0: recorded events, births and deaths, fitted parameters."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs.instances import traces

TRACE = "garden-handbook"


def brute_force_freshness(record: traces.Trace, window, crawls) -> tuple[float, float]:
    """Fresh and alive page time, page by page from the record; crawls are (time, page)."""
    start, end = window
    fresh = alive = 0.0
    for page in range(record.num_pages):
        born, died = max(record.created[page], start), min(record.deleted[page], end)
        if born >= died:
            continue
        alive += died - born
        times = sorted(
            [born, *(start + t for t, p in crawls if p == page and born < start + t < died)]
        )
        changes = record.change_time[record.change_page == page]
        for held, until in zip(times, [*times[1:], died], strict=True):
            later = changes[(changes > held) & (changes < until)]
            fresh += (later[0] if later.size else until) - held
    return fresh, alive


@pytest.mark.parametrize("name", ["RoundRobin", "GreedyNCIS", "GreedyCIS"])
def test_ledger_is_what_the_record_says(name):
    record = traces.load(traces.find(TRACE))
    window = (100.0, 200.0)
    env = gymnasium.make("CrawlTrace-v0", trace=TRACE, window=list(window), days_per_crawl=7.0)
    observation, _ = env.reset(seed=0)
    policy = policies.make(name, env)
    crawls, over = [], False
    while not over:
        now = env.unwrapped.tracker().time
        page, _ = policy.predict(observation)
        crawls.append((now, int(page)))
        observation, _, _, over, _ = env.step(page)
    ledger = env.unwrapped.ledger()
    # The last slot may end after the window, when nothing is recorded any more.
    record_end = window[0] + ledger.time
    fresh, alive = brute_force_freshness(record, (window[0], max(record_end, window[1])), crawls)
    assert ledger.fresh_time == pytest.approx(fresh, rel=1e-9)
    assert ledger.alive_time == pytest.approx(alive, rel=1e-9)
    assert ledger.crawls == len(crawls)


def test_seeds_have_the_same_events_and_draw_only_zipf_importance():
    env = gymnasium.make("CrawlTrace-v0", trace=TRACE, importance="zipf")
    weights = []
    ledgers = []
    for seed in (0, 1):
        env.reset(seed=seed)
        for _ in range(20):
            env.step(0)
        weights.append(env.unwrapped.instance.importance)
        ledgers.append(env.unwrapped.ledger())
    assert ledgers[0].changes == ledgers[1].changes > 0
    assert ledgers[0].signals == ledgers[1].signals > 0
    assert not np.array_equal(*weights)
    np.testing.assert_allclose(np.sort(weights[0])[::-1], 1.0 / np.arange(1, weights[0].size + 1))


def test_parameters_are_those_stored_beside_the_trace():
    folder = traces.find(TRACE)
    record = traces.load(folder)
    for signals in ("directory", "mentions"):
        fitted = traces.load_parameters(traces.parameters_path(folder, signals), record)
        env = gymnasium.make("CrawlTrace-v0", trace=TRACE, signals=signals)
        env.reset(seed=0)
        problem = env.unwrapped.problem
        np.testing.assert_array_equal(problem.change_rate, fitted.change_rate)
        np.testing.assert_array_equal(problem.recall, fitted.recall)
        np.testing.assert_array_equal(problem.false_signal_rate, fitted.false_signal_rate)
    hidden = gymnasium.make("CrawlTrace-v0", trace=TRACE, reveal="importance")
    hidden.reset(seed=0)
    assert hidden.unwrapped.problem.change_rate is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trace": "no-such-trace"}, "no-such-trace"),
        ({"signals": "smoke"}, "signals must be one of .* got 'smoke'"),
        ({"window": [5.0]}, r"window must be a first and a last day, got \[5.0\]"),
        ({"window": [150.0, 20.0]}, "window must be a first and a later last day"),
        ({"window": [0.0, 1e6]}, "end must lie in"),
        ({"days_per_crawl": 0.0}, "days_per_crawl must be finite and > 0, got 0.0"),
        ({"days_per_crawl": 2.0, "bandwidth": 3.0}, "days_per_crawl must not be given with"),
        ({"importance": "mine"}, "importance must be one of .* got 'mine'"),
        ({"parameters": "/nowhere.parquet"}, "scripts.data.fit_trace"),
        ({"bandwidth": -1.0}, "bandwidth must be finite and > 0, got -1.0"),
        ({"action": "guess"}, "action must be one of .* got 'guess'"),
    ],
)
def test_bad_arguments_name_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        gymnasium.make("CrawlTrace-v0", **arguments).reset(seed=0)
