"""Rows on disk: Parquet for resuming and scoring, CSV for reading; files are written atomically.

A row holds one number. Arrays, such as one number per page or a time series, are metrics with an
index, ``crawl_rate[0]``, ``crawl_rate[1]``, ...: :func:`indexed` writes them, and :func:`gathered`
reads them back as arrays.
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.evaluation import Row
from crawl_envs.system.files import claim, replacing
from crawl_envs.types import FloatArray

PACKAGES = ("crawl-envs", "gymnasium", "numpy", "scipy", "numba")
TRAINING_PACKAGES = ("stable-baselines3", "torch")


def origin() -> dict[str, Any]:
    """Return date, commit, machine and package versions of this run.

    ``commit`` is the commit of the checkout, with ``-dirty`` if files outside of ``results`` have
    changed. It is None outside of a checkout.
    """
    packages = PACKAGES + (TRAINING_PACKAGES if "torch" in sys.modules else ())
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cpu": cpu(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


RESULTS, PROVENANCE = Path("results"), "provenance.json"


def provenance_at(folder: Path, *names: str) -> tuple[Path, str | None]:
    """Return the path of a folder's provenance file, and the key of the entry, if it has several.

    All folders below ``RESULTS``, where commands write by default, share one file.

    Args:
        folder: where files are written.
        names: names of the measurement, if several write to one folder.
    """
    if folder.is_relative_to(RESULTS):
        return RESULTS / PROVENANCE, "/".join([*folder.relative_to(RESULTS).parts, *names])
    return folder / PROVENANCE, "/".join(names) or None


def write_provenance(
    path: Path, module: str, seconds: float, entry: str | None = None, **more: Any
) -> None:
    """Write a JSON file about a run: command line, wall time, and :func:`origin`.

    With ``entry``, only this entry of the file is replaced.
    """
    command = shlex.join(["python", "-m", module, *sys.argv[1:]])
    record = {"command": command, "wall_seconds": round(seconds, 1), **more, **origin()}
    if entry is not None:
        entries = json.loads(path.read_text("utf-8")) if path.exists() else {}
        record = dict(sorted({**entries, entry: record}.items()))
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """Return the commit of the git checkout with ``folder``; None if there is no checkout.

    Files under ``results``, which runs write, and untracked files do not count as changes.
    """

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        changes = git("diff", "--quiet", "HEAD", "--", ":/", ":(exclude,top)results")
    except OSError:
        return None
    return None if head.returncode else head.stdout.strip() + "-dirty" * bool(changes.returncode)


def cpu() -> str:
    """Return the name of the processor, or of its architecture if the name is unknown."""
    file = Path("/proc/cpuinfo")
    text = file.read_text("utf-8") if file.exists() else ""
    model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


METADATA_KEY = b"crawl_envs_rows"
WORDS = ("id", "setting", "policy", "metric")
KEYS = (*WORDS, "seed")


def indexed(name: str, values: ArrayLike) -> dict[str, float]:
    """Return the values of an array as metrics ``name[0]``, ``name[1]``, ..."""
    return {f"{name}[{index}]": float(value) for index, value in enumerate(np.ravel(values))}


def indexed_columns(columns: Mapping[str, ArrayLike]) -> dict[str, float]:
    """Return the values of several arrays as metrics ``name[0]``, ``name[1]``, ... for each."""
    parts = (indexed(name, values) for name, values in columns.items())
    return {metric: value for part in parts for metric, value in part.items()}


def base(metric: str) -> str:
    """Return the name of a metric without its index: ``crawl_rate`` for ``crawl_rate[3]``."""
    return metric.partition("[")[0]


def gathered(rows: Iterable[Row], name: str) -> dict[tuple[str, str, int], FloatArray]:
    """Return the arrays of an indexed metric by (setting, policy, seed).

    Entries without a row are NaN; NaNs are not stored as rows.
    """
    values: dict[tuple[str, str, int], dict[int, float]] = {}
    for row in rows:
        if row.metric.startswith(f"{name}["):
            index = int(row.metric[len(name) + 1 : -1])
            values.setdefault((row.setting, row.policy, row.seed), {})[index] = row.value
    arrays = {}
    for key, entries in values.items():
        arrays[key] = np.full(max(entries) + 1, np.nan)
        arrays[key][list(entries)] = list(entries.values())
    return arrays


def check_folder(folder: Path, *, shared: bool = False) -> None:
    """Create ``folder`` if necessary, and unless ``shared`` reserve it for this command.

    Raises:
        ValueError: no files can be written to it, or another run is writing to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / f".{os.getpid()}.part"
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise ValueError(
            f"cannot write to {folder}: {error.strerror}; name another --out"
        ) from None
    if not shared:
        claim(folder)


def write_rows(path: Path, rows: Sequence[Row], about: Mapping[str, Any], level: int = 11) -> None:
    """Write rows as Parquet, with plain values in the metadata; create the folder if necessary.

    Compression of level 11 takes 20 microseconds a row, of level 6 less than one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = zip(Row._fields, zip(*rows, strict=True) if rows else [()] * 6, strict=True)
    types = {"seed": pa.int32(), "value": pa.float64()} | dict.fromkeys(WORDS, pa.string())
    table = pa.table({name: pa.array(list(values), types[name]) for name, values in columns})
    look = {"compression": "brotli", "compression_level": level, "use_dictionary": [*KEYS]}
    path.parent.mkdir(parents=True, exist_ok=True)
    # a schema in the file would be a second copy of the metadata
    with (
        replacing(path) as unfinished,
        pq.ParquetWriter(unfinished, table.schema, store_schema=False, **look) as file,
    ):
        file.write_table(table)
        file.add_key_value_metadata({METADATA_KEY: json.dumps(about, separators=(",", ":"))})


def read_rows(path: Path, job: str = "") -> tuple[list[Row], dict[str, Any]]:
    """Read rows and their metadata from a Parquet file.

    Raises:
        ValueError: the file is truncated, was not written by :func:`write_rows`, or belongs to
            another job than ``job``, if one is named.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table, metadata = file.read(), file.metadata.metadata or {}
    except (pa.ArrowException, OSError):
        text = f"{path} must be a complete Parquet file; delete it to start over"
        raise ValueError(text) from None
    if METADATA_KEY not in metadata or table.column_names != list(Row._fields):
        raise ValueError(f"{path} must have rows of this suite, got another Parquet file")
    about = json.loads(metadata[METADATA_KEY])
    if job and about.get("job") != job:
        owner = repr(about["job"]) if "job" in about else "an older version"
        text = f"{path} must have rows of {job!r}, got those of {owner}"
        raise ValueError(f"{text}; name another --out, or delete it")
    columns = [table.column(name).to_pylist() for name in Row._fields]
    return [Row(*values) for values in zip(*columns, strict=True)], about


def write_csv(path: Path, names: Sequence[str], records: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file with the header ``names`` and one line per record, with all digits."""
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(records)
