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

Other rates are fitted by equation 10 of Kolobov et al. (2019), smoothed: the estimate maximises the
likelihood of the crawls and of two imaginary crawls, each half a day after the previous crawl, one
with a change and one without (section 5 of the paper; one of each is from the public code). The
public code then clips rates to [0.0005, 7] a day and solves to 1e-4; here they are solved to
rounding and not clipped. Standard errors are from the second derivative of that likelihood.

Memory: about 200 bytes per URL for the four small files, and about twenty times a block of text.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.files import replacing
from policies.estimators import fit_change_rates
from scripts.data.bing import files
from scripts.data.bing.files import BLOCK, GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS
from scripts.data.progress import Bars, no_bars

FORM = "1"
"""Version of the output format; parts of other versions are not reused."""

IMAGINARY = 0.5
"""Length of the imaginary intervals, in days."""


FIELDS = {
    IMPORTANCE: "importance",
    HOSTS: "constrained",
    URLS: "host_id",
    GIVEN_RATES: "given_rate",
}
"""What each small file tells of its ids."""


class Source(NamedTuple):
    """The files of the set, read in blocks of so many bytes; ``bars`` shows progress."""

    paths: Mapping[str, Path]
    bars: Bars
    block: int

    def blocks(self, name: str, start: int = 0) -> Iterator[tuple[int, list[Any]]]:
        """Return the blocks of a file after ``start`` lines, as :func:`files.read`."""
        path = self.paths[name]
        advance = self.bars(path.name, path.stat().st_size)
        return files.read(name, path, start=start, block=self.block, advance=advance)


