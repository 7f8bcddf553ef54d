"""Make films of two policies side by side on the same events, as a GIF of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import track

from crawl_envs import PRESETS
from crawl_envs.envs.lettering import write
from crawl_envs.evaluation import PolicyFactory
from scripts.study.entrants import candidate_of
from scripts.study.settings import env_with

PANEL, HEADING = (480, 400), 30
"""Width and height of a policy's picture, and height of the name above it, in pixels."""
MAX_FRAMES, FRAME, LAST = 100, 100, 2000
"""Largest number of frames, and the milliseconds of a frame and of the last one."""
COLOURS = 48
INK, PAPER = (34, 34, 34), 255


class Film(NamedTuple):
    """An environment's id and arguments, and the names of two policies to compare in it."""

    env_id: str
    arguments: dict[str, Any]
    policies: tuple[str, ...]


SMALL = {"num_pages": 40, "bandwidth": 10.0, "horizon": 10.0}
FILMS = (
    Film("CrawlNCIS-v0", {**SMALL, "instance": "noisy"}, ("RoundRobin", "GreedyNCIS")),
    Film("CrawlHarmonic-v0", {**SMALL, "epoch": 0.1}, ("UniformCrawl", "LambdaCrawl")),
    Film(
        "CrawlLongevity-v0",
        {"num_pages": 40, "bandwidth": 0.5, "horizon": 200.0, "instance": "random"},
        ("ChangeRateCrawl", "FragmentStatic"),
    ),
    Film(
        "CrawlOffers-v1",
        {"num_pages": 300, "bandwidth": 10.0, "horizon": 60.0},
        ("UniformCrawl", "ContextualBandit"),
    ),
    Film(
        "CrawlTrace-v0",
        {"window": [100.0, 150.0], "signals": "directory"},
        ("RoundRobin", "GreedyNCIS"),
    ),
    Film(
        "CrawlSites-v0",
        {"split": "garden-handbook", "num_pages": 40, "days": 25.0, "days_per_crawl": 10.0},
        ("RoundRobin", "GreedyNCIS"),
    ),
)
"""One film per family, of about 100 frames; the second policy is visibly better."""


def film_of(env_id: str, policies: Sequence[str], arguments: dict[str, Any]) -> Film:
    """Return the film of an environment; given policies and arguments replace those of ``FILMS``.

    A preset has the policies of its family.

    Raises:
        ValueError: policies are not two different ones, or missing for an id without a film.
    """
    films = {film.env_id: film for film in FILMS}
    name = env_id.rpartition(":")[2]
    film = films.get(name, Film(env_id, {}, ()))
    pair = tuple(policies) or film.policies
    if name in PRESETS and not pair:
        pair = films[PRESETS[name][0]].policies
    if not pair:
        env_with(env_id, arguments).close()  # reports an unknown id
        raise ValueError(
            f"--policies must be two different ones for {env_id}, such as RoundRobin,Greedy, got "
            f"none; only {', '.join(films)} and their presets have a default"
        )
    if len(pair) != 2:
        raise ValueError(
            f"--policies must be two different ones for {env_id}, got {', '.join(pair)}"
        )
    return Film(env_id, {**film.arguments, **arguments}, pair)


def frames_of(film: Film, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Yield at most MAX_FRAMES pictures of an episode, with both policies side by side."""
    panels = [panels_of(film, seed, candidate_of(name).factory) for name in film.policies]
    console = Console(stderr=True)
    frames = zip(*panels, strict=True)
    for pictures in track(frames, film.env_id, MAX_FRAMES, console=console, transient=True):
        yield side_by_side(film.policies, pictures)


def panels_of(film: Film, seed: int, factory: PolicyFactory) -> Iterator[NDArray[np.uint8]]:
    """Yield pictures of one policy's episode at equal distances in time; the last is its end."""
    env: Any = env_with(film.env_id, {"render_mode": "rgb_array", **film.arguments})
    observation, _ = env.reset(seed=seed)
    policy, core = factory(env), env.unwrapped
    steps = core.lanes.steps_of(core.instance)
    for steps_left in reversed(range(steps)):
        observation = env.step(policy.predict(observation)[0])[0]
        if steps_left % -(-steps // MAX_FRAMES) == 0:
            yield core.frame(size=PANEL)


def side_by_side(names: Sequence[str], panels: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return one picture made of pictures of equal size, each below its name."""
    headings = np.full((HEADING, PANEL[0] * len(panels), 3), PAPER, np.uint8)
    for place, name in enumerate(names):
        write(headings, name, (place * PANEL[0] + 16, 4), INK, size=20)
    return np.concatenate([headings, np.concatenate(panels, axis=1)])


def save(frames: Sequence[NDArray[np.uint8]], path: Path) -> None:
    """Write frames as a repeating GIF, with a palette from the first, middle and last frame."""
    sample = np.concatenate([frames[0], frames[len(frames) // 2], frames[-1]])
    palette = Image.fromarray(sample).quantize(COLOURS)
    images = [
        Image.fromarray(f).quantize(palette=palette, dither=Image.Dither.NONE) for f in frames
    ]
    durations = [FRAME] * (len(images) - 1) + [LAST]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)
