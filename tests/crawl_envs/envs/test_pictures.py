import copy
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

import crawl_envs
from crawl_envs.envs import lettering
from crawl_envs.envs.pictures import (
    FRESH,
    GONE,
    HEADER,
    INK,
    MARGIN,
    MIN_CELL,
    PAPER,
    SIZE,
    STALE,
    UNCHANGED,
    WORST,
    cells_of,
    layout_of,
    picture,
)
from crawl_envs.envs.rendering import History
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Ledger
from tests.crawl_envs.envs.scenes import crawled, scene_of
from tests.environments import EVERY_ID, bare, batch
from tests.worlds import single_of


def cell_of(frame, place, num_pages):
    """The pixels of a cell, in the order of importance."""
    plan = layout_of(num_pages, frame.shape[1::-1])
    row, column = divmod(place, plan.columns)
    top, left = HEADER + row * plan.pitch, MARGIN + column * plan.pitch
    return frame[top : top + plan.pitch, left : left + plan.pitch]


def holds(pixels, colour):
    return int(np.all(pixels == colour, axis=-1).sum())


def drawn(*arguments, **more):
    return picture(scene_of(*arguments, **more), History())


@pytest.mark.parametrize("num_pages", [1, 5, 100, 1000, 20_000])
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


@EVERY_ID
def test_every_family_is_drawn_in_any_size(name):
    env = bare(name, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(2):
        env.step(env.action_space.sample())
        for size in (SIZE, (480, 400), (400, 320)):
            assert env.frame(size=size).shape == (*size[::-1], 3)


def test_too_small_a_size_is_refused():
    env = bare(render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"size must be at least \(400, 320\) pixels, got \(9, 9"):
        env.frame(size=(9, 9))


@pytest.mark.parametrize("num_pages", [1, 2, 5, 7, 30, 100, 999, 5000, 100_000])
def test_cells_are_as_large_as_fit(num_pages):
    plan = layout_of(num_pages, SIZE)
    assert plan.num_cells >= num_pages or plan.pitch == MIN_CELL
    assert MARGIN + plan.columns * plan.pitch <= SIZE[0] - MARGIN
    assert HEADER + plan.rows * plan.pitch == plan.words_top < plan.curve_top < plan.curve_bottom
    assert plan.curve_bottom - plan.curve_top > 80


def test_cells_are_pages_by_importance_coloured_by_freshness():
    frame = drawn([True, False, True], [0.1, 0.9, 0.5], alive=[True, True, False])
    for place, colour in enumerate((STALE, GONE, FRESH)):
        cell = cell_of(frame, place, 3)
        assert holds(cell, colour) > 0.9 * cell[..., 0].size


BETWEEN = np.rint((np.array(FRESH) + STALE) / 2)


@pytest.mark.parametrize(
    ("similarity", "colour"), [(0.5, BETWEEN), (0.0, STALE), (-1.5, WORST), (-8.0, WORST)]
)
def test_pages_are_coloured_by_similarity_and_darker_by_their_penalty(similarity, colour):
    cell = cell_of(drawn([False], similarity=[similarity]), 0, 1)
    assert holds(cell, colour) > 0.9 * cell[..., 0].size


def test_a_page_shows_the_penalty_of_its_changes():
    env = gym.make("CrawlHarmonic-v0", num_pages=8, bandwidth=8.0, horizon=4.0).unwrapped
    env.reset(seed=0)
    env.step(np.zeros(8))
    changes = env.lanes.world.state.pages[0]["changes"]
    assert changes.max() > 1
    expected = [sum(1.0 / part for part in range(1, count + 1)) for count in changes]
    np.testing.assert_allclose(1.0 - env.scene().similarity, expected)


def test_crawled_pages_have_a_frame_by_what_was_found():
    frame = drawn([True] * 3, log=crawled([1, 2], [True, False]))
    corners = [tuple(cell_of(frame, place, 3)[0, 0].tolist()) for place in range(3)]
    assert corners == [PAPER, INK, UNCHANGED]


def test_signals_are_dots_that_tell_true_from_false_and_new_from_old():
    log = crawled([], [], arrived=[2, 3])
    frame = drawn([True, False, True, False, True], signals=[1, 1, 1, 1, 0], log=log)
    middle = [
        cell_of(frame, place, 5)[30:90, 30:90] for place in range(5)
    ]  # without the number of the page
    white, black = ([holds(cell, colour) for cell in middle] for colour in (PAPER, INK))
    assert white[0] * 3 < white[2]
    assert black[1] * 3 < black[3]
    assert white[0] > 100 < black[1]
    assert [white[1], white[3], white[4], black[0], black[2], black[4]] == [0] * 6


def test_signals_answered_by_a_crawl_are_gone():
    content = cells_of(scene_of([True], signals=0, log=crawled([0], [True], arrived=[0])), 1)[1]
    assert content.crawled == [2]
    assert content.right == content.wrong == [0]


def test_the_signals_of_the_policy_do_not_tell_true_from_false():
    noisy = bare(num_pages=50, bandwidth=5.0, horizon=5.0, render_mode="rgb_array")
    noisy.reset(seed=0)
    for _ in range(20):
        noisy.step(0)
    scene_cells = cells_of(noisy.scene(), 50)[1]
    signalled = noisy.tracker().signals > 0
    stale = ~noisy.lanes.fresh(0)
    assert np.count_nonzero(scene_cells.right) == np.count_nonzero(signalled & stale) > 0
    assert np.count_nonzero(scene_cells.wrong) == np.count_nonzero(signalled & ~stale) > 0


def test_signals_of_any_source_are_dots():
    env = bare(num_pages=30, instance="sources", bandwidth=3.0, horizon=5.0, render_mode="ansi")
    env.reset(seed=0)
    for _ in range(5):
        env.step(0)
    signals = env.tracker().signals
    assert signals.shape == (2, 30)
    content = cells_of(env.scene(), 30)[1]
    assert np.count_nonzero(content.right + content.wrong) == np.count_nonzero(signals.sum(0)) > 0


def test_cells_keep_totals_when_they_stand_for_several_pages():
    rng = np.random.default_rng(0)
    importance, fresh, alive = rng.random(1003), rng.random(1003) < 0.3, rng.random(1003) < 0.8
    cell, content = cells_of(scene_of(fresh, importance, alive=alive), 125)
    pages = np.bincount(cell)
    assert pages.max() - pages.min() <= 1
    assert content.alive @ pages == pytest.approx(alive.sum())
    assert content.similarity @ (content.alive * pages) == pytest.approx((fresh & alive).sum())
    order = np.argsort(cell, kind="stable")
    assert importance[order][:8].min() > importance[order][-8:].max()
    few_signals = np.arange(1003) == 5
    few = crawled([0, 1], [False, True], arrived=[5])
    marked = cells_of(scene_of(fresh, importance, log=few, signals=few_signals), 125)[1]
    assert marked.crawled[cell[0]] == 1
    assert marked.crawled[cell[1]] == 2
    assert (marked.right + marked.wrong)[cell[5]] == 2
    assert np.count_nonzero(marked.right + marked.wrong) == 1


def test_the_curve_is_as_high_as_the_freshness():
    history, plan = History(), layout_of(2, SIZE)
    scene = scene_of([True, False])
    history.record(1, Ledger(1.0, 1.0, 1.0, *[0] * 7))
    history.record(1, Ledger(2.0, 1.0, 2.0, *[0] * 7))
    frame = picture(scene, history)
    area = frame[plan.curve_top : plan.curve_bottom + 1, 50:784]
    height, second = area.shape[0] - 1, area.shape[1] // 10
    blue = np.all(area == FRESH, axis=-1)
    tops = [int(np.flatnonzero(blue[:, column])[0]) for column in (second // 2, second * 3 // 2)]
    assert tops == [0, height - 1]
    assert not blue[:, 2 * second + 1 :].any()


@pytest.mark.parametrize(("penalty", "share"), [(1.0, 0.5), (3.0, 1.0)])
def test_the_curve_of_a_penalty_is_half_as_high_and_ends_at_the_top(penalty, share):
    history, plan = History(), layout_of(1, SIZE)
    ledger = Ledger(10.0, 0.0, 10.0, *[0] * 7, penalty_time=10.0 * penalty)
    history.record(1, ledger)
    frame = picture(scene_of([False])._replace(ledger=ledger), history)
    column = np.all(frame[plan.curve_top : plan.curve_bottom + 1, 56] == FRESH, axis=-1)
    height = column.size - 1
    assert np.flatnonzero(column)[0] == pytest.approx((1.0 - share) * height, abs=2)


def test_pictures_of_edge_cases():
    empty = scene_of([True])._replace(ledger=Ledger(*[0] * 10))
    assert picture(empty, History()).any()
    assert drawn([True, False], np.zeros(2)).any()
    assert drawn([False], alive=[False]).any()


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
    assert holds(cell_of(env.render(), 2, 3), GONE) > 1000


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_vectors_render_a_tuple_of_pictures(mode):
    more = {} if mode == "native" else {"vectorization_mode": "sync"}
    env = batch(3, render_mode="rgb_array", **more)
    env.reset(seed=0)
    frames = env.render()
    assert isinstance(frames, tuple)
    one = bare(render_mode="rgb_array")
    for lane, frame in enumerate(frames):
        one.reset(seed=lane)
        np.testing.assert_array_equal(frame, one.render())


def test_a_missing_pillow_is_named(monkeypatch):
    lettering._font.cache_clear()
    lettering.lettered.cache_clear()
    layout_of.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DependencyNotInstalled, match=r"Pillow.*crawl-envs\[video\]"):
        drawn([True] * 77)


def test_pictures_need_no_matplotlib():
    program = (
        "import sys, gymnasium, crawl_envs\n"
        "env = gymnasium.make('CrawlNCIS-v0', render_mode='rgb_array')\n"
        "env.reset(seed=0); env.render()\n"
        "assert 'PIL' in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
