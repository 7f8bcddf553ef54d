"""ThresholdNCIS in simulation, against Theorem 1.

Every page starts a cycle at time 0, so its cycles from there on are independent and identically
distributed: crawl rates are tested on the first cycles of each page, their number fixed beforehand.
Freshness is measured over an interval after the effect of the fresh start has decayed, as the
difference of two rollouts on one seed, where the shorter one ends at the start of the interval.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from scipy import stats

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.instances import make
from crawl_envs.types import evidence
from crawl_envs.types.compiled_policies import CompiledThresholds, ThresholdRule
from crawl_envs.worlds.rollouts import play_form
from policies import solvers
from policies.ncis.threshold import threshold_rule
from policies.values import tables as value_tables

SEEDS = range(24)
WARM, END = 120.0, 620.0


def drawn(num_pages, seed, **fixed):
    """Pages that change often: the effect of a fresh start decays by exp(-0.1 WARM) at least."""
    rng = np.random.default_rng(seed)
    given = {
        "importance": rng.random(num_pages),
        "change_rate": rng.uniform(0.1, 1.0, num_pages),
        "recall": rng.beta(0.5, 0.5, num_pages),
        "false_signal_rate": rng.uniform(0.1, 0.6, num_pages),
        "bandwidth": 0.5 * num_pages,
    }
    return Instance(**{**given, **fixed})


def split(num_pages, seed, total=None, **fixed):
    """The same with two sources; the first has the higher precision."""
    rng = np.random.default_rng(seed + 1000)
    total = rng.uniform(0.2, 0.9, num_pages) if total is None else np.full(num_pages, total)
    part = rng.uniform(0.3, 0.7, num_pages)
    noise = np.stack([rng.uniform(0.02, 0.1, num_pages), rng.uniform(0.2, 0.8, num_pages)])
    recall = np.stack([part * total, total - part * total])
    return drawn(num_pages, seed, **{"recall": recall, "false_signal_rate": noise, **fixed})


NEVER_FALSE = np.array([[0.0], [0.3]]).repeat(20, axis=1)
INSTANCES = {
    "noisy": drawn(40, 1),
    "noisy, scarce": drawn(40, 2, bandwidth=4.0),
    "no false signals": drawn(30, 3, false_signal_rate=0.0, bandwidth=9.0),
    "no false signals, scarce": drawn(30, 4, false_signal_rate=0.0, bandwidth=1.0),
    "every change signalled": drawn(30, 5, recall=1.0, bandwidth=8.0),
    "perfect signals, scarce": drawn(12, 6, recall=1.0, false_signal_rate=0.0, bandwidth=2.0),
    "no signals": drawn(20, 7, recall=0.0, false_signal_rate=0.0),
    "useless signals": drawn(20, 8, recall=0.0, false_signal_rate=0.4),
    "one page": drawn(1, 9, recall=0.6, false_signal_rate=0.3, bandwidth=0.7),
    "one page by signals": drawn(1, 10, recall=1.0, false_signal_rate=0.3, bandwidth=0.2),
    "two sources": split(40, 11),
    "two sources, scarce": split(40, 12, bandwidth=4.0),
    "two sources, one certain": split(20, 13, false_signal_rate=NEVER_FALSE, bandwidth=1.0),
    "two sources that show every change": split(20, 14, total=1.0, bandwidth=6.0),
    "one page by two sources": split(1, 15, total=1.0, bandwidth=0.3),
    "one page by two sources, one certain": split(
        1, 16, total=1.0, false_signal_rate=NEVER_FALSE[:, :1], bandwidth=0.02
    ),
}
EVERY_INSTANCE = pytest.mark.parametrize("name", list(INSTANCES))


def gaps_of(rollout, page):
    return np.diff(rollout.times[rollout.crawls == page], prepend=0.0)


@EVERY_INSTANCE
def test_crawl_rates_are_those_of_the_solver(name):
    """Each page's mean cycle within 3.5 standard errors of 1 / f, and chi-square over all pages."""
    instance = INSTANCES[name]
    rates = solvers.ncis(instance).rates
    horizon = 4000.0
    rollout = simulate(instance, policies.ThresholdNCIS(), horizon, seed=5)
    scores = []
    for page, rate in enumerate(rates):
        gaps = gaps_of(rollout, page)
        if rate == 0.0:
            assert gaps.size == 0
        count = int(0.8 * rate * horizon)
        if count < 100:
            continue
        gaps = gaps[:count]
        assert gaps.size == count
        error = gaps.std(ddof=1) / np.sqrt(count)
        if error * rate < 1e-9:  # no signals: always the same
            assert gaps.mean() == pytest.approx(1.0 / rate, rel=1e-9)
        else:
            scores.append((gaps.mean() - 1.0 / rate) / error)
    assert np.all(np.abs(scores) < 3.5)
    assert stats.chi2.sf(np.sum(np.square(scores)), max(len(scores), 1)) > 1e-3


