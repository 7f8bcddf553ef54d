"""Measure what fetches of pages with Scrapy cost, in bytes or seconds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response

from policies.live.adapters.fetches import LEAST_COST
from policies.live.adapters.messages import SECONDS_PER_DAY
from policies.live.adapters.scrapy_requests import PAGE

logger = logging.getLogger(__name__)


class Costs:
    """The costs of the fetches under way in a unit: ``"bytes"``, ``"seconds"`` or "" for none.

    Bytes count as they arrive, with headers and redirects, up to ``max_cost``. Seconds are
    ``download_latency``; without it those since the time in ``sent``, up to ``DOWNLOAD_TIMEOUT``.
    """

    def __init__(self, crawler: Crawler, unit: str, max_cost: float, sent: Mapping[str, float]):
        self.unit, self.max_cost, self.sent = unit, max_cost, sent
        self.costs, self.stats = dict[str, float](), crawler.stats
        self.timeout = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        for signal in (signals.headers_received, signals.bytes_received) * (unit == "bytes"):
            crawler.signals.connect(self.add, signal)

    def add(
        self, request: Request, data: Any = b"", headers: Any = None, body_length: Any = 0
    ) -> None:
        """Count headers or a piece of a body; StopDownload if the fetch costs too much with it."""
        if (page := request.meta.get(PAGE, "")) in self.sent:
            size = len(data) if headers is None else len(headers.to_string())
            self.costs[page] = cost = self.costs.get(page, 0.0) + size
            cost += body_length if isinstance(body_length, int) else 0  # else it is not known
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

    def end(self, page: str, now: float) -> dict[str, Any]:
        """Return the cost of a page's fetch that ends by name, if any, and add it to the stats."""
        if not self.unit:
            return {}
        elapsed = min((now - self.sent[page]) * SECONDS_PER_DAY, self.timeout)
        cost = self.costs.pop(page, elapsed if self.unit == "seconds" else 0.0)
        self.stats.inc_value("recrawl/spend", cost)  # type: ignore[arg-type]
        return {"cost": max(cost, LEAST_COST)}
