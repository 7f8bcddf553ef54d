"""Renderings of an episode: a text, and a picture drawn with matplotlib.

Renderings show the truth, which pages are fresh and which stale, and are not observed by agents.
In the picture pages are sorted by falling importance, from left to right: bars upwards show
importance, coloured by whether the held copy is fresh; bars downwards the time since the last
crawl. If there are more pages than bars, a bar stands for several pages of similar importance and
is coloured by the share of fresh ones. Below is the freshness over the episode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    FragmentLedger,
    Instance,
    IntArray,
    Ledger,
    Tracker,
)

PictureArray = NDArray[np.uint8]

RenderMode: TypeAlias = Literal["ansi", "rgb_array"]
RENDER_MODES: tuple[RenderMode, ...] = get_args(RenderMode)
RENDERING: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}
"""Rendering part of the metadata of an environment."""

TOP_PAGES = 5
"""Stale pages that the text lists."""
MOST_CRAWLS = 3
"""Crawls of the last step that the text describes."""
METER_WIDTH = 30
MOST_BARS = 125
LABELLED_BARS = 25
"""Largest number of bars that are labelled with the number of their page."""

FIGURE_SIZE, DPI = (8.0, 6.0), 100
# Okabe and Ito's colours, distinguishable with red-green colour blindness.
FRESH, STALE, GONE, INK, FAINT = "#0072B2", "#E69F00", "#D9D9D9", "#222222", "#767676"


class Scene(NamedTuple):
    """The data of a rendering of one moment of an episode.

    ``fresh`` is the mask of pages with a current copy, (m,) bool; ``budget`` is the number of
    crawls of the episode; ``log`` has the crawls of the last step.
    """

    tracker: Tracker
    instance: Instance
    ledger: Ledger
    log: CrawlLog
    fresh: BoolArray
    horizon: float
    budget: float


class History:
    """The freshness of an episode between the times of its renderings."""

    def __init__(self) -> None:
        self._episode = -1
        self._points = [(0.0, 0.0, 0.0)]

    def record(self, episode: int, ledger: Ledger) -> None:
        """Add the time since the last call; start again at a new episode or an earlier time."""
        if episode != self._episode or ledger.time < self._points[-1][0]:
            self._episode, self._points = episode, [(0.0, 0.0, 0.0)]
        if ledger.alive_time > self._points[-1][2]:
            self._points.append((ledger.time, ledger.fresh_time, ledger.alive_time))

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Return the times, the first 0, and the mean freshness between successive times."""
        time, fresh, alive = np.array(self._points).T
        return time, np.diff(fresh) / np.diff(alive)


def counted(signals: IntArray) -> str:
    """Return a number of signals, or those of several sources joined by plus signs."""
    return "+".join(map(str, np.atleast_1d(signals)))


def _crawls(log: CrawlLog) -> Iterator[str]:
    """Yield a phrase per crawl of the last step, at most MOST_CRAWLS, and their number."""
    if not log.page.size:
        yield "nothing crawled yet"
    for number, page in enumerate(log.page[:MOST_CRAWLS]):
        did = "probed" if log.probe[number] else "crawled"
        outcome = "it had changed" if log.changed[number] else "it had not changed"
        signals = log.signals[..., number]
        plural = "" if signals.sum() == 1 else "s"
        received = f", {counted(signals)} signal{plural}" if signals.any() else ""
        yield f"{did} page {page} after {log.elapsed[number]:.3g}{received}: {outcome}"
    if log.page.size > MOST_CRAWLS:
        changed = np.count_nonzero(log.changed)
        yield f"and more: {log.page.size} crawls in all, {changed} had changed"


def _standing(scene: Scene) -> str:
    ledger = scene.ledger
    served = "no requests"
    if ledger.requests:
        served = f"accuracy {ledger.accuracy:.3f} ({ledger.hits} of {ledger.requests} requests)"
    fresh = "-" if math.isnan(ledger.freshness) else f"{ledger.freshness:.3f}"
    penalty = "" if math.isnan(ledger.penalty) else f"   mean penalty {ledger.penalty:.3f}"
    if isinstance(ledger, FragmentLedger):
        fresh = f"{fresh} of pages   mean divergence {ledger.divergence:.3f}"
    return f"so far: freshness {fresh}{penalty}   {served}"


