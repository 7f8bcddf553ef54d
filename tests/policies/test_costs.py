"""Every policy where crawls have costs: units, general optimisers, dense choices, spending."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import minimize

import policies
from agents.generalist.policy import LearnedBelief
from agents.index import LearnedIndex
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.instances import make
from policies import solvers, values
from policies.bandits.rewards import StepReward
from policies.base import schedules
from policies.base.live import LivePages
from policies.base.policy import Form
from policies.base.registry import find
from policies.lambdacrawl.even_slots import EvenSlots
from policies.ncis.lagrangian import spending_price
from policies.values.divergence.curves import HolisticCurves
from tests.agents.generalist.test_stored import stored
from tests.agents.index.test_policy import random_index
from tests.worlds import rated_of, single_of, stepped

AGENTS = {
    "LearnedBelief": lambda: LearnedBelief(stored=stored()),
    "LearnedIndex": lambda: LearnedIndex(index=random_index(3)),
}
FORMS = [
    (form, name)
    for form in ("page", "scores", "rates")
    for name in (*policies.names(form), *(AGENTS if form != "rates" else ()))
]


def build(name):
    return AGENTS[name]() if name in AGENTS else find(name)()


def pages_of(seed=6, num_pages=8, spread=1.0, **more):
    """Pages with signals, some of them with complete observation."""
    arguments = {"seed": seed, "num_pages": num_pages, "bandwidth": 8.0, "cost_spread": spread}
    return make("lambdacrawl", **{**arguments, **more})


def with_bandwidth(instance, bandwidth, cost):
    columns = ("importance", "change_rate", "recall", "false_signal_rate")
    return Instance(*(getattr(instance, x) for x in columns), bandwidth=bandwidth, cost=cost)


def environment(instance, form):
    if form == "rates":
        return rated_of(instance, horizon=30.0, overspend="scale")
    return single_of(instance, horizon=6.0, action=form, batch=1 if form == "page" else 3)


def follows(instance, problem, form, name):
    return choices_of(environment(instance, form), problem, form, build(name), build(name))


def choices_of(env, problem, form, policy, unbound):
    """Yield the choices in an environment and those for another description of its pages."""
    core = env.unwrapped
    observation, _ = env.reset(seed=2)
    bound = policies.bind(policy, env)
    epoch = core.epoch if form == "rates" else None
    unbound = unbound.in_form(form, core.batch if form == "scores" else None, epoch)
    sketches = core.first_sketch() if hasattr(core, "first_sketch") else None
    if sketches is not None:  # of pages with fragments
        problem = problem(core.problem)
    live = LivePages(problem, horizon=core.lanes.horizon, seed=core.rng(), sketches=sketches)
    live.advance(core.last_log(), core.tracker().time)
    unbound.start(live)
    over, count = False, 0
    while not over and count < 60:
        action, _ = bound.predict(observation)
        yield action, np.atleast_1d(unbound.choose(live.tracker())), env
        observation, _, _, over, _ = env.step(action)
        live.advance(core.last_log(), core.tracker().time)
        log = core.last_log()
        if log.cost is not None and live.problem.cost is not None:  # in the unit of the problem
            log = log._replace(cost=live.problem.cost[log.page])
        unbound.update(log, live.tracker())
        count += 1
    assert count >= 15


@pytest.mark.parametrize(("form", "name"), FORMS)
def test_costs_of_one_change_nothing(form, name):
    instance = pages_of(spread=0.0)
    same = instance.with_cost(np.ones(8)).problem()
    for action, choice, env in follows(instance, same, form, name):
        if form == "rates":
            assert choice == pytest.approx(action, rel=1e-12)
        else:
            chosen = np.argsort(-action, kind="stable")[: env.unwrapped.batch]
            expected = [int(action)] if form == "page" else chosen.tolist()
            assert choice[: len(expected)].tolist() == expected


@pytest.mark.parametrize(("form", "name"), [case for case in FORMS if case[0] != "scores"])
def test_equal_costs_are_a_smaller_bandwidth(form, name):
    instance = pages_of(spread=0.0)
    dear = with_bandwidth(instance, 8.0 * 2.5, np.full(8, 2.5)).problem()
    for action, choice, _ in follows(instance, dear, form, name):
        assert choice == pytest.approx(np.atleast_1d(action), rel=1e-9)


@pytest.mark.parametrize(("form", "name"), [case for case in FORMS if case[0] != "scores"])
def test_the_unit_of_costs_does_not_matter(form, name):
    instance = pages_of()
    cents = with_bandwidth(instance, 800.0, instance.cost * 100.0).problem()
    for action, choice, _ in follows(instance, cents, form, name):
        assert choice == pytest.approx(np.atleast_1d(action), rel=1e-9)


@pytest.mark.parametrize("name", policies.names("rates"))
def test_rates_are_within_the_bandwidth(name):
    noisy = make("noisy", seed=1, num_pages=8, bandwidth=4.0, cost_spread=1.0)
    for instance in (pages_of(bandwidth=4.0), noisy):
        env = rated_of(instance, horizon=20.0, overspend="error")
        observation, over, declared = env.reset(seed=0)[0], False, []
        policy = policies.make(name, env)
        while not over:
            observation, _, _, over, info = env.step(policy.predict(observation)[0])
            declared.append(info["declared"])
        assert max(declared) <= 4.0 * (1.0 + 1e-9)
    assert np.mean(declared) == pytest.approx(4.0, rel=1e-6)  # without complete observation


@pytest.mark.parametrize("price", [1.0, 2.5])
@pytest.mark.parametrize("name", policies.names(family="fragments", oracle=False))
def test_equal_costs_of_pages_with_fragments_are_a_smaller_bandwidth(name, price):
    def costly(problem):
        return replace(problem, bandwidth=1.5 * price, cost=np.full(8, price))

    place = {"num_pages": 8, "bandwidth": 1.5, "horizon": 60.0}
    env = gym.make("CrawlLongevity-v0", **place)
    for action, choice, _ in choices_of(env, costly, "page", build(name), build(name)):
        assert choice.tolist() == [action]
    if name == "UniformRefresh":
        return
    env = gym.make("CrawlLongevity-v0", action="refresh", **place)
    pair = (find(name)(threshold=threshold) for threshold in (0.05, 0.05 / price))
    for action, choice, _ in choices_of(env, costly, "refresh", *pair):
        assert choice.tolist() == np.flatnonzero(action).tolist()


@pytest.mark.parametrize("name", policies.names("page", paper="LambdaCrawl", learns=True))
def test_learned_rates_are_even_in_time(name):
    instance = make("noisy", seed=1, num_pages=8, bandwidth=4.0, cost_spread=1.0)
    pages = LivePages(instance.problem())
    policy, slots = find(name)(epoch=50.0), EvenSlots(8, instance.cost)
    policy.start(pages)
    slots.plan(policy.allocation().rates, np.zeros(8))
    assert instance.problem().spend(policy.allocation().rates) == pytest.approx(4.0, rel=1e-9)
    for number in range(40):
        assert policy.choose(pages.tracker()) == slots.take(np.ones(8, np.bool_))
        pages.advance(pages.last_log(), 0.1 * (number + 1))
        policy.update(pages.last_log(), pages.tracker())


def test_plans_without_an_environment_last_as_many_crawls():
    problem = pages_of(spread=0.0).problem()
    dear = replace(problem, bandwidth=20.0, cost=np.full(8, 2.5))
    assert LivePages(dear).horizon == LivePages(problem).horizon == 100.0


# Rates against a general optimiser


def least(loss, cost, bandwidth, start):
    """The rates of the least loss that spend the bandwidth, by SLSQP in logarithms."""
    spent = {"type": "eq", "fun": lambda logs: (cost * np.exp(logs)).sum() - bandwidth}
    options = {"maxiter": 500, "ftol": 1e-14}
    start = np.log(start * bandwidth / (cost * start).sum())
    optimum = minimize(
        lambda logs: loss(np.exp(logs)), start, method="SLSQP", constraints=spent, options=options
    )
    assert optimum.success
    return np.exp(optimum.x)


LOSSES = {
    "LambdaCrawl": lambda mu, delta, rho: -(mu * np.log(rho / (rho + delta))).sum(),
    "BinaryLambdaCrawl": lambda mu, delta, rho: -(mu * rho / (rho + delta)).sum(),
    "LowDiscrepancy": lambda mu, delta, rho: (mu * np.expm1(-delta / rho) * rho / delta).sum(),
}


@pytest.mark.parametrize("name", [*LOSSES, "DiscreteLambdaCrawl"])
def test_rates_are_those_of_a_general_optimiser(name):
    mu, delta = np.array([3.0, 1.0, 2.0, 1.5, 0.7]), np.array([0.4, 0.9, 0.3, 0.6, 0.5])
    cost = np.array([0.2, 1.7, 4.0, 0.6, 1.0])
    problem = Instance(mu, delta, bandwidth=4.0, cost=cost).problem()
    if name == "DiscreteLambdaCrawl":
        chance = -np.expm1(-delta)
        policy = find(name)().in_form("rates", epoch=1.0)
        policy.start(pages := LivePages(problem))
        rates, loss = (
            policy.choose(pages.tracker()),
            lambda r: -(mu * r / (r + chance - r * chance)),
        )
        assert rates.max() == 1.0  # so that others are searched for the rest
        free, remaining = rates < 1.0, 4.0 - cost[rates == 1.0].sum()
        wanted = rates.copy()
        wanted[free] = least(
            lambda r: -(mu[free] * r / (r + chance[free] - r * chance[free])).sum(),
            *(cost[free], remaining, rates[free] + 0.1),
        )
        assert loss(wanted).sum() == pytest.approx(loss(rates).sum(), rel=1e-6)
    else:
        rates = find(name)().rates(problem, 4.0)
        wanted = least(lambda r: LOSSES[name](mu, delta, r), cost, 4.0, np.ones(5))
    assert problem.spend(rates) == pytest.approx(4.0, rel=1e-9)
    np.testing.assert_allclose(rates, wanted, rtol=1e-3)
    if name == "BinaryLambdaCrawl":
        same = policies.LambdaCrawl(penalty=[0.0, 1.0]).rates(problem, 4.0)
        np.testing.assert_allclose(same, rates, rtol=1e-6)


def test_approximate_rates_share_the_spend_by_importance():
    instance = pages_of(spread=0.0, seed=1).with_cost(pages_of(seed=1).cost)
    blind = ~instance.complete
    allocation = policies.LambdaCrawlApprox().allocate(instance.problem(), 8.0)
    share = allocation.rates * instance.cost / instance.importance
    assert share[blind] == pytest.approx(share[blind][0], rel=1e-9)
    assert instance.problem().spend(allocation.rates) == pytest.approx(8.0, rel=1e-9)
    answered = allocation.probabilities[instance.complete]
    assert np.all((answered > 0.0) & (answered <= 1.0))


# Schedules


def naive_schedule(rates, cost, end):
    """The earliest deadline among released crawls, at times in units of the mean crawl."""
    share = rates / rates.sum()
    length = cost / (share @ cost)
    done, now, pages = np.zeros(len(rates)), 0.0, []
    while now < end / (share @ cost) - 1e-9:
        due = np.ceil((done + 1.0) / share * (1.0 - 1e-12))
        due[np.floor(done / share * (1.0 + 1e-12)) > now + 1e-9] = np.inf
        pages.append(int(np.argmin(due)))
        done[pages[-1]] += 1.0
        now += length[pages[-1]]
    return pages


@pytest.mark.parametrize("seed", range(4))
def test_schedules_are_even_in_time(seed):
    rng = np.random.default_rng(seed)
    rates, cost = rng.exponential(size=30), rng.lognormal(0.0, 1.0, 30)
    pages = schedules.low_discrepancy(rates, 1500, cost)
    assert pages.tolist() == naive_schedule(rates, cost, 1500)
    spent = np.cumsum(cost[pages])
    assert spent[-2] < 1500 <= spent[-1] + 1e-9
    crawls = np.cumsum(np.eye(30)[pages], axis=0)
    due = spent[:, None] * rates / (rates @ cost)
    assert (crawls - due).max() < 2.0  # none is far ahead; one is late by long crawls of others
    assert (due - crawls).max() < 1.0 + (rates / (rates @ cost)).max() * cost.max()


@pytest.mark.parametrize("seed", range(4))
def test_slots_at_rates_that_change_are_even_in_time(seed):
    rng = np.random.default_rng(seed)
    cost, promised, crawls = rng.lognormal(0.0, 1.0, 30), np.zeros(30), np.zeros(30)
    slots, early, late = EvenSlots(30, cost), 0.0, 0.0
    for _ in range(60):
        rates = rng.exponential(size=30)
        slots.plan(rates, np.zeros(30))
        for _ in range(25):
            page = slots.take(np.ones(30, np.bool_))
            crawls[page] += 1.0
            promised += rates / (rates @ cost) * cost[page]
            early, late = (
                max(early, (crawls - promised).max()),
                max(late, (promised - crawls).max()),
            )
    assert slots.credit == pytest.approx(promised - crawls, abs=1e-9)
    assert early < 1.0
    assert late < 4.0


@pytest.mark.parametrize("name", ["LowDiscrepancy", "BinaryLambdaCrawl", "LambdaCrawl"])
def test_pages_are_crawled_at_the_rates_when_the_bandwidth_changes(name):
    steps = {"bandwidth": 8.0, "bandwidth_steps": ((40.0, 24.0),)}
    pages = make("uniform", seed=6, num_pages=12, cost_spread=1.0, **steps)
    rollout = simulate(pages, find(name)(), 80.0, requests=False)
    for since, until, bandwidth in ((0.0, 40.0, 8.0), (40.0, 80.0, 24.0)):
        within = (rollout.times > since) & (rollout.times <= until)
        crawls = np.bincount(rollout.crawls[within], minlength=12)
        expected = find(name)().rates(pages.problem(), bandwidth) * 40.0
        assert np.abs(crawls - expected).max() < 2.0


@pytest.mark.parametrize("action", ["scores", "refresh"])
@pytest.mark.parametrize("name", ["LowDiscrepancy", "LambdaCrawl", "RandomCrawl"])
def test_a_schedule_crawls_what_the_bandwidth_pays(name, action):
    instance = pages_of(num_pages=12)
    more = {"batch": 3} if action == "scores" else {}
    env = single_of(instance, horizon=30.0, action=action, **more)
    policy, batch = policies.make(name, env), more.get("batch", 1)
    observation, over = env.reset(seed=0)[0], False
    while not over:
        observation, _, _, over, _ = env.step(policy.predict(observation)[0])
        allowed = 8.0 * env.tracker().time - batch
        assert env.ledger().spend <= allowed + 1e-6
        (decision,) = policy._lanes.values()  # it counts as the environment does
        assert env.ledger().spend == pytest.approx(decision.policy.spend, abs=1e-9)
    assert env.ledger().spend >= 8.0 * 30.0 - 2 * batch - instance.cost.max()


@pytest.mark.parametrize("name", ["LowDiscrepancy", "BinaryLambdaCrawl"])
def test_schedules_reach_the_relaxed_optimum(name):
    pages = make("uniform", seed=5, num_pages=60, bandwidth=60.0, cost_spread=1.0)
    rates = find("LowDiscrepancy")().rates(pages.problem(), 60.0)
    even = find(name)().rates(pages.problem(), 60.0)
    freshness = simulate(pages, find(name)(), 300.0, requests=False).freshness
    expected = solvers.periodic_freshness(pages.importance, pages.change_rate, even)
    assert freshness == pytest.approx(expected, abs=0.006)
    best = solvers.periodic_freshness(pages.importance, pages.change_rate, rates)
    assert expected <= best + 1e-9


# Thresholds and indices


def test_thresholds_are_where_value_per_cost_is_the_price_and_spend_the_bandwidth():
    instance = make("noisy", seed=3, num_pages=20, bandwidth=15.0, cost_spread=1.0)
    allocation = solvers.ncis(instance)
    (rule,) = (
        policies.ThresholdNCIS().compile(instance.problem(), 0, np.random.default_rng(0)).rules
    )
    crawled = np.isfinite(rule.threshold)
    names = ("importance", "change_rate", "recall", "false_signal_rate")
    value = values.greedy_ncis(
        rule.threshold[crawled], **{name: getattr(instance, name)[crawled] for name in names}
    )
    price = allocation.multiplier * instance.importance.sum()
    assert value / instance.cost[crawled] == pytest.approx(price, rel=1e-6)
    never = ~crawled
    top = (instance.importance / instance.change_rate / instance.cost)[never]
    assert np.all(top <= price * (1.0 + 1e-9))
    fresh, spent = [], []
    for seed in range(4):
        rollout = simulate(instance, policies.ThresholdNCIS(), 1500.0, seed, requests=False)
        fresh.append(rollout.freshness)
        spent.append(rollout.ledger.spend / 1500.0)
    assert np.mean(spent) == pytest.approx(15.0, rel=0.005)
    error = np.std(fresh, ddof=1) / 2.0
    assert abs(np.mean(fresh) - allocation.objective) < 4.0 * error + 0.001


@pytest.mark.parametrize("name", ["GreedyNCIS", "LagrangianIndex", "LearnedIndex"])
def test_compiled_rollouts_crawl_the_largest_value_of_all_pages(name):
    instance = make("noisy", seed=3, num_pages=30, bandwidth=30.0, cost_spread=1.0)
    index = build(name).compile(instance.problem(), 0, np.random.default_rng(0))
    env = single_of(instance, horizon=10.0)
    env.reset(seed=5)
    weight = np.ones(30)
    if index.signal_weight is not None:
        weight = np.array([index.signal_weight(index.parameters, p, np.inf, 0) for p in range(30)])
    crawls, over = [], False
    while not over:
        now = env.tracker()
        states = zip(range(30), now.elapsed, now.signals * weight, strict=True)
        page = int(np.argmax([index.value(index.parameters, *state) for state in states]))
        crawls.append(page)
        *_, over, _ = env.step(page)
    rollout = simulate(instance, build(name), 10.0, 5)
    assert len(crawls) > 200
    assert rollout.crawls.tolist() == crawls
    assert stepped(env, policies.bind(build(name), env), seed=5) == crawls


def test_the_lagrangian_price_is_per_unit_of_cost():
    instance = make("noisy", seed=3, num_pages=20, bandwidth=15.0, cost_spread=1.0)
    price = spending_price(instance.problem())
    allocation = solvers.ncis(instance)
    assert price == pytest.approx(allocation.multiplier * instance.importance.sum())
    index = policies.LagrangianIndex().compile(instance.problem(), 0, np.random.default_rng(0))
    for page in np.flatnonzero(np.isfinite(allocation.thresholds)):
        times = np.array([0.0, 0.999, 1.001]) * allocation.thresholds[page]
        reached = [index.value(index.parameters, page, time, 0) for time in times]
        assert reached[0] == pytest.approx(-price)
        assert reached[1] < 0.0 < reached[2]
    half = replace(instance.problem(), bandwidth=7.5)
    believing = policies.LagrangianIndex(believed=lambda _: half)
    index = believing.compile(instance.problem(), 0, np.random.default_rng(0))
    assert index.value(index.parameters, 0, 0.0, 0) == pytest.approx(-spending_price(half))


# Others


def test_bandits_are_rewarded_per_unit_of_cost():
    instance = Instance([4.0, 1.0, 1.0], 1.0, bandwidth=2.0, cost=[8.0, 1.0, 0.5])
    env = single_of(instance)
    env.reset(seed=0)
    reward, tracker = StepReward("gain"), env.tracker()
    reward.begin(tracker, Form("page"))
    assert reward.weights.tolist() == [0.5, 1.0, 2.0]
    assert reward.bound == 2.0 / 3.5
    batched = StepReward("gain")
    batched.begin(tracker, Form("scores", 2))
    assert batched.bound == 1.0  # 9.5 pays all three
    assert batched.weights is tracker.problem.importance


def test_fragments_are_refreshed_by_utility_per_unit_of_cost():
    rng = np.random.default_rng(2)
    mu, delta, cost = rng.random(9), rng.random(9), rng.lognormal(0.0, 1.5, 9)
    problem = Instance(mu, delta, bandwidth=3.0, cost=cost).problem()
    pages = LivePages(problem)
    pages.advance(pages.last_log(), 2.0)
    curves = HolisticCurves(delta)
    utility = mu * (1.0 - (1.0 + 2.0 * delta) * np.exp(-2.0 * delta)) / delta
    ranks = np.argsort(-utility / cost)
    assert ranks[0] != np.argmax(utility)
    for name in ("FragmentStatic", "HolisticStatic"):
        policy = find(name)(curves=curves, threshold=0.05).in_form("page")
        policy.start(pages)
        assert policy.choose(pages.tracker()).tolist() == ranks[:1].tolist()
        batch = policy.in_form("scores", 2)
        batch.start(pages)
        assert batch.choose(pages.tracker()).tolist() == ranks.tolist()
        due = policy.in_form("refresh")
        due.start(pages)
        assert np.array_equal(due.choose(pages.tracker()), np.flatnonzero(utility >= 0.05 * cost))


def test_the_contextual_bandit_fills_the_budget_of_an_epoch():
    cost = np.array([8.0, 0.5, 1.0, 4.0])  # the best gain is not the best per unit of cost
    problem = Instance([4.0, 2.0, 1.0, 1.0], 1.0, bandwidth=3.0, cost=cost).problem()
    pages = LivePages(problem)
    pages.advance(pages.last_log(), 2.0)
    policy = policies.ContextualBandit(exploration=0.0).in_form("rates", epoch=1.0)
    policy.start(pages)
    assert policy.choose(pages.tracker()).tolist() == [0.1875, 1.0, 1.0, 0.0]
    batch = policies.ContextualBandit(exploration=1.0).in_form("scores", 2)
    batch.start(pages)
    ranked = [batch.choose(pages.tracker()).tolist() for _ in range(20)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in ranked)
    assert len({order[0] for order in ranked}) > 2  # random pages come before the best ones
