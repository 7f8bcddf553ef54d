"""The picture of an episode, drawn with arrays.

Pages are cells in rows, the most important first: blue where the held copy is current, orange where
the page has changed since. Pages crawled in the last step have a frame, black if they had changed.
A dot is a change signal since the last crawl, large if it arrived in the last step: black where the
page has changed since that crawl, white where the copy is current and the signal misleads. Trackers
and policies cannot distinguish them. If there are more pages than cells, a cell is several pages of
similar importance. Below is the freshness over the episode. Where a penalty is counted, orange is
darker the larger the penalty of a page is, and the penalty is below.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from crawl_envs.envs.lettering import lettered, write
from crawl_envs.envs.rendering import History, PictureArray, Scene, spent, standing
from crawl_envs.types import BoolArray, FloatArray, IntArray

SIZE = (800, 600)
"""Width and height of a picture, in pixels."""
MIN_SIZE = (400, 320)

# Okabe and Ito's colours, distinguishable with red-green colour blindness.
Colour: TypeAlias = tuple[int, int, int]
FRESH, STALE, UNCHANGED = (0, 114, 178), (230, 159, 0), (204, 121, 167)
PAPER, INK, SHADE = (255, 255, 255), (34, 34, 34), (191, 219, 236)
WORST, MAX_PENALTY = (190, 60, 0), 2.5
"""Colour of a page with this penalty or more; orange is a penalty of 1."""
GONE, FAINT = (217, 217, 217), (110, 110, 110)

MARGIN, HEADER = 16, 60
"""Width of the border, and height of the lines about time, budget and score."""
CURVE, AXIS_WIDTH = 0.17, 34
"""Share of the height that the curve has, and width of the numbers at its axis."""
MIN_CELL, MAX_CELL, NUMBERED_CELL = 5, 120, 40
"""Widths of cells with their gaps: the least, the largest, the least with the number of a page."""
LINE, LEGEND_CELL = 20, 18
"""Height of a line of words, and the width of a cell of the legend."""

LEGEND = (
    ("fresh", {"similarity": 1.0}),
    ("stale", {"similarity": 0.0}),
    ("not there", {"alive": 0.0}),
    ("crawled, changed", {"similarity": 1.0, "crawled": 2}),
    ("crawled, unchanged", {"similarity": 1.0, "crawled": 1}),
    ("signal, changed", {"similarity": 0.0, "right": 1}),
    ("signal, unchanged", {"similarity": 1.0, "wrong": 1}),
    ("new signal", {"similarity": 0.0, "right": 2}),
)
"""Words of the legend, and fields of the cell next to them."""


class Cells(NamedTuple):
    """What the cells of a picture show; each array has one entry per cell.

    Attributes:
        alive: share of pages that exist, in [0, 1].
        similarity: share of the copies of these pages that is right, or 1 minus their penalty.
        crawled: 2 if a page was crawled that had changed, 1 if one that had not, else 0.
        right: signals of changed pages: 2 if one just arrived, 1 if one is older, else 0.
        wrong: signals of pages that have not changed, in the same numbers.
    """

    alive: FloatArray
    similarity: FloatArray
    crawled: IntArray
    right: IntArray
    wrong: IntArray


class Layout(NamedTuple):
    """The places of a picture's parts in pixels: cells of size ``pitch``, words, and the curve."""

    width: int
    height: int
    pitch: int
    columns: int
    rows: int
    words_top: int
    curve_top: int
    curve_bottom: int

    @property
    def num_cells(self) -> int:
        """Number of cells that fit into the picture."""
        return self.columns * self.rows


