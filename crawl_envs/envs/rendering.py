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
    """The freshness of an episode between the times of its renderings.

    Attributes:
        times: times of the renderings, the first 0.
        freshness: mean freshness between successive times, shorter by one.
    """

    def __init__(self) -> None:
        self._episode = -1
        self._begin()

    def _begin(self) -> None:
        self.times: list[float] = [0.0]
        self.freshness: list[float] = []
        self._fresh_time = self._alive_time = 0.0

    def record(self, episode: int, ledger: Ledger) -> None:
        """Add the time since the last call; reset at a new episode or an earlier time."""
        if episode != self._episode or ledger.time < self.times[-1]:
            self._episode = episode
            self._begin()
        alive = ledger.alive_time - self._alive_time
        if ledger.time > self.times[-1] and alive > 0.0:
            self.freshness.append((ledger.fresh_time - self._fresh_time) / alive)
            self.times.append(ledger.time)
            self._fresh_time, self._alive_time = ledger.fresh_time, ledger.alive_time


# Words


def counted(signals: IntArray) -> str:
    """Return a number of signals, or those of several sources joined by plus signs."""
    return "+".join(map(str, np.atleast_1d(signals)))


def described_crawls(log: CrawlLog) -> list[str]:
    """Return a phrase per crawl of the last step, at most MOST_CRAWLS, and their number."""
    phrases = []
    for number, (page, elapsed, changed, probe) in enumerate(
        zip(log.page[:MOST_CRAWLS], log.elapsed, log.changed, log.probe, strict=False)
    ):
        did = "probed" if probe else "crawled"
        outcome = "it had changed" if changed else "it had not changed"
        signals = log.signals[..., number]
        plural = "" if signals.sum() == 1 else "s"
        received = f", {counted(signals)} signal{plural}" if signals.any() else ""
        phrases.append(f"{did} page {page} after {elapsed:.3g}{received}: {outcome}")
    if log.page.size > MOST_CRAWLS:
        changed_count = np.count_nonzero(log.changed)
        phrases.append(f"and more: {log.page.size} crawls in all, {changed_count} had changed")
    return phrases or ["nothing crawled yet"]


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


def text(scene: Scene) -> str:
    """Return a text of about a dozen lines."""
    alive, fresh = scene.tracker.alive, scene.fresh & scene.tracker.alive
    importance = scene.instance.importance
    passed = min(scene.ledger.time / scene.horizon, 1.0)
    meter = "#" * round(passed * METER_WIDTH)
    weight = importance[alive].sum()
    share = f" ({importance[fresh].sum() / weight:.0%} by importance)" if weight > 0.0 else ""
    lines = [
        f"[{meter:.<{METER_WIDTH}}] {_budget(scene)}",
        _standing(scene),
        f"fresh now: {fresh.sum()} of {alive.sum()} pages{share}",
        *described_crawls(scene.log),
        *_stale_pages(scene),
    ]
    return "\n".join(lines) + "\n"


def _stale_pages(scene: Scene) -> Iterator[str]:
    """Yield the lines about the most important stale pages."""
    stale = np.flatnonzero(scene.tracker.alive & ~scene.fresh)
    if not stale.size:
        yield "no page is stale"
        return
    importance = scene.instance.importance
    top = stale[np.argsort(-importance[stale], kind="stable")][:TOP_PAGES]
    yield "stale pages, by importance:"
    yield f"{'page':>8}{'importance':>12}{'elapsed':>10}{'signals':>9}"
    for page in top:
        elapsed, signals = scene.tracker.elapsed[page], counted(scene.tracker.signals[..., page])
        yield f"{page:>8}{importance[page]:>12.4g}{elapsed:>10.3g}{signals:>9}"
    if stale.size > top.size:
        yield f"     ... and {stale.size - top.size} more"


# Picture


class Bars(NamedTuple):
    """Pages by falling importance, grouped into bars.

    ``bar`` is the bar of every page, (m,). The other arrays are per bar: mean importance, its fresh
    and its stale part, mean time since the last crawl, number of pages.
    """

    bar: IntArray
    importance: FloatArray
    fresh: FloatArray
    stale: FloatArray
    elapsed: FloatArray
    pages: IntArray


