"""Assignment of pages to hosts."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import IntArray

PAGES_PER_HOST = 10
"""Approximate number of pages per host: large enough for a few crawls to be informative about the
rest, small enough for several hosts among 100 pages."""


def hosts_of(num_pages: int) -> IntArray:
    """Return the host of each page, (m,): contiguous blocks of about PAGES_PER_HOST pages."""
    count = max(1, round(num_pages / PAGES_PER_HOST))
    host: IntArray = np.arange(num_pages, dtype=np.int64) * count // num_pages
    return host