@lru_cache(maxsize=32)
def layout_of(num_pages: int, size: tuple[int, int]) -> Layout:
    """Return the layout of a picture of ``size`` that shows pages in the largest cells that fit.

    Raises:
        ValueError: a size that is too small.
    """
    width, height = size
    if width < MIN_SIZE[0] or height < MIN_SIZE[1]:
        raise ValueError(f"size must be at least {MIN_SIZE} pixels, got {size}")
    legend = LINE * (1 + len(_legend_lines(width - 2 * MARGIN)))
    below = height - LINE - MARGIN // 2
    across = width - 2 * MARGIN
    down = below - round(CURVE * height) - 2 * LINE - legend - HEADER
    pitch = MAX_CELL
    while pitch > MIN_CELL and (across // pitch) * (down // pitch) < num_pages:
        pitch -= 1
    columns = across // pitch
    rows = min(down // pitch, -(-num_pages // columns))
    columns = min(columns, -(-num_pages // rows))
    top = HEADER + rows * pitch
    return Layout(width, height, pitch, columns, rows, top, top + legend + 2 * LINE, below)


def cells_of(scene: Scene, num_cells: int) -> tuple[IntArray, Cells]:
    """Assign each page to one of at most ``num_cells`` cells, (m,), and return what cells show."""
    importance, alive = scene.instance.importance, scene.tracker.alive
    num_pages, log = importance.size, scene.log
    num_cells = min(num_cells, num_pages)
    cell = np.empty(num_pages, np.int64)
    cell[np.argsort(-importance, kind="stable")] = np.arange(num_pages) * num_cells // num_pages
    pages, there = np.bincount(cell), np.bincount(cell, weights=alive)
    similarity = np.bincount(cell, weights=scene.similarity * alive) / np.maximum(there, 1.0)
    crawled, right, wrong = np.zeros((3, num_cells), np.int64)
    np.maximum.at(crawled, cell[log.page], 1 + log.changed)
    signalled = np.minimum(np.atleast_2d(scene.tracker.signals).sum(0), 1)
    signalled[log.signal_page] *= 2
    for marks, candidates in ((right, alive & ~scene.fresh), (wrong, alive & scene.fresh)):
        signal_pages = np.flatnonzero(candidates & (signalled > 0))
        np.maximum.at(marks, cell[signal_pages], signalled[signal_pages])
    return cell, Cells(there / pages, similarity, crawled, right, wrong)


@lru_cache(maxsize=64)
def _disc(pitch: int, share: float) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the pixels of a disc in the middle of a cell, (1, k) each."""
    middle = (pitch - 1) / 2
    across = np.arange(pitch) - middle
    radius = max(share * pitch / 2, 0.8)
    rows, columns = np.nonzero(across[:, None] ** 2 + across**2 <= radius**2)
    return rows[None], columns[None]


@lru_cache(maxsize=64)
def _ring(pitch: int) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the pixels of the frame of a cell, (1, k) each."""
    inside = np.zeros((pitch, pitch), np.bool_)
    inner = slice(1 + (pitch > 7) + (pitch > 30), -1 - (pitch > 7) - (pitch > 30))
    inside[inner, inner] = True
    rows, columns = np.nonzero(~inside)
    return rows[None], columns[None]


def draw_cells(content: Cells, pitch: int, columns: int, rows: int) -> PictureArray:
    """Draw all cells, row by row, as an array (rows * pitch, columns * pitch, 3) of uint8."""
    alive, similar = content.alive[:, None], content.similarity[:, None]
    right = np.maximum(similar, 0.0)
    worse = np.clip(similar / (1.0 - MAX_PENALTY), 0.0, 1.0)
    page_colour = right * FRESH + (1.0 - right) * (worse * WORST + (1.0 - worse) * STALE)
    colour = np.full((rows * columns, 3), PAPER, np.uint8)
    colour[: alive.size] = np.rint(alive * page_colour + (1.0 - alive) * GONE)
    grid: PictureArray = np.full((rows, pitch, columns, pitch, 3), PAPER, np.uint8)
    grid[:, 1:-1, :, 1:-1] = colour.reshape(rows, 1, columns, 1, 3)

    def stamp(cells: BoolArray, pixels: tuple[IntArray, IntArray], paint: Colour) -> None:
        row, column = np.divmod(np.flatnonzero(cells)[:, None], columns)
        grid[row, pixels[0], column, pixels[1]] = paint

    stamp(content.crawled == 1, _ring(pitch), UNCHANGED)
    stamp(content.crawled == 2, _ring(pitch), INK)
    for marks, paint in ((content.wrong, PAPER), (content.right, INK)):
        stamp(marks == 1, _disc(pitch, 0.25), paint)
        stamp(marks == 2, _disc(pitch, 0.5), paint)
    return grid.reshape(rows * pitch, columns * pitch, 3)


@lru_cache(maxsize=32)
def _legend_lines(width: int) -> tuple[tuple[int, ...], ...]:
    """Split the entries of the legend into lines of ``width`` pixels; return their numbers."""
    lines: list[list[int]] = [[]]
    used = 0
    for entry, (words, _) in enumerate(LEGEND):
        needed = LEGEND_CELL + 4 + lettered(words, 12).shape[1]
        if lines[-1] and used + needed > width:
            lines.append([])
            used = 0
        lines[-1].append(entry)
        used += needed + 10
    return tuple(map(tuple, lines))


def _draw_legend(picture: PictureArray, left: int, top: int, width: int) -> None:
    """Draw the legend into a picture, in lines of ``width`` pixels below the corner (left, top)."""
    for line in _legend_lines(width):
        x = left
        for words, fields in (LEGEND[entry] for entry in line):
            values = {"alive": 1.0, "similarity": 0.0, "crawled": 0, "right": 0, "wrong": 0}
            one = Cells(**{name: np.array([value]) for name, value in (values | fields).items()})
            sample = draw_cells(one, LEGEND_CELL, 1, 1)
            picture[top : top + LEGEND_CELL, x : x + LEGEND_CELL] = sample
            x += LEGEND_CELL + 4
            x += write(picture, words, (x, top + 1), INK, size=12) + 10
        top += LINE


def _ticks(horizon: float) -> FloatArray:
    """Return about five round times from 0 to the horizon, for the axis of a curve."""
    rough = horizon / 5.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return np.arange(0.0, horizon * (1.0 + 1e-9), step)


def _measure(scene: Scene) -> tuple[str, float]:
    """Return the name of the quantity that the curve shows, and the largest value on its axis."""
    if scene.ledger.penalty_time is not None:
        return "mean penalty", 2.0
    return ("similarity" if hasattr(scene.ledger, "divergence") else "freshness"), 1.0


@lru_cache(maxsize=8)
def _background(
    plan: Layout, num_pages: int, horizon: float, measure: str, max_value: float
) -> PictureArray:
    """Draw the parts that all pictures of an episode share: words, legend, axes; read-only."""
    picture: PictureArray = np.full((plan.height, plan.width, 3), PAPER, np.uint8)
    several = "" if num_pages <= plan.num_cells else " (a cell: the mean of several)"
    darker = "; the darker, the larger the penalty" if "penalty" in measure else ""
    caption = f"{num_pages} pages, the most important first{several}{darker}"
    write(picture, caption, (MARGIN, plan.words_top + 2), FAINT, size=12)
    _draw_legend(picture, MARGIN, plan.words_top + LINE, plan.width - 2 * MARGIN)
    about = f"{measure} over time (dashed: the mean so far)"
    write(picture, about, (MARGIN, plan.curve_top - 24), FAINT, size=12)
    left, right = MARGIN + AXIS_WIDTH, plan.width - MARGIN
    top, bottom = plan.curve_top, plan.curve_bottom
    for value in (0.0, 0.5, 1.0):
        y = round(bottom - value * (bottom - top))
        picture[y, left:right] = GONE if value else FAINT
        write(picture, f"{value * max_value:g}", (left - 6, y - 9), FAINT, size=12, align=1.0)
    picture[top : bottom + 1, left - 1] = FAINT
    for time in _ticks(horizon):
        x = left + round(time / horizon * (right - left - 1))
        picture[bottom : bottom + 4, x] = FAINT
        words = f"{time:.6g}"
        place = max(x, left + lettered(words, 12).shape[1] // 2)
        write(picture, words, (place, bottom + 5), FAINT, size=12, align=0.5)
    picture.setflags(write=False)
    return picture


def _draw_curve(picture: PictureArray, plan: Layout, scene: Scene, history: History) -> None:
    """Draw the curve of freshness over the episode into a picture; a dashed line is its mean."""
    left, right = MARGIN + AXIS_WIDTH, plan.width - MARGIN
    height = plan.curve_bottom - plan.curve_top
    columns = round(min(scene.ledger.time / scene.horizon, 1.0) * (right - left))
    if columns == 0:
        return
    freshness = history.freshness(np.linspace(0.0, scene.ledger.time, columns + 1))
    mean = history.freshness(np.array([0.0, scene.ledger.time]))[0]
    if np.isnan(mean):
        return
    max_value = _measure(scene)[1]
    freshness = np.minimum(np.nan_to_num(freshness) / max_value, 1.0)
    mean = min(mean / max_value, 1.0)
    level = np.rint((1.0 - freshness) * height).astype(np.int64)
    before = np.concatenate([level[:1], level[:-1]])
    row = np.arange(height + 1)[:, None]
    area = picture[plan.curve_top : plan.curve_bottom + 1, left : left + columns]
    area[row > level] = SHADE
    area[(row >= np.minimum(level, before) - 1) & (row <= np.maximum(level, before))] = FRESH
    dashes = np.arange(columns) % 8 < 5
    area[round((1.0 - mean) * height), dashes] = INK
    area[:, -1] = INK


def picture(scene: Scene, history: History, size: tuple[int, int] = SIZE) -> PictureArray:
    """Draw a scene and the course of its episode as an RGB picture of ``size``, (H, W, 3) uint8.

    Raises:
        ValueError: a size that is too small.
        gymnasium.error.DependencyNotInstalled: Pillow is missing.
    """
    num_pages = scene.instance.importance.size
    plan = layout_of(num_pages, size)
    drawn = _background(plan, num_pages, scene.horizon, *_measure(scene)).copy()
    write(drawn, spent(scene), (MARGIN, 8), INK, size=17)
    write(drawn, standing(scene), (MARGIN, 33), INK)
    cell, content = cells_of(scene, plan.num_cells)
    grid = draw_cells(content, plan.pitch, plan.columns, plan.rows)
    if plan.pitch >= NUMBERED_CELL:
        for page, place in enumerate(cell):
            row, column = divmod(int(place), plan.columns)
            write(grid, f"{page}", (column * plan.pitch + 5, row * plan.pitch + 3), INK, size=12)
    drawn[HEADER : HEADER + grid.shape[0], MARGIN : MARGIN + grid.shape[1]] = grid
    _draw_curve(drawn, plan, scene, history)
    return drawn