def bars(scene: Scene) -> Bars:
    """Group the pages into bars."""
    importance, alive = scene.instance.importance, scene.tracker.alive
    num_pages = importance.size
    num_bars = min(num_pages, MOST_BARS)
    bar = np.empty(num_pages, np.int64)
    rank = np.arange(num_pages)
    bar[np.argsort(-importance, kind="stable")] = rank * num_bars // num_pages
    pages = np.bincount(bar, minlength=num_bars)

    def mean(values: FloatArray) -> FloatArray:
        result: FloatArray = np.bincount(bar, weights=values, minlength=num_bars) / pages
        return result

    living = np.maximum(mean(alive.astype(np.float64)), 1.0 / num_pages)
    return Bars(
        bar=bar,
        importance=mean(importance),
        fresh=mean(importance * (alive & scene.fresh)),
        stale=mean(importance * (alive & ~scene.fresh)),
        elapsed=mean(np.where(alive, scene.tracker.elapsed, 0.0)) / living,
        pages=pages,
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
    upper, lower, curve = figure.subplots(
        3, 1, gridspec_kw={"height_ratios": [5, 2.4, 2.4], "hspace": 0.0}
    )
    figure.subplots_adjust(left=0.105, right=0.965, top=0.86, bottom=0.085)
    box = curve.get_position()
    curve.set_position((box.x0, box.y0, box.width, box.height - 0.075))
    figure.text(0.105, 0.955, _budget(scene), fontsize=12, weight="bold", color=INK)
    figure.text(0.105, 0.918, _standing(scene), fontsize=10, color=INK)
    content = bars(scene)
    _draw_importance(upper, content)
    _draw_elapsed(lower, content, scene)
    _mark_crawls(upper, lower, content, scene.log)
    _draw_history(curve, scene, history)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _draw_bars(axes: Any, height: FloatArray, below: FloatArray, colour: str, label: str) -> None:
    """Draw a bar per height; many bars as one outline, which is several times faster."""
    count = height.size
    if count <= LABELLED_BARS:
        axes.bar(np.arange(count), height, 0.9, below, color=colour, label=label, linewidth=0)
    else:
        edges = np.arange(count + 1) - 0.5
        axes.stairs(
            below + height, edges, baseline=below, fill=True, color=colour, label=label, linewidth=0
        )


def _draw_importance(axes: Any, content: Bars) -> None:
    """Draw bars upwards: importance, fresh below stale, and grey for pages that do not exist."""
    num_bars = content.pages.size
    gone = np.maximum(content.importance - content.fresh - content.stale, 0.0)
    below = np.zeros(num_bars)
    for name, height, colour in (
        ("fresh", content.fresh, FRESH),
        ("stale", content.stale, STALE),
        ("not there", gone, GONE),
    ):
        if name != "not there" or gone.max() > 1e-12 * content.importance.max():
            _draw_bars(axes, height, below, colour, name)
        below = below + height
    top = float(content.importance.max()) or 1.0
    axes.set(xlim=(-0.6, num_bars - 0.4), ylim=(0.0, 1.18 * top), xticks=[])
    axes.set_ylabel("importance", color=INK)
    _tidy(axes)


def _draw_elapsed(axes: Any, content: Bars, scene: Scene) -> None:
    """Draw bars downwards: time since the last crawl."""
    num_bars, num_pages = content.pages.size, scene.fresh.size
    _draw_bars(axes, content.elapsed, np.zeros(num_bars), FAINT, "")
    depth = max(float(content.elapsed.max()), 1e-9)
    axes.set(xlim=(-0.6, num_bars - 0.4), ylim=(1.12 * depth, 0.0), xticks=[])
    axes.set_ylabel("time since\nlast crawl", color=INK)
    if num_pages <= LABELLED_BARS:
        axes.set_xticks(content.bar, np.arange(num_pages))
        axes.set_xlabel("page, the most important first", fontsize=8, color=FAINT, labelpad=1)
    else:
        each = "" if num_bars == num_pages else " (a bar: the mean of several)"
        label = f"{num_pages} pages, the most important first{each}"
        axes.set_xlabel(label, fontsize=8, color=FAINT, labelpad=4)
    _tidy(axes)


def _mark_crawls(upper: Any, lower: Any, content: Bars, log: CrawlLog) -> None:
    """Mark the bars of the pages just crawled: filled where the page had changed."""
    for changed, label, face in (
        (True, "just crawled: had changed", INK),
        (False, "just crawled: had not changed", "white"),
    ):
        chosen = content.bar[log.page[log.changed == changed]]
        heights = content.importance[chosen] + 0.055 * upper.get_ylim()[1]
        upper.scatter(
            chosen, heights, 70, marker="v", facecolor=face, edgecolor=INK, label=label, zorder=3
        )
    for bar in np.unique(content.bar[log.page]):
        lower.axvline(bar, color=INK, linewidth=1.0, linestyle=":")
    upper.legend(
        loc="lower right", bbox_to_anchor=(1.01, 0.985), ncols=5, frameon=False, fontsize=9,
        handletextpad=0.4, columnspacing=1.2, borderaxespad=0.0,
    )  # fmt: skip


def _draw_history(axes: Any, scene: Scene, history: History) -> None:
    """Draw the freshness between renderings as steps, and its mean since the start."""
    axes.set(xlim=(0.0, scene.horizon), ylim=(0.0, 1.0), yticks=[0.0, 0.5, 1.0])
    if history.freshness:
        axes.stairs(history.freshness, history.times, color=FRESH, fill=True, alpha=0.25)
        axes.stairs(history.freshness, history.times, baseline=None, color=FRESH, linewidth=1.5)
    if not math.isnan(scene.ledger.freshness):
        mean, now = scene.ledger.freshness, scene.ledger.time
        axes.plot([0.0, now], [mean, mean], color=INK, linewidth=1.0, linestyle="--")
    axes.axvline(scene.ledger.time, color=INK, linewidth=1.0)
    axes.set_xlabel("time   (dashed: mean so far)", fontsize=9, color=FAINT, labelpad=2)
    axes.set_ylabel("freshness", color=INK)
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.tick_params(labelsize=8, colors=FAINT, length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