def _budget(scene: Scene) -> str:
    now = f"time {scene.ledger.time:.2f} of {scene.horizon:g}"
    return f"{now}   crawls {scene.ledger.crawls} (budget {scene.budget:g})"


def _stale_pages(scene: Scene) -> Iterator[str]:
    """Yield the lines about the most important stale pages."""
    tracker, importance = scene.tracker, scene.instance.importance
    stale = np.flatnonzero(tracker.alive & ~scene.fresh)
    if not stale.size:
        yield "no page is stale"
        return
    yield "stale pages, by importance:"
    yield f"{'page':>8}{'importance':>12}{'elapsed':>10}{'signals':>9}"
    for page in stale[np.argsort(-importance[stale], kind="stable")][:TOP_PAGES]:
        signals = counted(tracker.signals[..., page])
        yield f"{page:>8}{importance[page]:>12.4g}{tracker.elapsed[page]:>10.3g}{signals:>9}"
    if stale.size > TOP_PAGES:
        yield f"     ... and {stale.size - TOP_PAGES} more"


def text(scene: Scene) -> str:
    """Return a text of about a dozen lines."""
    alive, fresh = scene.tracker.alive, scene.fresh & scene.tracker.alive
    importance = scene.instance.importance
    meter = "#" * round(min(scene.ledger.time / scene.horizon, 1.0) * METER_WIDTH)
    weight = importance[alive].sum()
    share = f" ({importance[fresh].sum() / weight:.0%} by importance)" if weight > 0.0 else ""
    lines = [
        f"[{meter:.<{METER_WIDTH}}] {_budget(scene)}",
        _standing(scene),
        f"fresh now: {fresh.sum()} of {alive.sum()} pages{share}",
        *_crawls(scene.log),
        *_stale_pages(scene),
    ]
    return "\n".join(lines) + "\n"


class Bars(NamedTuple):
    """Pages by falling importance, grouped into bars.

    ``bar`` is the bar of every page, (m,). The other arrays are per bar: number of pages, mean
    importance of fresh, stale and missing pages, mean time since the last crawl.
    """

    bar: IntArray
    pages: IntArray
    fresh: FloatArray
    stale: FloatArray
    gone: FloatArray
    elapsed: FloatArray

    @property
    def importance(self) -> FloatArray:
        """Mean importance of the pages of each bar."""
        return self.fresh + self.stale + self.gone


def bars(scene: Scene) -> Bars:
    """Group the pages into bars."""
    importance, alive = scene.instance.importance, scene.tracker.alive
    num_pages = importance.size
    num_bars = min(num_pages, MOST_BARS)
    bar = np.empty(num_pages, np.int64)
    bar[np.argsort(-importance, kind="stable")] = np.arange(num_pages) * num_bars // num_pages
    pages = np.bincount(bar)

    def total(values: Any) -> Any:
        return np.bincount(bar, weights=values)

    return Bars(
        bar=bar,
        pages=pages,
        fresh=total(importance * (alive & scene.fresh)) / pages,
        stale=total(importance * (alive & ~scene.fresh)) / pages,
        gone=total(importance * ~alive) / pages,
        elapsed=total(scene.tracker.elapsed * alive) / np.maximum(total(alive), 1.0),
    )