class Summary(NamedTuple):
    """Summary of an import; the means are published or follow from published numbers.

    ``left_out`` URLs have no information on their change rates, a share of ``complete`` has
    complete observation. Under importance weights there are ``complete_importance``, and the means
    of Delta / (Delta + 0.2), ``weighted_odds``, and of ln(1 + 5 Delta), ``weighted_log``.
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
    bars: Bars = no_bars,
    block: int = BLOCK,
) -> Summary:
    """Import the five files in ``folder`` as the Parquet file ``out``.

    Each block of histories is a part in the folder ``out``.parts until the table is complete; an
    import that was killed goes on after the last part. Bad files leave no parts.

    The options are those of the command; ``bars`` shows progress, ``block`` is the number of bytes
    of text that are read at a time.

    Raises:
        ValueError: a file is missing, truncated, foreign or inconsistent with others, or an
            output path is taken.
        OSError: an output cannot be written.
    """
    import pyarrow.parquet as pq

    source = Source(files.find(folder), bars, block)
    if out.is_dir() or (out.exists() and not force):
        raise ValueError(f"{out}: exists; use --force to replace it")
    about = _about(source.paths, histories)
    parts_folder = out.with_name(out.name + ".parts")
    parts = _parts(parts_folder, about, force)
    urls = _read_urls(source)
    taken, lines = np.zeros(len(urls), np.bool_), 0
    for part in parts:
        ids = pq.read_table(part, columns=["url_id"])["url_id"].to_numpy()
        taken[urls.index.get_indexer(ids)], lines = True, lines + ids.size
    parts_folder.mkdir(parents=True, exist_ok=True)
    try:
        for table in _tables(source, urls, taken, lines, histories):
            parts.append(parts_folder / f"part-{len(parts):06d}.parquet")
            with replacing(parts[-1]) as unfinished:
                marked = table.replace_schema_metadata({"about": about})
                pq.write_table(marked, unfinished, compression="zstd")
        left_out = _merge(parts, urls[~taken].sort_index(), out, histories, allow_missing)
    except ValueError:  # files are bad, and will be others
        shutil.rmtree(parts_folder, ignore_errors=True)
        raise
    shutil.rmtree(parts_folder, ignore_errors=True)
    return _summary(out, left_out)


def _about(paths: Mapping[str, Path], histories: bool) -> str:
    """Return the description of the sources and options of parts."""
    stats = [(str(path.resolve()), path.stat()) for path in paths.values()]
    states = [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    return json.dumps({"form": FORM, "histories": histories, "files": states})


def _parts(folder: Path, about: str, force: bool) -> list[Path]:
    """Return the parts of this import that exist; ValueError if there are others."""
    import pyarrow.parquet as pq

    parts = sorted(folder.glob("part-*.parquet"))
    if all((pq.read_schema(part).metadata or {}).get(b"about") == about.encode() for part in parts):
        return parts
    if not force:
        raise ValueError(
            f"{folder}: has parts of an import of other files or in another format, "
            "expected none; --force starts over"
        )
    shutil.rmtree(folder)
    return []


def _read_urls(source: Source) -> pd.DataFrame:
    """Return importance, host_id, constrained and given_rate (NaN if none) of URLs, by their id.

    Raises:
        ValueError: a malformed line, a duplicate id, an id that the file it refers to does not
            have, or a URL without importance or host.
    """
    importance, hosts, urls, rates = (_by_id(source, *item) for item in FIELDS.items())
    paths = source.paths
    _places(paths[URLS], urls.index, importance.index, paths[IMPORTANCE])
    _places(paths[URLS], urls["host_id"].to_numpy(), hosts.index, paths[HOSTS])
    _places(paths[GIVEN_RATES], rates.index, importance.index, paths[IMPORTANCE])
    lost = importance.index.difference(urls.index)
    if lost.size:
        raise ValueError(
            f"{paths[URLS]}: expected every URL id of {paths[IMPORTANCE].name}, but {lost.size} "
            f"are missing, the first of them {lost.min()}"
        )
    hosts = hosts.astype(bool)
    return importance.join(urls.astype(np.int64)).join(hosts, on="host_id").join(rates)


def _by_id(source: Source, name: str, field: str) -> pd.DataFrame:
    """Return the column of a small file by its ids, none of which may come twice."""
    path, read = source.paths[name], source.blocks(name)
    blocks = [[files.numbers(column) for column in columns] for _, columns in read]
    if not blocks and name != GIVEN_RATES:
        raise ValueError(f"{path}: expected at least one line, got an empty file")
    ids, values = np.concatenate(blocks, axis=1) if blocks else np.empty((2, 0))
    return pd.DataFrame({field: values}, _once(path, ids))


def _once(path: Path, ids: FloatArray, again: BoolArray | None = None, line: int = 1) -> pd.Index:
    """Return an index of ids; ValueError for an id that comes ``again``, or twice among them."""
    index = pd.Index(ids.astype(np.int64))
    repeated = index.duplicated() if again is None else again | index.duplicated()
    if repeated.any():
        row = int(np.argmax(repeated))
        raise ValueError(
            f"{path}, line {line + row}: expected every id once, but {index[row]} comes again"
        )
    return index


def _places(path: Path, ids: Any, known: pd.Index, owner: Path, line: int = 1) -> IntArray:
    """Return the index of each id in ``known``; ValueError for one that ``owner`` lacks."""
    place = known.get_indexer(ids.astype(np.int64))
    if (place < 0).any():
        row = int(np.argmax(place < 0))
        raise ValueError(
            f"{path}, line {line + row}: expected an id of {owner.name}, got {ids[row]:.0f}"
        )
    return place


def _tables(
    source: Source, urls: pd.DataFrame, taken: BoolArray, start: int, histories: bool
) -> Iterator[Any]:
    """Read, fit and join histories after ``start`` lines; yield a table per block."""
    path = source.paths[HISTORIES]
    for line, columns in source.blocks(HISTORIES, start):
        ids, first_crawl = map(files.numbers, columns[:2])
        offsets, intervals, changed = files.crawls(columns[2])
        impossible = np.flatnonzero((changed == 1) & (intervals <= 0.0))
        if impossible.size:
            row = int(np.searchsorted(offsets, impossible[0], "right")) - 1
            expected, got = files.FORMATS[HISTORIES].line, columns[2][row].as_py()
            raise files.malformed(path, line + row, expected, got)
        place = _places(path, ids, urls.index, source.paths[IMPORTANCE], line)
        _once(path, ids, taken[place], line)
        taken[place] = True
        yield _table(urls.iloc[place], first_crawl, (offsets, intervals, changed), histories)


def _table(
    urls: pd.DataFrame,
    first_crawl: FloatArray,
    crawls: tuple[IntArray, FloatArray, IntArray],
    histories: bool,
) -> Any:
    """Return the table of URLs and their crawls (see files.crawls); unknown rates are null."""
    import pyarrow as pa

    offsets, intervals, changed = crawls
    given, counts = urls["given_rate"].to_numpy(), np.diff(offsets)
    complete = ~np.isnan(given)
    rate = stderr = given
    if given.size:
        fit = fit_change_rates(intervals, changed, offsets, smoothing=IMAGINARY)
        rate, stderr = fit.change_rate, fit.stderr
    columns = {
        "url_id": pa.array(urls.index.to_numpy()),
        "host_id": pa.array(urls["host_id"].to_numpy()),
        "constrained": pa.array(urls["constrained"].to_numpy()),
        "importance": pa.array(urls["importance"].to_numpy()),
        "change_rate": pa.array(np.where(complete, given, rate), mask=~complete & (counts == 0)),
        "stderr": pa.array(stderr, mask=complete | (counts == 0)),
        "complete": pa.array(complete),
        "num_crawls": pa.array((counts + ~np.isnan(first_crawl)).astype(np.int32)),
    }
    if histories:
        starts = pa.array(offsets, pa.int64())
        lists = intervals.astype(np.float32), changed
        columns["first_crawl"] = pa.array(first_crawl, mask=np.isnan(first_crawl))
        for name, values in zip(("intervals", "changed"), lists, strict=True):
            columns[name] = pa.LargeListArray.from_arrays(starts, pa.array(values))
    return pa.table(columns)


def _merge(
    parts: list[Path], rest: pd.DataFrame, out: Path, histories: bool, allow_missing: bool
) -> int:
    """Write all parts, and the URLs of ``rest`` that have a given rate; return how many have none.

    Raises:
        ValueError: URLs have neither a history nor a given rate, unless they may be left out, or
            no URL is left.
    """
    import pyarrow.parquet as pq

    known = rest[rest["given_rate"].notna()]
    none = np.zeros(len(known) + 1, np.int64), np.empty(0), np.empty(0, np.uint8)
    last = _table(known, np.full(len(known), np.nan), none, histories)
    lost, written = rest.index[rest["given_rate"].isna()].tolist(), 0
    about = {"source": "Bing set of Kolobov et al. (2019)", "time": "days", "form": FORM}
    with replacing(out) as unfinished:
        schema = last.schema.with_metadata(about)
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for part in (*parts, None):
                table = last if part is None else pq.read_table(part)
                table = table.replace_schema_metadata(about)
                lost += table.filter(table["change_rate"].is_null())["url_id"].to_pylist()
                table = table.filter(table["change_rate"].is_valid())
                written += table.num_rows
                writer.write_table(table)
        if lost and not allow_missing:
            raise ValueError(
                f"{out}: expected a history or a given change rate of every URL, but {len(lost)} "
                f"have neither, URL id {lost[0]} for one; --allow-missing leaves them out"
            )
        if not written:
            raise ValueError(f"{out}: expected at least one URL that is crawled, got none")
    return len(lost)


def _summary(out: Path, left_out: int) -> Summary:
    """Return the summary of a table."""
    table = pd.read_parquet(out, columns=["importance", "change_rate", "complete"])
    weight, rate = table["importance"], table["change_rate"]
    total = np.float64(weight.sum())
    with np.errstate(invalid="ignore"):
        return Summary(
            num_pages=len(table),
            left_out=left_out,
            complete=float(table["complete"].mean()),
            complete_importance=float(weight[table["complete"]].sum() / total),
            mean_rate=float(rate.mean()),
            weighted_odds=float((weight * rate / (rate + 0.2)).sum() / total),
            weighted_log=float((weight * np.log1p(5.0 * rate)).sum() / total),
        )
