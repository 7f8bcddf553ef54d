"""Hosts that pages live on."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import IntArray

PAGES_PER_HOST = 10
"""About so many: enough for a few crawls of a host to tell of the rest, and hosts to choose from
on a hundred pages."""


def hosts_of(num_pages: int) -> IntArray:
    """Return the host of each page, (m,): even shares of about PAGES_PER_HOST, side by side."""
    count = max(1, round(num_pages / PAGES_PER_HOST))
    host: IntArray = np.arange(num_pages, dtype=np.int64) * count // num_pages
    return host