@EVERY_INSTANCE
def test_freshness_and_spending_are_those_of_the_solver(name):
    """Within 3 standard errors over seeds, on (WARM, END]."""
    instance = INSTANCES[name]
    allocation = solvers.ncis(instance)
    fresh, spent = [], []
    for seed in SEEDS:
        first, second = (
            simulate(instance, policies.ThresholdNCIS(), until, seed=seed).ledger
            for until in (WARM, END)
        )
        alive = second.alive_time - first.alive_time
        fresh.append((second.fresh_time - first.fresh_time) / alive)
        spent.append((second.crawls - first.crawls) / (END - WARM))
    assert abs(np.mean(fresh) - allocation.objective) < 3.0 * stats.sem(fresh)
    rounding = len(allocation.rates) / (END - WARM)  # crawls just inside or outside of the stretch
    assert abs(np.mean(spent) - allocation.rates.sum()) < 3.0 * stats.sem(spent) + rounding


def test_a_rollout_to_an_earlier_time_is_the_beginning_of_a_longer_one():
    instance = INSTANCES["noisy"]
    short, long = (
        simulate(instance, policies.ThresholdNCIS(), end, seed=3) for end in (10.0, 25.0)
    )
    before = long.times < 10.0
    np.testing.assert_array_equal(short.times, long.times[before])
    np.testing.assert_array_equal(short.crawls, long.crawls[before])
    assert short.ledger.time == 10.0


def test_the_state_at_every_crawl_is_the_threshold():
    """Effective elapsed time just reaches it, or a signal has just lifted it over."""
    instance = make("noisy", num_pages=30, bandwidth=20.0, seed=0)
    allocation = solvers.ncis(instance)
    env = gymnasium.make("CrawlNCIS-v0", num_pages=30, bandwidth=20.0, horizon=40.0)
    env.reset(seed=0, options={"instance": instance})
    signals = [[] for _ in range(30)]
    over = False
    while not over:
        log = env.unwrapped.last_log()
        *_, over, _ = env.step(0)
        for page, time in zip(log.signal_page, log.signal_time, strict=True):
            signals[page].append(time)
    beta = value_tables.signal_time(
        instance.change_rate, instance.recall, instance.false_signal_rate
    )
    rollout = simulate(instance, policies.ThresholdNCIS(), 39.0, seed=0)
    last = np.zeros(30)
    exact = 0
    for page, time in zip(rollout.crawls, rollout.times, strict=True):
        times = np.array(signals[page])
        times = times[(times > last[page]) & (times <= time)]
        reached = time - last[page] + beta[page] * times.size
        if times.size and times[-1] == time:
            assert reached >= allocation.thresholds[page] > reached - beta[page]
        elif beta[page] * times.size < 1e3:
            assert reached == pytest.approx(allocation.thresholds[page], rel=1e-9)
            exact += 1
        last[page] = time
    assert exact > 200