def picture(scene: Scene, history: History) -> PictureArray:
    """Return the scene as an RGB picture, (H, W, 3) uint8.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyNotInstalled(
            "render_mode 'rgb_array' needs matplotlib: pip install 'crawl-envs[scripts]'"
        ) from error
    figure = Figure(figsize=FIGURE_SIZE, dpi=DPI)
    canvas: Any = FigureCanvasAgg(figure)
    heights = {"height_ratios": [5.0, 2.4, 0.8, 1.6], "hspace": 0.0}
    upper, lower, gap, curve = figure.subplots(4, 1, gridspec_kw=heights)
    figure.subplots_adjust(left=0.105, right=0.965, top=0.86, bottom=0.085)
    gap.set_visible(False)
    figure.text(0.105, 0.955, _budget(scene), fontsize=12, weight="bold", color=INK)
    figure.text(0.105, 0.918, _standing(scene), fontsize=10, color=INK)
    content = bars(scene)
    _draw_importance(upper, content, scene.log)
    _draw_elapsed(lower, content, scene.log)
    _draw_history(curve, scene, history)
    for axes in (upper, lower, curve):
        axes.tick_params(labelsize=8, colors=FAINT, length=2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _draw_bars(axes: Any, height: FloatArray, below: FloatArray, colour: str, label: str) -> None:
    """Draw a bar per height, all as one outline, which is several times faster."""
    edges = (np.arange(height.size)[:, None] + (-0.45, 0.45)).ravel()
    top, bottom = np.zeros((2, edges.size - 1))
    top[::2], bottom[::2] = below + height, below
    axes.stairs(top, edges, baseline=bottom, fill=True, color=colour, label=label, linewidth=0)


def _draw_importance(axes: Any, content: Bars, log: CrawlLog) -> None:
    """Draw bars upwards, and mark the pages just crawled: filled where the page had changed."""
    _draw_bars(axes, content.fresh, np.zeros_like(content.fresh), FRESH, "fresh")
    _draw_bars(axes, content.stale, content.fresh, STALE, "stale")
    if content.gone.any():
        _draw_bars(axes, content.gone, content.fresh + content.stale, GONE, "not there")
    top = 1.18 * (float(content.importance.max()) or 1.0)
    axes.set(xlim=(-0.6, content.pages.size - 0.4), ylim=(0.0, top), xticks=[])
    axes.set_ylabel("importance", color=INK)
    for changed, label, face in (
        (True, "just crawled: had changed", INK),
        (False, "just crawled: had not changed", "white"),
    ):
        chosen = content.bar[log.page[log.changed == changed]]
        above = content.importance[chosen] + 0.055 * top
        axes.scatter(
            chosen, above, 70, marker="v", facecolor=face, edgecolor=INK, label=label, zorder=3
        )
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.01, 0.985), ncols=5, frameon=False, fontsize=9,
        handletextpad=0.4, columnspacing=1.2, borderaxespad=0.0,
    )  # fmt: skip


def _draw_elapsed(axes: Any, content: Bars, log: CrawlLog) -> None:
    """Draw bars downwards: time since the last crawl."""
    num_bars, num_pages = content.pages.size, content.bar.size
    _draw_bars(axes, content.elapsed, np.zeros(num_bars), FAINT, "")
    depth = 1.12 * max(float(content.elapsed.max()), 1e-9)
    axes.set(xlim=(-0.6, num_bars - 0.4), ylim=(depth, 0.0), xticks=[])
    axes.set_ylabel("time since\nlast crawl", color=INK)
    label = "page, the most important first"
    if num_pages <= LABELLED_BARS:
        axes.set_xticks(content.bar, np.arange(num_pages))
    else:
        each = "" if num_bars == num_pages else " (a bar: the mean of several)"
        label = f"{num_pages} pages, the most important first{each}"
    axes.set_xlabel(label, fontsize=8, color=FAINT, labelpad=2)
    for bar in np.unique(content.bar[log.page]):
        axes.axvline(bar, color=INK, linewidth=1.0, linestyle=":")


def _draw_history(axes: Any, scene: Scene, history: History) -> None:
    """Draw the freshness between renderings as steps, and its mean since the start."""
    now, mean = scene.ledger.time, scene.ledger.freshness
    times, freshness = history.curve()
    axes.set(xlim=(0.0, scene.horizon), ylim=(0.0, 1.0), yticks=[0.0, 0.5, 1.0])
    axes.stairs(freshness, times, color=FRESH, fill=True, alpha=0.25)
    axes.stairs(freshness, times, baseline=None, color=FRESH, linewidth=1.5)
    axes.plot([0.0, now], [mean, mean], color=INK, linewidth=1.0, linestyle="--")
    axes.axvline(now, color=INK, linewidth=1.0)
    axes.set_xlabel("time   (dashed: mean so far)", fontsize=9, color=FAINT, labelpad=2)
    axes.set_ylabel("freshness", color=INK)
