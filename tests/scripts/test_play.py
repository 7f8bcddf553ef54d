"""The command with which a person plays."""

from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import policies
from crawl_envs.evaluation import make_env, play
from scripts.play import app, scores
from scripts.present.game import ARGUMENTS, ENV_ID, HEADER, MARGIN, NO_PAGE, SIDE, Game

SMALL = {"num_pages": 5, "bandwidth": 4.0, "horizon": 2.0}
WORDS = [word for name, value in SMALL.items() for word in ("--env-arg", f"{name}={value}")]


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


def middle_of(game, page):
    row, column = divmod(page, game.columns)
    return MARGIN + column * SIDE + SIDE // 2, HEADER + row * SIDE + SIDE // 2


def test_every_page_is_found_where_it_is_drawn():
    game = Game({}, 0)
    width, height = game.size
    assert game.picture().shape == (height, width, 3)
    assert [game.page_at(*middle_of(game, page)) for page in range(12)] == list(range(12))
    assert game.page_at(*middle_of(game, 12)) == NO_PAGE
    assert game.page_at(MARGIN - 1, HEADER) == game.page_at(MARGIN, HEADER - 1) == NO_PAGE
    assert game.page_at(MARGIN + game.columns * SIDE, HEADER) == NO_PAGE


def test_the_picture_does_not_show_which_pages_are_stale():
    game = Game({}, 0)
    for page in range(12):
        game.crawl(page)
    before, pages = game.picture(), game.env.lanes.world.state.pages
    pages["changes"] = pages["changes"] == 0
    np.testing.assert_array_equal(game.picture(), before)
    pages["signals"] += 1
    assert (game.picture() != before).any()


def test_crawls_of_a_policy_by_hand_score_as_the_policy():
    game = Game(SMALL, 7)
    env = make_env(ENV_ID, **{**ARGUMENTS, **SMALL})
    env.reset(seed=7)
    factory = partial(policies.make, "RoundRobin")
    expected = play(env, factory(env), 7)
    for slot in range(game.env.num_slots()):
        assert not game.over
        game.crawl(slot % 5)
    assert game.over
    assert game.env.ledger() == expected == game.ledger_of(factory)
    table = scores(game, {"RoundRobin": factory})
    assert {*table.columns[0].cells} == {"you", "RoundRobin"}
    assert len({*table.columns[1].cells}) == 1


def test_unknown_rates_are_not_shown():
    game = Game({**SMALL, "reveal": "importance"}, 0)
    for page in range(5):
        game.crawl(page)
    assert not any(lines[1] for lines in game._labels())
    assert (game._cells().similarity == 1.0).all()


def run(*words):
    return CliRunner().invoke(app, [*WORDS, *words])


def test_clicks_crawl_until_the_end_and_a_table_follows(pygame, monkeypatch):
    def clicks():
        return [pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=(MARGIN + 5, HEADER + 5), button=1)]

    monkeypatch.setattr(pygame.event, "get", clicks)
    result = run("--policies", "RoundRobin,RandomCrawl")
    assert result.exit_code == 0, result.output
    for name in ("you", "RoundRobin", "RandomCrawl", "accuracy"):
        assert name in result.output


def test_closing_the_window_ends_without_a_table(pygame, monkeypatch):
    monkeypatch.setattr(pygame.event, "get", lambda: [pygame.event.Event(pygame.QUIT)])
    result = run()
    assert result.exit_code == 0
    assert "stopped after 0 of 8 crawls: no comparison" in result.output
