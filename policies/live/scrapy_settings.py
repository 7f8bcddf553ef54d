"""The settings of a crawl with Scrapy that never ends, and what is compared of its pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from scrapy.http import Response, TextResponse
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawl_envs.types.arguments import one_of, quantity, whole

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
        whole(f"RECRAWL_FEEDS[{url!r}]", source, 0)
    options = Options(**{names[name]: value for name, value in given.items()})
    return options._replace(compare=load_object(options.compare))


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
