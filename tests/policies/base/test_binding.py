"""Binding of policies to environments, the forms of their actions, and bad input."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import policies
from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.compiled.promises import NO_PROMISES
from crawl_envs.evaluation import play, simulate
from crawl_envs.types import Instance
from policies.base.live import LivePages
from policies.base.policy import RATE_FORMS, Policy
from policies.values import ranking
from tests.policies.replay import FEATURES, ReplayCore, ReplayLane, random_lane, run

PLANNED = policies.names("page", compiled=True, learns=False)
INDICES = [name for name in PLANNED if getattr(policies, name).reads_columns]
NO_COLUMNS = {"GreedyNCISDelayed", "LagrangianIndex"}  # they need delays, or the bandwidth
INFORMED = [name for name in PLANNED if "change_rate" in getattr(policies, name).needs]


# Forms of action


@pytest.mark.parametrize(
    ("name", "family", "arguments"),
    [
        ("LambdaCrawl", "CrawlHarmonic-v0", {}),
        ("LambdaLearnAndCrawl", "CrawlHarmonic-v0", {"reveal": "importance"}),
        ("Exp3", "CrawlHarmonic-v0", {}),
        ("BinaryLambdaCrawl", "CrawlNCIS-v0", {}),
        ("DiscreteLambdaCrawl", "CrawlOffers-v1", {}),
    ],
)
def test_shares_are_the_rates_per_bandwidth(name, family, arguments):
    """Also in environments that refuse actions over the budget."""
    assert name in policies.names("shares")
    actions = []
    for form in ("rates", "shares"):
        env = gym.make(family, num_pages=8, action=form, overspend="error", **arguments)
        policy = policies.make(name, env)
        observation, _ = env.reset(seed=2)
        actions.append(policy.predict(observation)[0])
        assert env.action_space.contains(actions[-1])
        env.step(actions[-1])
    check_shares(*actions, env.unwrapped.problem, env.unwrapped.problem.bandwidth)


def test_shares_follow_the_bandwidth():
    steps = ((1.0, 9.0), (2.5, 2.0))
    instance = Instance(np.arange(1.0, 6.0), 1.0, bandwidth=4.0, bandwidth_steps=steps)
    envs = [gym.make("CrawlNCIS-v0", num_pages=5, horizon=4.0, action=f) for f in RATE_FORMS]
    both = [policies.make("BinaryLambdaCrawl", env) for env in envs]
    for env in envs:
        env.reset(seed=1, options={"instance": instance})
    for bandwidth in (4.0, 9.0, 5.5, 2.0):
        actions = [policy.predict(np.zeros((5, 7)))[0] for policy in both]
        check_shares(*actions, instance, bandwidth)
        infos = [env.step(action)[-1] for env, action in zip(envs, actions, strict=True)]
        assert infos[1]["declared"] == pytest.approx(infos[0]["declared"], abs=1e-5)


def check_shares(rates, shares, problem, bandwidth):
    """Shares are those of the rates, or probabilities, to float32, and never more."""
    assert shares.dtype == np.float32
    complete = np.zeros(rates.size, bool) if problem.complete is None else problem.complete
    exact = np.where(complete, rates, rates / bandwidth)
    decoded = 0.5 * (shares.astype(np.float64) + 1.0)
    assert np.all(decoded <= exact * (1.0 + 1e-12))
    np.testing.assert_allclose(decoded, exact, rtol=0.0, atol=2.0**-24)


@pytest.mark.parametrize("form", ["table", "flat", "dict", "flat_dict"])
def test_bound_policies_take_any_observation(form):
    """They do not read it, only whether it is a batch; policies of columns still check them."""
    arguments = {"num_pages": 6, "instance": "noisy", "observation": form}
    env = gym.make("CrawlNCIS-v0", **arguments)
    observation, _ = env.reset(seed=0)
    policy = policies.make("GreedyNCIS", env)
    page, _ = policy.predict(observation)
    assert np.shape(page) == ()
    assert policy.predict(spaces.flatten(env.observation_space, observation))[0] == page
    stacked = DummyVecEnv([lambda: env])
    env.reset(seed=0)
    assert policy.predict(stacked.reset())[0].shape == (1,)
    lanes = gym.make_vec("CrawlNCIS-v0", num_envs=3, **arguments)
    observation, _ = lanes.reset(seed=0)
    bound = policies.make("GreedyNCIS", lanes)
    pages, _ = bound.predict(observation)
    assert pages.shape == (3,)
    assert pages[0] == page
    with pytest.raises(ValueError, match="must have the 3 lanes"):
        bound.predict(env.observation_space.sample())
    assert policies.make("Exp3", env).predict(stacked.reset())[0].shape == (1,)
    if form != "table":
        unbound = policies.make("GreedyNCIS", features=env.unwrapped.features)
        with pytest.raises(ValueError, match="observation must have"):
            unbound.predict(observation)


@pytest.mark.parametrize("form", ["table", "flat", "dict"])
def test_one_page_is_no_batch_and_one_lane_is_one(form):
    arguments = {"num_pages": 1, "instance": "noisy", "observation": form}
    env = gym.make("CrawlNCIS-v0", **arguments)
    policy = policies.make("GreedyNCIS", env)
    assert policy.predict(env.reset(seed=0)[0])[0].shape == ()
    assert policy.predict(DummyVecEnv([lambda: env]).reset())[0].shape == (1,)
    vector = gym.make_vec("CrawlNCIS-v0", num_envs=1, **arguments)
    assert policies.make("GreedyNCIS", vector).predict(vector.reset(seed=0)[0])[0].shape == (1,)


def test_scores_are_the_largest_values_in_order():
    core = ReplayCore(random_lane(20, 1), action_form="scores", batch=5)
    policy = policies.make("Greedy", core)
    for _ in range(4):
        actions, _ = policy.predict(core.reset())
        known = core.tracker()
        page_state = known.elapsed, known.signals * 1.0, known.alive
        values = ranking.page_values(*policy.policy._index(known.problem), NO_PROMISES, *page_state)
        expected = np.argsort(-values, kind="stable")[:5]
        assert np.argsort(-actions[0], kind="stable")[:5].tolist() == expected.tolist()


def test_ties_go_to_the_lowest_index():
    instance = Instance(np.ones(8), 1.0, bandwidth=4.0)
    for form, batch in (("page", 1), ("scores", 3)):
        core = ReplayCore(ReplayLane(instance), action_form=form, batch=batch)
        crawled = run(policies.make("Greedy", core), core, 2)[0]
        assert crawled == list(range(2 * batch))


def test_threshold_refreshes_every_page_that_reaches_it():
    core = ReplayCore(random_lane(30, 5), action_form="refresh")
    policy = policies.make("GreedyNCIS", core, threshold=0.05)
    observation = core.reset()
    sizes = []
    for _ in range(20):
        action, _ = policy.predict(observation)
        known = core.tracker()
        page_state = known.elapsed, known.signals * 1.0, known.alive
        values = ranking.page_values(*policy.policy._index(known.problem), NO_PROMISES, *page_state)
        np.testing.assert_array_equal(action[0], values >= 0.05)
        sizes.append(int(action.sum()))
        observation = core.step(action)
    assert min(sizes) < max(sizes)


def test_sequence_is_followed_by_different_pages_per_decision():
    core = ReplayCore(random_lane(3, 1), action_form="scores", batch=2)
    crawled = run(policies.make("ChangeRateCrawl", core), core, 20)[0]
    assert all(crawled[i] != crawled[i + 1] for i in range(0, 40, 2))


@pytest.mark.parametrize("name", INDICES)
def test_values_through_a_pointer_are_the_same_to_the_last_bit(name):
    lane = random_lane(3000, 6)
    lane.reset()
    known = lane.tracker()
    rng = np.random.default_rng(0)
    elapsed, signals = rng.exponential(2.0, 3000), rng.poisson(0.7, 3000) * 1.0
    value, table = policies.make(name)._index(known.problem)
    page_values, never = ready(ranking.page_values), NO_PROMISES
    page_state = never, elapsed, signals, known.alive
    plain = page_values(value, table, *page_state)
    through = page_values(ranking.pointer(value), table, *page_state)
    np.testing.assert_array_equal(through, plain)
    np.testing.assert_array_equal(
        [value(table, page, elapsed[page], signals[page]) for page in range(100)], plain[:100]
    )


# From columns


@pytest.mark.parametrize("name", sorted({*INDICES} - NO_COLUMNS))
@pytest.mark.parametrize(("form", "batch"), [("page", 1), ("scores", 3), ("refresh", 1)])
def test_policy_works_from_columns_for_any_batch(name, form, batch):
    lanes = (random_lane(6, seed, complete=2) for seed in range(3))
    core = ReplayCore(*lanes, action_form=form, batch=batch)
    bound = policies.make(name, core)
    unbound = policies.make(name, features=FEATURES, action_form=form, batch=batch)
    observation = core.reset()
    for _ in range(10):
        action = bound.predict(observation)[0]
        np.testing.assert_array_equal(unbound.predict(observation)[0], action)
        np.testing.assert_array_equal(unbound.predict(observation[2])[0], action[2])
        np.testing.assert_array_equal(
            unbound.predict(np.repeat(observation, 4, axis=0))[0], np.repeat(action, 4, axis=0)
        )
        observation = core.step(action)


def test_policy_from_columns_reads_the_alive_column_and_takes_fewer_pages():
    rows = np.array([[3.0, 0.0], [1.0, 1.0], [2.0, 1.0]], dtype=np.float32)
    policy = policies.make("RoundRobin", features=("elapsed", "alive"))
    assert policy.predict(rows)[0] == 2
    assert policy.predict(rows[:2])[0] == 1


# Bad input


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("Greedy", {"batch": 2}, "are the environment's"),
        ("Greedy", {"features": FEATURES}, "features, .* must be None where env is given"),
        ("LambdaCrawl", {"action_form": "page"}, "are the environment's"),
        ("Greedy", {"threshold": 1.0}, "'refresh', got 1.0 in the form 'page'"),
        ("GreedyNCIS", {"delay_window": -1.0}, "delay_window must be finite"),
        ("GreedyCIS", {"reading": "I4"}, "reading must be one of .* got 'I4'"),
        ("GreedyNCISApprox", {"terms": 0}, "terms must be an integer >= 1"),
        ("GreedyCISPlus", {"recall_above": 2}, "recall_above must lie in"),
        ("BinaryLambdaCrawl", {"floor": 1.5}, "floor must lie in .* got 1.5"),
        ("NutchAdaptive", {"dec_rate": 1.0}, "dec_rate must lie in .* got 1"),
        ("NutchAdaptive", {"day": 0}, "day must be finite and > 0, got 0"),
        ("NutchAdaptive", {"max_interval": 59.0}, "max_interval must be finite and >= 60, got 59"),
        ("NutchAdaptive", {"sync_delta_rate": None}, "sync_delta_rate .* None"),
        ("StormCrawlerAdaptive", {"fetch_interval_min": 0}, "fetch_interval_min .* >= 1, got 0"),
        ("StormCrawlerAdaptive", {"rate_incr": 0.0}, "rate_incr must be finite and > 0, got 0.0"),
        ("StormCrawlerAdaptive", {"rate_decr": 1.5}, "rate_decr must lie in"),
        ("UniformCrawl", {"schedule": "best"}, "schedule must be one of"),
    ],
)
def test_bad_settings(name, settings, message):
    with pytest.raises(ValueError, match=message):
        policies.make(name, ReplayCore(random_lane(3, 0)), **settings)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "Greedy",
            {"action_form": "rates"},
            "action_form of Greedy must be one of .*, got 'rates'",
        ),
        ("LowDiscrepancy", {"action_form": "rates"}, "must be one of .*'rates'"),
        ("Greedy", {"batch": 0}, "batch must be an integer >= 1, got 0"),
        (
            "GreedyNCIS",
            {"features": FEATURES[:4]},
            "needs the columns change_rate, recall, false_signal_rate, features has elapsed",
        ),
        ("GreedyNCIS", {"delay_window": 1.0}, "features must be None for GreedyNCIS with these"),
        *(
            (name, {}, f"features must be None for {name} .* it needs an environment, or its logs")
            for name in ("LowDiscrepancy", "LambdaCrawl", "NutchAdaptive")
        ),
    ],
)
def test_bad_settings_from_columns(name, settings, message):
    with pytest.raises(ValueError, match=message):
        policies.make(name, **{"features": FEATURES, **settings})


def test_an_environment_is_one():
    with pytest.raises(ValueError, match="env must be a crawl environment, got object"):
        policies.make("Greedy", object())


def test_bad_observations():
    core = ReplayCore(random_lane(3, 0), random_lane(3, 1))
    policy = policies.make("Greedy", core)
    core.reset()
    with pytest.raises(ValueError, match=r"2 lanes of the environment .*, got shape \(3,\)"):
        policy.predict(np.zeros(3))
    with pytest.raises(ValueError, match=r"the 2 lanes .*got shape \(3, 7\)"):
        policy.predict(np.zeros((3, 7)))
    with pytest.raises(ValueError, match=r"the 8 columns .*got shape \(3, 5\)"):
        policies.make("Greedy", features=FEATURES).predict(np.zeros((3, 5)))


@pytest.mark.parametrize("name", policies.names("page"))
def test_other_pages_are_refused_in_one_way(name):
    policy = policies.make(name, ReplayCore(random_lane(3, 0), random_lane(3, 1)))
    policy.core.reset()
    for shape in ((2, 4, len(FEATURES)), (4, len(FEATURES))):
        for observation in (
            np.zeros(shape),
            {"action_mask": np.zeros(3), "observation": np.zeros(shape)},
        ):
            with pytest.raises(ValueError, match=f"must have the 3 pages .* {name} is bound to"):
                policy.predict(observation)


@pytest.mark.parametrize("name", INFORMED)
def test_hidden_parameters_are_missed_in_words(name):
    core = ReplayCore(random_lane(3, 0))
    core.lanes[0].reveal = "importance"
    policy = policies.make(name, core)
    observation = core.reset()
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{name} needs change_rate.*does not reveal"):
            policy.predict(observation)


# Policies of other classes


class Chosen(Policy):
    acts = ("page", "refresh", "scores", "rates")

    def __init__(self, choice):
        self.choice = choice

    def choose(self, tracker):
        return self.choice


def chosen(choice, **arguments):
    env = gym.make("CrawlNCIS-v0", num_pages=5, **arguments)
    observation, _ = env.reset(seed=0)
    return policies.bind(Chosen(choice), env).predict(observation)[0]


@pytest.mark.parametrize("choice", [3, np.int32(3), [3], np.array([3]), np.uint8([3])])
def test_a_choice_is_a_page_or_several(choice):
    assert chosen(choice) == 3
    assert chosen(choice).dtype == np.int64
    assert chosen(choice, action="refresh")[3] == 1
    assert not chosen([], action="refresh").any()


@pytest.mark.parametrize("table", [np.zeros(5), np.zeros((4, 1)), np.full((5, 1), np.nan)])
def test_a_table_of_another_shape_or_with_nan_is_refused_in_words(table):
    class Tabulated(policies.Greedy):
        def _index(self, problem):
            return super()._index(problem)[0], table

    env = gym.make("CrawlNCIS-v0", num_pages=5)
    observation, _ = env.reset(seed=0)
    expected = r"table of Tabulated must have a row per page, at least \(5, P\), and no NaN, got"
    with pytest.raises(ValueError, match=expected):
        policies.bind(Tabulated(), env).predict(observation)


@pytest.mark.parametrize(
    ("form", "choice", "words"),
    [
        *(
            ("page", choice, "pages as an array of integers")
            for choice in (1.7, np.zeros(3), [np.nan], np.zeros((2, 2), np.int64), "a")
        ),
        ("page", [], r"a page in the form 'page', got none"),
        ("page", [3, 1], r"one page in the form 'page', got \[3, 1\]"),
        ("page", np.array([0, 1, 0, 0, 1]), "one page in the form 'page'"),  # a mask
        ("page", -1, r"pages in \[0, 5\), got -1"),
        ("page", 5, r"pages in \[0, 5\), got 5"),
        ("scores", [], "a page in the form 'scores', got none"),
        ("scores", [1, -1], r"pages in \[0, 5\), got \[1, -1\]"),
        ("scores", [1, 5], r"pages in \[0, 5\)"),
        ("scores", [2, 2], r"different pages in the form 'scores', got \[2, 2\]"),
        ("refresh", [-1], r"pages in \[0, 5\), got \[-1\]"),
        ("refresh", [0, 7], r"pages in \[0, 5\)"),
        ("refresh", np.ones(5, bool), "array of integers"),
        ("rates", [1.0, 1.0], r"a number per page, \(5,\), finite and >= 0"),
        ("rates", [1.0, 1.0, 1.0, 1.0, np.nan], "finite and >= 0"),
        ("rates", [1.0, 1.0, 1.0, 1.0, -1.0], "finite and >= 0"),
        ("rates", [1.0, 1.0, 1.0, 1.0, np.inf], "finite and >= 0"),
    ],
)
def test_a_choice_is_checked_at_one_door_in_every_form(form, choice, words):
    with pytest.raises(ValueError, match=f"^Chosen must choose .*{words}"):
        chosen(choice, action=form)


@compiled(VALUE.signature)
def undefined_value(parameters, page, elapsed, signals):
    return np.nan if page == 2 else elapsed


class Undefined(policies.Greedy):
    def _index(self, problem):
        return undefined_value, super()._index(problem)[1]


@pytest.mark.parametrize("form", ["page", "scores", "refresh", "rollout"])
def test_an_index_that_is_nan_is_refused(form):
    action = {"rollout": "page"}.get(form, form)
    more = {"batch": 2} if form == "scores" else {}
    env = gym.make("CrawlNCIS-v0", num_pages=5, horizon=1.0, action=action, **more)
    observation, _ = env.reset(seed=0)
    policy = policies.bind(Undefined(threshold=0.1 if form == "refresh" else None), env)
    instance = Instance(np.ones(5), 1.0, bandwidth=5.0)
    rollout = form == "rollout"
    words = "index of every page must be a number, got NaN for page 2"
    with pytest.raises(ValueError, match=words):
        simulate(instance, policy, 2.0) if rollout else policy.predict(observation)


class Forgetful(policies.Greedy):
    def __init__(self, label):
        self.label = label


def test_a_class_that_does_not_call_the_base_class_is_a_policy():
    env = gym.make("CrawlNCIS-v0", num_pages=5, horizon=3.0)
    env.reset(seed=0)
    pages, crawls, ledgers = LivePages(env.unwrapped.problem), [], []
    for policy in (Forgetful("own"), policies.Greedy()):
        policy.start(pages)
        assert policy.choose(pages.tracker()) == [0]
        crawls.append(simulate(env.unwrapped.instance, policy, 2.0).crawls)
        bound = policies.bind(policy, env)
        ledgers += [play(env, bound, 0, compiled=compiled) for compiled in (True, False)]
    np.testing.assert_array_equal(*crawls)
    assert len(set(ledgers)) == 1


def test_binding_does_not_change_a_policy():
    policy, env = policies.BeliefNCIS(), gym.make("CrawlNCIS-v0", num_pages=5)
    before, bound = dict(vars(policy)), [policies.bind(policy, env) for _ in range(2)]
    observation, _ = env.reset(seed=0)
    bound[0].predict(observation)
    assert vars(policy) == before
    with pytest.raises(ValueError, match="lane must be one that predict was called for, got 0"):
        bound[1].of_lane()
    assert bound[0].of_lane() is bound[0].update() is not bound[1].update()


# Another environment than that of the policy


SMALL = {"num_pages": 12, "bandwidth": 6.0, "horizon": 5.0, "instance": "noisy"}


def two(**arguments):
    given = {**SMALL, **arguments}
    own, other = (gym.make("CrawlNCIS-v0", **given) for _ in range(2))
    own.reset(seed=0)
    return own, other, policies.make("GreedyNCIS", own)


def test_an_observation_of_another_instance_is_noticed_at_once():
    _, other, policy = two()
    observation, _ = other.reset(seed=1)
    with pytest.raises(ValueError, match=r"GreedyNCIS is bound to, which is at time .*another"):
        policy.predict(observation)


@pytest.mark.parametrize("form", ["table", "flat", "dict", "flat_dict"])
def test_an_observation_of_another_time_is_noticed_at_the_second_call(form):
    """Here the pages are the same, so the first observation is too."""
    _, other, policy = two(observation=form)
    observation, _ = other.reset(seed=0)
    action, _ = policy.predict(observation)
    assert policy.predict(observation)[0] == action  # as often as one likes
    observation, *_ = other.step(action)
    with pytest.raises(ValueError, match="got one of another environment, instance or time"):
        policy.predict(observation)


def test_wrappers_may_change_the_observations_of_the_environment_that_is_bound():
    """Before or, in the same shape and stacked or flattened, after the policy is bound."""
    env = gym.wrappers.TransformObservation(
        gym.make("CrawlNCIS-v0", **SMALL), lambda rows: rows / 2, None
    )
    stacked = gym.wrappers.FrameStackObservation(env, 3)
    for played in (env, stacked):
        policy = policies.make("GreedyNCIS", played)
        observation, _ = played.reset(seed=0)
        for _ in range(4):
            observation, *_ = played.step(policy.predict(observation)[0])
    env = gym.make("CrawlNCIS-v0", **SMALL)
    policy, lanes = policies.make("GreedyNCIS", env), DummyVecEnv([lambda: env])
    lanes.seed(0)
    observation = lanes.reset()
    for _ in range(40):  # into a second episode
        observation, *_ = lanes.step(policy.predict(observation)[0])


def test_lanes_are_noticed_one_by_one():
    envs = [
        gym.make_vec("CrawlNCIS-v0", num_envs=3, autoreset_mode="SameStep", **SMALL)
        for _ in range(2)
    ]
    policy = policies.make("GreedyNCIS", envs[0])
    observation, _ = envs[0].reset(seed=0)
    for _ in range(70):
        observation, *_ = envs[0].step(policy.predict(observation)[0])
    other = observation.copy()
    other[2] = envs[1].reset(seed=9)[0][2]
    policy.predict(observation)
    with pytest.raises(ValueError, match="in lane 2"):
        policy.predict(other)


@pytest.mark.parametrize("shape", [(3, 2), (84,), (83,), (2, 12, 7), (7, 12), ()])
def test_an_observation_of_another_shape_is_refused(shape):
    env, _, policy = two()
    if shape == (84,):  # flattened
        policy.predict(env.unwrapped.current_observation().ravel())
        policy.predict(np.zeros((12, 9)))  # a wrapper's further columns
        return
    with pytest.raises(ValueError, match=r"observation must have .* GreedyNCIS is bound to, got"):
        policy.predict(np.zeros(shape))


def test_no_observation_is_refused():
    for form in ("table", "dict"):
        _, _, policy = two(observation=form)
        with pytest.raises(ValueError, match="GreedyNCIS is bound to, got None"):
            policy.predict(None)
    with pytest.raises(ValueError, match="must have shape"):
        policies.make("GreedyNCIS", features=FEATURES).predict(None)


@pytest.mark.parametrize("kind", [DummyVecEnv, gym.vector.SyncVectorEnv])
def test_wrappers_of_several_say_what_to_bind_to_instead(kind):
    lanes = kind([lambda: gym.make("CrawlNCIS-v0", **SMALL)] * 2)
    words = f"got {kind.__name__} of several: bind to gymnasium.make_vec.*CrawlVecEnv"
    with pytest.raises(ValueError, match=words):
        policies.make("GreedyNCIS", lanes)
