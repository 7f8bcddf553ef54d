"""The contextual bandit: its model and its twin, what it chooses, what it learns, bad input."""

import math
import time
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs
import policies
from policies import bind, values
from policies.offers.contextual import (
    BUCKETS,
    ChangeModel,
    ContextualBandit,
    hashed,
    implied_value,
    page_kinds,
)
from policies.offers.rates import OfferRates, ShrunkClicks
from policies.values.ranking import largest_pages
from tests.policies.offers.fake_offer_env import OfferStandIn, play


class NaiveModel:
    """Logistic regression by Adagrad on contexts written out as dictionaries."""

    def __init__(self, known, names, gap, rate):
        self.known, self.names, self.gap, self.rate = known, names, gap, rate
        self.weights, self.squares = {"elapsed": 1.0}, {}

    def context(self, page, elapsed, changed, signals):
        features = {
            "one": 1.0,
            "elapsed": math.log(0.01 + elapsed / self.gap),
            "changed": float(changed == 1),
            "unchanged": float(changed == 0),
            "signals": math.log(1 + signals),
        }
        features |= {("known", j): value for j, value in enumerate(self.known[page])}
        for name in self.names[page]:
            features[name] = features.get(name, 0.0) + 1.0
        return features

    def chance(self, *case):
        terms = (self.weights.get(name, 0.0) * x for name, x in self.context(*case).items())
        return 1.0 / (1.0 + math.exp(-sum(terms)))

    def learn(self, page, elapsed, changed, signals, outcome):
        error = self.chance(page, elapsed, changed, signals) - outcome
        for name, value in self.context(page, elapsed, changed, signals).items():
            slope = error * value
            self.squares[name] = self.squares.get(name, 1.0) + slope**2
            step = self.rate * slope / math.sqrt(self.squares[name])
            self.weights[name] = self.weights.get(name, 0.0) - step


def world(m=40, **more):
    rng = np.random.default_rng(5)
    merchant, brand = rng.integers(0, 4, m), rng.integers(0, 9, m)
    given = {
        "brand": brand,
        "change_frequency": rng.random(m),
        "importance": rng.lognormal(0.0, 1.0, m),
        **more,
    }
    return OfferStandIn(merchant, [0.3, 0.02, 0.0, 0.6], **given)


def test_the_model_equals_its_twin():
    core = world()
    tracker = core.tracker()
    model = ChangeModel.at_start(tracker, 0.3)
    kinds = model.kinds.tolist()
    # No two kinds of a page fall into one bucket here, so that names can stand for places.
    assert all(len(set(row)) == len(row) for row in kinds)
    twin = NaiveModel(model.page_features, kinds, 40 / tracker.problem.bandwidth, 0.3)
    rng = np.random.default_rng(6)
    changed = np.full(40, -1, np.int8)
    for _ in range(30):
        pages = rng.integers(0, 40, 7)
        elapsed, signals = rng.exponential(3.0, 7), rng.poisson(1.0, 7)
        outcomes = rng.random(7) < 0.5
        now = changed.copy()
        for page, wait, count, result in zip(pages, elapsed, signals, outcomes, strict=True):
            twin.learn(page, wait, now[page], count, result)
            now[page] = result
        model.learn(pages, elapsed, signals, outcomes, changed)
        assert np.array_equal(changed, now)
        everywhere = rng.exponential(3.0, 40), changed, rng.poisson(1.0, 40)
        wanted = [
            twin.chance(page, *case) for page, case in enumerate(zip(*everywhere, strict=True))
        ]
        assert model.chances(*everywhere) == pytest.approx(wanted, rel=1e-12)


