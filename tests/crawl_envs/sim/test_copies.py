"""Copies of fragments and prices diverge as in the twin, by every form of action.

Sums of Jaccard distances, and of expected clicks, are rounded; nothing else is.
"""

from __future__ import annotations

from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs.instances.longevity import RegionPages
from crawl_envs.sim.state import DIVERGENCE, SIMILARITY
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types.contents import Regions
from crawl_envs.types.copies import divergence
from tests.crawl_envs.sim.rollouts.test_rates import random_rates
from tests.crawl_envs.sim.test_world import assert_same_log, assert_same_tracker
from tests.crawl_envs.worlds.offers.markets import days_of, small_market
from tests.environments import LONGEVITY, OFFERS, forms_of
from tests.naive import pages as naive
from tests.naive import rates as naive_rates
from tests.naive.divergence import Fragments, Prices
from tests.naive.fragments import distance, histories, version_at, versions_of
from tests.worlds import events_of

SEED, PAGES, HORIZON = 3, 5, 12.0
ROUNDED = ("fresh_time", "alive_time", "divergence_time", "offer_freshness")
SPELLS = (34, 35)


# Worlds: an environment at the start of an episode, and its twin


def region_pages():
    rng = np.random.default_rng(SEED)
    rate = rng.uniform(0.1, 1.5, (PAGES, 3)) * [0.0, 1.0, 1.0]
    size = rng.integers(0, 6, (PAGES, 3)) + np.array([1, 0, 0])
    regions = Regions(rng.integers(1, 5, (PAGES, 3)), size, rate)
    weights = rng.integers(1, 5, PAGES).astype(float)
    return RegionPages(weights, regions, 0.5, 0.25, bandwidth=3.0)


def updated_pages(**form):
    """Pages whose regions are updated, from the lists of their items."""
    instance, end, more = region_pages(), 2.0 * HORIZON, {"num_pages": PAGES, "horizon": HORIZON}
    env = gym.make(LONGEVITY, **more, bandwidth=3.0, base_versions=3, **form).unwrapped
    env.reset(seed=SEED, options={"instance": instance})
    seeds = generator(roots(SEED).tape, 0).integers(
        0, 2**64, size=instance.regions.rate.shape, dtype=np.uint64
    )
    pages = histories(instance.regions, seeds, instance.recall, end)
    events = []
    for number, versions in enumerate(pages):
        for time, content in versions[1:]:
            events.append((time, number, naive.CHANGE))
            events.append((time, number, naive.FRAGMENTS, content))
    drawn = instance.draw_tape(generator(roots(SEED).tape, 0), end)
    events += [event for event in events_of(drawn) if event[2] == naive.SIGNAL]
    events.sort(key=lambda event: event[0])
    first = [versions[0][1] for versions in pages]
    return env, twin_of(env, events, divergence=Fragments(first, 3))


def sketched_pages(**form):
    return updated_pages(sketch_size=4, **form)


def recorded_pages(**form):
    """Pages of a trace, which are born and die."""
    more = {"instance": "garden-handbook", "window": [120.0, 126.0], "bandwidth": 30.0}
    env = gym.make(LONGEVITY, **more, **form).unwrapped
    env.reset(seed=SEED)
    pages, tape = versions_of(env.contents()), env.lanes.tape
    events = []
    for time, number, kind in events_of(tape):
        if kind in SPELLS:
            content = version_at(pages[number], np.nextafter(time, np.inf))
            events.append((time, number, naive.FRAGMENTS, content))
        else:
            events.append((time, number, kind))
    first = Fragments([version_at(versions, 0.0) for versions in pages], 2)
    return env, twin_of(env, events, alive=tape.alive.tolist(), divergence=first)


