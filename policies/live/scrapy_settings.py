"""The settings of a crawl with Scrapy, the scheduler they make, and what is compared of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.http import Response, TextResponse
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawl_envs.types.arguments import one_of, quantity, whole
from policies.live.listings import without_user
from policies.live.messages import SECONDS_PER_DAY
from policies.scheduler import CrawlScheduler, DurableScheduler

SECOND = 1.0 / SECONDS_PER_DAY
POSITIVE = ("RECRAWL_BANDWIDTH", "RECRAWL_RETRY", "RECRAWL_POLL", "RECRAWL_ROBOTS")
NUMBERS = (*POSITIVE, "RECRAWL_HOST_GAP", "RECRAWL_KEEP_GONE", "RECRAWL_SKEW")
"""The settings that are numbers > 0, and those >= 0."""


class Options(NamedTuple):
    """The settings of a crawl; see :mod:`policies.live.scrapy`."""

    folder: str
    bandwidth: float
    policy: str = "GreedyNCIS"
    host_gap: float = 0.0
    retry: float = 3600.0
    keep_gone: float = 30.0
    feeds: Mapping[str, int] = {}
    poll: float = 3600.0
    skew: float = 5.0
    robots: float = 86_400.0
    compare: Any = __name__ + ".text_of"


def read_options(settings: BaseSettings) -> Options:
    """Return the settings of a crawl; ValueError if one is unknown, missing or out of range."""
    names = {f"RECRAWL_{name.upper()}": name for name in Options._fields}
    given = {name: settings[name] for name in settings if name.startswith("RECRAWL_")}
    for name in given:
        one_of("setting", name, list(names))
    for name in ("RECRAWL_FOLDER", "RECRAWL_BANDWIDTH"):
        if given.get(name) in (None, ""):
            raise ValueError(f"{name} must be set, for a crawl with RecrawlScheduler")
    given.setdefault("RECRAWL_HOST_GAP", settings.getfloat("DOWNLOAD_DELAY"))
    for name in given.keys() & set(NUMBERS):
        limits = {"above": 0.0} if name in POSITIVE else {}
        try:
            given[name] = quantity(name, float(given[name]), **limits)
        except (TypeError, ValueError):
            more = ">" if limits else ">="
            raise ValueError(f"{name} must be a number {more} 0, got {given[name]!r}") from None
    feeds = given["RECRAWL_FEEDS"] = settings.getdict("RECRAWL_FEEDS")
    for url, source in feeds.items():
        whole(f"RECRAWL_FEEDS[{without_user(url)!r}]", source, 0)
    options = Options(**{names[name]: value for name, value in given.items()})
    return options._replace(compare=load_object(options.compare))


def timeout_of(settings: BaseSettings) -> float:
    """Return the days after which a fetch is lost: twice what Scrapy waits, redirects and all."""
    return max(2.0 * settings.getfloat("DOWNLOAD_TIMEOUT"), 1.0) * SECOND


def open_pages(options: Options, settings: BaseSettings, now: float) -> DurableScheduler:
    """Return the scheduler of a crawl's folder, or a new one.

    Raises:
        ValueError: a setting that cannot change is another one than the folder's.
    """
    folder = Path(options.folder) / "scheduler"
    pace: dict[str, Any] = {
        "burst": settings.getint("CONCURRENT_REQUESTS") / options.bandwidth,
        "timeout": timeout_of(settings),
        "retry": options.retry * SECOND,
    }
    fixed: dict[str, Any] = {
        "num_sources": max(options.feeds.values(), default=0) + 1,
        "skew": options.skew * SECOND,
        "keep_gone": options.keep_gone,
    }
    new = None
    if not DurableScheduler.holds(folder):
        fixed |= {"start": now, "learn": True, "resolution": SECOND}
        new = CrawlScheduler(options.policy, options.bandwidth, **fixed, **pace)
    pages = DurableScheduler(folder, new)
    [lines] = pages.pages.choices.lines
    held = {
        "RECRAWL_POLICY": (pages.pages.values.name, options.policy),
        "sources of RECRAWL_FEEDS": (pages.num_sources, fixed["num_sources"]),
        "RECRAWL_SKEW": [f"{x['skew'] / SECOND:g}" for x in (lines, fixed)],
        "RECRAWL_KEEP_GONE": [f"{x['keep_gone']:g}" for x in (lines, fixed)],
    }
    for name, (before, given) in held.items():
        if before != given:
            pages.close()
            raise ValueError(f"{name} must be {before} as in {options.folder}, got {given}")
    pages.configure(now, bandwidth=options.bandwidth, **pace)
    return pages


MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[a-z/!][^>]*>?",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, scripts, styles and tags, closed or not: in linear time, as pages may be hostile."""


def text_of(response: Response) -> str | bytes:
    """Return the text of a page without tags, scripts, styles and comments; of others the body."""
    if not isinstance(response, TextResponse):
        return response.body
    return MARKUP.sub("", response.text)