def test_what_is_known_of_offers_and_of_pages():
    core = world()
    model = ChangeModel.at_start(core.tracker(), 0.3)
    names = [*crawl_envs.types.offer_features.HISTORY_FEATURES]
    assert model.page_features.shape == (40, 1 + len(names))
    known = model.page_features[:, 1 + names.index("clicks_30")]
    assert known == pytest.approx(np.log1p(core.offer_features.clicks_30), rel=1e-6)
    assert model.page_features[:, 0] == pytest.approx(
        np.log1p(core.importance / core.importance.mean())
    )
    env = gym.make("CrawlNCIS-v0", num_pages=7).unwrapped
    env.reset(seed=0)
    tracker = env.tracker()
    model = ChangeModel.at_start(tracker, 0.3)
    gap = 7 / tracker.problem.bandwidth
    wanted = np.log(0.01 + gap * tracker.problem.change_rate)
    assert model.page_features[:, 1] == pytest.approx(wanted, rel=1e-12)
    assert model.page_features.shape == (7, 4)
    assert model.kinds.shape == (7, 1)


def test_kinds_are_hashed_apart():
    values = np.arange(200)
    buckets = {field: hashed(field, values) for field in range(7)}
    for places in buckets.values():
        assert places.min() >= 0
        assert places.max() < BUCKETS
        assert len(np.unique(places)) > 195
    assert np.mean(buckets[0] == buckets[1]) < 0.02
    core = world()
    kinds = page_kinds(core.tracker(), 10)
    assert np.array_equal(kinds[:, 0], 10 + np.arange(40))
    merchant = np.asarray(core.known["merchant"])
    column = kinds[:, 1 + core.offer_features.metadata._fields.index("merchant")]
    for one, other in np.ndindex(40, 40):
        assert (column[one] == column[other]) == (merchant[one] == merchant[other])


# What it chooses


def test_without_exploration_it_takes_the_largest_gains():
    core = world(form="scores", budget=1.2)
    policy = bind(ContextualBandit(exploration=0.0), core)
    observation = core.reset()
    for _ in range(50):
        action, _ = policy.predict(observation)
        gains = core.importance * policy.of_lane().chances(core.tracker())
        chosen = np.argsort(-action, kind="stable")[: core.batch]
        assert np.array_equal(chosen, np.argsort(-gains, kind="stable")[: core.batch])
        assert np.array_equal(policy.predict(observation)[0], action)
        observation = core.step(action)


def test_rates_spend_the_budget_and_leave_a_rest_to_one_page():
    core = world(budget=1.0)  # 40 / 12 = 3 1/3 crawls per step
    policy = bind(ContextualBandit(exploration=0.0), core)
    action, _ = policy.predict(core.reset())
    gains = core.importance * policy.of_lane().chances(core.tracker())
    best = np.argsort(-gains, kind="stable")[:4]
    assert action[best[:3]] == pytest.approx([12.0] * 3)
    assert action[best[3]] == pytest.approx(4.0, rel=1e-9)
    assert action.sum() == pytest.approx(core.problem.bandwidth, rel=1e-12)
    assert np.count_nonzero(action) == 4
    whole = world(budget=0.6)  # 2 crawls per step, no rest
    action, _ = bind(ContextualBandit(), whole).predict(whole.reset())
    assert sorted(action[action > 0.0].tolist()) == pytest.approx([12.0, 12.0])
    little = world(budget=0.15)  # half a crawl per step
    action, _ = bind(ContextualBandit(), little).predict(little.reset())
    assert action[action > 0.0].tolist() == pytest.approx([6.0])


def test_exploration_draws_from_all_others():
    core = world(form="scores", budget=1.2)
    policy = bind(ContextualBandit(exploration=1.0), core)
    observation, counts = core.reset(), np.zeros(40)
    for _ in range(1000):
        action, _ = policy.predict(observation)
        pages = np.flatnonzero(action >= 0.0)
        assert pages.size == core.batch == 4
        counts[pages] += 1
        observation = core.step(action)
    assert np.all(np.abs(counts - 100.0) < 5.0 * np.sqrt(90.0))
    policy, share = bind(ContextualBandit(exploration=0.25), core), 0
    observation = core.reset()
    for _ in range(500):
        action, _ = policy.predict(observation)
        gains = core.importance * policy.of_lane().chances(core.tracker())
        best = largest_pages(gains, gains >= 0.0, 4)
        share += np.sum(~np.isin(np.flatnonzero(action >= 0.0), best))
        observation = core.step(action)
    # A draw among 39 or so others hits what is best anyway now and then.
    assert 0.18 < share / 2000 < 0.27