def test_thresholds_follow_the_bandwidth():
    """Each stretch of time spends its own bandwidth, once the burst at the step is over."""
    instance = drawn(40, 1, bandwidth=10.0, bandwidth_steps=((400.0, 30.0), (800.0, 5.0)))
    rollout = simulate(instance, policies.ThresholdNCIS(), 1200.0, seed=2)
    for start, bandwidth in ((50.0, 10.0), (450.0, 30.0), (850.0, 5.0)):
        made = np.sum((rollout.times > start) & (rollout.times < start + 350.0))
        assert made / 350.0 == pytest.approx(bandwidth, rel=0.03)
    burst = rollout.times == 400.0
    assert burst.sum() > 3
    assert np.all(np.diff(rollout.crawls[burst]) > 0)


def test_a_floor_crawls_every_page():
    instance = INSTANCES["noisy, scarce"]
    assert np.any(solvers.ncis(instance).rates == 0.0)
    rollout = simulate(instance, policies.ThresholdNCIS(floor=0.05), 4000.0, seed=1)
    assert np.all(rollout.crawl_counts >= 0.05 * 4000.0 * 0.9)
    assert rollout.ledger.crawls / 4000.0 == pytest.approx(4.0, rel=0.02)
    unused = solvers.ncis(instance).rates == 0.0
    some = simulate(instance, policies.ThresholdNCIS(floor=0.1 * unused), 4000.0, seed=1)
    np.testing.assert_allclose(some.crawl_counts[unused] / 400.0, 1.0, atol=0.15)


def rule_of(bandwidth, floor=0.0, **model):
    given = {"importance": 1.0, "change_rate": 1.0, "recall": 1.0, "false_signal_rate": 0.5}
    instance = Instance(**{**given, **model}, bandwidth=bandwidth)
    return threshold_rule(instance.problem(), 0.0, solvers.ncis(instance, floor=floor))


@pytest.mark.parametrize(
    ("rate", "number", "share"), [(1.5, 1, 0.0), (0.5, 3, 0.0), (1.5 / 2.25, 2, 0.25)]
)
def test_pages_crawled_by_signals_have_two_numbers_of_them(rate, number, share):
    """gamma = 1.5: a rate of 1.5 / n asks for n signals per crawl, 1.5 / 2.25 for 2, or 3."""
    rule = rule_of(rate)
    each = np.log(1.5 / 0.5)
    assert not rule.timed[0]
    assert rule.signal_weight[0, 0] == pytest.approx(each, rel=1e-15)
    assert rule.later_share[0] == pytest.approx(share, abs=1e-9) or share == 0.0
    mean = number + share
    sooner, later = np.ceil(rule.threshold[0] / each), np.ceil(rule.later_threshold[0] / each)
    assert sooner + rule.later_share[0] * (later - sooner) == pytest.approx(mean, rel=1e-9)


def test_certain_signals_are_counted():
    """A rate of 1 / 2.25 of theirs: after two of them, or three; other sources do not count."""
    rule = rule_of(0.4 / 2.25, recall=[[0.4], [0.6]], false_signal_rate=[[0.0], [0.5]])
    assert not rule.timed[0]
    np.testing.assert_array_equal(rule.signal_weight[:, 0], [1.0, 0.0])
    assert (rule.threshold[0], rule.later_threshold[0]) == (2.0, 3.0)
    assert rule.later_share[0] == pytest.approx(0.25)


def test_a_floor_above_the_rate_of_signals_adds_time():
    rule = rule_of(2.0, floor=2.0)
    gamma, time = 1.5, rule.threshold[0]
    assert rule.timed[0]
    assert rule.signal_weight[0, 0] == np.inf
    assert -np.expm1(-gamma * time) / gamma == pytest.approx(0.5, rel=1e-12)


def test_pages_of_no_use_wait_whatever_their_signals():
    rule = rule_of(0.5, floor=0.1, importance=[1.0, 0.0], recall=0.5)
    assert rule.threshold[1] == pytest.approx(10.0)
    assert rule.signal_weight[0, 1] == 0.0
    assert rule.signal_weight[0, 0] > 0.0


