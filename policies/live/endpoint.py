"""A scheduler over HTTP, for all who hold copies of pages and ask whether one is due.

=================  =========================================================================
request            answer
=================  =========================================================================
``GET /due?url=``  whether a page is due, why, how likely its copy is stale, and the next date;
                   it changes nothing
``POST /``         a message of :mod:`policies.live.messages`, or one in each line: the
                   answer of each, in as many lines
``GET /health``    200 if the scheduler answers
``GET /metrics``   counters and gauges in the text format of Prometheus
``GET /``          a page to watch: freshness, fetches, budget, hosts, signals, what comes next
``GET /overview``  the data of that page
``POST /truth``    ``{"freshness": 0.9}``, of a replay that knows it, for the page; with a ``time``,
                   from the first message to a day after now
=================  =========================================================================

Who fetches what ``due`` says keeps no budget. Ask instead, which grants as many fetches as the
bandwidth allows to those pages whose fetch is worth most, adds a page that is new, as a scheduler
that learns can, and names the page by its id; then fetch and report::

    curl localhost:8808 -d '{"ask": "https://a.example/"}'
    curl localhost:8808 -d '{"report": ["https://a.example/"], "changed": [true]}'

A bad message is answered by 400 and an ``error``, and changes nothing; so is a body of more than
10,000 lines or 16 MiB, a line of which has lists of 10,000 entries at most: send several. Others
are answered between two lines. ``serve`` has 100 connections at once; more are answered by 503.
There is no encryption or authentication: serve to the own machine or a trusted network. Pages of
other sites are kept out: a request must name a host that is served (``Host``), else the answer is
400, and if it has an ``Origin``, this must be the same host and port, else 403.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter as Counts
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crawl_envs.types.arguments import one_of, share
from policies.live.messages import (
    MAX_BYTES,
    Message,
    Scheduler,
    answer_line,
    date_of,
    day_of,
    read_json,
)
from policies.live.overview import History, overview_of
from policies.scheduler.ids import LONGEST_TEXT

JSON = "application/json"
MAX_LINES = 10_000
"""Lines of the largest body."""
OWN_HOSTS = ("localhost", "127.0.0.1", "[::1]")
PAGE = Path(__file__).with_name("overview.html")
ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
HEADERS = {"Content-Security-Policy": ALLOWED + "connect-src 'self'; frame-ancestors 'none'"}


class Metrics:
    """Counters of what a scheduler is told since the start, and gauges of what it knows."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.registry = scheduler, CollectorRegistry()
        self.history, self.counts = History(), Counts[str]()
        self.now: float | None = None  # of the last message, where it gives a time
        about: Any = {"registry": self.registry, "namespace": "crawl"}
        self.handed_out = Counter("handed_out", "Pages handed out or granted.", **about)
        self.reports = Counter("reports", "Fetches by outcome.", ["outcome"], **about)
        self.signals = Counter("signals", "Signals by source.", ["source"], **about)
        self.ignored = Counter("signals_ignored", "Signals that were not new.", **about)
        self.pages = Gauge("pages", "Pages by state.", ["state"], **about)
        self.gauges = {
            "freshness": Gauge("freshness_expected", "Expected share of fresh copies.", **about),
            "allowance": Gauge("allowance", "Fetches that may be made now.", **about),
            "bandwidth": Gauge("bandwidth", "Fetches per day.", **about),
            "clamped": Gauge("clamped", "Calls whose time was before the clock.", **about),
            "ahead": Gauge("ahead", "Copies and signals ahead of the clock.", **about),
        }

    def note(self, message: Message, answer: Message) -> None:
        """Count what a message told of fetches and signals."""
        if not message.keys() & {"next", "ask", "report", "signal"}:
            return
        time = day_of(message.get("time"))
        self.now = None if message.get("time") is None else time
        told = self.history.at(time)
        if "expected" not in told:
            told["expected"] = self.scheduler.overview(time)["freshness"]
        if "next" in message or "ask" in message:
            self.handed_out.inc(len(answer["fetch"]))
            told["outcomes"]["handed out"] += len(answer["fetch"])
        if "report" in message:
            found = outcomes(message, answer["ignored"])
            told["outcomes"] += found
            for outcome, count in found.items():
                self.reports.labels(outcome).inc(count)
        if "signal" in message:
            source = str(message.get("source", 0))
            self.counts[source] += len(_listed(message["signal"]))
            self.signals.labels(source).inc(len(_listed(message["signal"])))
            self.ignored.inc(answer["ignored"] + len(answer["unknown"]))

    def truth(self, freshness: float, time: float) -> None:
        """Take note of the true freshness at a time, from the first message to a day after now."""
        now = day_of(self.now)
        first, last = self.history.begin(now), now + 1.0
        if not first <= time <= last:
            raise ValueError(f"time must be in [{first:g}, {last:g}] days, got {time:g}")
        self.history.at(time)["true"] = freshness

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        told = self.scheduler.overview(day_of(self.now))
        for state, count in told["states"].items():
            self.pages.labels(state).set(count)
        known = {name: getattr(self.scheduler, name) for name in ("bandwidth", "clamped", "ahead")}
        for name, value in {**told, **known}.items():
            if name in self.gauges:
                self.gauges[name].set(float("nan") if value is None else value)
        return generate_latest(self.registry)

    def overview(self) -> dict[str, Any]:
        """Return the data of the page."""
        now = day_of(self.now)
        told = overview_of(self.scheduler, now)
        self.history.at(now)["expected"] = told["freshness"]
        for number, source in enumerate(told["sources"]):
            source["signals"] = self.counts[str(number)]
        span = {"width": self.history.width, "history": self.history.table()}
        return {"now": date_of(now), "time": now, **told, **span}