# What it learns


@pytest.mark.parametrize("form", ["rates", "scores"])
def test_it_learns_which_merchants_change_their_prices(form):
    rng = np.random.default_rng(0)
    merchant = rng.integers(0, 20, 1000)
    chance = np.where(np.arange(20) % 2 == 0, 0.002, 0.04)
    importance = rng.lognormal(0.0, 1.5, 1000)
    core = OfferStandIn(merchant, chance, importance, form=form, budget=0.3)
    policy = bind(ContextualBandit(), core)
    fresh = play(core, policy, 480)[240:].mean()
    waited = np.maximum(core.steps - core.last, 1)
    true = -np.expm1(waited * np.log1p(-core.chance))
    state = policy.of_lane()
    chances = state.chances(core.tracker())
    assert np.corrcoef(chances, true)[0, 1] > 0.95
    assert np.mean((chances - true) ** 2) < 0.02
    # The weight of a merchant's offers together tells the two kinds of merchants apart.
    model = state.model
    place = model.kinds[:, 1 + core.offer_features.metadata._fields.index("merchant")]
    weights = np.array([model.weights[place[merchant == k][0]] for k in range(20)])
    assert weights[1::2].min() > weights[::2].max()
    even = OfferStandIn(merchant, chance, importance, budget=0.3)
    assert fresh > play(even, policies.make("UniformCrawl", even), 480)[240:].mean() + 0.1


def test_a_new_offer_is_judged_by_its_merchant():
    rng = np.random.default_rng(1)
    merchant = np.arange(200) % 2
    importance = np.where(np.arange(200) < 20, 0.0, rng.lognormal(0.0, 1.0, 200))
    core = OfferStandIn(merchant, [0.001, 0.2], importance, form="scores", budget=0.5)
    policy = bind(ContextualBandit(exploration=0.0), core)
    play(core, policy, 240)
    never = np.flatnonzero(core.changed == -1)
    assert {*range(20)} <= {*never.tolist()}  # worthless offers were never crawled
    odds = policy.of_lane().chances(core.tracker())
    odds = odds / (1.0 - odds)
    assert odds[1:20:2].min() > 10.0 * odds[0:20:2].max()


def test_clicks_of_a_source_count_as_importance():
    core = world(form="scores", budget=1.2)
    asked = []

    def source(tracker):
        asked.append(tracker.offers.day)
        click = np.zeros(40)
        click[[3, 8, 11, 30, 35]] = 1.0
        return OfferRates(click, click, np.minimum(click, 1.0))

    policy = bind(ContextualBandit(exploration=0.0, weights=source), core)
    observation = core.reset()
    for _ in range(36):
        action, _ = policy.predict(observation)
        assert {*np.flatnonzero(action >= 0.0).tolist()} <= {3, 8, 11, 30, 35}
        observation = core.step(action)
    assert asked == [0, 1, 2]


def shrunk_clicks(click, impression):
    tracker = world(len(click), clicks_30=click, impressions_30=impression).tracker()
    return ShrunkClicks()(tracker).click


def test_clicks_are_drawn_to_what_impressions_lead_to_expect():
    rng = np.random.default_rng(3)
    impression = np.append(rng.lognormal(0.0, 2.0, 400), 0.0)
    click = rng.poisson(30.0 * impression * 0.05) / 30.0
    result = shrunk_clicks(click, impression)
    # The mean over the law of an offer's clicks per impression, by summing over a fine grid of it.
    overall = click.sum() / impression.sum()
    grid = np.linspace(0.0, 40.0 * overall, 400_001)[1:]
    prior = grid * np.exp(-2.0 * grid / overall)  # gamma of shape 2 and that mean
    for i in (0, 17, 101):
        count = 30.0 * click[i]
        law = prior * grid**count * np.exp(-30.0 * impression[i] * grid)
        wanted = impression[i] * np.sum(grid * law) / np.sum(law)
        assert result[i] == pytest.approx(wanted, rel=1e-5)
    assert result[-1] == 0.0
    assert result.sum() == pytest.approx(click.sum(), rel=0.2)
    assert np.array_equal(shrunk_clicks(click, 0.0 * impression), click.astype(np.float32))
    assert not shrunk_clicks(0.0 * click, impression).any()


