"""What holds for every registered policy: one play of each, looked at from all sides."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Problem
from policies.base.bandwidths import as_shares
from policies.base.choices import page_action, rate_action
from policies.base.live import LivePages

NCIS = {"num_pages": 8, "bandwidth": 9.0, "horizon": 30.0, "instance": "noisy"}
LAMBDA = {**NCIS, "instance": "lambdacrawl", "horizon": 200.0}
FRAGMENTS = {"num_pages": 8, "bandwidth": 1.5, "horizon": 150.0}
OFFERS = {"num_pages": 30, "bandwidth": 24.0, "horizon": 6.0}
STEPPED = {"bandwidth_steps": ((2.5, 12.0), (4.0, 3.0)), "overspend": "error"}
COSTS = {"cost_spread": 1.0}
PLACES = {
    "page": ("CrawlNCIS-v0", NCIS),
    "scores": ("CrawlNCIS-v0", {**NCIS, "action": "scores", "batch": 3}),
    "refresh": ("CrawlNCIS-v0", {**NCIS, "action": "refresh"}),
    "hidden": ("CrawlNCIS-v0", {**NCIS, "reveal": "importance"}),
    "sources": ("CrawlNCIS-v0", {**NCIS, "instance": "sources"}),
    "delayed": ("CrawlNCIS-v0", {**NCIS, "instance": "delayed"}),
    "rates": ("CrawlHarmonic-v0", LAMBDA),
    "page with costs": ("CrawlNCIS-v0", {**NCIS, **COSTS}),
    "scores with costs": ("CrawlNCIS-v0", {**NCIS, **COSTS, "action": "scores", "batch": 3}),
    "refresh with costs": ("CrawlNCIS-v0", {**NCIS, **COSTS, "action": "refresh"}),
    "shares with costs": ("CrawlHarmonic-v0", {**LAMBDA, **COSTS, "action": "shares"}),
    "stepped": ("CrawlHarmonic-v0", {**LAMBDA, "instance": "mixed", "action": "rates", **STEPPED}),
    "shares": ("CrawlHarmonic-v0", {**LAMBDA, "action": "shares"}),
    "trace": ("CrawlTrace-v0", {"days_per_crawl": 90.0}),
    "fragments": ("CrawlLongevity-v0", FRAGMENTS),
    "fragments by score": ("CrawlLongevity-v0", {**FRAGMENTS, "action": "scores", "batch": 2}),
    "fragments by threshold": ("CrawlLongevity-v0", {**FRAGMENTS, "action": "refresh"}),
    "fragments with signals": (
        "CrawlLongevity-v0",
        {**FRAGMENTS, "signals": "noisy", "reveal": "importance"},
    ),
    "offers": ("CrawlOffers-v1", OFFERS),
    "offers by score": ("CrawlOffers-v1", {**OFFERS, "action": "scores", "bandwidth": 60.0}),
}
OF_FRAGMENTS = policies.names(family="fragments")
OF_OFFERS = policies.names(family="offers")
LEARNERS = ("LearningGreedyNCIS", "BeliefNCIS", "ContextualBandit", "Exp3", "NutchAdaptive")
NAMES = {
    "hidden": (*LEARNERS, *policies.names(kind="baseline"), "StormCrawlerAdaptive"),
    "sources": ("GreedyNCIS", "LearningGreedyNCIS", "BeliefNCIS"),
    "delayed": ("GreedyNCISDelayed", "GreedyNCIS", "BeliefNCIS"),
    "stepped": policies.names("rates", learns=False),  # the others declare what they spend
    "trace": ("RoundRobin", "GreedyNCIS", *LEARNERS),
    "fragments": OF_FRAGMENTS,
    "fragments by score": OF_FRAGMENTS,
    "fragments by threshold": (*OF_FRAGMENTS, "StormCrawlerAdaptive"),
    "fragments with signals": ("LearningLongevity", "CurveFitting"),
    "offers": (*OF_OFFERS, "ContextualBandit", "Exp3"),
    "offers by score": ("ContextualBandit", "Exp3", "Exp3IX", "Exp3PlusPlus"),
}
CASES = [
    (place, name) for place in PLACES for name in NAMES.get(place, policies.names(place.split()[0]))
]
STEPS, SEED = 60, 3


def made(place, name, env):
    more = {}
    if place == "fragments by threshold" and name in OF_FRAGMENTS:
        more = {"interval": 2.0} if name == "UniformRefresh" else {"threshold": 0.05}
    return policies.make(name, env, **more)


def steps_of(env, policy, seed, steps=STEPS):
    """Play an episode; yield each action before it is made."""
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action, _ = policy.predict(observation)
        yield action
        observation, _, _, over, _ = env.step(action)
        policy.update()  # what is known is not learned again
        if over:
            break


@pytest.mark.parametrize(("place", "name"), CASES)
def test_every_policy_keeps_the_contract(place, name):
    family, settings = PLACES[place]
    env = gym.make(family, **settings)
    actions = played_with_care(env, made(place, name, env))
    assert len(actions) > 30
    again = made(place, name, env)
    for _ in steps_of(env, again, seed=SEED + 5, steps=10):
        pass
    forgets_what_was_before(env, again, actions)
    joins_at_a_state_as_a_new_one_does(env, again, made(place, name, env))
    if not again.policy.oracle:
        acts_alike_without_the_environment(place, name, env, actions)
    lanes = gym.make_vec(family, num_envs=2, **settings)
    is_alone_in_its_lane(lanes, made(place, name, lanes), actions)


def played_with_care(env, policy):
    """Play an episode, and return the actions: in their space, the same if asked again."""
    core, actions = env.unwrapped, []
    for action in steps_of(env, policy, SEED):
        assert env.action_space.contains(action)
        assert isinstance(action, np.ndarray | np.int64)
        observation = core.current_observation()
        np.testing.assert_array_equal(policy.predict(observation)[0], action)
        np.testing.assert_array_equal(policy.predict(observation[None])[0], action[None])
        if core.action_form == "scores" and not core.lanes.costs:
            chosen = -np.sort(-action)[: core.batch]
            assert np.all(np.diff(chosen) < 0.0)
            assert np.count_nonzero(action > 0.0) == core.batch
            assert np.all(np.sort(-action)[core.batch :] == 1.0)
        actions.append(action)
    return actions


def forgets_what_was_before(env, policy, actions):
    """In a new episode."""
    for action, expected in zip(steps_of(env, policy, SEED), actions, strict=True):
        np.testing.assert_array_equal(action, expected)


def joins_at_a_state_as_a_new_one_does(env, policy, new):
    core = env.unwrapped
    for _ in steps_of(env, policy, SEED, 20):
        pass
    state = core.get_state()
    for _ in range(5):
        env.step(policy.predict(core.current_observation())[0])
    core.set_state(state)
    for _ in range(10):
        action, _ = policy.predict(core.current_observation())
        np.testing.assert_array_equal(new.predict(core.current_observation())[0], action)
        env.step(action)


def acts_alike_without_the_environment(place, name, env, actions):
    """From a description of the pages, with trackers that follow from the logs alone."""
    core = env.unwrapped
    env.reset(seed=SEED)
    pages = described(core)
    epoch = core.epoch if core.action_form in ("rates", "shares") else None
    live = made(place, name, None).in_form(core.action_form, core.batch, epoch)
    live.start(pages)
    for action in actions:
        tracker = pages.tracker()
        np.testing.assert_array_equal(encoded(live.choose(tracker), tracker, core), action)
        *_, over, _ = env.step(action)
        if over:
            break
        follow(pages, core)
        assert_same_tracker(pages.tracker(), core.tracker())
        live.update(core.last_log(), pages.tracker())


def encoded(choice, tracker, core):
    """A choice as an action of the environment."""
    form, num_pages = core.action_form, tracker.elapsed.size
    if form == "shares":
        choice = as_shares(choice, tracker.problem, core.epoch, tracker.time)
    if form in ("rates", "shares"):
        return choice if form == "shares" else rate_action("it", choice, num_pages)
    return page_action("it", choice, form, num_pages, batch=core.batch)


def is_alone_in_its_lane(lanes, policy, actions):
    observation, _ = lanes.reset(seed=[SEED + 5, SEED])
    for action in actions:
        both, _ = policy.predict(observation)
        np.testing.assert_array_equal(both[1], action)
        observation, *_ = lanes.step(both)


def described(core):
    """The pages of an environment without it, just before its first decision."""
    alive = core.tracker().alive
    pages = LivePages(
        core.problem,
        alive=alive if core.lanes.mortal else None,
        horizon=core.lanes.horizon,
        seed=core.rng(),
        sketches=core.first_sketch() if hasattr(core, "first_sketch") else None,
    )
    follow(pages, core)
    return pages


def follow(pages, core):
    """Advance pages to an environment's decision, by its log, births and deaths."""
    known, log = core.tracker(), core.last_log()
    start, crawled = known.time - known.elapsed, np.zeros(known.alive.size)
    crawled[:] = pages.time - pages.tracker().elapsed
    np.maximum.at(crawled, log.page, log.time)
    born = known.alive & (~pages.tracker().alive | (start > crawled + 1e-9 * known.time))
    births = {int(page): float(start[page]) for page in np.flatnonzero(born)}
    deaths = np.flatnonzero(pages.tracker().alive & ~known.alive)
    pages.problem, pages.offers = known.problem, known.offers
    pages.advance(log, known.time, births=births, deaths=deaths.tolist())


