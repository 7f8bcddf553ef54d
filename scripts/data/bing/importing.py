"""Import the Bing set: read histories in blocks, fit change rates, join, and write one table.

The table has a row for every URL, in the order of the file of histories:

=================  ======================================================================
``url_id``         int64
``host_id``        int64
``constrained``    bool: whether the host limits how fast it is crawled
``importance``     float64: the score, as given
``change_rate``    float64, per day: as given for URLs with complete observation, else fitted
``stderr``         float64: standard error of a fitted rate, null for a given one
``complete``       bool: whether the URL has complete observation
``num_crawls``     int32: crawls recorded, the first included
``first_crawl``    float64: days from the start of the record; with histories
``intervals``      lists of float32: days between crawls; with histories
``changed``        lists of uint8: whether crawls after the first found a change; with histories
=================  ======================================================================

URLs with complete observation have a given rate (by equation 11 of the paper) and no times of
changes; the rate is used unchanged, as in the public code.

Other rates are fitted by equation 10 of Kolobov et al. (2019), smoothed: the estimate maximises the
likelihood of the crawls and of two imaginary crawls, each half a day after the previous crawl, one
with a change and one without (section 5 of the paper; one of each is from the public code). The
public code then clips rates to [0.0005, 7] a day and solves to 1e-4; here they are solved to
rounding and not clipped. Standard errors are from the second derivative of that likelihood.

Memory: about 200 bytes per URL for the four small files, and about twenty times a block of text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from crawl_envs.system.files import replacing
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators import fit_change_rates
from scripts.data.bing import files
from scripts.data.bing.files import GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS

ABOUT = {"source": "Bing set of Kolobov et al. (2019)", "time": "days", "form": "1"}
"""Metadata that are written to the imported table."""
IMAGINARY = 0.5
"""Length of the imaginary intervals between crawls, which smooth the fit, in days."""

Paths = Mapping[str, Path]
Crawls = tuple[IntArray, FloatArray, NDArray[np.uint8]]
"""Index of each URL's first crawl, intervals and changes: the result of :func:`files.crawls`."""


def import_set(
    folder: Path, out: Path, *, histories: bool = False, force: bool = False
) -> list[int]:
    """Import the five files in ``folder`` as the Parquet file ``out``.

    Args:
        folder: folder of the set.
        out: path of the table; the file appears when it is complete.
        histories: whether to write the crawl histories as well.
        force: whether to replace ``out``.

    Returns:
        Ids of the URLs that are left out because they have no history and no change rate.

    Raises:
        ValueError: a file is missing, malformed or inconsistent with others, every URL is left out,
            or ``out`` exists.
        OSError: an output cannot be written.
    """
    paths = files.find(folder)
    if out.is_dir() or (out.exists() and not force):
        raise ValueError(f"out must not exist, got {out}; use --force to replace it")
    urls = _read_urls(paths)
    tables = _tables(paths, urls, histories)
    first, left_out = next(tables), list[int]()
    schema = first.schema.with_metadata(ABOUT)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as unfinished:
        with parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for table in chain([first], tables):
                rate = table["change_rate"]
                left_out += table.filter(rate.is_null())["url_id"].to_pylist()
                writer.write_table(table.filter(rate.is_valid()).cast(schema))
        if len(left_out) == len(urls):
            raise ValueError(f"{out}: expected a URL with a history or a change rate, got none")
    return left_out


def _read_urls(paths: Paths) -> pd.DataFrame:
    """Return importance, host_id, constrained and given_rate (NaN if none) of all URLs, by id.

    Raises:
        ValueError: a malformed line, a duplicate id, a reference to an unknown id, or a URL without
            importance or host.
    """
    importance = _column_by_id(paths, IMPORTANCE, "importance")
    hosts = _column_by_id(paths, HOSTS, "constrained").astype(bool)
    urls = _column_by_id(paths, URLS, "host_id").astype(np.int64)
    rates = _column_by_id(paths, GIVEN_RATES, "given_rate")
    _rows(paths, URLS, urls.index, IMPORTANCE, importance.index)
    _rows(paths, URLS, pd.Index(urls["host_id"]), HOSTS, hosts.index)
    _rows(paths, GIVEN_RATES, rates.index, IMPORTANCE, importance.index)
    lost = importance.index.difference(urls.index)
    if lost.size:
        raise ValueError(
            f"{paths[URLS]}: expected every URL id of {paths[IMPORTANCE].name}, but {lost.size} "
            f"are missing, the first of them {lost.min()}"
        )
    return importance.join(urls).join(hosts, on="host_id").join(rates)


