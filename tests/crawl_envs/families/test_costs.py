"""Costs of crawls in every family and form of action, known before crawls or shown by them."""

from __future__ import annotations

from dataclasses import asdict, replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import crawl_envs
import policies
from crawl_envs.checks import check_crawl_env
from crawl_envs.evaluation import play as roll
from crawl_envs.instances import make
from policies.base.columns import FromColumns
from tests.environments import (
    FORMS,
    HARMONIC,
    HIDDEN,
    LONGEVITY,
    NCIS,
    RATES,
    actions_of,
    assert_same,
    assert_same_future,
    bare,
    batch,
    play,
)

TRACE = {"window": [100.0, 130.0], "days_per_crawl": 10.0}
FAMILIES = {
    NCIS: (NCIS, {}),
    HARMONIC: (HARMONIC, {}),
    LONGEVITY: (LONGEVITY, {}),
    "trace": ("CrawlTrace-v0", TRACE),
    "fragments of a trace": (
        LONGEVITY,
        {
            "instance": "garden-handbook",
            **dict.fromkeys(("num_pages", "horizon"), None),
            "bandwidth": None,
            "signals": "both",
            **TRACE,
        },
    ),
}
ALL_FORMS = {**FORMS, "rates": RATES, "shares": {"action": "shares"}, "hidden": HIDDEN}
EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES)
EVERY_FORM = pytest.mark.parametrize("form", ALL_FORMS)
STEPS = {"bandwidth_steps": [[0.6, 12.0], [1.4, 3.0]]}


def settings(family, form="page", **more):
    name, arguments = FAMILIES[family]
    return {"name": name, **arguments, **ALL_FORMS[form], **more}


@EVERY_FORM
@EVERY_FAMILY
def test_costs_of_one_change_nothing(family, form):
    steps = {} if "trace" in family else STEPS
    plain = bare(**settings(family, form, **steps))
    paid = bare(**settings(family, form, cost_spread=1.0, **steps))
    plain.reset(seed=3)
    pinned = plain.instance
    one = plain.reset(seed=3, options={"instance": pinned})
    other = paid.reset(seed=3, options={"instance": pinned.with_cost(1.0)})
    columns = [name != "cost" for name in paid.features]
    assert_same(one[0], other[0][:, columns])
    for action in actions_of(plain, 10_000):
        one, other = plain.step(action), paid.step(action)
        assert_same(one[0], other[0][:, columns])
        assert_same(one[1:], other[1:])
        assert asdict(plain.ledger()) == asdict(paid.ledger())
        if one[3]:
            break
    assert one[3]
    assert plain.ledger().spend == plain.ledger().crawls > 0


@pytest.mark.parametrize("name", ["GreedyNCIS", "LearningGreedyNCIS", "UniformCrawl"])
@EVERY_FAMILY
def test_policies_choose_the_same_at_costs_of_one(family, name):
    form, episodes = "shares" if name == "UniformCrawl" else "page", []
    for spread in (0.0, 1.0):
        env = bare(**settings(family, form, cost_spread=spread))
        env.reset(seed=3)
        pinned = env.instance.with_cost(1.0 if spread else None)
        observation, _ = env.reset(seed=3, options={"instance": pinned})
        policy, actions, over = policies.make(name, env), [], False
        while not over:
            actions.append(policy.predict(observation)[0].tolist())
            observation, _, _, over, _ = env.step(np.asarray(actions[-1])[()])
        episodes.append((actions, asdict(env.ledger())))
    assert episodes[0] == episodes[1]


@pytest.mark.parametrize("hidden", [False, True])
@EVERY_FORM
@EVERY_FAMILY
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
def test_environments_with_costs_keep_the_conventions(family, form, hidden):
    action = ALL_FORMS[form].get("action", "page")
    if hidden and action not in ("page", "refresh"):
        with pytest.raises(ValueError, match=f"reveal_cost must be True with action '{action}'"):
            bare(**settings(family, form, cost_spread=0.8, reveal_cost=False))
        return
    bucket = {"bucket": 1e3} if form == "hidden" else {}
    arguments = settings(family, form, cost_spread=0.8, reveal_cost=not hidden, **bucket)
    env = bare(**arguments, render_mode="ansi")
    check_env(env, skip_render_check=True)
    check_crawl_env(lambda: gym.make(arguments["name"], **without_name(arguments)))
    env.reset(seed=1)
    spends, over = [], False
    actions = actions_of(env, 10_000)
    for action in actions:
        *_, over, _ = env.step(action)
        log = env.last_log()
        assert np.array_equal(log.cost, env.instance.cost[log.page])
        spends.append(np.bincount(log.page, log.cost, env.instance.num_pages))
        if over:
            break
    assert over
    assert len(spends) <= env.spec.max_episode_steps
    assert sum(spends).sum() == pytest.approx(env.ledger().spend, rel=1e-9)
    assert env.ledger().spend > 0.0
    assert f"cost {env.ledger().spend:.3g}" in env.render()
    assert env.action_masks().size in (env.instance.num_pages, 2 * env.instance.num_pages)


