"""Recorded sets of URLs in Parquet files, as instances of subsamples of their pages.

``python -m scripts.data.import_bing`` writes such a file of the public Bing set. Its columns are
``importance`` and ``change_rate`` (per day; floating-point or integer) and ``complete`` (whether
every change of the page is signalled, bool). A file with a column ``recall`` or
``false_signal_rate`` is refused; other columns are ignored.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.instances.laws import DELAY, Law
from crawl_envs.instances.traces.tables import ColumnKind, column_error, read_table
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, Urls, complete_or_not
from crawl_envs.types import Instance

SUFFIX = ".parquet"
COLUMNS: dict[str, ColumnKind] = {
    "importance": "any number",
    "change_rate": "any number",
    "complete": "flag",
}
REFUSED = ("recall", "false_signal_rate")


def pool_law(path: str | Path) -> Law:
    """Return the law that draws random subsets of a file of URLs, in the file's order."""
    pool = url_pool(path)
    return Law(
        partial(_draw, pool),
        f"Subsamples of {path}.",
        bandwidth=CRAWLS_PER_PAGE,
        per_page=True,
        arguments=DELAY,
        most_pages=pool.importance.size,
    )


def _draw(pool: Urls, rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance of ``num_pages`` distinct pages of a pool, in the pool's order."""
    size = pool.importance.size
    rows = np.sort(rng.choice(size, num_pages, replace=False, shuffle=False))
    rate, complete = pool.change_rate[rows], pool.complete[rows]
    return complete_or_not(pool.importance[rows], rate, complete, **more)


def url_pool(path: str | Path) -> Urls:
    """Read a pool of URLs, in 17 bytes per page; reading needs about three times as much.

    Raises:
        ValueError: the file is missing or truncated, lacks a column, has a column of signal
            quality, has no rows, or a column has another type, a null, or a number that is not
            finite and >= 0.
    """
    import pyarrow.parquet as pq

    file = Path(path)
    table = read_table(file, COLUMNS)
    for name in pq.read_schema(file).names:
        if name in REFUSED:
            raise ValueError(f"{path}: expected no signals but 'complete', got column {name!r}")
    for name in ("importance", "change_rate"):
        table.check_range(name, 0.0, np.inf)
    if table["importance"].size == 0:
        raise column_error(file, "importance", "no rows", "at least one page")
    return Urls(**table.columns)
