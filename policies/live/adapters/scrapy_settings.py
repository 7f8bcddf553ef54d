"""The settings of a crawl with Scrapy, and the scheduler that they make."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urldefrag

import numpy as np
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawl_envs.types.arguments import one_of, quantity, share, whole
from policies.live.adapters import page_tables
from policies.live.adapters.copies import text_of, without_user
from policies.live.adapters.messages import AUDIT_SHARE, SECONDS_PER_DAY
from policies.live.scheduler import CrawlScheduler, DurableScheduler

logger = logging.getLogger(__name__)
SECOND = 1.0 / SECONDS_PER_DAY
ANY_URLS = ("http://q.invalid", "https://z.invalid/?~")
"""Example URLs; a rule that matches all of them matches every URL."""


def response_text(response: Response) -> str | bytes:
    """Return a response's content to compare: :func:`policies.live.adapters.copies.text_of`."""
    kind = response.headers.get("Content-Type") or b"text/html" * isinstance(response, HtmlResponse)
    return text_of(response.body, kind.decode("latin-1"))


class Options(NamedTuple):
    """The settings of a crawl; see :mod:`policies.live.adapters.scrapy`."""

    folder: str
    bandwidth: float
    policy: str = "GreedyNCIS"
    host_gap: float = 0.0
    retry: float = 3600.0
    keep_gone: float = 30.0
    feeds: Mapping[str, int] = {}
    pages: str | None = None
    rules: Sequence[tuple[re.Pattern[str], str]] = ()
    least_interval: float = 0.0
    most_interval: float | None = None
    audit_share: float = AUDIT_SHARE
    new_share: float = 0.5
    validators: bool = True
    poll: float = 3600.0
    skew: float = 5.0
    robots: float = 86_400.0
    max_retry_after: float = 86_400.0
    overview_port: int | None = None
    compare: Callable[[Response], Any] = response_text
    cost: str = ""
    cap: float | None = None
    cap_period: float | None = None
    max_cost: float | None = None

    @property
    def intervals(self) -> dict[str, float]:
        """The least and, if it is set, the longest interval of pages, in days."""
        both = {"least_interval": self.least_interval, "most_interval": self.most_interval}
        return {name: x * SECOND for name, x in both.items() if x is not None}


def decoded(value: Any) -> Any:
    """Parse a text as JSON, as an option of the command line is; return other values unchanged."""
    return json.loads(value) if isinstance(value, str) else value


def feeds_of(value: Any) -> dict[str, int]:
    """Read the setting of feeds: the number of each feed's source of signals by its URL."""
    feeds = {url: whole("a source", source, 0) for url, source in dict(decoded(value)).items()}
    for url in feeds:
        if not re.match("https?://[^/]", url, re.IGNORECASE):
            raise ValueError(f"{without_user(url)!r} does not begin with http:// or https://")
    return feeds


def function_of(name: Any) -> Callable[[Response], Any]:
    """Import a function by its dotted name."""
    function: Callable[[Response], Any] = load_object(name)
    if not callable(function):
        raise ValueError("it is no function")
    return function


Reader = tuple[str, Callable[[Any], Any]]
POSITIVE: Reader = "a number > 0", lambda value: quantity("it", float(value), above=0.0)
AMOUNT: Reader = "a number >= 0", lambda value: quantity("it", float(value))
READERS: dict[str, Reader] = {
    **dict.fromkeys(("bandwidth", "retry", "poll", "robots"), POSITIVE),
    **dict.fromkeys(("cap", "cap_period", "max_cost", "most_interval"), POSITIVE),
    "audit_share": ("in [0, 1)", lambda value: share("it", float(value), below=True)),
    "cost": ("bytes or seconds", lambda value: one_of("it", value, ("bytes", "seconds"))),
    **dict.fromkeys(("host_gap", "keep_gone", "skew", "least_interval", "max_retry_after"), AMOUNT),
    "feeds": ("{URL: number of a source of signals, from 0 on}", feeds_of),
    "rules": (
        "[(regular expression, name of a method), ..]",
        lambda value: [(re.compile(pattern), str(name)) for pattern, name in decoded(value)],
    ),
    "new_share": ("in (0, 1]", lambda value: share("it", float(value), above=True)),
    "compare": ("the name of a function of a response", function_of),
    "validators": ("a bool", lambda value: BaseSettings({"it": value}).getbool("it")),
    "overview_port": ("a port", lambda port: int(port) if str(port).isdecimal() else port),
}
"""What each setting must be, in words, and the function that reads it, by name."""