def _column_by_id(paths: Paths, name: str, field: str) -> pd.DataFrame:
    """Return the value column of a small file, indexed by id; ids must be distinct."""
    blocks = files.read(name, paths[name])
    parts = [[files.numbers(column) for column in columns] for _, columns in blocks]
    ids, values = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    index = pd.Index(ids.astype(np.int64))
    _check(paths[name], 1, index, ~index.duplicated(), "every id once, but {} comes again")
    return pd.DataFrame({field: values}, index)


def _check(path: Path, line: int, ids: pd.Index, valid: BoolArray, expected: str) -> None:
    """Raise ValueError for the first id that is not valid; ``ids`` begin on line ``line``."""
    if not valid.all():
        row = int(np.argmin(valid))
        raise ValueError(f"{path}, line {line + row}: expected {expected.format(ids[row])}")


def _rows(
    paths: Paths, name: str, ids: pd.Index, owner: str, index: pd.Index, line: int = 1
) -> IntArray:
    """Return the position of each id in ``index``; ValueError if the file ``owner`` lacks an id."""
    rows: IntArray = index.get_indexer(ids)
    _check(paths[name], line, ids, rows >= 0, f"an id of {paths[owner].name}, got {{}}")
    return rows


def _tables(paths: Paths, urls: pd.DataFrame, histories: bool) -> Iterator[Any]:
    """Yield a table for each block of histories, then one of the URLs without a history."""
    path, crawled = paths[HISTORIES], np.zeros(len(urls), np.bool_)
    for line, columns in files.read(HISTORIES, path):
        ids, first_crawl = map(files.numbers, columns[:2])
        index = pd.Index(ids.astype(np.int64))
        offsets, intervals, changed = files.crawls(columns[2])
        impossible = np.flatnonzero((changed == 1) & (intervals <= 0.0))
        valid = ~np.isin(np.arange(ids.size), np.searchsorted(offsets, impossible, "right") - 1)
        _check(path, line, index, valid, "days > 0 before every change, not so for URL id {}")
        rows = _rows(paths, HISTORIES, index, IMPORTANCE, urls.index, line)
        first = ~(crawled[rows] | index.duplicated())
        _check(path, line, index, first, "every id once, but {} comes again")
        crawled[rows] = True
        yield _table(urls.iloc[rows], first_crawl, (offsets, intervals, changed), histories)
    rest = urls[~crawled].sort_index()
    no_crawls = np.zeros(len(rest) + 1, np.int64), np.empty(0), np.empty(0, np.uint8)
    yield _table(rest, np.full(len(rest), np.nan), no_crawls, histories)


def _table(urls: pd.DataFrame, first_crawl: FloatArray, crawls: Crawls, histories: bool) -> Any:
    """Return the Arrow table of URLs with fitted rates; unknown rates are null."""
    offsets, intervals, changed = crawls
    given_rate, counts = urls["given_rate"].to_numpy(), np.diff(offsets)
    complete = ~np.isnan(given_rate)
    rate = stderr = given_rate
    if given_rate.size:
        fit = fit_change_rates(intervals, changed, offsets, smoothing=IMAGINARY)
        rate, stderr = np.where(complete, given_rate, fit.change_rate), fit.stderr
    columns = {
        "url_id": pa.array(urls.index),
        "host_id": pa.array(urls["host_id"]),
        "constrained": pa.array(urls["constrained"]),
        "importance": pa.array(urls["importance"]),
        "change_rate": pa.array(rate, mask=~complete & (counts == 0)),
        "stderr": pa.array(stderr, mask=complete | (counts == 0)),
        "complete": pa.array(complete),
        "num_crawls": pa.array((counts + ~np.isnan(first_crawl)).astype(np.int32)),
    }
    if histories:
        columns["first_crawl"] = pa.array(first_crawl, mask=np.isnan(first_crawl))
        for name, values in (("intervals", intervals.astype(np.float32)), ("changed", changed)):
            columns[name] = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
    return pa.table(columns)


def summary(table: pd.DataFrame) -> str:
    """Return the means of an imported table as text, with the published means in brackets."""
    weight, rate, complete = (table[name] for name in ("importance", "change_rate", "complete"))
    total = np.float64(weight.sum())
    with np.errstate(invalid="ignore"):
        odds = (weight * rate / (rate + 0.2)).sum() / total
        log = (weight * np.log1p(5.0 * rate)).sum() / total
        share = weight[complete].sum() / total
    return (
        f"{complete.mean():.1%} with complete observation and {share:.1%} of the importance "
        f"(paper: 4%, 26.4%); mean change rate {rate.mean():.3f} per day (1.124 by the paper's "
        f"costs); weighted by importance, Delta / (Delta + 0.2) {odds:.3f} (0.554), "
        f"ln(1 + 5 Delta) {log:.3f} (1.118)"
    )
