"""The command that films policies."""

import gymnasium
import numpy as np
import pytest
from PIL import Image

from agents.catalog import SHIPPED
from crawl_envs import FAMILIES
from scripts.film import app
from scripts.present.films import (
    FILMS,
    HEADING,
    LAST,
    MAX_FRAMES,
    PANEL,
    film_of,
    frames_of,
    side_by_side,
)
from tests.docs.pages import ROOT
from tests.scripts import commands
from tests.scripts.commands import SMALL, done, refused


def run(*arguments, out):
    return commands.run(app, *arguments, out=out)


def test_every_family_has_a_film():
    assert {film.env_id for film in FILMS} == set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_films_of_the_documentation_are_small(name):
    file = ROOT / "docs" / "films" / f"{name}.gif"
    assert file.stat().st_size < 600_000
    with Image.open(file) as film:
        assert film.size == (2 * PANEL[0], HEADING + PANEL[1])
        assert 80 <= film.n_frames <= MAX_FRAMES


def test_a_film_is_written_again_byte_by_byte(tmp_path):
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        result = done(run("CrawlNCIS-v0", *SMALL, out=folder))
        assert "RoundRobin and GreedyNCIS: 20 frames" in result.stdout
    one, two = ((folder / "CrawlNCIS-v0.gif").read_bytes() for folder in folders)
    assert one == two
    with Image.open(folders[0] / "CrawlNCIS-v0.gif") as film:
        durations = []
        for frame in range(film.n_frames):
            film.seek(frame)
            durations.append(film.info["duration"])
    assert sum(durations) == 19 * 100 + LAST


def test_both_policies_meet_the_same_events():
    arguments = {"num_pages": 5, "bandwidth": 5.0, "horizon": 4.0}
    twins = ("GreedyNCIS", "GreedyNCIS:delay_window=0.0")
    pictures = list(frames_of(film_of("CrawlNCIS-v0", twins, arguments), seed=1))
    assert len(pictures) == 20
    for picture in pictures:
        below = picture[HEADING:]
        np.testing.assert_array_equal(below[:, : PANEL[0]], below[:, PANEL[0] :])
    others = list(frames_of(film_of("CrawlNCIS-v0", twins, arguments), seed=2))
    assert not np.array_equal(pictures[-1], others[-1])


def test_agents_are_filmed_by_name_and_folder():
    """Both are the same agent, so they play the same episode."""
    arguments = {"num_pages": 5, "bandwidth": 5.0, "horizon": 4.0}
    twins = ("noisy-index", str(SHIPPED / "noisy-index"))
    for frame in frames_of(film_of("CrawlNCIS-v0", twins, arguments), seed=1):
        left, right = np.split(frame[HEADING:], 2, axis=1)
        np.testing.assert_array_equal(left, right)


def test_long_episodes_are_thinned_and_end_at_their_end():
    film = film_of("CrawlNCIS-v0", (), {"num_pages": 5, "bandwidth": 50.0, "horizon": 5.0})
    assert len(list(frames_of(film, seed=0))) == -(-250 // 3)


def test_policies_and_presets_can_be_named(tmp_path):
    chosen = ["--policies", "Greedy,RoundRobin"]
    done(run("CrawlNCIS-Noisy-10-v1", *chosen, "--env-arg", "horizon=1", out=tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["CrawlNCIS-Noisy-10-v1.gif"]


def test_presets_have_the_policies_of_their_family_and_prefixes_change_nothing():
    noisy = film_of("CrawlNCIS-Noisy-10-v1", (), {})
    assert noisy == ("CrawlNCIS-Noisy-10-v1", {}, ("RoundRobin", "GreedyNCIS"))
    assert film_of("crawl_envs:CrawlNCIS-v0", (), {})[1:] == FILMS[0][1:]


def test_headings_are_not_cut_off():
    below = np.zeros((0, PANEL[0], 3), np.uint8)
    heading = side_by_side(["GreedyNCIS", "jpqy_Q"], [below, below])
    assert heading.shape == (HEADING, 2 * PANEL[0], 3)
    for half in np.split(heading, 2, axis=1):
        assert (half < 255).any()
        assert (half[[0, -1]] == 255).all()


def test_an_environment_of_ones_own_needs_policies(tmp_path, monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "OwnFilm-v0", gymnasium.spec("CrawlNCIS-v0"))
    words = "--policies must be two different ones for OwnFilm-v0", "RoundRobin,Greedy"
    refused(run("OwnFilm-v0", out=tmp_path), *words)
    assert not list(tmp_path.iterdir())