def read_options(settings: BaseSettings) -> Options:
    """Return the settings of a crawl; ValueError if one is unknown, missing or out of range."""
    names = {f"RECRAWL_{name.upper()}": name for name in Options._fields}
    values: dict[str, Any] = {"host_gap": settings.getfloat("DOWNLOAD_DELAY")}
    for name, value in settings.items():
        if name.upper().startswith("RECRAWL") and value is not None:
            one_of("setting", name, list(names))
            values[names[name]] = value
    for name in ("folder", "bandwidth"):
        if values.get(name) in (None, ""):
            raise ValueError(
                f"RECRAWL_{name.upper()} must be set, for a crawl with RecrawlScheduler"
            )
    for name in values.keys() & READERS.keys():
        expected, reader = READERS[name]
        try:
            values[name] = reader(values[name])
        except (TypeError, ValueError, re.error) as error:
            got = re.sub(r"(?<=://)[^/?#\s]*@", "", repr(values[name]))  # without passwords
            setting = f"RECRAWL_{name.upper()}"
            raise ValueError(f"{setting} must be {expected}, got {got}: {error}") from None
    return Options(**values)


def cap_of(options: Options, settings: BaseSettings) -> dict[str, Any]:
    """Return ``cap``, ``cap_period`` and ``max_cost``, if there is a cap; ValueError if bad."""
    source = {"bytes": "DOWNLOAD_MAXSIZE", "seconds": "DOWNLOAD_TIMEOUT"}.get(options.cost, "1")
    cap, period, max_cost = options.cap, options.cap_period, options.max_cost
    if cap is None and (period or max_cost):
        raise ValueError("RECRAWL_CAP must be set with RECRAWL_CAP_PERIOD or RECRAWL_MAX_COST")
    if cap is None:
        return {}
    period, max_cost = period or SECONDS_PER_DAY, max_cost or settings.getfloat(source, 1.0)
    if not 0.0 < max_cost <= cap:
        limits = f"in (0, RECRAWL_CAP], up to {cap:g}, got {max_cost:g}"
        raise ValueError(f"RECRAWL_MAX_COST must be {limits}; by default it is {source}")
    return {"cap": cap, "cap_period": period * SECOND, "max_cost": max_cost}


def timeout_of(settings: BaseSettings) -> float:
    """Return the days until a fetch counts as lost: twice Scrapy's timeout, for redirects."""
    return max(2.0 * settings.getfloat("DOWNLOAD_TIMEOUT"), 1.0) * SECOND


def options_of(spider: Spider, options: Options) -> Options:
    """Return the options with the folder of a spider; ValueError if its callbacks do not fit."""
    parses = type(spider).parse is not Spider.parse or type(spider)._parse is not Spider._parse
    for _, name in options.rules:
        if not callable(getattr(spider, name, None)) or (name == "parse" and not parses):
            raise ValueError(f"RECRAWL_RULES must name methods of the spider, got {name!r}")
    listed = "RECRAWL_FEEDS" if options.feeds else "RECRAWL_PAGES" if options.pages else ""
    covered = any(all(map(pattern.search, ANY_URLS)) for pattern, _ in options.rules)
    if listed and not (parses or covered):
        got = [(pattern.pattern, name) for pattern, name in options.rules]
        raise ValueError(
            f"RECRAWL_RULES must have a rule for every page of {listed}, as the spider has no "
            f'method parse, got {got}; add ("", "METHOD") as the last one'
        )
    name = re.sub(r"^\.|\.$", "%2e", quote(spider.name, ""))
    return options._replace(folder=str(Path(options.folder, name)))


def spelled(url: str) -> str:
    """Return a URL as Scrapy spells it, without its fragment."""
    return urldefrag(str(Request(url).url)).url


