"""Synthetic files in the format of the Bing set, to try an import.

Importance, change rates and complete observation are those of the instance ``lambdacrawl``;
importance is multiplied by its published mean and rounded up to an integer. As in the set, a URL is
crawled about daily for 98 days, some crawls are lost, and URLs that never changed are left out, so
that ids have gaps. The small files are in random order. Hosts have ten URLs on average, and one in
ten is constrained: these are our choices, since nothing about hosts is published.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from rich.progress import Progress

from crawl_envs.instances.urls.lambdacrawl import PUBLISHED_IMPORTANCE, Urls, draw_urls
from crawl_envs.types import BoolArray, FloatArray, IntArray
from scripts.data.bing.files import GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, NAMES, URLS

DAYS = 98
LOST = 0.03
"""Share of the daily crawls that fail and are not recorded."""
JITTER = 0.2
"""Standard deviation of the time of the daily crawl, in days."""
HOST_SIZE = 10
CONSTRAINED = 0.1


class Example(NamedTuple):
    """The URLs that were written, in order of their ids.

    Attributes:
        url_id: (n,) int64.
        host_id: (n,) int64.
        constrained: (n,) bool.
        importance: integers, (n,).
        change_rate: true change rate per day, (n,).
        complete: (n,) bool.
    """

    url_id: IntArray
    host_id: IntArray
    constrained: BoolArray
    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray


def make_example(
    folder: Path, num_pages: int, seed: int = 0, *, packed: bool = False, progress: Progress
) -> Example:
    """Write the five files into ``folder`` and return the true parameters of their URLs.

    Args:
        folder: output folder, created if missing.
        num_pages: number of URLs before unchanged ones are left out, >= 1.
        seed: an integer >= 0.
        packed: whether to write gzipped files.
        progress: progress bars.

    Raises:
        ValueError: one of the files exists.
        OSError: the files cannot be written.
    """
    ending = ".txt.gz" if packed else ".txt"
    for name in NAMES:
        path = folder / (name + ending)
        if path.exists():
            raise ValueError(f"{path}: exists, expected a folder without the set's files")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".example-", dir=folder) as scratch:
        paths = {name: Path(scratch) / (name + ending) for name in NAMES}
        made = _write(paths, num_pages, np.random.default_rng(seed), progress)
        for path in paths.values():
            path.rename(folder / path.name)
    return made


def _write(
    paths: Mapping[str, Path], num_pages: int, rng: np.random.Generator, progress: Progress
) -> Example:
    """Draw URLs and write those that changed."""
    urls = draw_urls(rng, num_pages)
    host = rng.integers(0, max(num_pages // HOST_SIZE, 1), num_pages)
    constrained = rng.random(host.max() + 1) < CONSTRAINED
    kept = np.zeros(num_pages, np.bool_)
    bar = progress.add_task(paths[HISTORIES].name, total=num_pages)
    with _open(paths[HISTORIES]) as file:
        for page, line in _histories(rng, urls):
            kept[page] = True
            file.write(line)
            progress.update(bar, completed=page + 1)
    page = np.flatnonzero(kept)
    made = Example(
        page + 1,
        host[page] + 1,
        constrained[host[page]],
        np.ceil(PUBLISHED_IMPORTANCE * urls.importance[page]),
        urls.change_rate[page],
        urls.complete[page],
    )
    _write_tables(paths, made, rng.permutation(page.size))
    return made


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", compresslevel=1)
    return path.open("w")


def _histories(rng: np.random.Generator, urls: Urls) -> Iterator[tuple[int, str]]:
    """Yield the lines of the file of histories, for pages with an observed change."""
    for page, rate in enumerate(urls.change_rate.tolist()):
        days = np.flatnonzero(rng.random(DAYS) >= LOST)
        times = np.sort(days + JITTER * rng.standard_normal(days.size).clip(-2.0, 2.0) + 0.5)
        intervals = np.diff(times)
        changed = rng.random(intervals.size) < -np.expm1(-rate * intervals)
        if not changed.any():
            continue
        said = zip(intervals.tolist(), changed.tolist(), strict=True)
        pairs = ", ".join(f"[{interval:.15g}, {change:d}]" for interval, change in said)
        yield page, f"{page + 1}\t{float(times[0])!r}\t[{pairs}]\n"


def _write_tables(paths: Mapping[str, Path], made: Example, order: IntArray) -> None:
    """Write the four small files, each in another order."""
    url_id, host_id = made.url_id.tolist(), made.host_id.tolist()
    with _open(paths[URLS]) as file:
        file.writelines(
            f'https://host{host_id[row]}.example/"{url_id[row]}"\t{url_id[row]}\t{host_id[row]}\n'
            for row in order.tolist()
        )
    hosts, first = np.unique(made.host_id, return_index=True)
    with _open(paths[HOSTS]) as file:
        file.writelines(
            f"https://host{host}.example/\t{host}\t{bound:d}\n"
            for host, bound in zip(hosts.tolist(), made.constrained[first].tolist(), strict=True)
        )
    with _open(paths[IMPORTANCE]) as file:
        file.writelines(
            f"{url_id[row]}\t{made.importance[row]:.0f}\n" for row in order[::-1].tolist()
        )
    with _open(paths[GIVEN_RATES]) as file:
        file.writelines(
            f"{url_id[row]}\t{float(made.change_rate[row])!r}\n"
            for row in np.flatnonzero(made.complete).tolist()
        )