def without_name(arguments):
    return {name: value for name, value in arguments.items() if name != "name"}


@pytest.mark.parametrize("hidden", [False, True])
@EVERY_FAMILY
def test_rollouts_with_costs_are_steps(family, hidden):
    """Policies that know costs, and policies that do not, crawl different pages."""
    env = bare(**settings(family, cost_spread=1.5, reveal_cost=not hidden))
    env.reset(seed=6)
    policy = policies.make("GreedyNCIS", env)
    stepped = roll(env, policy, 6, compiled=False)
    assert roll(env, policy, 6) == stepped
    env.reset(seed=6)
    blind = policies.make("GreedyNCIS", env, believed=lambda pages: replace(pages, cost=None))
    assert (roll(env, blind, 6) == stepped) == hidden


@pytest.mark.parametrize("hidden", [False, True])
@EVERY_FAMILY
def test_states_and_lanes_with_costs(family, hidden):
    arguments = settings(family, cost_spread=0.8, reveal_cost=not hidden)
    one, other = bare(**arguments), bare(**arguments)
    one.reset(seed=2)
    other.reset(seed=5)
    play(one, [0, 3, 5])
    other.set_state(one.get_state())
    assert_same(one.current_observation(), other.current_observation())
    assert_same_future(one, other)
    with pytest.raises(ValueError, match="reveal_cost"):
        bare(**{**arguments, "reveal_cost": hidden}).set_state(one.get_state())
    vector = batch(2, **arguments, autoreset_mode="SameStep")
    vector.reset(seed=8)
    observation, _ = one.reset(seed=9)
    ends, pages = 0, np.random.default_rng(0).integers(6, size=(10_000, 2))
    for page in pages:
        assert_same(observation, vector.unwrapped.current_observation(1))
        _, rewards, _, over, _ = vector.step(page)
        observation, reward, _, truncated, _ = one.step(page[1])
        assert (reward, truncated) == (rewards[1], over[1])
        if truncated:
            observation, _ = one.reset()
            ends += 1
        if ends == 2:
            break
    assert ends == 2


def test_rewards_of_fragments_are_by_the_length_of_the_slot():
    env = bare(LONGEVITY, cost_spread=1.0, bandwidth=3.0)
    env.reset(seed=0)
    first, total, over = env.ledger(), 0.0, False
    while not over:
        _, reward, _, over, info = env.step(2)
        total += reward
        cost = env.instance.cost[2]
        assert info["divergence"] + reward == pytest.approx(cost, rel=1e-12)
    last = env.ledger()
    diverged = (last.divergence_time - first.divergence_time) / env.instance.importance.sum()
    assert total == pytest.approx(3.0 * (last.time - first.time - diverged), rel=1e-9)


def test_fragments_change_until_the_end_of_a_cut_slot():
    """One crawl of cost 40 at time 1 lasts to time 3, the first whole slot after the horizon."""
    env = bare(LONGEVITY, bandwidth=1.0, horizon=2.0, cost_spread=1.0, num_pages=20)
    env.reset(seed=0)
    env.reset(seed=0, options={"instance": env.instance.with_cost(40.0)})
    changes = env.ledger().changes
    *_, over, _ = env.step(0)
    assert over
    assert env.tracker().time == 3.0
    longer = bare(LONGEVITY, bandwidth=1.0, horizon=50.0, num_pages=20)
    longer.reset(seed=0)
    for _ in range(2):
        longer.step(0)
    assert env.ledger().changes == longer.ledger().changes > changes


def test_a_crawl_that_costs_more_than_the_budget_ends_the_episode():
    instance = make("uniform", num_pages=3, bandwidth=4.0).with_cost([100.0, 0.5, 100.0])
    env = bare(num_pages=3, bandwidth=4.0, horizon=2.0, cost_spread=1.0)
    env.reset(seed=0, options={"instance": instance})
    assert not env.step(1)[3]
    assert env.step(0)[3]
    assert env.tracker().time == 2.25  # the first slot of cost 1 after the horizon
    assert env.ledger().spend == 100.5
    scores = bare(num_pages=3, bandwidth=4.0, cost_spread=1.0, action="scores", batch=2)
    scores.reset(seed=0, options={"instance": instance})
    for row in ([1.0, 0.0, -1.0], [0.0, 1.0, -1.0]):
        scores.step(np.array(row, np.float32))
    assert scores.last_log().page.tolist() == [1]  # the first waits for what it never gets
    with pytest.raises(ValueError, match="batch must be"):
        bare(num_pages=3, cost_spread=1.0, action="scores", batch=4)