def open_pages(options: Options, settings: BaseSettings, now: float) -> DurableScheduler:
    """Return the scheduler of a spider's folder, or a new one, with the pages of a table.

    Raises:
        ValueError: the table cannot be used, or a setting differs that the folder has fixed.
    """
    folder = Path(options.folder) / "scheduler"
    table = None if options.pages is None else open_table(options)
    caps, unit = cap_of(options, settings), Path(options.folder) / "cost"
    costs = f"{options.cost or 'none'}, {caps.get('cap_period')} days, {caps.get('max_cost')}"
    saved = settings.getint("CONCURRENT_REQUESTS") / options.bandwidth
    pace: dict[str, Any] = {
        "burst": 10.0 * SECOND if options.cost else saved,
        "timeout": timeout_of(settings),
        "retry": options.retry * SECOND,
        "audit_share": options.audit_share,
    }
    sources = max(options.feeds.values(), default=0) + 1
    fixed: dict[str, Any] = {
        "num_sources": max(sources, len(table.sources) if table is not None else 0),
        "skew": options.skew * SECOND,
        "keep_gone": options.keep_gone,
        "new_share": options.new_share,
    }
    new = None
    if not DurableScheduler.holds(folder):
        fresh: dict[str, Any] = {"start": now, "learn": True, "resolution": SECOND}
        new = CrawlScheduler(options.policy, options.bandwidth, **fixed, **pace, **fresh, **caps)
        if table is not None:
            page_tables.add_pages(new, table, np.arange(table.num_pages), now)
            page_tables.report_signals(new, table, table.urls, now)
    policy = options.policy if ":" in options.policy else None  # a folder names no code
    pages = DurableScheduler(folder, new, policy=policy)
    fixed["costs"] = unit.read_text() if unit.exists() else costs, costs
    check_fixed(pages, options, fixed)
    if options.cost or caps:
        unit.write_text(costs)
        pace |= {"cap": options.cap} if caps else {}
    before = pages.audits.share if pages.audits else 0.0
    if before != options.audit_share:
        logger.warning(f"RECRAWL_AUDIT_SHARE is now {options.audit_share:g}, not {before:g}")
    pages.configure(now, bandwidth=options.bandwidth, **pace)
    if table is not None and new is None:  # those that are new in it
        page_tables.add_pages(pages, table, page_tables.living(table), now, known="skip")
    set_intervals(pages, options.intervals)
    return pages


def set_intervals(pages: DurableScheduler, intervals: Mapping[str, float]) -> None:
    """Set the intervals of all pages; warn of promises that cannot be kept."""
    choices, living = pages.pages.choices, pages.pages.living()
    for name, interval in intervals.items():
        before = choices.least if name == "least_interval" else choices.most_interval
        before = before[living] if before.size else np.full(living.size, math.inf)
        rows = living[before != interval]
        try:
            if rows.size:
                pages.update(pages.pages.ids.ids(rows), **{name: interval})
        except ValueError as error:
            logger.warning(f"{rows.size} pages keep their longest interval: {error}")


def check_fixed(pages: DurableScheduler, options: Options, fixed: Mapping[str, Any]) -> None:
    """Raise ValueError, and close the folder, if a setting differs from that of the folder."""
    [lines], sources = pages.pages.choices.lines, pages.num_sources
    settings = {
        "RECRAWL_POLICY": (pages.pages.values.name, options.policy),
        "RECRAWL_COST, RECRAWL_CAP_PERIOD and RECRAWL_MAX_COST": fixed["costs"],
        "sources of RECRAWL_FEEDS": (sources, max(sources, fixed["num_sources"])),
        "RECRAWL_SKEW": [f"{x['skew'] / SECOND:g}" for x in (lines, fixed)],
        "RECRAWL_KEEP_GONE": [f"{x['keep_gone']:g}" for x in (lines, fixed)],
        "RECRAWL_NEW_SHARE": [f"{x['new_share']:g}" for x in (lines, fixed)],
    }
    for name, (before, value) in settings.items():
        if before != value:
            pages.close()
            raise ValueError(f"{name} must be {before} as in {options.folder}, got {value}")


def open_table(options: Options) -> Any:
    """Return the table of pages; ValueError if it cannot be used, or has too few sources."""
    try:
        table = page_tables.read_pages(str(options.pages), spelled)
    except (OSError, ValueError) as error:
        raise ValueError(f"RECRAWL_PAGES: {error}") from None
    for note in table.notes:
        logger.warning(f"RECRAWL_PAGES: {note}")
    if table.cost is not None and not options.cost:
        raise ValueError("RECRAWL_COST must be set where RECRAWL_PAGES has a column cost")
    if options.most_interval and getattr(table, "most_interval", None) is not None:
        raise ValueError("RECRAWL_MOST_INTERVAL must be unset: RECRAWL_PAGES has most_interval")
    for feed, source in options.feeds.items():
        if table.sources and source >= len(table.sources):
            raise ValueError(
                f"RECRAWL_FEEDS must have a source of RECRAWL_PAGES for {without_user(feed)}, "
                f"which are {', '.join(table.sources)} from 0 on, got {source}"
            )
    return table