def offers(**form):
    """A market: prices, clicks and their expectations, day by day."""
    market = small_market(SEED, num_offers=12, change_rate=2.0, view_rate=40.0)
    env = gym.make(OFFERS, num_pages=12, bandwidth=30.0, horizon=4.0, **form).unwrapped
    env.reset(seed=SEED, options={"instance": market})
    events = []
    for day, today in enumerate(days_of(market, 16, SEED)):
        events.append((float(day), 0, naive.IMPORTANCE, today.click_mean.tolist()))
        block = today.block[:-1].tolist()
        for (time, code), detail in zip(block, today.detail.tolist(), strict=False):
            content = (detail,) if code % 64 == naive.PRICE else ()
            events.append((time, code // 64, code % 64, *content))
    first = gym.make(OFFERS, num_pages=12, action=form["action"]).unwrapped  # fresh
    first.reset(seed=SEED, options={"instance": market})
    prices = first.held_prices().tolist()
    epoch = None if form["action"] == "page" else 1.0 / 12.0
    return env, naive.World(
        market, events, epoch=epoch, divergence=Prices(prices), start=env.lanes.start
    )


def twin_of(env, events, **more):
    more["start"] = env.lanes.start
    if env.action_form == "rates":
        return naive_rates.World(env.instance, events, seed=SEED, **more)
    return naive.World(env.instance, events, slots=env.batch, **more)


WORLDS = {
    "updated": updated_pages,
    "sketched": sketched_pages,
    "recorded": recorded_pages,
    "offers": offers,
}


# Steps


def assert_same_copies(env, twin):
    """All that is counted of copies, and their divergence, is what the twin says."""
    assert_same_log(env.last_log(), twin)
    assert_same_tracker(env.tracker(), twin)
    state, divergence = env.lanes.world.state, twin.divergence
    assert state.divergence[0].tolist() == [
        divergence.of(number, page) if page.alive else 0.0 for number, page in enumerate(twin.pages)
    ]
    ledger = {**asdict(env.ledger()), "divergence_time": state.lanes[0]["divergence_time"]}
    for name, value in (twin.ledger | {"divergence_time": twin.divergence_time}).items():
        assert ledger[name] == (pytest.approx(value, rel=1e-12) if name in ROUNDED else value), name
    if state.copies.size:
        assert_same_fragments(env, twin)
    if state.prices.size:
        assert env.held_prices().tolist() == divergence.held
    outcomes, slot = [row[0] for row in env.lanes.world.outcomes], twin.slot
    mean = slot.divergence_time / slot.divergent_time if slot.divergent_time else 0.0
    assert outcomes[DIVERGENCE] == pytest.approx(mean, rel=1e-12, abs=1e-15)
    assert outcomes[SIMILARITY] == pytest.approx(1.0 - mean if slot.divergent_time else 0.0)


def assert_same_fragments(env, twin):
    """What is known of copies, and what is true of them; a birth is just before its copy."""
    truth, known, log = env.true_divergence(), env.tracker().copies, env.last_log()
    size, copies = env.lanes.sketch_size, twin.divergence.copies

    def measure(*contents):
        if size is None:
            return distance(*contents)
        return divergence(*(np.array(sorted(c)[:size], np.uint32) for c in contents), size)

    for number, page in enumerate(twin.pages):
        if not page.alive:
            continue
        expected = twin.divergence.from_bases(number, measure)
        shown = known.divergence[:, number], known.age[:, number]
        assert np.array_equal(shown[0], expected[0], equal_nan=True)
        assert shown[1] == pytest.approx(expected[1], rel=1e-12, nan_ok=True)
        assert known.size[number] == len(copies[number][0][1])
        assert truth.area[number] == pytest.approx(page.area, abs=1e-12)
        since = page.first_change - page.since
        assert truth.first_change[number] == pytest.approx(since, rel=1e-12, nan_ok=True)
        assert truth.changed[number] == ~np.isnan(since)
    for row, (number, time) in enumerate(zip(log.page, log.time, strict=True)):
        made, held = copies[number][0]
        if time == made:  # of the copy that is held now
            assert np.array_equal(log.divergence[row], known.divergence[:, number], equal_nan=True)
            assert np.array_equal(log.age[row], known.age[:, number], equal_nan=True)
        if env.lanes.tape is None and time == made:  # contents are hashes
            assert log.sketch.row(row).tolist() == sorted(held)[:size]


FORMS = [
    (world, form) for world in WORLDS for form in forms_of(OFFERS if world == "offers" else "")
]


@pytest.mark.parametrize(
    ("world", "form", "start"),
    [
        *((*case, "fresh") for case in FORMS),
        # the crawls of a twin of offers are in order
        *((*case, "crawled") for case in FORMS if case != ("offers", "rates")),
    ],
)
def test_copies_are_the_twins(world, form, start):
    arguments = forms_of(OFFERS if world == "offers" else "")[form]
    env, twin = WORLDS[world](start=start, **arguments)
    assert_same_copies(env, twin)
    rng, over, num_pages = np.random.default_rng(0), False, env.lanes.num_pages
    env.action_space.seed(0)
    while not over:
        action = env.action_space.sample()
        if env.action_form == "rates" and world != "offers":
            action = random_rates(rng, env.instance)
        _, reward, _, over, info = env.step(action)
        if world != "offers":
            assert reward == pytest.approx(1.0 - info["divergence"], abs=1e-12)
        if isinstance(twin, naive_rates.World):
            twin.play_epoch(action, np.zeros(num_pages))
        else:
            twin.play_slot(env.last_log().page.tolist())
        assert_same_copies(env, twin)
    ledger = env.ledger()
    assert ledger.changes_found > 0
    assert twin.divergence_time > 0.0