def test_signal_time_is_the_beta_of_the_values():
    rng = np.random.default_rng(0)
    model = (rng.random(50), rng.beta(0.25, 0.25, 50), rng.uniform(0.0, 0.6, 50))
    alpha = (1.0 - model[1]) * model[0]
    np.testing.assert_allclose(
        evidence.signal_time(*model, alpha), value_tables.signal_time(*model), rtol=1e-14
    )
    assert np.exp(-alpha * evidence.signal_time(*model, alpha)) == pytest.approx(
        model[2] / (model[1] * model[0] + model[2]), rel=1e-12
    )
    sure = evidence.signal_time(
        np.ones(2), np.array([0.5, 1.0]), np.array([0.0, 1.0]), 1.0 - np.array([0.5, 1.0])
    )
    assert np.all(sure == np.inf)
    assert evidence.signal_time(np.ones(1), np.zeros(1), np.ones(1), np.ones(1)) == 0.0


def test_evaluate_plays_it_beside_slotted_policies_on_the_same_events():
    chosen = {
        name: (lambda env, name=name: policies.make(name, env))
        for name in ("ThresholdNCIS", "GreedyNCIS", "RoundRobin")
    }
    arguments = {"num_pages": 50, "bandwidth": 25.0, "instance": "noisy", "horizon": 200.0}
    rows = {
        (row.policy, row.seed, row.metric): row.value
        for row in evaluate("CrawlNCIS-v0", chosen, range(4), **arguments)
    }
    for seed in range(4):
        ours, theirs = (rows[name, seed, "freshness"] for name in ("ThresholdNCIS", "GreedyNCIS"))
        assert abs(ours - theirs) < 0.02
        assert ours > rows["RoundRobin", seed, "freshness"] + 0.05
    stepped = list(
        evaluate(
            "CrawlNCIS-v0",
            {"ThresholdNCIS": chosen["ThresholdNCIS"]},
            [0],
            compiled=False,
            **arguments,
        )
    )
    assert {row.value for row in stepped if row.metric == "freshness"} == {
        rows["ThresholdNCIS", 0, "freshness"]
    }


def test_what_it_refuses():
    with pytest.raises(ValueError, match=r"floor must be finite and >= 0, got -1\.0"):
        policies.ThresholdNCIS(floor=-1.0)
    with pytest.raises(ValueError, match="env must be a crawl environment"):
        policies.make("ThresholdNCIS", gymnasium.make("CartPole-v1"))
    instance = INSTANCES["noisy"]
    with pytest.raises(ValueError, match="floor must cost at most"):
        simulate(instance, policies.ThresholdNCIS(floor=1.0), 1.0)
    with pytest.raises(ValueError, match=r"bandwidth must give at most 1e\+08 crawls"):
        simulate(drawn(2, 0, bandwidth=1e10), policies.ThresholdNCIS(), 1.0)
    zero, rows = np.zeros(2), np.ones((1, 2))
    rule = ThresholdRule(0.0, zero + 1e-16, zero + 1.0, zero, rows, np.ones(2, np.bool_))
    with pytest.raises(ValueError, match="differ in time"):
        play_form(CompiledThresholds((rule,), 0), drawn(2, 0, bandwidth=1.0), 1.0)
    env = gymnasium.make("CrawlNCIS-v0", num_pages=3)
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="simulate and evaluate play it"):
        policies.make("ThresholdNCIS", env).predict(observation)
    hidden = gymnasium.make("CrawlNCIS-v0", num_pages=3, reveal="importance")
    hidden.reset(seed=0)
    policy = policies.make("ThresholdNCIS", hidden)
    with pytest.raises(ValueError, match="ThresholdNCIS needs change_rate, recall"):
        policy.compile(hidden.unwrapped.problem, 1, np.random.default_rng(0))
