import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from crawl_envs.envs.rendering import MAX_POINTS, History, text
from crawl_envs.types import FragmentLedger, Ledger
from tests.crawl_envs.envs.scenes import crawled, scene_of
from tests.environments import bare


def test_text_tells_the_state_of_the_episode():
    log = crawled([3, 1], [True, False])
    lines = text(scene_of([False, True, False, True], log=log)).splitlines()
    assert lines[0] == "[######........................] time 2.00 of 10   crawls 19 (budget 100)"
    assert lines[1] == "so far: freshness 0.750   accuracy 0.800 (4 of 5 requests)"
    assert lines[2] == "fresh now: 2 of 4 pages (40% by importance)"
    assert lines[3] == "crawled page 3 after 1.5, 2 signals: it had changed"
    assert lines[4] == "crawled page 1 after 1.5, 2 signals: it had not changed"
    assert [line.split()[0] for line in lines[7:]] == ["0", "2"]


def test_text_tells_signals_of_several_sources_apart():
    env = bare(instance="sources", bandwidth=1.0, horizon=10.0, render_mode="ansi")
    env.reset(seed=0)
    for page in (0, 1, 0, 1, 2):
        env.step(page)
    lines = env.render().splitlines()
    first, second = env.last_log().signals[:, 0]
    assert first + second > 0
    assert f", {first}+{second} signal" in lines[3]
    stale = np.flatnonzero(~env.lanes.fresh(0))
    words = {line.split()[0]: line.split()[-1] for line in lines[6:11]}
    for page in map(int, words):
        assert page in stale
        first, second = env.tracker().signals[:, page]
        assert words[str(page)] == f"{first}+{second}"
    assert words


def test_text_is_short_however_many_pages_and_crawls():
    log = crawled(range(500), [True] * 500)
    content = text(scene_of(np.zeros(5000), log=log))
    assert "500 crawls in all, 500 had changed" in content
    assert "and 4995 more" in content
    assert len(content.splitlines()) < 20


def test_text_of_edge_cases():
    assert "no page is stale" in text(scene_of([True]))
    assert "nothing crawled yet" in text(scene_of([True]))
    assert "fresh now: 0 of 0 pages\n" in text(scene_of([False], alive=[False]))
    empty = scene_of([True])._replace(ledger=Ledger(*[0] * 10))
    assert "freshness -   no requests" in text(empty)


def test_history_is_the_mean_freshness_between_renderings():
    env = bare(num_pages=5, bandwidth=5.0, horizon=10.0, render_mode="rgb_array")
    env.reset(seed=0)
    history, ledgers = History(), []
    for step in range(20):
        env.step(step % 5)
        if step % 3 == 1:
            history.record(1, env.ledger())
            ledgers.append(env.ledger())
    first, last = ledgers[0], ledgers[-1]
    between = history.freshness(np.array([first.time, ledgers[1].time]))
    fresh, alive = (
        getattr(ledgers[1], n) - getattr(first, n) for n in ("fresh_time", "alive_time")
    )
    assert between == pytest.approx([fresh / alive])
    assert history.freshness(np.array([0.0, last.time])) == pytest.approx([last.freshness])
    assert np.isnan(history.freshness(np.array([last.time, last.time + 1.0]))).all()


def test_history_keeps_its_means_when_it_drops_points():
    history = History()
    for number in range(1, MAX_POINTS * 3):
        fresh = 0.5 * number + 0.1 * (number % 2)
        history.record(1, Ledger(float(number), fresh, float(number), *[0] * 7))
    assert len(history._points) <= MAX_POINTS
    freshness = history.freshness(np.linspace(0.0, number, 11))
    np.testing.assert_allclose(freshness, 0.5, atol=1e-3)


def test_history_of_fragments_is_similarity():
    history = History()
    history.record(1, FragmentLedger(2.0, 0.0, 4.0, *[0] * 7, divergence_time=1.0))
    assert history.freshness(np.array([0.0, 2.0])) == [0.75]


def test_history_restarts_with_an_episode_and_when_time_goes_back():
    history, ledger = History(), scene_of([True]).ledger
    early = Ledger(1.0, 0.5, 1.0, 0, 0, 0, 0, 0, 0, 0)
    for episode, one, mean in ((1, ledger, 0.75), (2, ledger, 0.75), (2, early, 0.5)):
        history.record(episode, one)
        history.record(episode, one)
        assert history.freshness(np.array([0.0, one.time])) == [mean]


def test_rendering_needs_a_reset():
    for mode in ("ansi", "rgb_array"):
        env = gym.make("CrawlNCIS-v0", render_mode=mode)
        with pytest.raises(ResetNeeded):
            env.unwrapped.render()


def test_rendering_without_a_mode_warns():
    env = gym.make("CrawlNCIS-v0")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.unwrapped.render() is None
