"""Backtests of logs: freshness of policies, saved crawls, and their intervals."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from crawl_envs.evaluation import Row, play
from policies.live.logs.imputation import Changes
from scripts.live import backtest_runs, backtesting
from scripts.live.backtesting import LOG, Backtest, backtest, dispersion, estimate, fewer_crawls
from tests.naive.replayed_logs import make_log
from tests.policies.live.logs.test_imputation import simulated

SHARES = (0.25, 0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def tested() -> Backtest:
    log, _ = simulated(0, crawls=15, recall=0.5, false_rate=0.02)
    return backtest(log, draws=4, seed=1)


def test_saved_crawls_lie_where_the_curve_meets_the_own_freshness() -> None:
    curve = (0.5, 0.6, 0.7, 0.9)
    assert fewer_crawls(0.7, SHARES, curve) == pytest.approx(0.0)
    assert fewer_crawls(0.6, SHARES, curve) == pytest.approx(0.5)
    assert fewer_crawls(0.65, SHARES, curve) == pytest.approx(1.0 - math.sqrt(0.5))
    assert fewer_crawls(0.4, SHARES, curve) == 0.75
    assert fewer_crawls(0.95, SHARES, curve) == -1.0
    assert fewer_crawls(1.0, SHARES, (0.9, 1.0, 1.0, 1.0)) == 0.5  # the least budget of several
    assert fewer_crawls(0.5, SHARES, (0.4, 0.5, 0.5, 0.6)) == 0.5
    assert fewer_crawls(0.65, SHARES, (0.5, 0.7, 0.6, 0.9)) == pytest.approx(
        1.0 - math.exp(math.log(0.25) + 0.75 * math.log(2.0))
    )


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4), st.floats(0.0, 1.0))
def test_saved_crawls_fall_with_the_own_freshness(curve: list[float], own: float) -> None:
    saved = fewer_crawls(own, SHARES, curve)
    assert -1.0 <= saved <= 0.75
    assert fewer_crawls(min(own + 0.1, 1.0), SHARES, curve) <= saved + 1e-12


def test_plays_end_with_the_log() -> None:
    """One page, changed at every half day: fresh for half a day after a crawl."""
    crawls = [(0, float(day), day > 0) for day in range(10)]
    known = dict.fromkeys(backtesting.PARAMETERS, np.zeros(1)) | {
        "importance": np.ones(1),
        "change_rate": np.ones(1),
    }
    test = Backtest(make_log(crawls, num_pages=1), known, 1.0, 9.0, np.zeros(1, np.int64))
    changes = Changes(np.zeros(8, np.int64), np.arange(1.0, 9.0) + 0.5)
    for share, number in ((0.125, 1), (0.25, 2), (1.0, 8)):
        per_day, days = test.budget(share)
        assert per_day * days == pytest.approx(number)
        assert days + 1.0 / per_day == pytest.approx(8.0)
        ends = 1.0 + np.arange(number + 2) / per_day
        fresh = [
            min([t for t in [*changes.time, until] if t > begin]) - begin
            for begin, until in itertools.pairwise(ends)
        ]
        for policy in ("RoundRobin", "Greedy"):
            assert test.freshness(policy, share, changes) == pytest.approx(sum(fresh) / 8.0), policy


def test_the_time_of_plays_is_told_before_them(
    tested: Backtest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By plays up to a second above those without crawls; a first one compiles for a minute."""
    clock, played = [0.0], list[float]()

    def freshness(self: Backtest, policy: str, share: float, changes: Changes) -> float:
        played.append(share)
        clock[0] += (0.5 + 200.0 * share if policy == "Slow" else 0.25) + 60.0 * (len(played) == 1)
        return 1.0

    monkeypatch.setattr(Backtest, "freshness", freshness)
    monkeypatch.setattr(backtesting.time, "perf_counter", lambda: clock[0])
    assert tested.seconds("Slow", SHARES) == pytest.approx(0.5 + 200.0 * 3.75 / 4.0)
    assert played == [0.0, 0.0, SHARES[0] / 4096, SHARES[0] / 256, SHARES[0] / 16]
    assert tested.seconds("Fast", SHARES) == 0.25
    missing = {
        (f"{share:g}", of, k) for share in SHARES for of in ("Slow", "Fast") for k in range(6)
    }
    backtest_runs.print_time(tested, SHARES, missing | {(LOG, LOG, 0)}, workers=2)
    minutes = 24 * 188.0 / 2 / 60
    expected = f"24 plays of Slow take about {minutes:.0f} minutes; use fewer --policies or --draws"
    assert capsys.readouterr().err.split() == f"{expected} to save time".split()


