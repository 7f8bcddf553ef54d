"""Synthetic files in the format of the Bing set, to try an import.

Importance, change rates and complete observation are those of the instance ``lambdacrawl``;
importance is multiplied by its published mean and rounded up to an integer. As in the set, a URL is
crawled about daily for 98 days, and URLs that never changed are left out, so that ids have gaps.
The small files are in random order. Nothing about hosts is published: we choose ten URLs per host
on average, and one constrained host in ten.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.instances.urls.lambdacrawl import PUBLISHED_IMPORTANCE, draw_urls
from scripts.data.bing.files import FORMATS, GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS

DAYS, HOST_SIZE, CONSTRAINED = 98, 10, 0.1


def make_example(folder: Path, num_pages: int, seed: int = 0) -> pd.DataFrame:
    """Write five files about ``num_pages`` >= 1 drawn URLs; URLs that never changed are omitted.

    Returns:
        url_id, host_id, constrained, importance, change_rate (per day) and complete, by url_id.

    Raises:
        ValueError: one of the files exists.
        OSError: the files cannot be written.
    """
    paths = {name: folder / f"{name}.txt" for name in FORMATS}
    for path in paths.values():
        if path.exists():
            raise ValueError(f"folder must have no files of the set, got {path}")
    rng = np.random.default_rng(seed)
    urls = draw_urls(rng, num_pages)
    host = rng.integers(0, max(num_pages // HOST_SIZE, 1), num_pages)
    constrained = rng.random(host.max() + 1) < CONSTRAINED
    histories = [_history(rng, rate) for rate in urls.change_rate.tolist()]
    page = np.array([number for number, text in enumerate(histories) if text], np.int64)
    example = pd.DataFrame(
        {
            "url_id": page + 1,
            "host_id": host[page] + 1,
            "constrained": constrained[host[page]],
            "importance": np.ceil(PUBLISHED_IMPORTANCE * urls.importance[page]),
            "change_rate": urls.change_rate[page],
            "complete": urls.complete[page],
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths[HISTORIES].write_text("".join(f"{number + 1}\t{histories[number]}\n" for number in page))
    for name, table in _small_files(example, rng).items():
        table.to_csv(paths[name], sep="\t", header=False, index=False, quoting=csv.QUOTE_NONE)
    return example


def _history(rng: np.random.Generator, rate: float) -> str:
    """Return a URL's first day and crawls as text; "" if no crawl found a change."""
    first, *intervals = rng.uniform(0.5, 1.5, DAYS)
    changed = rng.random(DAYS - 1) < -np.expm1(-rate * np.array(intervals))
    crawls = zip(intervals, changed, strict=True)
    pairs = ", ".join(f"[{interval:.15g}, {change:d}]" for interval, change in crawls)
    return f"{first:.15g}\t[{pairs}]" if changed.any() else ""


def _small_files(example: pd.DataFrame, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Return the tables of the four small files by name; their rows are in different orders."""
    example = example.astype({"importance": np.int64, "constrained": np.int64})
    example["host"] = "https://host" + example["host_id"].astype(str) + ".example/"
    mixed = example.iloc[rng.permutation(len(example))].astype({"url_id": str})
    mixed["url"] = mixed["host"] + '"' + mixed["url_id"] + '"'
    hosts = example.drop_duplicates("host_id").sort_values("host_id")
    return {
        URLS: mixed[["url", "url_id", "host_id"]],
        HOSTS: hosts[["host", "host_id", "constrained"]],
        IMPORTANCE: mixed.iloc[::-1][["url_id", "importance"]],
        GIVEN_RATES: example[example["complete"]][["url_id", "change_rate"]],
    }
