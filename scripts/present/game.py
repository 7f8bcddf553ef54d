"""Let a person play an episode in a window: a click crawls a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.envs.lettering import write
from crawl_envs.envs.pictures import INK, PAPER, Cells, draw_cells
from crawl_envs.envs.window import Window
from crawl_envs.evaluation import PolicyFactory, make_env, play
from crawl_envs.types import Ledger
from scripts.study.settings import env_with

ENV_ID = "CrawlNCIS-v0"
ARGUMENTS: Mapping[str, Any] = {
    "num_pages": 12,
    "bandwidth": 4.0,
    "horizon": 15.0,
    "instance": "noisy",
}
"""The episode, of 60 crawls; a page changes every second crawl or less often."""
MAX_PAGES = 40
SIDE, HEADER, MARGIN = 120, 96, 16
"""Width of a cell, height of the text above the cells, and width of the border, in pixels."""
FRAMES_PER_SECOND = 30
NO_PAGE = -1
MIN_WIDTH = 600


class Game:
    """An episode that a person plays.

    Args:
        arguments: arguments of the environment, which replace ``ARGUMENTS``.
        seed: seed of the events.

    Raises:
        ValueError: there are more than MAX_PAGES pages, or an argument is invalid.
    """

    def __init__(self, arguments: Mapping[str, Any], seed: int) -> None:
        self.arguments = {**ARGUMENTS, **arguments}
        env: Any = env_with(ENV_ID, self.arguments)
        self.env = env.unwrapped
        self.seed = seed
        self.env.reset(seed=seed)
        self.num_pages = self.env.instance.num_pages
        if self.env.action_form != "page":
            raise ValueError(f"action must be 'page', got {self.env.action_form!r}")
        if self.num_pages > MAX_PAGES:
            raise ValueError(f"num_pages must be <= {MAX_PAGES} in play, got {self.num_pages}")
        self.columns = math.ceil(math.sqrt(1.5 * self.num_pages))
        self.over = False

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, in pixels."""
        rows = -(-self.num_pages // self.columns)
        return max(self.columns * SIDE + 2 * MARGIN, MIN_WIDTH), HEADER + rows * SIDE + MARGIN

    def page_at(self, x: int, y: int) -> int:
        """Return the page at a point (x, y) of the picture, or NO_PAGE."""
        column, row = (x - MARGIN) // SIDE, (y - HEADER) // SIDE
        page = row * self.columns + column
        inside = 0 <= column < self.columns and row >= 0 and page < self.num_pages
        return page if inside else NO_PAGE

    def crawl(self, page: int) -> None:
        """Crawl a page, and let time pass until the next crawl."""
        _, _, terminated, truncated, _ = self.env.step(page)
        self.over = terminated or truncated

    def picture(self) -> NDArray[np.uint8]:
        """Return a picture of the observed state, (H, W, 3) uint8.

        A cell turns from blue to orange with the probability of a change since the last crawl, by
        the change rate alone if it is known. A dot is a signal since that crawl. A frame is the
        last crawl: black if the page had changed.
        """
        width, height = self.size
        drawn: NDArray[np.uint8] = np.full((height, width, 3), PAPER, np.uint8)
        for place, words in enumerate(self._words()):
            write(drawn, words, (MARGIN, 8 + 28 * place), INK, size=17 - 2 * (place > 0))
        rows = -(-self.num_pages // self.columns)
        cells = self._cells()
        grid = draw_cells(cells, SIDE, self.columns, rows)
        for page, lines in enumerate(self._labels()):
            row, column = divmod(page, self.columns)
            x0, y0 = column * SIDE, row * SIDE
            ink = PAPER if cells.similarity[page] > 0.5 else INK
            for words, y in zip(lines, (3, 17, SIDE - 20), strict=False):
                write(grid, words, (x0 + 7, y0 + y), ink, size=12)
            write(grid, lines[-1], (x0 + SIDE // 2, y0 + SIDE // 2 - 9), PAPER, align=0.5)
        drawn[HEADER : HEADER + grid.shape[0], MARGIN : MARGIN + grid.shape[1]] = grid
        return drawn

    def _words(self) -> list[str]:
        """Return the lines of text above the cells of pages."""
        ledger = self.env.ledger()
        crawls_left = self.env.num_slots() - ledger.crawls
        return [
            f"time {ledger.time:.2f} of {self.env.lanes.horizon:g}   {crawls_left} crawls left",
            "click the page to crawl; black frame: it had changed, pink: it had not",
            "orange: likely changed, by its rate alone   dot: a signal, which may mislead",
        ]

    def _cells(self) -> Cells:
        scene, problem = self.env.scene(), self.env.problem
        tracker, log = scene.tracker, scene.log
        crawled = np.zeros(self.num_pages, np.int64)
        crawled[log.page] = 1 + log.changed
        signals = np.atleast_2d(tracker.signals).sum(0)
        new = np.isin(np.arange(self.num_pages), log.signal_page)
        rate = 0.0 if problem.change_rate is None else problem.change_rate
        return Cells(
            alive=tracker.alive.astype(np.float64),
            similarity=np.exp(-rate * tracker.elapsed),
            crawled=crawled,
            right=np.minimum(signals, 1) * (1 + new),
            wrong=np.zeros(self.num_pages, np.int64),
        )

    def _labels(self) -> list[tuple[str, str, str, str]]:
        """Return the text lines of each page's cell: three, and its number of signals above 1."""
        tracker, problem = self.env.scene().tracker, self.env.problem
        share = problem.importance / problem.importance.sum()
        signals = np.atleast_2d(tracker.signals).sum(0)
        rate = problem.change_rate
        return [
            (
                f"{share[page]:.0%} of requests",
                "" if rate is None else f"changes every {1.0 / rate[page]:.2g}",
                f"crawled {tracker.elapsed[page]:.2g} ago",
                f"{signals[page]}" if signals[page] > 1 else "",
            )
            for page in range(self.num_pages)
        ]

    def ledger_of(self, factory: PolicyFactory) -> Ledger:
        """Return the totals of an episode that a policy plays on the person's events."""
        env = make_env(ENV_ID, **self.arguments)
        env.reset(seed=self.seed)
        return play(env, factory(env), self.seed)


def show(game: Game) -> None:
    """Show the window until the episode ends, Escape is pressed, or it is closed.

    Raises:
        gymnasium.error.DependencyNotInstalled: pygame is missing.
    """
    window = Window()
    window.show(game.picture(), FRAMES_PER_SECOND)
    import pygame

    try:
        while not game.over:
            for event in pygame.event.get():
                escape = event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE
                if event.type == pygame.QUIT or escape:
                    return
                if event.type == pygame.MOUSEBUTTONDOWN:
                    page = game.page_at(*event.pos)
                    if page != NO_PAGE and not game.over:
                        game.crawl(page)
            window.show(game.picture(), FRAMES_PER_SECOND)
    finally:
        window.close()
