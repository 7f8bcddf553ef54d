"""Recorded sets of URLs in Parquet files, as instances of all pages or of subsamples.

``python -m scripts.data.import_bing`` writes such a file of the public Bing set. Its columns are
``importance`` and ``change_rate`` (per day; floating-point or integer) and ``complete`` (whether
every change of the page is signalled, bool). A file with a column ``recall`` or
``false_signal_rate`` is refused; other columns are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.instances.laws import DELAY, Law
from crawl_envs.instances.traces.tables import ColumnKind, check_range, column_error, read_columns
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, complete_or_not
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import whole

SUFFIX = ".parquet"
COLUMNS: dict[str, ColumnKind] = {
    "importance": "any number",
    "change_rate": "any number",
    "complete": "flag",
}
REFUSED = ("recall", "false_signal_rate")


@dataclass(frozen=True, eq=False)
class UrlPool:
    """Parameters of a set of URLs; times are in days.

    Attributes:
        importance: weight of each page, (m,) float64.
        change_rate: changes per day, (m,) float64.
        complete: which pages have complete observation, (m,) bool.
    """

    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.importance.shape[0])

    def instance(self, bandwidth: float | None = None) -> Instance:
        """Return all pages as an instance.

        Args:
            bandwidth: crawls per day, > 0; None is 0.2 per page.
        """
        rate = CRAWLS_PER_PAGE * self.num_pages if bandwidth is None else bandwidth
        return complete_or_not(self.importance, self.change_rate, self.complete, bandwidth=rate)

    def subsample(self, num_pages: int, seed: int | np.random.Generator = 0) -> UrlPool:
        """Return ``num_pages`` distinct pages, drawn from ``seed``, in the order of the pool.

        Raises:
            ValueError: the pool has fewer pages, or the seed is negative.
        """
        rng = np.random.default_rng(seed)
        count = whole("num_pages", num_pages, 1, self.num_pages)
        kept = np.sort(rng.choice(self.num_pages, count, replace=False, shuffle=False))
        return UrlPool(self.importance[kept], self.change_rate[kept], self.complete[kept])


def pool_law(path: str | Path) -> Law:
    """Return the law of subsamples of a file of URLs."""
    pool = url_pool(path)
    return Law(
        partial(_draw, pool),
        f"Subsamples of {path}.",
        bandwidth=CRAWLS_PER_PAGE,
        per_page=True,
        arguments=DELAY,
        most_pages=pool.num_pages,
    )


def _draw(pool: UrlPool, rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance of some pages of a pool."""
    pages = pool.subsample(num_pages, rng)
    return complete_or_not(pages.importance, pages.change_rate, pages.complete, **more)


def url_pool(path: str | Path) -> UrlPool:
    """Read a pool of URLs, in 17 bytes per page; reading needs about three times as much.

    Raises:
        ValueError: the file is missing or truncated, lacks a column, has a column of signal
            quality, has no rows, or a column has another type, a null, or a number that is not
            finite and >= 0.
    """
    import pyarrow.parquet as pq

    file = Path(path)
    columns, _ = read_columns(file, COLUMNS)
    for name in pq.read_schema(file).names:
        if name in REFUSED:
            raise ValueError(f"{path}: expected no signals but 'complete', got column {name!r}")
    for name in ("importance", "change_rate"):
        check_range(file, name, columns[name], 0.0, np.inf)
    if columns["importance"].size == 0:
        raise column_error(file, "importance", "no rows", "at least one page")
    return UrlPool(**columns)