def test_an_interval_is_that_of_one_more_draw() -> None:
    mean, half = estimate([1.0, 2.0, 3.0, 6.0], widening=2.0)
    assert mean == 3.0
    assert half == pytest.approx(2.0 * 3.182446 * np.std([1, 2, 3, 6], ddof=1) * math.sqrt(1.25))
    assert math.isnan(estimate([1.0]).half_width)


def test_pages_that_change_together_have_a_large_dispersion() -> None:
    rng = np.random.default_rng(0)
    apart = [(p, float(t), bool(rng.random() < 0.3)) for p in range(50) for t in range(60)]
    deployed = rng.random(60) < 0.3
    together = [(p, float(t), bool(deployed[t])) for p in range(50) for t in range(60)]
    assert dispersion(make_log(apart, num_pages=50)) == pytest.approx(1.0, abs=0.4)
    assert dispersion(make_log(together, num_pages=50)) == pytest.approx(50.0, rel=0.4)
    rare = {float(t) for t in [*range(0, 60, 2), *range(60, 260, 10)]}
    late = []
    for page in range(200):
        changes = np.sort(rng.random(rng.poisson(26.0)) * 260.0)
        found = np.diff(np.searchsorted(changes, sorted(rare)), prepend=0) > 0
        late += [(page, t, bool(c)) for t, c in zip(sorted(rare), found, strict=True)]
    assert dispersion(make_log(late, num_pages=200)) == pytest.approx(1.0, abs=0.6)
    never = [(p, float(t), False) for p in range(3) for t in range(5)]
    assert dispersion(make_log(never, num_pages=3)) == 1.0


