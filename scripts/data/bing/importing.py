"""Import of the Bing set: histories are read in blocks, fitted, joined, and written as one table.

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

URLs with complete observation have a given rate (by equation 11 of the paper), not the times of
their changes; it is used unchanged, as in the public code.

Memory: up to 60 bytes per URL for the small files, see :mod:`scripts.data.bing.url_tables`, and
about ten times a block of text, 13 times with histories; otherwise independent of the file sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import Progress

from crawl_envs.types import BoolArray, FloatArray, IntArray
from scripts.data.bing.files import BLOCK, HISTORIES, IMPORTANCE, blocks, find
from scripts.data.bing.fitting import fit_histories
from scripts.data.bing.parsing import Histories, parse_histories
from scripts.data.bing.parts import Parts, Position, replace
from scripts.data.bing.url_tables import Advance, UrlTable, claim, places, read_urls

FORM = 1
"""Version of the output format; parts of other versions are not reused."""

GROUP = 2**18
"""Rows of a row group of the table, or those of a block if more."""


class Summary(NamedTuple):
    """Summary of an import; the means are published or follow from published numbers.

    Attributes:
        num_pages: URLs in the table.
        left_out: URLs without any information on their change rates.
        complete: share of URLs with complete observation.
        complete_importance: their share of the importance.
        mean_rate: mean change rate per day.
        weighted_odds: mean of Delta / (Delta + 0.2) under importance weights.
        weighted_log: mean of ln(1 + 5 Delta) under importance weights.
    """

    num_pages: int
    left_out: int
    complete: float
    complete_importance: float
    mean_rate: float
    weighted_odds: float
    weighted_log: float


def import_set(
    folder: Path,
    out: Path,
    *,
    histories: bool = False,
    allow_missing: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> Summary:
    """Import the five files in ``folder`` as the Parquet file ``out``.

    Intermediate results are saved in ``out``.parts until the table is complete; an import that was
    killed resumes from there.

    Args:
        folder: folder of the files, plain or gzipped.
        out: file to write.
        histories: whether to write the crawl histories as well.
        allow_missing: whether to leave out URLs with neither a history nor a given rate.
        force: whether to replace ``out``, and remove parts of another import.
        progress: progress bars.
        block: bytes of text read at a time.

    Raises:
        ValueError: a file is missing, truncated, foreign or inconsistent with others, or an
            output path is taken.
        OSError: an output cannot be written.
    """
    files = find(folder)
    _check_target(out, force)
    progress = progress or Progress(disable=True)
    parts = Parts(out.with_name(out.name + ".parts"), _about(files, histories, block), force)
    bars = {
        name: progress.add_task(path.name, total=path.stat().st_size)
        for name, path in files.items()
    }

    def advance(name: str, count: int) -> None:
        progress.advance(bars[name], count)

    urls = read_urls(files, advance, block)
    taken = _taken(parts, urls)
    for table, position in _tables(files, urls, taken, parts.position, histories, block, advance):
        parts.add(table, position)
    summary = _merge(parts, urls, ~taken, out, histories, allow_missing, progress)
    parts.remove()
    return summary


def _taken(parts: Parts, urls: UrlTable) -> BoolArray:
    """Return which URLs the parts contain, (m,)."""
    taken = np.zeros(urls.url_id.size, np.bool_)
    for table in parts.tables(["url_id"]):
        taken[np.searchsorted(urls.url_id, table["url_id"].to_numpy())] = True
    return taken


def _tables(
    files: Mapping[str, Path],
    urls: UrlTable,
    taken: BoolArray,
    start: Position,
    histories: bool,
    size: int,
    advance: Advance,
) -> Iterator[tuple[Any, Position]]:
    """Read, join and fit histories from a position on; yield a table per block, and its end."""
    path = files[HISTORIES]
    reading = blocks(
        path,
        start=start.byte,
        first_line=start.line,
        size=size,
        advance=lambda count: advance(HISTORIES, count),
    )
    for block in reading:
        crawls = parse_histories(path, block)
        where = path, block.first_line, crawls.url_id
        place = places(*where, urls.url_id, files[IMPORTANCE])
        claim(*where, place, taken)
        next_line = block.first_line + crawls.url_id.size
        yield _table(urls, place, crawls, histories), Position(block.end, next_line)


def _check_target(out: Path, force: bool) -> None:
    """Raise ValueError unless ``out`` may be written."""
    if not out.parent.is_dir():
        raise ValueError(f"{out}: its folder does not exist")
    if out.is_dir():
        raise ValueError(f"{out}: is a folder, expected the name of a file")
    if out.exists() and not force:
        raise ValueError(f"{out}: exists; use --force to replace it")


def _about(files: Mapping[str, Path], histories: bool, block: int) -> dict[str, Any]:
    """Return the description of sources and options: states of the files, and the format."""
    stats = {name: path.stat() for name, path in files.items()}
    return {
        "form": FORM,
        "histories": histories,
        "block": block,
        "files": {
            name: [str(files[name].resolve()), stat.st_size, stat.st_mtime_ns]
            for name, stat in stats.items()
        },
    }


def _table(urls: UrlTable, place: IntArray, crawls: Histories, histories: bool) -> Any:
    """Return the table of URLs at the given places; unknown rates are null."""
    import pyarrow as pa

    rate, stderr = fit_histories(crawls)
    given = urls.given_rate[place]
    complete = ~np.isnan(given)
    counts = np.diff(crawls.offsets)
    columns = {
        "url_id": pa.array(urls.url_id[place]),
        "host_id": pa.array(urls.host_id[place]),
        "constrained": pa.array(urls.constrained[place]),
        "importance": pa.array(urls.importance[place]),
        "change_rate": _or_null(np.where(complete, given, rate), ~complete & (counts == 0)),
        "stderr": _or_null(stderr, complete | (counts == 0)),
        "complete": pa.array(complete),
        "num_crawls": pa.array((counts + ~np.isnan(crawls.first_crawl)).astype(np.int32)),
    }
    if histories:
        offsets = pa.array(crawls.offsets)
        columns |= {
            "first_crawl": _or_null(crawls.first_crawl, np.isnan(crawls.first_crawl)),
            "intervals": _lists(offsets, crawls.intervals.astype(np.float32)),
            "changed": _lists(offsets, crawls.changed),
        }
    return pa.table(columns)


def _or_null(values: FloatArray, absent: BoolArray) -> Any:
    import pyarrow as pa

    return pa.array(values, mask=absent)


def _lists(offsets: Any, values: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(offsets, pa.array(values))


def _merge(
    parts: Parts,
    urls: UrlTable,
    unheard: BoolArray,
    out: Path,
    histories: bool,
    allow_missing: bool,
    progress: Progress,
) -> Summary:
    """Write all parts, and the URLs that have a given rate but no history, as one file."""
    import pyarrow.parquet as pq

    known = np.flatnonzero(unheard & ~np.isnan(urls.given_rate))
    rest = _table(urls, known, _no_histories(urls.url_id[known]), histories)
    lost = urls.url_id[unheard & np.isnan(urls.given_rate)]
    left_out, example = lost.size, lost[:1].tolist()
    for table in parts.tables(["url_id", "change_rate"]):
        empty = table.filter(table["change_rate"].is_null())["url_id"]
        left_out, example = left_out + len(empty), example or empty[:1].to_pylist()
    if left_out and not allow_missing:
        raise ValueError(
            f"{out}: expected a history or a given change rate of every URL, but {left_out} have "
            f"neither, URL id {example[0]} for one; --allow-missing leaves them out"
        )
    totals = np.zeros(7)

    def write(path: Path) -> None:
        about = {"source": "Bing set of Kolobov et al. (2019)", "time": "days", "form": str(FORM)}
        with pq.ParquetWriter(path, rest.schema.with_metadata(about), compression="zstd") as writer:
            bar = progress.add_task(out.name, total=len(parts.paths))
            for count, table in _groups(parts, rest):
                totals[:] += _totals(table)
                writer.write_table(table, row_group_size=max(GROUP, table.num_rows))
                progress.update(bar, completed=count)

    # Inside the folder of the parts, so that no other leftovers are possible.
    finished = parts.folder / out.name
    replace(finished, write)
    if totals[0] == 0.0:
        raise ValueError(f"{out}: expected at least one URL that is crawled, got none")
    finished.replace(out)
    return _summary(totals, left_out)


def _groups(parts: Parts, rest: Any) -> Iterator[tuple[int, Any]]:
    """Yield tables of about GROUP rows with rates, and the number of parts done."""
    import pyarrow as pa

    waiting: list[Any] = []
    for count, table in enumerate(parts.tables(), 1):
        waiting.append(table.filter(table["change_rate"].is_valid()))
        if sum(part.num_rows for part in waiting) >= GROUP:
            yield count, pa.concat_tables(waiting)
            waiting = []
    yield len(parts.paths), pa.concat_tables([*waiting, rest])


def _no_histories(url_id: IntArray) -> Histories:
    count = url_id.size
    return Histories(
        url_id,
        np.full(count, np.nan),
        np.zeros(count + 1, np.int64),
        np.empty(0),
        np.empty(0, np.uint8),
    )


def _totals(table: Any) -> FloatArray:
    """Return sums over rows: of 1, importance, both over complete pages, and of the means."""
    weight, rate = table["importance"].to_numpy(), table["change_rate"].to_numpy()
    complete = table["complete"].to_numpy()
    return np.array(
        [
            rate.size,
            weight.sum(),
            complete.sum(),
            weight[complete].sum(),
            rate.sum(),
            np.sum(weight * rate / (rate + 0.2)),
            np.sum(weight * np.log1p(5.0 * rate)),
        ]
    )


def _summary(totals: FloatArray, left_out: int) -> Summary:
    count, weight, complete, complete_weight, rate, odds, logarithm = totals.tolist()
    with np.errstate(invalid="ignore"):
        weighted = np.array([complete_weight, odds, logarithm]) / np.float64(weight)
    return Summary(
        num_pages=int(count),
        left_out=left_out,
        complete=complete / count,
        complete_importance=float(weighted[0]),
        mean_rate=rate / count,
        weighted_odds=float(weighted[1]),
        weighted_log=float(weighted[2]),
    )
