"""The worlds of a training, and what is recorded in them."""

from __future__ import annotations

import numpy as np
import pytest

import agents
from agents.generalist import worlds
from agents.generalist.recording import PAGE, RATE, TIME
from agents.generalist.training import GeneralistArguments, train
from agents.generalist.worlds import World, explored, past_of_site
from crawl_envs.evaluation import make_env
from crawl_envs.instances import traces
from crawl_envs.worlds.rollouts import ONE_LANE
from policies.ncis.belief import BeliefNCIS
from scripts.data.replays import past

SITE = "rust-blog"


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(worlds, "CYCLES", {"parameters": 4, "importance": 4})
    monkeypatch.setattr(worlds, "SITE_PAGES", 20)


def instance_of(world, seed=3):
    lanes = world.lanes(np.random.default_rng(0), "train", "crawled")
    lanes.begin(ONE_LANE, [seed], [None], play=False)
    return lanes.instance(0)


@pytest.mark.parametrize("world", [World("importance", "bursty"), World("parameters", site=SITE)])
def test_an_exploration_depends_on_its_seed_alone(short, world):
    one, two, other = (explored(world, seed, "train", "crawled") for seed in (3, 3, 4))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.crawls.shape != other.crawls.shape or not np.array_equal(one.crawls, other.crawls)


def test_windows_are_of_the_named_site_in_the_second_half_of_its_record(short):
    trace = traces.load(traces.find(SITE))
    for seed in range(4):
        instance = instance_of(World("importance", site=SITE), seed)
        assert instance.site == SITE
        assert instance.day >= trace.days / 2.0


def test_crawls_before_an_episode_are_not_recorded(short):
    record = explored(World("importance", "noisy"), 5, "train", "crawled")
    assert record.crawls[0, TIME] == pytest.approx(record.cycle, rel=0.05)
    assert np.all(np.diff(record.crawls[:, TIME]) > 0.0)
    assert len(record.crawls) <= 4 * worlds.NUM_PAGES


def test_only_pages_that_exist_are_recorded(short):
    for seed in range(3):
        world = World("importance", site="transit-feeds")
        instance = instance_of(world, seed)
        trace = traces.load(traces.find(instance.site)).of_pages(instance.pages)
        record = explored(world, seed, "train", "crawled")
        for rows in (record.crawls, record.samples):
            assert np.all(rows[:, RATE] > 0.0)
            day = instance.day - instance.before + rows[:, TIME]
            page = rows[:, PAGE].astype(int)
            assert np.all((trace.created[page] <= day + 1e-3) & (trace.deleted[page] >= day - 1e-3))


def test_the_history_of_a_window_ends_where_its_crawls_begin(short):
    instance = instance_of(World("parameters", site=SITE))
    history, end = past_of_site(instance), instance.day - instance.before
    expected = past(traces.load(traces.find(SITE)).of_pages(instance.pages), 0.0, end, "both")
    assert history.duration == pytest.approx(end)
    np.testing.assert_array_equal(history.time, expected.time)
    np.testing.assert_array_equal(history.kind, expected.kind)


def test_the_history_is_read_with_parameters_alone(short, monkeypatch):
    read = []

    def noting(history):
        read.append(history)
        return BeliefNCIS(history=history)

    monkeypatch.setattr(worlds, "BeliefNCIS", noting)
    for reveal in ("parameters", "importance"):
        explored(World(reveal, site=SITE), 3, "train", "crawled")
    assert read[0].duration > 0.0
    assert read[1] is None


@pytest.fixture
def trained(tmp_path, short):
    def made(**names):
        train(GeneralistArguments(episodes=1, hidden=2, formulas=False, **names), tmp_path / "it")
        return tmp_path / "it"

    return made


def test_an_agent_refuses_worlds_like_none_of_its_training(trained):
    folder = trained(instance=("noisy",), hidden_laws=())
    for id, arguments, words in (
        ("CrawlHarmonic-v0", {"action": "page"}, "reward 'penalty'"),
        ("CrawlNCIS-v0", {"action": "rates"}, "action 'rates'"),
        ("CrawlLongevity-v0", {}, "reward 'fragments'"),
        ("CrawlOffers-v1", {"action": "scores"}, "no clicks"),
        ("CrawlTrace-v0", {"trace": SITE}, "no recorded pages"),
    ):
        with pytest.raises(ValueError, match=words):
            agents.load(folder, make_env(id, **arguments))
    agents.load(folder, make_env("CrawlNCIS-v0"))


def test_an_agent_of_sites_refuses_laws_and_reads_a_history(trained):
    folder = trained(instance=(), hidden_laws=(), sites=(SITE,))
    env = make_env("CrawlTrace-v0", trace=SITE, signals="both", start="crawled")
    with pytest.raises(ValueError, match="no pages of a law"):
        agents.load(folder, make_env("CrawlNCIS-v0"))
    trace = traces.load(traces.find(SITE))
    history = past(trace, 0.0, trace.days / 4.0, "both")
    env.reset(seed=0)
    problem = env.unwrapped.lanes.instance(0).problem()
    expected = BeliefNCIS(history=history).first_memory(problem).pages
    learner = agents.load(folder, history=history).compile(problem, 0, np.random.default_rng(0))
    np.testing.assert_array_equal(learner.memory.pages[:, : expected.shape[1]], expected)
    agents.load(folder, env, history=history)
    with pytest.raises(ValueError, match="history must be None"):
        agents.load("noisy-index", env, history=history)
