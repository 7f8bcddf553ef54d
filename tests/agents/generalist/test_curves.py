"""A network that learned the utility of crawls of pages with fragments."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import agents
import policies
from agents.catalog import CURVES, SHIPPED
from agents.generalist import curves
from agents.generalist.curve_training import (
    POISSON,
    CurveArguments,
    drawn_crawls,
    examples_of,
    train_curves,
)
from agents.generalist.curves import AGES, MAX_CRAWLS, OFFSET, SMALL_SHARE, basis, inputs_of
from agents.index.inputs import forward
from crawl_envs.evaluation import make_env, play
from crawl_envs.types.contents import Regions
from scripts.suite.entrants import entrant_of
from scripts.suite.protocol import check_worlds, declared_worlds

TINY = {"sets": 4, "rounds": 1, "hidden": 4}
HIDDEN = {"reveal": "importance", "start": "crawled", "pages": "train", "num_pages": 20}


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr("agents.generalist.curve_training.STEPS", 20)


def env_of(seed=0, **arguments):
    env = make_env("CrawlLongevity-v0", **{**HIDDEN, **arguments})
    env.reset(seed=seed)
    return env


def naive_inputs(gaps, lost, older):
    """Return the inputs of one page without those of its site, from lists, latest crawl first."""
    shares = [share for share in lost if share > 0]
    high, low = max(shares, default=0.0), min(shares, default=0.0)
    ratios = [
        older[k] / (lost[k] + lost[k + 1])
        for k in range(len(lost) - 1)
        if lost[k] > 0 and lost[k + 1] > 0
    ]
    equal = sum(abs(share - low) < 1e-9 for share in shares)
    quiet = [gap for gap, share in zip(gaps, lost, strict=True) if share == 0]
    busy = [gap for gap, share in zip(gaps, lost, strict=True) if share > 0]
    rate = sum(shares) / (OFFSET + sum(gaps))
    mean = sum(shares) / max(len(shares), 1)
    times = [sum(gaps), sum(quiet), max(quiet, default=0), min(busy, default=20), max(busy or [0])]
    times += [gaps[k] if k < len(gaps) else 0.0 for k in range(3)]
    return [
        *(high, equal / max(len(shares), 1), (sum(ratios) + 0.75) / (len(ratios) + 1)),
        *(math.log(SMALL_SHARE + share) for share in (high, low, mean, rate)),
        *(math.log(1 + number) for number in (len(gaps), len(shares), equal)),
        *(math.log(OFFSET + time) for time in times),
        *((lost[k] if k < len(lost) else 0.0) / (high or 1.0) for k in range(3)),
    ]


def test_inputs_are_those_of_a_plain_computation():
    rng = np.random.default_rng(0)
    rows = rng.random((3, 40, MAX_CRAWLS))
    rows[1:] = np.round(rows[1:], 1) * (rng.random((40, MAX_CRAWLS)) < 0.6)
    count = rng.integers(0, MAX_CRAWLS + 1, 40)
    inputs = inputs_of(rows, count)
    for page in range(40):
        expected = naive_inputs(*(row[page, : count[page]].tolist() for row in rows))
        np.testing.assert_allclose(inputs[page, :-2], expected, rtol=1e-9)
    np.testing.assert_allclose(inputs[:, -2], inputs[:, 0].mean())
    np.testing.assert_allclose(inputs[:, -1], (inputs[:, 8] > 0).mean())


def test_basis_is_the_utility_of_a_divergence_that_grows_up_to_an_age():
    times = np.linspace(0.0, 40.0, 400_001)
    for column, last in enumerate(AGES):
        divergence = np.minimum(times, last) / last
        area = np.concatenate([[0.0], np.cumsum(divergence[1:] + divergence[:-1]) * 5e-5])
        places = [7, 500, 12_345, 400_000]
        utility = times[places] * divergence[places] - area[places]
        np.testing.assert_allclose(basis(times[places])[:, column], utility, atol=1e-6)


def test_drawn_crawls_follow_the_law_of_the_regions():
    pages, rate, cycle = 400, 0.15, 10.0
    items = np.tile([1, 1, 4], (pages, 1))
    size, rates = np.tile([50, 30, 5], (pages, 1)), np.tile([0.0, rate, 0.0], (pages, 1))
    gaps, lost, older = drawn_crawls(Regions(items, size, rates), cycle, np.random.default_rng(1))
    assert {*np.round(lost, 12).ravel()} == {0.0, 0.3}
    chance = -np.expm1(-rate * cycle * gaps)
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs((lost > 0).sum() - chance.sum()) < 4 * spread
    np.testing.assert_array_equal(older[:, :-1], np.maximum(lost[:, :-1], lost[:, 1:]))
    rates = np.tile([0.0, 0.0, 1e4], (pages, 1))
    _, lost, _ = drawn_crawls(Regions(items, size, rates), cycle, np.random.default_rng(1))
    np.testing.assert_allclose(lost, 0.2)


def test_the_loss_has_its_slope_and_is_minimal_at_the_value():
    mean, value, step = np.array([0.3, 2.0, 5.0]), np.array([0.0, 2.0, 9.0]), 1e-6
    change = POISSON.value(mean + step, value) - POISSON.value(mean - step, value)
    np.testing.assert_allclose(POISSON.slope(mean, value), change / (2 * step), atol=1e-6)
    assert POISSON.slope(value[1:], value[1:]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("law", ["quality", "random"])
def test_shipped_networks_predict_the_mean_utility_of_pages_they_have_not_met(law):
    agent = agents.load(SHIPPED / "learned-curves" / "seed-1")
    arguments = CurveArguments(instance=(law,), sets=150, seed=60_000)
    inputs, functions, utility = examples_of(arguments)
    predicted = (np.exp(forward(agent.layers, agent.scaling(inputs))[2]) * functions).sum(axis=1)
    assert np.corrcoef(predicted, utility)[0, 1] > 0.5
    crawls = np.expm1(inputs[:, 7])
    for part in (crawls <= 4, crawls > 4, inputs[:, 8] > 0):
        assert abs(predicted[part].mean() / utility[part].mean() - 1.0) < 0.15


def test_the_agent_reads_the_crawls_of_an_episode():
    env = env_of(num_pages=5, horizon=30.0, start="fresh", bandwidth=0.5)
    agent = agents.load("learned-curves")
    policy, rows = policies.bind(agent, env), [[] for _ in range(5)]
    observation, _ = env.reset(seed=4)
    done, state, begun = False, None, np.ones(1, np.bool_)
    while not done:
        action, state = policy.predict(observation, state, begun)
        read = [[*crawls] for crawls in rows]  # the last step is not read any more
        observation, _, *ends, _ = env.step(action)
        done, begun, log = any(ends), np.zeros(1, np.bool_), env.unwrapped.last_log()
        for page, gap, (last, older) in zip(log.page, log.elapsed, log.divergence, strict=True):
            rows[page].insert(0, (gap / 10.0, last / (2.0 - last), older / (2.0 - older)))
    bound = policy.of_lane()
    assert bound.count.tolist() == [len(crawls) for crawls in read]
    for page, crawls in enumerate(read):
        expected = np.nan_to_num(np.reshape(crawls, (-1, 3)))
        np.testing.assert_allclose(bound.rows[:, page, : len(crawls)].T, expected)
    assert bound.count.sum() > 8


def test_the_agent_keeps_copies_closer_to_pages_than_random_crawling():
    scores = []
    for seed in range(4):
        env = env_of(seed)
        agent = agents.load("learned-curves", env)
        scores.append(
            [play(env, it, seed).divergence for it in (agent, policies.make("RandomCrawl", env))]
        )
    ours, random = np.mean(scores, axis=0)
    assert ours < 0.8 * random


def test_the_same_arguments_give_the_same_file(short, tmp_path):
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        train_curves(CurveArguments(**TINY, seed=seed), tmp_path / name)
    one, two, three = ((tmp_path / name / CURVES).read_bytes() for name in ("one", "two", "three"))
    assert one == two != three
    with pytest.raises(ValueError, match="holds an agent already"):
        train_curves(CurveArguments(**TINY), tmp_path / "one")


def test_a_stored_agent_acts_as_the_trained_one(short, tmp_path):
    trained = train_curves(CurveArguments(**TINY), tmp_path)
    env = env_of()
    stored = agents.load(tmp_path, env)
    expected, actual = (play(env, it, 0).divergence for it in (policies.bind(trained, env), stored))
    assert actual == expected
    values = json.loads((tmp_path / CURVES).read_text())
    for arrays in ([], values["arrays"][:-1], [[math.nan], *values["arrays"][1:]]):
        (tmp_path / CURVES).write_text(json.dumps({**values, "arrays": arrays}))
        with pytest.raises(ValueError, match="damaged"):
            agents.load(tmp_path)


@pytest.mark.parametrize(
    ("id", "arguments", "message"),
    [
        ("CrawlNCIS-v0", {}, "rewards of fragments"),
        ("CrawlLongevity-v0", {"reveal": "parameters"}, "reveal=.importance."),
        ("CrawlLongevity-v0", {"action": "refresh"}, "action 'refresh'"),
        ("CrawlLongevity-v0", {"objective": "holistic"}, "rewards of fragments"),
    ],
)
def test_worlds_unlike_the_training_are_refused(id, arguments, message):
    env = make_env(id, **{"reveal": "importance", **arguments})
    with pytest.raises(ValueError, match=message):
        agents.load("learned-curves", env)


def test_bad_arguments_are_refused():
    for name, value in (("instance", ("mixed",)), ("pages", "any"), ("sets", 0)):
        with pytest.raises(ValueError, match=name):
            CurveArguments(**{name: value})
    env = env_of(base_versions=1)
    agent = agents.load("learned-curves", env)
    with pytest.raises(ValueError, match="base_versions"):
        play(env, agent, 0)
    with pytest.raises(ValueError, match="history must be None"):
        agents.load("learned-curves", history=object())


def test_shipped_agents_declare_their_training():
    folders = sorted((SHIPPED / "learned-curves").glob("seed-*"))
    assert len(folders) == 5
    check_worlds("learned-curves", folders)
    for seed, folder in enumerate(folders):
        worlds = declared_worlds(folder)
        assert [id for id, _ in worlds] == ["CrawlLongevity-v0"] * 2
        assert {values["pages"] for _, values in worlds} == {"train"}
        assert json.loads((folder / CURVES).read_text())["made"]["seed"] == seed
    assert entrant_of("learned-curves").formula
    assert len(json.loads((folders[0] / CURVES).read_text())["arrays"][0]) == curves.NUM_INPUTS


@pytest.mark.parametrize("pages", ["any", "test"])
def test_other_page_sets_than_those_of_training_are_refused(tmp_path, pages):
    values = json.loads((SHIPPED / "learned-curves" / "seed-0" / CURVES).read_text())
    values["made"]["pages"] = pages
    (tmp_path / CURVES).write_text(json.dumps(values))
    with pytest.raises(ValueError, match=f"CrawlLongevity-v0 with pages='{pages}'"):
        check_worlds("mine", [tmp_path])
