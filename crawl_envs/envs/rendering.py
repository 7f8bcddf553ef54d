"""Renderings of an episode: what they show, and the text.

Renderings show the truth, which pages are fresh and which stale, and are not observed by agents.
The picture is drawn by :mod:`crawl_envs.envs.pictures`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
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

RenderMode: TypeAlias = Literal["ansi", "rgb_array", "human"]
RENDER_MODES: tuple[RenderMode, ...] = get_args(RenderMode)
RENDERING: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}
"""Rendering part of the metadata of an environment."""
LANE_RENDERING: dict[str, Any] = {**RENDERING, "render_modes": ["ansi", "rgb_array"]}
"""Rendering part of the metadata of a vector environment, which has no window."""

TOP_PAGES = 5
"""Largest number of stale pages that the text lists."""
MAX_CRAWLS = 3
"""Largest number of crawls of the last step that the text describes."""
METER_WIDTH = 30
MAX_POINTS = 4096
"""Largest number of points of a history; beyond it every second one is dropped."""


class Scene(NamedTuple):
    """The data of a rendering of one moment of an episode.

    ``fresh`` is the mask of pages with a current copy, (m,) bool; ``similarity`` is the share of
    each copy that is right, in [0, 1], or 1 minus its penalty, (m,); ``budget`` is the number of
    crawls of the episode; ``log`` has the crawls of the last step.
    """

    tracker: Tracker
    instance: Instance
    ledger: Ledger
    log: CrawlLog
    fresh: BoolArray
    similarity: FloatArray
    horizon: float
    budget: float


class History:
    """The course of an episode's freshness, known at the times when the episode is rendered.

    For pages with fragments it is the similarity of copies, 1 minus the divergence. Where a penalty
    is counted, it is the penalty.
    """

    def __init__(self) -> None:
        self._episode = -1
        self._points = [(0.0, 0.0, 0.0)]

    def record(self, episode: int, ledger: Ledger) -> None:
        """Add a point from a ledger; start again at a new episode or if time went back."""
        if episode != self._episode or ledger.time < self._points[-1][0]:
            self._episode, self._points = episode, [(0.0, 0.0, 0.0)]
        if ledger.alive_time > self._points[-1][2]:
            right = ledger.fresh_time if ledger.penalty_time is None else ledger.penalty_time
            if isinstance(ledger, FragmentLedger):
                right = ledger.alive_time - ledger.divergence_time
            self._points.append((ledger.time, right, ledger.alive_time))
        if len(self._points) > MAX_POINTS:
            del self._points[1:-1:2]

    def freshness(self, times: FloatArray) -> FloatArray:
        """Return the mean freshness between successive ``times`` >= 0, NaN where none is known.

        Between two renderings it counts as constant.
        """
        recorded, right, alive = np.array(self._points).T
        pages = np.diff(np.interp(times, recorded, alive))
        fresh = np.diff(np.interp(times, recorded, right))
        mean: FloatArray = np.full_like(pages, np.nan)
        np.divide(fresh, pages, out=mean, where=pages > 0.0)
        return mean


def counted(signals: IntArray) -> str:
    """Return a number of signals as text; the numbers of several sources are joined by ``+``."""
    return "+".join(map(str, np.atleast_1d(signals)))


def _crawls(log: CrawlLog) -> Iterator[str]:
    """Yield a phrase about each crawl of the last step, up to MAX_CRAWLS, then their total."""
    if not log.page.size:
        yield "nothing crawled yet"
    for number, page in enumerate(log.page[:MAX_CRAWLS]):
        outcome = "it had changed" if log.changed[number] else "it had not changed"
        signals = log.signals[..., number]
        plural = "" if signals.sum() == 1 else "s"
        received = f", {counted(signals)} signal{plural}" if signals.any() else ""
        yield f"crawled page {page} after {log.elapsed[number]:.3g}{received}: {outcome}"
    if log.page.size > MAX_CRAWLS:
        changed = np.count_nonzero(log.changed)
        yield f"and more: {log.page.size} crawls in all, {changed} had changed"


def standing(scene: Scene) -> str:
    """Return a line of text with the scores of the episode so far: freshness, penalty, accuracy."""
    ledger = scene.ledger
    served = "no requests"
    if ledger.requests:
        served = f"accuracy {ledger.accuracy:.3f} ({ledger.hits} of {ledger.requests} requests)"
    fresh = "-" if math.isnan(ledger.freshness) else f"{ledger.freshness:.3f}"
    penalty = "" if math.isnan(ledger.penalty) else f"   mean penalty {ledger.penalty:.3f}"
    if isinstance(ledger, FragmentLedger):
        fresh = f"{fresh} of pages   mean divergence {ledger.divergence:.3f}"
    return f"so far: freshness {fresh}{penalty}   {served}"


def spent(scene: Scene) -> str:
    """Return a line of text with the time that has passed and the crawls that were made."""
    now = f"time {scene.ledger.time:.2f} of {scene.horizon:g}"
    crawls, spend = scene.ledger.crawls, scene.ledger.spend
    paid = "" if scene.instance.cost is None else f", cost {spend:.3g}"
    return f"{now}   crawls {crawls}{paid} (budget {scene.budget:g})"


def _stale_pages(scene: Scene) -> Iterator[str]:
    """Yield lines of text about the stale pages of the highest importance."""
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
    """Return a rendering of a scene as a text of about a dozen lines."""
    alive, fresh = scene.tracker.alive, scene.fresh & scene.tracker.alive
    importance = scene.instance.importance
    meter = "#" * round(min(scene.ledger.time / scene.horizon, 1.0) * METER_WIDTH)
    weight = importance[alive].sum()
    share = f" ({importance[fresh].sum() / weight:.0%} by importance)" if weight > 0.0 else ""
    lines = [
        f"[{meter:.<{METER_WIDTH}}] {spent(scene)}",
        standing(scene),
        f"fresh now: {fresh.sum()} of {alive.sum()} pages{share}",
        *_crawls(scene.log),
        *_stale_pages(scene),
    ]
    return "\n".join(lines) + "\n"