def assert_same_tracker(mine, known):
    assert mine.time == known.time
    np.testing.assert_allclose(mine.elapsed, known.elapsed, rtol=1e-12, atol=1e-9)
    for name in ("signals", "changed", "alive"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(known, name), err_msg=name)
        assert getattr(mine, name).dtype == getattr(known, name).dtype
    assert mine.offers is known.offers
    assert (mine.copies is None) == (known.copies is None)
    if known.copies is not None:
        np.testing.assert_array_equal(mine.copies.size, known.copies.size)
        if mine.copies.divergence.size:
            np.testing.assert_array_equal(mine.copies.divergence, known.copies.divergence)
            np.testing.assert_array_equal(mine.copies.age, known.copies.age)


CRAWLERS = policies.names(kind="crawler's rule")  # which remember when a page was born


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (place, name)
        for place, name in CASES
        if place.startswith(("page", "scores", "refresh", "fragments")) and name not in CRAWLERS
    ],
)
def test_pages_that_do_not_exist_are_not_chosen(place, name):
    family, settings = PLACES[place]
    env = gym.make(family, **settings)
    observation, _ = env.reset(seed=0)
    core, rng, alive, chosen = env.unwrapped, np.random.default_rng(1), np.ones(8, np.bool_), []
    tracker = core.tracker
    core.tracker = lambda lane=0: tracker(lane)._replace(alive=alive.copy())
    policy = made(place, name, env)

    def pages():
        return [int(action)] if np.ndim(action) == 0 else np.flatnonzero(action > 0.0).tolist()

    for _ in range(20):
        alive = rng.random(8) < 0.5
        alive[rng.integers(8)] = True
        action, _ = policy.predict(observation)
        assert all(alive[page] for page in pages())
        assert pages() or core.action_form == "refresh"
        chosen += pages()
        observation, *_ = env.step(action)
    assert len(chosen) > 5
    alive = np.zeros(8, np.bool_)
    action, _ = policy.predict(observation)
    assert set(pages()) <= {0}


@pytest.mark.parametrize("name", policies.names(fragments=True, oracle=False))
def test_every_policy_is_built_from_a_problem(name):
    env = gym.make("CrawlLongevity-v0", num_pages=5, bandwidth=1.5)
    env.reset(seed=0)
    core = env.unwrapped
    policy, pages = policies.make(name), LivePages(core.problem, sketches=core.first_sketch())
    if name not in ("ThresholdNCIS", "LearningLongevity"):  # no actions; it needs base versions
        policy.start(pages)
        choice = policy.choose(pages.tracker())
        assert np.shape(choice) == ((5,) if policy.form.action == "rates" else (1,))


@pytest.mark.parametrize("name", policies.names(fragments=True, oracle=True))
def test_oracles_need_an_environment(name):
    problem = Problem(num_pages=3, bandwidth=1.0, importance=np.ones(3))
    with pytest.raises(ValueError, match=f"pages must be a lane of an environment .* for {name}"):
        policies.make(name).start(LivePages(problem))
