"""Serve a scheduler over HTTP, for programs that hold copies of pages and ask which are due.

==================  ========================================================================
request             answer
==================  ========================================================================
``GET /due?url=``   whether a page is due, why, how likely its copy is stale, and the next date;
                    it changes nothing
``POST /``          lines of :mod:`policies.live.adapters.messages`: an answer in a line for each
``GET /freshness``  what audits measured, as ``freshness`` of these lines; ``?since=&until=&group=``
``GET /health``     200 if the scheduler answers
``GET /metrics``    counters and gauges in the text format of Prometheus
``GET /``           a page to watch: believed and measured freshness, fetches, budget, hosts,
                    feeds, trust in sources, the next pages, and pages that need attention
``GET /overview``   the data of that page
==================  ========================================================================

``due`` keeps no budget; ``ask`` does, and answers the id of the page. A bad message changes nothing
and is answered by 400 and an ``error``. So is a body of more than 10,000 lines or 16 MiB; a list
has at most 10,000 entries: send several. Other requests are answered between two lines. ``serve``
has 100 connections at once and answers more by 503. There is no encryption or authentication: serve
to this machine or a trusted network. ``Host`` must be a host that is served, else the status is
400, and an ``Origin`` must be the same host and port, else it is 403.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
from collections import Counter as Counts
from collections.abc import Sequence
from pathlib import Path
from time import monotonic as clock
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from policies.live.adapters.messages import (
    AUDITED,
    MAX_BYTES,
    PROMISED,
    Message,
    Scheduler,
    answer_line,
    date_of,
    day_of,
    finite,
)
from policies.live.adapters.overview import History, audits_on, feeds_of, overview_of, without_login
from policies.live.scheduler.ids import LONGEST_TEXT

JSON, SIGNALS = "application/json", "crawl_signals_total"
MAX_LINES = 10_000
"""Most lines in the body of a request."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
COSTS = {"spend": "Cost of the fetches handed out.", "mean_cost": "Mean cost of a fetch."}
COSTS |= {"period_spend": "Spend in this period of the cap.", "cap": "Largest spend of a period."}
MEASURED = {"freshness_measured": "estimate"} | AUDITED
OPTIONAL = COSTS | dict.fromkeys(MEASURED, "From the audits of the day (UTC); see /freshness.")
OPTIONAL |= dict.fromkeys(PROMISED, "Promises; see CrawlScheduler.overview.")
OPTIONAL |= {"promised": "Pages with a longest interval."}
PAGE = Path(__file__).with_name("overview.html")
ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
HEADERS = {"Content-Security-Policy": ALLOWED + "connect-src 'self'; frame-ancestors 'none'"}