def outcomes(message: Message, ignored: int) -> Counts[str]:
    """Return the fetches of a report by outcome; which are ignored is not told.

    So where some are ignored and others are not, and outcomes differ, the others are ``ok``.
    """
    count, status = len(_listed(message["report"])), message.get("status", "ok")
    changed = _listed(message.get("changed")) if status == "ok" else [None]
    names = [status if x is None else "changed" if x else "unchanged" for x in changed]
    found = Counts(names * count if len(names) == 1 else names)
    if ignored:
        kept = next(iter(found)) if len(found) == 1 else "ok"
        found = Counts({kept: count - ignored, "ignored": ignored})
    return +found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def endpoint(scheduler: Scheduler, hosts: Sequence[str] = ()) -> Starlette:
    """Return the application that serves a scheduler, for any server of ASGI.

    Its calls are made one after another. ``hosts`` are names and addresses, without ports, by which
    it may be asked beside those of the own machine, as ``Host`` has them: ``[2001:db8::1]``.
    """
    metrics = Metrics(scheduler)

    async def due(request: Request) -> Response:
        given = request.query_params.multi_items()
        if [name for name, _ in given] != ["url"]:
            example = "/due?url=https%3A%2F%2Fa.example%2F"
            return _answer({"error": f"due must have a url, its & escaped, as in {example}"})
        return _answer(answer_line(scheduler, json.dumps({"due": given[0][1]})))

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

    async def health(request: Request) -> Response:
        return _answer({"pages": len(scheduler), "time": scheduler.time})

    async def measured(request: Request) -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE.read_text("utf-8"), headers=HEADERS)

    async def overview(request: Request) -> Response:
        return _answer(metrics.overview())

    async def truth(request: Request) -> Response:
        try:
            message = read_json(await body_of(request))
            for name in message.keys() - {"freshness"}:
                one_of("name", name, ("time",))
            value = share("freshness", message["freshness"])
            metrics.truth(value, day_of(message.get("time")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return _answer({"error": f"truth must have a freshness in [0, 1], a time: {error}"})
        return _answer({"freshness": value})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/", messages, methods=["POST"]),
            Route("/overview", overview),
            Route("/truth", truth, methods=["POST"]),
            Route("/due", due),
            Route("/health", health),
            Route("/metrics", measured),
        ],
        middleware=[
            Middleware(
                TrustedHostMiddleware, allowed_hosts=[*OWN_HOSTS, *hosts], www_redirect=False
            ),
            Middleware(own_origin),
        ],
    )


async def body_of(request: Request) -> bytes:
    """Return the body of a request; ValueError if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise ValueError(f"a body must have at most {MAX_BYTES} bytes: send several")
    return bytes(body)


def own_origin(app: ASGIApp) -> ASGIApp:
    """Return an application that answers 403 to requests that pages of other origins send."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin")
        if origin is None or origin.partition("://")[2].lower() == headers["host"].lower():
            await app(scope, receive, send)
        else:
            told = json.dumps({"error": f"origin must be that of the endpoint, got {origin}"})
            await Response(told + "\n", 403, media_type=JSON)(scope, receive, send)

    return answer


def _answer(*answers: Message) -> Response:
    """Return answers, a line each; with status 400 if the only one is an error."""
    bad = len(answers) == 1 and "error" in answers[0]
    text = "\n".join(json.dumps(each) for each in answers) + "\n"
    kind = JSON if len(answers) == 1 else "application/x-ndjson"
    return Response(text, 400 if bad else 200, media_type=kind)


def serve(scheduler: Scheduler, listening: socket.socket) -> None:
    """Serve a scheduler on a socket that listens, until an interrupt.

    It answers to ``localhost`` and to the address of the socket, on 100 connections at once.
    Name the protocol of the socket (``socket.IPPROTO_TCP``): else asyncio delays answers by 40 ms.
    """
    import uvicorn

    served = endpoint(scheduler, [listening.getsockname()[0]])
    limits: Any = {"limit_concurrency": 100, "timeout_graceful_shutdown": 5, "http": "h11"}
    limits["h11_max_incomplete_event_size"] = 4 * LONGEST_TEXT  # a byte takes three in an address
    uvicorn.Server(uvicorn.Config(served, log_level="warning", **limits)).run(sockets=[listening])
