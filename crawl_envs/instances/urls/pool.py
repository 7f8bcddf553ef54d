"""Recorded sets of URLs in Parquet files, as instances of all pages or of subsamples.

``python -m scripts.data.import_bing`` writes such a file of the public Bing set. Its columns are
``importance`` and ``change_rate`` (per day; floating-point or integer) and ``complete`` (whether
every change of the page is signalled, bool). A file with a column ``recall`` or
``false_signal_rate`` is refused; other columns are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crawl_envs.instances.traces.tables import ColumnKind, check_range, column_error, read_columns
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, complete_or_not
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import bandwidth_function, whole
from crawl_envs.types.delay import Delay

SUFFIX = ".parquet"
COLUMNS = ("importance", "change_rate", "complete")
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

    def subsample(self, num_pages: int, seed: int = 0) -> UrlPool:
        """Return ``num_pages`` distinct pages, drawn from ``seed``, in the order of the pool.

        Raises:
            ValueError: the pool has fewer pages, or the seed is not an integer >= 0.
        """
        return self.drawn(num_pages, np.random.default_rng(whole("seed", seed, 0)))

    def drawn(self, num_pages: int, rng: np.random.Generator) -> UrlPool:
        """Return ``num_pages`` distinct pages, drawn with ``rng``, in the order of the pool.

        Raises:
            ValueError: the pool has fewer pages.
        """
        count = whole("num_pages", num_pages, 1, self.num_pages)
        kept = np.sort(rng.choice(self.num_pages, count, replace=False, shuffle=False))
        return UrlPool(self.importance[kept], self.change_rate[kept], self.complete[kept])


@dataclass(frozen=True, eq=False)
class Subsample:
    """Generator of subsamples of a pool; calling it with a NumPy generator returns an instance.

    Args:
        pool: all pages.
        num_pages: number of pages of an instance, from 1 to the size of the pool.
        bandwidth: crawls per day, > 0.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: delay of signals.

    Raises:
        ValueError: an argument is outside its range.
    """

    pool: UrlPool
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None

    def __post_init__(self) -> None:
        whole("num_pages", self.num_pages, 1, self.pool.num_pages)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance."""
        pages = self.pool.drawn(self.num_pages, rng)
        return complete_or_not(
            pages.importance,
            pages.change_rate,
            pages.complete,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            delay=self.delay,
        )


def url_pool(path: str | Path) -> UrlPool:
    """Read a pool of URLs, in 17 bytes per page; reading needs about three times as much.

    Raises:
        ValueError: the file is missing or truncated, lacks a column, has a column of signal
            quality, has no rows, or a column has another type, a null, or a number that is not
            finite and >= 0.
    """
    file = Path(path)
    columns, _ = read_columns(file, _kinds(file))
    importance, change_rate = (columns[name].astype(np.float64, copy=False) for name in COLUMNS[:2])
    check_range(file, "importance", importance, 0.0, np.inf)
    check_range(file, "change_rate", change_rate, 0.0, np.inf)
    if importance.size == 0:
        raise column_error(file, "importance", "no rows", "at least one page")
    return UrlPool(importance, change_rate, _flags(file, "complete"))


def _kinds(path: Path) -> dict[str, ColumnKind]:
    """Return the kinds of numeric columns; raise ValueError if columns are missing or refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected a Parquet file with {list(COLUMNS)}")
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: expected a whole Parquet file, but {reason}") from None
    absent = [name for name in COLUMNS if name not in schema.names]
    if absent:
        raise ValueError(
            f"{path}: column {absent[0]!r} is missing, expected columns {list(COLUMNS)}, got "
            f"{schema.names}"
        )
    for name in REFUSED:
        if name in schema.names:
            raise ValueError(f"{path}: expected no signals but 'complete', got column {name!r}")
    whole = {name: pa.types.is_integer(schema.field(name).type) for name in COLUMNS[:2]}
    return {name: "whole" if fits else "number" for name, fits in whole.items()}


def _flags(path: Path, name: str) -> BoolArray:
    """Read a boolean column of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        column = file.read(columns=[name])[name]
    if not pa.types.is_boolean(column.type):
        raise column_error(path, name, f"type {column.type}", "True or False")
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise column_error(path, name, f"null in row {row}", "True or False")
    return np.asarray(column.to_numpy(), dtype=np.bool_)