class Metrics:
    """Counters of all calls of a scheduler since the start, and gauges of its state.

    ``polls`` are the feeds of the crawler (:class:`policies.live.adapters.feeds.Polls`) or None.
    ``causes`` are pairs of a page and the reason why its fetch failed.
    """

    def __init__(
        self, scheduler: Scheduler, polls: Any = None, causes: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.scheduler, self.registry = scheduler, CollectorRegistry()
        self.polls, self.causes = polls, causes
        self.history = History()
        self.now: float | None = None  # of the last message, if it has a time
        self.begun: float | None = None  # the time of the first call for a fetch
        self.until = self.allowed = 0.0
        self.look_again, self.data = -math.inf, dict[str, Any]()
        about: Any = {"registry": self.registry, "namespace": "crawl"}
        self.about, self.first_spend = about, 0.0
        self.first_spend = self._used(0.0)
        self.handed_out = Counter("handed_out", "Pages handed out or granted.", **about)
        self.reports = Counter("reports", "Fetches by outcome.", ["outcome"], **about)
        self.signals = Counter("signals", "Signals by source.", ["source"], **about)
        self.ignored = Counter("signals_ignored", "Signals that were not new.", **about)
        self.pages = Gauge("pages", "Pages by state.", ["state"], **about)
        self.gauges = {
            "freshness": Gauge("freshness_expected", "Believed share of fresh copies.", **about),
            "allowance": Gauge("allowance", "Fetches or cost that may be spent now.", **about),
            "bandwidth": Gauge("bandwidth", "Fetches or cost per day.", **about),
            "clamped": Gauge("clamped", "Calls whose time was before the clock.", **about),
            "ahead": Gauge("ahead", "Copies and signals ahead of the clock.", **about),
            "failing": Gauge("failing", "Pages whose last fetch failed.", **about),
            "starved": Gauge("starved", "Pages with a copy ten mean intervals old.", **about),
            "likely_stale": Gauge("likely_stale", "Pages stale with more than 95%.", **about),
            "held": Gauge("held", "Hosts that are not asked before a time.", **about),
        }
        scheduler.watchers.append(self.count)
        overview_of(scheduler, day_of(None))  # compiles, so that the first look is short

    def note(self, message: Message) -> None:
        """Show the state as of a message's time from now on, or as of now if it has none."""
        if message.keys() & {"next", "ask", "report", "signal"}:
            self.now = None if message.get("time") is None else day_of(message["time"])

    def count(self, call: str, arguments: Message, answer: Any) -> None:
        """Add the fetches and signals of a scheduler's call to the counters."""
        if call == "signal":
            sources = np.broadcast_to(arguments.get("source", 0), np.size(arguments["ids"]))
            for source, count in Counts(map(str, sources.tolist())).items():
                self.signals.labels(source).inc(count)
            self.ignored.inc(answer.ignored + len(answer.unknown))
        elif call in ("next", "next_batch", "ask"):
            count = answer.size if call == "next_batch" else int(answer.id is not None)
            self.handed_out.inc(count)
            now = self.scheduler.time
            if self.begun is None:
                self.begun = self.until = now
                self.allowed = min(self.scheduler.allowance, self.scheduler.most_saved)
                self.allowed += self._used(count)
            self.allowed += self.scheduler.bandwidth * max(now - self.until, 0.0)
            self.until = now
            self._bin(now)["outcomes"]["handed out"] += count
        elif call == "report":
            time = arguments["times"] if (end := arguments.get("ended")) is None else end
            counts = outcomes(arguments, answer)
            if np.size(time):
                self._bin(float(np.max(time)))["outcomes"] += counts
            for outcome, count in counts.items():
                self.reports.labels(outcome).inc(count)

    def _used(self, fetches: float) -> float:
        """Return the spend since the start; without costs, a number of fetches."""
        spending = self.scheduler.pace.spending
        return fetches if spending is None else spending.spend - self.first_spend

    def _bin(self, time: float) -> dict[str, Any]:
        """Return the history's bin of a time, and fill in the freshness at that time."""
        place = self.history.bin_at(time)
        if "expected" not in place:
            place["expected"] = self.scheduler.overview(time)["freshness"]
            place["measured"] = audits_on(self.scheduler, time)
        return place

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        values = self.scheduler.overview(day_of(self.now))
        if (spending := self.scheduler.pace.spending) is not None:
            values |= {"mean_cost": spending.mean, "cap": spending.cap}
        if (day := audits_on(self.scheduler, day_of(self.now))) is not None:
            values |= {name: day[key] for name, key in MEASURED.items()}
        for name in OPTIONAL.keys() & values.keys() - self.gauges.keys():
            self.gauges[name] = Gauge(name, OPTIONAL[name], **self.about)
        for state, count in values["states"].items():
            self.pages.labels(state).set(count)
        for name, gauge in self.gauges.items():
            value = values[name] if name in values else getattr(self.scheduler, name)
            gauge.set(float("nan") if value is None else value)
        return generate_latest(self.registry)

    def overview(self) -> dict[str, Any]:
        """Return the data of the page to watch; old data if new ones take over 5% of the time.

        Calls of the scheduler wait meanwhile: .23 s for a million pages.
        """
        begin = clock()
        if begin >= self.look_again:
            with self.scheduler.lock:
                self.data = finite(self._look())
            self.look_again = clock() + max(20.0 * (clock() - begin) - 5.0, 0.0)
        return self.data

    def _look(self) -> dict[str, Any]:
        now = day_of(self.now)
        data = overview_of(self.scheduler, now)
        day = (data["measured"] or {}).get("day")
        self.history.bin_at(now).update(expected=data["freshness"], measured=day)
        for number, source in enumerate(data["sources"]):
            labels = {"source": str(number)}
            source["signals"] = int(self.registry.get_sample_value(SIGNALS, labels) or 0)
        causes = {without_login(page): without_login(cause, page) for page, cause in [*self.causes]}
        for page in (*data["first"]["gone"], *data["first"]["failing"]):
            page["cause"] = causes.get(page["url"])
        sent = sum(place["outcomes"]["handed out"] for place in self.history.table())
        elapsed = 0.0 if self.begun is None else max(now - self.until, 0.0)
        allowed = self.allowed + elapsed * self.scheduler.bandwidth
        used = {"begun": self.begun, "sent": sent, "allowed": allowed, "used": self._used(sent)}
        feeds = [] if self.polls is None else feeds_of(self.polls)
        span = {"width": self.history.width, "history": self.history.table()}
        return {"now": date_of(now), "time": now, **data, "feeds": feeds, **used, **span}


def outcomes(report: Message, ignored: int) -> Counts[str]:
    """Count a report's fetches by outcome; with several outcomes, ``ok`` if some are ignored."""
    count, status = np.size(report["ids"]), report.get("status", "ok")
    changed: Any = np.ravel(np.asarray(report.get("changed"))) if status == "ok" else [None]
    names = [status if x is None else "changed" if x else "unchanged" for x in changed]
    counts = Counts(names * count if len(names) == 1 else names)
    if ignored:
        outcome = next(iter(counts)) if len(counts) == 1 else "ok"
        counts = Counts({outcome: count - ignored, "ignored": ignored})
    return +counts


def endpoint(scheduler: Scheduler, hosts: Sequence[str] = (), polls: Any = None) -> Starlette:
    """Return the ASGI application that serves a scheduler over HTTP.

    Calls are made one after another. ``hosts`` are further names and addresses of this machine
    without ports, as in ``Host``: ``[2001:db8::1]``. ``polls`` are feeds for the page to watch.
    """
    metrics = Metrics(scheduler, polls)

    async def due(request: Request) -> Response:
        parameters = request.query_params.multi_items()
        if [name for name, _ in parameters] != ["url"]:
            example = "/due?url=https%3A%2F%2Fa.example%2F"
            return _answer({"error": f"due must have a url, its & escaped, as in {example}"})
        return _answer(answer_line(scheduler, json.dumps({"due": parameters[0][1]})))

    async def messages(request: Request) -> Response:
        try:
            body = await body_of(request)
        except ValueError as error:
            return _answer({"error": str(error)})
        lines = body.strip().split(b"\n", MAX_LINES)
        if len(lines) > MAX_LINES:
            return _answer({"error": f"a body must have at most {MAX_LINES} lines: send several"})
        answers = []
        for line in [line for line in lines if line.strip()] or [b""]:
            answers.append(answer_line(scheduler, line, metrics.note))
            await asyncio.sleep(0)  # for the other requests
        return _answer(*answers)

    routes = [Route("/", messages, methods=["POST"]), Route("/due", due)]
    return page_to_watch(metrics, hosts, routes)


def page_to_watch(
    metrics: Metrics, hosts: Sequence[str] = (), routes: Sequence[Route] = ()
) -> Starlette:
    """Return the application of the page to watch, which is read-only, plus further routes."""

    async def health(request: Request) -> Response:
        scheduler = metrics.scheduler
        return _answer({"pages": len(scheduler), "time": scheduler.time})

    async def measured(request: Request) -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE.read_text("utf-8"), headers=HEADERS)

    async def overview(request: Request) -> Response:
        return _answer(metrics.overview())

    async def freshness(request: Request) -> Response:
        items, limits = request.query_params.multi_items(), dict[str, Any]()
        for name, text in items:
            is_number = name != "group" and text.replace(".", "", 1).isdecimal()
            limits[name] = float(text) if is_number else text
        if len(limits) < len(items):
            return _answer({"error": f"names must differ, got {items!r:.80}"})
        return _answer(answer_line(metrics.scheduler, json.dumps({"freshness": limits})))

    pages = {"/": page, "/overview": overview, "/health": health, "/metrics": measured}
    pages["/freshness"] = freshness
    names: Any = {"allowed_hosts": [*LOCAL_HOSTS, *hosts], "www_redirect": False}
    trusted = [Middleware(TrustedHostMiddleware, **names), Middleware(same_origin)]
    return Starlette(routes=[*map(Route, pages, pages.values()), *routes], middleware=trusted)


