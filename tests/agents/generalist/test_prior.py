"""A belief with a prior learned on recorded sites."""

from __future__ import annotations

import json

import numpy as np
import pytest

import agents
from agents.catalog import PRIOR
from agents.generalist import prior, worlds
from agents.generalist.prior import PriorArguments, SiteBelief, scales_of, train_prior
from agents.runs import CONFIG
from crawl_envs.evaluation import make_env, play
from crawl_envs.instances import traces
from policies.ncis.belief import BeliefNCIS
from policies.ncis.belief.layout import PACE_MEMORY
from policies.ncis.belief.policy import places_of
from scripts.data.replays import past

SITES = ("rust-blog", "python-peps")
RNG = np.random.default_rng(0)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(worlds, "SITE_PAGES", 20)


def env_of(reveal="importance", **arguments):
    arguments = {"signals": "both", "start": "crawled", "days_per_crawl": 50.0, **arguments}
    env = make_env("CrawlTrace-v0", trace=SITES[0], reveal=reveal, **arguments)
    env.reset(seed=0)
    return env, env.unwrapped.lanes.instance(0).problem(reveal)


def test_the_scales_are_geometric_means_over_the_named_sites(small, tmp_path):
    agent = train_prior(PriorArguments(sites=SITES, windows=1, seed=2), tmp_path / "one")
    first = prior.FIRST_SEED + (2 << 20)
    one, two = (scales_of(site, first + number) for number, site in enumerate(SITES))
    np.testing.assert_allclose(agent.scales, np.sqrt(one * two), rtol=1e-5)
    assert agent.pace in prior.PACES
    config = json.loads((tmp_path / "one" / CONFIG).read_text())
    assert config["sites"] == list(SITES)
    again = train_prior(PriorArguments(sites=SITES, windows=1, seed=2), tmp_path / "two")
    np.testing.assert_array_equal(agent.scales, again.scales)
    other = train_prior(PriorArguments(sites=SITES, windows=1, seed=3), tmp_path / "three")
    assert not np.array_equal(agent.scales, other.scales)
    with pytest.raises(ValueError, match="holds an agent already"):
        train_prior(PriorArguments(sites=SITES), tmp_path / "one")


def test_the_pace_is_the_one_of_the_largest_mean_freshness(small, tmp_path, monkeypatch):
    monkeypatch.setattr(prior, "freshness_at", lambda pace, scales, site, seed: -abs(pace - 0.26))
    assert train_prior(PriorArguments(sites=SITES[:1]), tmp_path / "one").pace == 0.25


def test_training_sites_are_the_default_and_test_sites_are_refused():
    assert PriorArguments().sites == traces.sites("train")
    for site in traces.sites("test")[:3]:
        with pytest.raises(ValueError, match="sites"):
            PriorArguments(sites=(site,))


def test_scales_are_used_without_parameters_and_without_a_history():
    _, problem = env_of()
    columns = places_of(problem)
    scales = np.linspace(0.5, 1.5, columns.kinds)
    place = slice(columns.scale, columns.scale + columns.kinds)
    agent, plain = SiteBelief(scales=scales, pace=0.5), BeliefNCIS().first_memory(problem)
    memory = agent.first_memory(problem)
    np.testing.assert_array_equal(memory.pages[:, place], np.tile(scales, (problem.num_pages, 1)))
    assert memory.shared[PACE_MEMORY] == 0.5 * plain.shared[PACE_MEMORY]
    _, revealed = env_of("parameters")
    expected = BeliefNCIS().first_memory(revealed)
    np.testing.assert_array_equal(agent.first_memory(revealed).pages, expected.pages)
    trace = traces.load(traces.find(SITES[0]))
    history = past(trace, 0.0, 100.0, "both")
    learned, reference = (
        kind(history=history, **more).first_memory(problem)
        for kind, more in ((SiteBelief, {"scales": scales, "pace": 1.0}), (BeliefNCIS, {}))
    )
    np.testing.assert_array_equal(learned.pages, reference.pages)


def test_a_stored_agent_acts_as_the_trained_one(small, tmp_path):
    agent = train_prior(PriorArguments(sites=SITES[:1], windows=1), tmp_path / "it")
    env, problem = env_of()
    bound, read = agents.load(tmp_path / "it", env), agents.load(tmp_path / "it")
    a, b = (it.compile(problem, 0, RNG).memory for it in (agent, read))
    np.testing.assert_array_equal(a.pages, b.pages)
    assert 0.0 < play(env, bound, 0).freshness < 1.0
    with pytest.raises(ValueError, match="no pages of a law"):
        agents.load(tmp_path / "it", make_env("CrawlNCIS-v0"))
    _, one_source = env_of(signals="directory")
    with pytest.raises(ValueError, match="two sources of signals"):
        read.compile(one_source, 0, RNG)
    (tmp_path / "it" / PRIOR).write_text(json.dumps({"scales": [0.0], "pace": 1.0}))
    with pytest.raises(ValueError, match="damaged"):
        agents.load(tmp_path / "it")
