"""Measure what fetches of pages with Scrapy cost, in bytes or seconds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, Response

from policies.live.adapters.fetches import LEAST_COST
from policies.live.adapters.messages import SECONDS_PER_DAY
from policies.live.adapters.scrapy_requests import PAGE

logger = logging.getLogger(__name__)


class Costs:
    """The costs of the fetches under way in a unit: ``"bytes"``, ``"seconds"`` or "" for none.

    Bytes count as they arrive, with headers and redirects, up to ``max_cost``. Seconds are
    ``download_latency``; without it those since the time in ``sent``, up to ``DOWNLOAD_TIMEOUT``.
    """

    def __init__(
        self, crawler: Crawler, unit: str, max_cost: float, sent: Mapping[str, float]
    ) -> None:
        self.crawler, self.unit, self.max_cost, self.sent = crawler, unit, max_cost, sent
        self.costs = dict[str, float]()
        self.timeout = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        if unit == "bytes":
            crawler.signals.connect(self.add_headers, signals.headers_received)
            crawler.signals.connect(self.add_body, signals.bytes_received)

    def add_headers(self, headers: Headers, body_length: Any, request: Request) -> None:
        """Count the headers of an answer; StopDownload if they announce too large a body."""
        self._add(request, len(headers.to_string()), body_length)

    def add_body(self, data: bytes, request: Request) -> None:
        """Count a piece of a body; StopDownload if the fetch costs too much."""
        self._add(request, len(data), 0)

    def _add(self, request: Request, size: int, remaining: Any) -> None:
        page = request.meta.get(PAGE)
        if page in self.sent:
            self.costs[page] = cost = self.costs.get(page, 0.0) + size
            cost += remaining if isinstance(remaining, int) else 0  # else it is not known
            if cost > self.max_cost:
                why = f"{cost:.0f} bytes are above the largest cost, {self.max_cost:.0f}"
                logger.warning(f"{page} is not downloaded in full: {why}")
                raise StopDownload(fail=True)

    def note(self, page: str, request: Request, response: Response) -> None:
        """Record the answer to a request of a page."""
        if self.unit == "seconds" and "download_latency" in request.meta:
            self.costs[page] = request.meta["download_latency"]
        elif self.unit == "bytes" and page not in self.costs:  # the handler sends no signals
            self.costs[page] = len(response.headers.to_string()) + len(response.body)

    def end(self, page: str, now: float) -> float | None:
        """Return the cost of a page's fetch that ends, and add it to the stats; None without."""
        if not self.unit:
            return None
        elapsed = min((now - self.sent[page]) * SECONDS_PER_DAY, self.timeout)
        cost = self.costs.pop(page, elapsed if self.unit == "seconds" else 0.0)
        self.crawler.stats.inc_value("recrawl/spend", cost)
        return max(cost, LEAST_COST)