async def body_of(request: Request) -> bytes:
    """Return the body of a request; ValueError if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise ValueError(f"a body must have at most {MAX_BYTES} bytes: send several")
    return bytes(body)


def same_origin(app: ASGIApp) -> ASGIApp:
    """Wrap an application so that requests from pages of other origins are answered by 403."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin")
        if origin is None or origin.partition("://")[2].lower() == headers["host"].lower():
            await app(scope, receive, send)
        else:
            error = json.dumps({"error": f"origin must be that of the endpoint, got {origin}"})
            await Response(error + "\n", 403, media_type=JSON)(scope, receive, send)

    return answer


def _answer(*answers: Message) -> Response:
    """Return a response with one line per answer; its status is 400 for a single error."""
    bad = len(answers) == 1 and "error" in answers[0]
    text = "\n".join(json.dumps(answer) for answer in answers) + "\n"
    kind = JSON if len(answers) == 1 else "application/x-ndjson"
    return Response(text, 400 if bad else 200, media_type=kind)


def serve(scheduler: Scheduler, listening: socket.socket, polls: Any = None) -> None:
    """Serve a scheduler on a socket that listens, until an interrupt.

    It answers to ``localhost`` and to the address of the socket, on 100 connections at once.
    Name the protocol of the socket (``socket.IPPROTO_TCP``): else asyncio delays answers by 40 ms.
    """
    import uvicorn

    served = endpoint(scheduler, [listening.getsockname()[0]], polls)
    limits: Any = {"limit_concurrency": 100, "timeout_graceful_shutdown": 5, "http": "h11"}
    limits["h11_max_incomplete_event_size"] = 4 * LONGEST_TEXT  # a byte takes three in an address
    uvicorn.Server(uvicorn.Config(served, log_level="warning", **limits)).run(sockets=[listening])
