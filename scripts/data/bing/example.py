"""Synthetic files in the format of the Bing set, to try an import.

Importance, change rates and complete observation are those of the instance ``lambdacrawl``;
importance is multiplied by its published mean and rounded up to an integer. As in the set, a URL is
crawled about daily for 98 days, some crawls are lost, and URLs that never changed are left out, so
that ids have gaps. The small files are in random order. Hosts have ten URLs on average, and one in
ten is constrained: these are our choices, since nothing about hosts is published.
"""

from __future__ import annotations

import csv
import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.instances.urls.lambdacrawl import PUBLISHED_IMPORTANCE, Urls, draw_urls
from scripts.data.bing.files import FORMATS, GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS
from scripts.data.progress import Bars, no_bars

DAYS = 98
LOST = 0.03
"""Share of the daily crawls that fail and are not recorded."""
JITTER = 0.2
"""Standard deviation of the time of the daily crawl, in days."""
HOST_SIZE = 10
CONSTRAINED = 0.1


def make_example(
    folder: Path, num_pages: int, seed: int = 0, *, packed: bool = False, bars: Bars = no_bars
) -> pd.DataFrame:
    """Write the five files into ``folder`` and return the true parameters of their URLs.

    Args:
        folder: output folder, created if missing.
        num_pages: number of URLs before unchanged ones are left out, >= 1.
        seed: an integer >= 0.
        packed: whether to write gzipped files.
        bars: progress bars.

    Returns:
        url_id, host_id, constrained, importance, change_rate (per day) and complete, by url_id.

    Raises:
        ValueError: one of the files exists.
        OSError: the files cannot be written.
    """
    ending = ".txt.gz" if packed else ".txt"
    for name in FORMATS:
        path = folder / (name + ending)
        if path.exists():
            raise ValueError(f"{path}: exists, expected a folder without the set's files")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    urls = draw_urls(rng, num_pages)
    host = rng.integers(0, max(num_pages // HOST_SIZE, 1), num_pages)
    constrained = rng.random(host.max() + 1) < CONSTRAINED
    with tempfile.TemporaryDirectory(prefix=".example-", dir=folder) as scratch:
        place, advance = Path(scratch) / (HISTORIES + ending), bars(HISTORIES, num_pages)
        page = []
        with gzip.open(place, "wt", compresslevel=1) if packed else place.open("w") as file:
            for number, line in enumerate(_histories(rng, urls)):
                advance(1)
                if line is not None:
                    page.append(number)
                    file.write(line)
        made = pd.DataFrame(
            {
                "url_id": np.array(page, np.int64) + 1,
                "host_id": host[page] + 1,
                "constrained": constrained[host[page]],
                "importance": np.ceil(PUBLISHED_IMPORTANCE * urls.importance[page]),
                "change_rate": urls.change_rate[page],
                "complete": urls.complete[page],
            }
        )
        for name, table in _tables(made, rng).items():
            file_format = {"sep": "\t", "header": False, "index": False}
            table.to_csv(place.with_name(name + ending), **file_format, quoting=csv.QUOTE_NONE)
        for path in Path(scratch).iterdir():
            path.rename(folder / path.name)
    return made


def _histories(rng: np.random.Generator, urls: Urls) -> Iterator[str | None]:
    """Yield the line of the file of histories of each page, None without an observed change."""
    for page, rate in enumerate(urls.change_rate.tolist()):
        days = np.flatnonzero(rng.random(DAYS) >= LOST)
        times = np.sort(days + JITTER * rng.standard_normal(days.size).clip(-2.0, 2.0) + 0.5)
        intervals = np.diff(times)
        changed = rng.random(intervals.size) < -np.expm1(-rate * intervals)
        said = zip(intervals.tolist(), changed.tolist(), strict=True)
        pairs = ", ".join(f"[{interval:.15g}, {change:d}]" for interval, change in said)
        yield f"{page + 1}\t{float(times[0])!r}\t[{pairs}]\n" if changed.any() else None


def _tables(made: pd.DataFrame, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Return the four small files, each in another order."""
    made = made.astype({"importance": np.int64, "constrained": np.int64})
    mixed = made.iloc[rng.permutation(len(made))].astype({"url_id": str})
    mixed["url"] = "https://host" + mixed["host_id"].astype(str) + '.example/"' + mixed["url_id"]
    mixed["url"] += '"'
    hosts = made.drop_duplicates("host_id").sort_values("host_id")
    hosts["host"] = "https://host" + hosts["host_id"].astype(str) + ".example/"
    return {
        URLS: mixed[["url", "url_id", "host_id"]],
        HOSTS: hosts[["host", "host_id", "constrained"]],
        IMPORTANCE: mixed.iloc[::-1][["url_id", "importance"]],
        GIVEN_RATES: made[made["complete"]][["url_id", "change_rate"]],
    }