@pytest.mark.parametrize("name", crawl_envs.COST_SETTINGS)
def test_settings_with_costs_spend_their_budget(name):
    """And the spend by page is in the logs."""
    family, arguments = crawl_envs.COST_SETTINGS[name]
    env = bare(family, **arguments)
    observation, _ = env.reset(seed=0)
    policy, over, spend = policies.make("LearningGreedyNCIS", env), False, 0.0
    while not over:
        observation, _, _, over, _ = env.step(policy.predict(observation)[0])
        log = env.last_log()
        spend += np.bincount(log.page, log.cost, env.instance.num_pages)
    ledger, counts = env.ledger(), spend / env.instance.cost
    assert ledger.spend == pytest.approx(spend.sum(), rel=1e-9)
    assert counts == pytest.approx(np.rint(counts), rel=1e-9)
    assert counts.sum() == pytest.approx(ledger.crawls, rel=1e-9)
    budget = env.instance.bandwidth * env.lanes.horizon
    assert -1.0 <= ledger.spend - budget <= env.instance.cost.max()


# Costs that crawls show


def test_a_hidden_cost_is_shown_by_the_first_crawl():
    env = bare(cost_spread=1.0, reveal_cost=False)
    observation, _ = env.reset(seed=4)
    column, cost = env.features.index("cost"), env.instance.cost.astype(np.float32)
    assert env.problem.cost is None
    assert env.tracker().problem is env.problem
    expected = np.ones(6, np.float32)
    for page in (3, 3, 0):
        assert np.array_equal(observation[:, column], expected)
        observation, *_ = env.step(page)
        expected[page] = cost[page]
        assert env.last_log().cost.tolist() == [env.instance.cost[page]]
    assert np.array_equal(observation[:, column], expected)
    assert np.all(env.reset()[0][:, column] == 1.0)
    with pytest.raises(ValueError, match="reveal_cost must be True without costs"):
        bare(reveal_cost=False)


SITE = {"num_pages": 40, "bandwidth": 40.0, "horizon": 8.0, "instance": "noisy"}


class IgnoresCosts(policies.LearningGreedyNCIS):
    """The learner without the costs of its log."""

    def update(self, log, tracker):
        super().update(log._replace(cost=None), tracker)


def test_learned_costs_recover_most_of_what_known_costs_gain():
    cases = {"known": {}, "hidden": {"reveal_cost": False}, "ignored": {"reveal_cost": False}}
    mean = {}
    for case, more in cases.items():
        policy = (IgnoresCosts if case == "ignored" else policies.LearningGreedyNCIS)(memory=30.0)
        totals = []
        for seed in range(3):
            env = bare(**SITE, cost_spread=1.5, reveal="importance", **more)
            env.reset(seed=seed)
            totals.append(roll(env, policies.bind(policy, env), seed).freshness)
        mean[case] = np.mean(totals)
    gain = mean["known"] - mean["ignored"]
    assert gain > 0.03
    assert mean["hidden"] - mean["ignored"] > 0.8 * gain


def test_learned_costs_from_columns_are_those_of_logs():
    """Columns change at the first crawl of a page: the learner goes on, with the same choices."""
    env = bare(**SITE, cost_spread=1.0, reveal="importance", reveal_cost=False)
    settings = {"memory": 30.0, "pooled": False}
    bound = policies.make("LearningGreedyNCIS", env, **settings)
    columns = FromColumns(policies.LearningGreedyNCIS(**settings), env.features)
    observation, _ = env.reset(seed=1)
    columns.observe(env.last_log())
    crawled = set()
    for _ in range(300):
        page, _ = bound.predict(observation)
        columns.predict(observation)
        crawled.add(int(page))
        observation, *_ = env.step(page)
        columns.observe(env.last_log())
    columns.predict(observation)
    bound.predict(observation)
    learner, other = columns.of_lane(0), bound.of_lane(0)
    assert learner.learner.crawls == other.learner.crawls == 300
    assert len(crawled) > 20
    seen = np.array(sorted(crawled))
    assert np.array_equal(learner.cost[seen], env.instance.cost[seen])
    assert np.array_equal(learner.cost, other.cost)
    assert np.all(np.delete(learner.cost, seen) == 1.0)


def test_kept_costs_last_to_the_next_episode():
    env = bare(**SITE, cost_spread=1.0, reveal_cost=False)
    policy = policies.make("LearningGreedyNCIS", env, keep=True)
    for _ in range(2):
        observation, _ = env.reset(**({"seed": 0} if policy.policy is None else {}))
        for _ in range(50):
            observation, *_ = env.step(policy.predict(observation)[0])
    policy.predict(env.reset()[0])
    cost = policy.of_lane(0).cost
    assert np.sum(cost == env.instance.cost) > 20
    weights = policy.of_lane(0).learner.importance
    assert np.array_equal(weights, env.instance.importance / cost)