def test_offers_without_clicks_are_weighted_by_their_impressions():
    impression = np.arange(40.0)
    core = world(form="scores", budget=1.2, clicks_30=0.0, impressions_30=impression)
    policy = bind(ContextualBandit(), core)
    policy.predict(core.reset())
    assert np.array_equal(policy.of_lane()._weights(core.tracker()), core.importance)
    clicks = np.where(impression == 7.0, 1.0, 0.0)
    core = world(form="scores", budget=1.2, clicks_30=clicks, impressions_30=impression)
    policy = bind(ContextualBandit(), core)
    policy.predict(core.reset())
    weights = policy.of_lane()._weights(core.tracker())
    assert np.argmax(weights) == 7
    others = np.delete(weights, 7)
    assert np.all(np.diff(others) > 0.0)


# Its other aim


def test_the_implied_value_is_that_of_greedy():
    rng = np.random.default_rng(8)
    elapsed, exponent = rng.exponential(3.0, 50), np.geomspace(1e-3, 20.0, 50)
    change_rate = exponent / elapsed
    chances = -np.expm1(-exponent)  # beyond that, 1 - P is lost to rounding
    wanted = values.greedy(elapsed, importance=1.0, change_rate=change_rate)
    assert implied_value(chances, elapsed) == pytest.approx(wanted, rel=1e-6)
    corners = implied_value(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert np.all(np.isfinite(corners))
    assert np.all(corners >= 0.0)
    assert corners[[0, 2, 3]].tolist() == [0.0, 0.0, 0.0]


def test_the_aim_freshness_gives_up_offers_that_cannot_be_kept_fresh():
    merchant = np.repeat([0, 1], 100)
    importance = np.where(merchant == 0, 1.5, 1.0)
    fresh = {}
    for aim in ("gain", "freshness"):
        core = OfferStandIn(merchant, [0.95, 0.02], importance, form="scores", budget=1.2)
        policy = bind(ContextualBandit(aim=aim), core)
        fresh[aim] = play(core, policy, 600)[300:].mean()
    assert fresh["freshness"] > fresh["gain"] + 0.03


def test_a_decision_about_20000_offers_is_fast():
    rng = np.random.default_rng(0)
    m = 20_000
    core = OfferStandIn(
        rng.integers(0, 500, m),
        rng.uniform(0.0, 0.05, 500),
        rng.lognormal(0.0, 1.5, m),
        brand=rng.integers(0, 3000, m),
    )
    policy = bind(ContextualBandit(), core)
    observation, spent = core.reset(), []
    for _ in range(36):
        start = time.process_time()
        action, _ = policy.predict(observation)
        spent.append(time.process_time() - start)
        observation = core.step(action)
    assert np.median(spent) < 0.005


BAD = {
    "exploration": (
        lambda: ContextualBandit(exploration=1.5),
        r"exploration must lie in \[0, 1\], got 1.5",
    ),
    "aim": (lambda: ContextualBandit(aim="gains"), "aim must be one of .* got 'gains'"),
    "strength": (lambda: ShrunkClicks(0.0), "strength must be .* got 0.0"),
    "no offers": (
        lambda: ShrunkClicks()(SimpleNamespace(offers=None)),
        "tracker.offers must be OfferFeatures",
    ),
    "rate": (lambda: ContextualBandit(learning_rate=0.0), "learning_rate must .* got 0.0"),
    "lane": (lambda: bind(ContextualBandit(), world()).of_lane(), "lane must be one .* got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