def test_a_backtest_is_near_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freshness of the log and of policies, on simulated changes that hold the model."""
    monkeypatch.setattr(backtesting, "STANDARD", backtesting.STANDARD._replace(first=60, passes=8))
    hits = []
    for seed in range(3):
        log, true = simulated(seed, crawls=15, recall=0.5, false_rate=0.02)
        test = backtest(log, draws=8, seed=seed)
        own = estimate([test.own_freshness(changes) for changes in test.changes], 1.5)
        hits.append(abs(test.own_freshness(true) - own.mean) <= own.half_width)
        for policy in ("RoundRobin", "GreedyNCIS"):
            fresh = [test.freshness(policy, 1.0, changes) for changes in test.changes]
            played = estimate(fresh, 1.5)
            hits.append(abs(test.freshness(policy, 1.0, true) - played.mean) <= played.half_width)
    assert sum(hits) >= 8, hits


def test_policies_have_no_hindsight() -> None:
    """What policies know does not depend on crawls after the start."""
    log, _ = simulated(4, crawls=12, recall=0.0, false_rate=0.0)
    half = backtest(log, start=50.0, draws=0).parameters["change_rate"]
    turned = log.changed ^ (log.time > 50.0)
    other = make_log(
        list(zip(log.page.tolist(), log.time.tolist(), turned.tolist(), strict=True)),
        num_pages=100,
    )
    np.testing.assert_array_equal(
        backtest(other, start=50.0, draws=0).parameters["change_rate"], half
    )


def test_workers_play_the_same_backtest(tested: Backtest) -> None:
    sent = backtesting.measurements(tested, tested.digest(1), ["Greedy"], (0.5,))
    own, half = pickle.loads(pickle.dumps(sent))
    [row] = own.play(LOG, 2)
    assert row == Row("", LOG, LOG, 2, "freshness", tested.own_freshness(tested.changes[2]))
    [row] = half.play("Greedy", 1)
    assert row.value == tested.freshness("Greedy", 0.5, tested.changes[1], 1)
    assert half.described() == {
        "id": "",
        "arguments": {"digest": tested.digest(1), "share": 0.5},
        "labels": {"Greedy": {"spec": "backtest-policy", "version": 1, "policy": "Greedy"}},
    }


def test_round_robin_is_that_of_an_environment(tested: Backtest) -> None:
    for share in (0.125, 0.7, 2.0):
        env = tested._env(share, tested.changes[0])
        env.reset(seed=0)
        expected = play(env, policies.make("RoundRobin", env), 0).freshness
        found = tested.freshness("RoundRobin", share, tested.changes[0])
        assert found == pytest.approx(expected, abs=1e-12)


def test_fewer_draws_are_the_first_ones(tested: Backtest) -> None:
    [first, *_] = tested.changes
    [alone] = tested.drawn(1, 1).changes
    assert alone.time.tobytes() == first.time.tobytes()


def test_a_digest_is_of_all_that_matters(tested: Backtest) -> None:
    log, digest = tested.log, tested.digest(1)
    later = dataclasses.replace(log, time=log.time + 1e-9)
    parameters = {**tested.parameters, "importance": tested.parameters["importance"] * 2.0}
    others = (
        dataclasses.replace(tested, log=later),
        dataclasses.replace(tested, parameters=parameters),
        dataclasses.replace(tested, start=tested.start + 1.0),
        dataclasses.replace(tested, group=tested.group + 1),
    )
    digests = {digest, tested.digest(2), *(other.digest(1) for other in others)}
    assert len(digests) == 6
    assert dataclasses.replace(tested, changes=()).digest(1) == digest


def test_large_logs_have_less_effort() -> None:
    log, _ = simulated(0, crawls=4, recall=0.0, false_rate=0.0)
    assert backtesting.effort_for(log) == backtesting.STANDARD
    for less in backtesting.LESS:
        for size, same in ((less.above + 1, True), (less.above, False)):
            many = dataclasses.replace(log, page=np.zeros(size, np.int64))
            assert (backtesting.effort_for(many) == less) == same


def test_more_crawls_are_fresher_and_signals_help(tested: Backtest) -> None:
    changes = tested.changes[0]
    greedy = [tested.freshness("Greedy", share, changes) for share in SHARES]
    assert greedy == sorted(greedy)
    assert tested.freshness("GreedyNCIS", 1.0, changes) > greedy[2]


def test_outcomes_compare_within_a_draw() -> None:
    rows = [Row("", LOG, LOG, seed, "freshness", value) for seed, value in enumerate((0.5, 0.7))]
    for share, values in {0.5: (0.5, 0.6), 1.0: (0.6, 0.8)}.items():
        name = backtesting.setting_of(share)
        rows += [Row("", name, "Greedy", k, "freshness", value) for k, value in enumerate(values)]
    own, half, whole = backtesting.outcomes(rows, ["Greedy"], (0.5, 1.0), 1.0)
    assert own.policy == LOG
    assert own.freshness.mean == pytest.approx(0.6)
    assert (half.share, whole.share) == (0.5, 1.0)
    assert whole.gain.mean == pytest.approx(0.1)
    assert whole.gain.half_width == pytest.approx(0.0, abs=1e-12)
    assert whole.saved == half.saved
    saved = [0.5, 1.0 - math.sqrt(0.5)]
    assert half.saved.mean == pytest.approx(np.mean(saved))


def test_bad_input_is_named() -> None:
    log, _ = simulated(0, crawls=4, recall=0.0, false_rate=0.0)
    with pytest.raises(ValueError, match="start must lie in the log"):
        backtest(log, start=1e6)
    few = [(0, float(t), t % 2 == 1) for t in range(12)]
    with pytest.raises(ValueError, match="log must have at least 8 crawls after day"):
        backtest(make_log(few, num_pages=1))
