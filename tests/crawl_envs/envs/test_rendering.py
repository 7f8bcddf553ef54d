import copy
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded

import crawl_envs
from crawl_envs.envs.rendering import MOST_BARS, History, Scene, bars, picture, text
from crawl_envs.sim.tape import Tape
from crawl_envs.types import CrawlLog, Ledger, Tracker
from tests.environments import bare
from tests.worlds import single_of

BLUE, ORANGE, GREY = (0, 114, 178), (230, 159, 0), (217, 217, 217)


def crawled(pages, changed, elapsed=1.5, signals=2):
    count = len(pages)
    nothing = np.zeros(0, np.int64)
    return CrawlLog(
        page=np.array(pages, np.int64),
        time=np.ones(count),
        elapsed=np.full(count, elapsed),
        signals=np.full(count, signals, np.int64),
        changed=np.array(changed, np.bool_),
        signal_page=nothing,
        signal_time=np.zeros(0),
        signal_source=nothing,
        probe=np.zeros(count, np.bool_),
    )


def scene_of(fresh, importance=None, *, log=None, alive=None, elapsed=0.5):
    fresh = np.array(fresh, np.bool_)
    count = fresh.size
    importance = np.arange(count, 0, -1.0) if importance is None else importance
    instance = crawl_envs.Instance(importance, 1.0, bandwidth=10.0)
    tracker = Tracker(
        problem=instance.problem(),
        episode=1,
        time=2.0,
        elapsed=np.full(count, elapsed),
        signals=np.zeros(count, np.int64),
        changed=np.zeros(count, np.int8),
        alive=np.ones(count, np.bool_) if alive is None else np.array(alive),
        probed=np.full(count, -1, np.int8),
    )
    ledger = Ledger(2.0, 3.0, 4.0, requests=5, hits=4, crawls=19, wasted=0, changes=7,
                    changes_found=3, signals=6)  # fmt: skip
    log = crawled([], []) if log is None else log
    return Scene(tracker, instance, ledger, log, fresh, horizon=10.0, budget=100.0)


def holds(frame, colour):
    return int(np.all(np.abs(frame.astype(int) - colour) <= 3, axis=2).sum())


@pytest.mark.parametrize("num_pages", [1, 5, 100, 2000])
def test_pictures_are_fresh_rgb_arrays_of_one_size(num_pages):
    env = gym.make(
        "CrawlNCIS-v0", num_pages=num_pages, bandwidth=float(num_pages), render_mode="rgb_array"
    )
    env.reset(seed=1)
    env.step(0)
    first, second = env.render(), env.render()
    assert first.dtype == np.uint8
    assert first.shape == (600, 800, 3)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, second)


def test_pictures_are_coloured_by_freshness():
    half = picture(scene_of([True, False], np.ones(2)), History())
    assert holds(half, BLUE) > 10_000
    assert holds(half, BLUE) == pytest.approx(holds(half, ORANGE), rel=0.1)
    stale = picture(scene_of([False, False], np.ones(2)), History())
    assert holds(stale, BLUE) < 500 < holds(stale, ORANGE)
    gone = picture(scene_of([True, True], np.ones(2), alive=[True, False]), History())
    assert holds(gone, BLUE) == pytest.approx(holds(gone, GREY), rel=0.1)


def test_rendering_opens_no_pyplot_figure():
    sys.modules.pop("matplotlib.pyplot", None)
    picture(scene_of([True, False]), History())
    assert "matplotlib.pyplot" not in sys.modules


def test_bars_keep_totals_when_they_stand_for_several_pages():
    rng = np.random.default_rng(0)
    importance, fresh = rng.random(1003), rng.random(1003) < 0.3
    content = bars(scene_of(fresh, importance))
    assert content.pages.size == MOST_BARS
    assert content.pages.sum() == 1003
    assert content.pages.max() - content.pages.min() <= 1
    assert content.fresh @ content.pages == pytest.approx(importance[fresh].sum())
    assert content.stale @ content.pages == pytest.approx(importance[~fresh].sum())
    assert np.all(np.diff(content.importance) < 0.0)
    np.testing.assert_allclose(content.elapsed, 0.5)


def test_bars_are_pages_by_importance_where_they_fit():
    content = bars(scene_of([True, False, True], [0.1, 0.9, 0.5]))
    np.testing.assert_array_equal(content.bar, [2, 0, 1])
    np.testing.assert_allclose(content.stale, [0.9, 0.0, 0.0])


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
    assert picture(empty, History()).any()
    assert picture(scene_of([True, False], np.zeros(2)), History()).any()


def test_history_is_the_mean_freshness_between_renderings():
    env = bare(num_pages=5, bandwidth=5.0, horizon=10.0, render_mode="rgb_array")
    env.reset(seed=0)
    history = History()
    for step in range(20):
        env.step(step % 5)
        if step % 3 == 1:
            history.record(1, env.ledger())
    times, freshness = history.curve()
    assert len(freshness) == 7
    assert times[-1] == env.ledger().time
    mean = freshness @ np.diff(times) / times[-1]
    assert mean == pytest.approx(env.ledger().freshness)


def test_history_restarts_with_an_episode_and_when_time_goes_back():
    history, ledger = History(), scene_of([True]).ledger
    early = Ledger(1.0, 0.5, 1.0, 0, 0, 0, 0, 0, 0, 0)
    for episode, one, points in (
        (1, ledger, ([0.0, 2.0], [0.75])),
        (1, ledger, ([0.0, 2.0], [0.75])),
        (2, ledger, ([0.0, 2.0], [0.75])),
        (2, early, ([0.0, 1.0], [0.5])),
    ):
        history.record(episode, one)
        assert tuple(array.tolist() for array in history.curve()) == points


def test_rendering_changes_nothing_and_survives_a_copy():
    arguments = {"num_pages": 6, "bandwidth": 6.0}
    shown = gym.make("CrawlNCIS-v0", render_mode="rgb_array", **arguments).unwrapped
    hidden = gym.make("CrawlNCIS-v0", **arguments).unwrapped
    shown.reset(seed=4)
    hidden.reset(seed=4)
    for page in range(6):
        shown.render()
        np.testing.assert_array_equal(shown.step(page)[0], hidden.step(page)[0])
    np.testing.assert_array_equal(copy.deepcopy(shown).render(), shown.render())


def test_pages_that_do_not_exist_are_drawn_and_not_counted():
    tape = Tape.of_events(3, changes=([0.5], [1]), alive=[True, True, False])
    env = single_of(crawl_envs.Instance(np.ones(3), 0.0, bandwidth=1.0), tape=tape)
    env.reset(seed=0)
    env.render_mode = "ansi"
    assert "fresh now: 1 of 2 pages" in env.render()
    env.render_mode = "rgb_array"
    assert holds(env.render(), GREY) > 1000


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


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DependencyNotInstalled, match="matplotlib"):
        picture(scene_of([True]), History())


def test_human_mode_wraps_the_pictures():
    with pytest.warns(UserWarning, match="HumanRendering"):
        env = gym.make("CrawlNCIS-v0", render_mode="human", disable_env_checker=True)
    assert env.unwrapped.render_mode == "rgb_array"
    assert env.render_mode == "human"
