"""Files of parameters fitted to a trace.

There is one Parquet file per kind of signal, ``parameters-<signals>.parquet``, with a row per page.
Its metadata, under the key ``trace_parameters``, are the window of the fit and the values pooled
over its pages. ``python -m scripts.data.fit_trace`` writes it. With
two sources, ``both``, columns ``recall_0`` and ``recall_1`` replace ``recall``, likewise for the
false-signal rate, and pooled values are lists.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from crawl_envs.instances.traces.tables import column_error, read_table
from crawl_envs.instances.traces.windows import Signals, Trace, check_signals, sources_of
from crawl_envs.system.files import replacing
from crawl_envs.types import FloatArray

METADATA_KEY = "trace_parameters"
HIGHEST = {"change_rate": math.inf, "recall": 1.0, "false_signal_rate": math.inf}
BY_SOURCE = ("recall", "false_signal_rate")
DESCRIPTION = ("signals", "start", "end", *(f"pooled_{name}" for name in HIGHEST))

Pooled: TypeAlias = float | Sequence[float]
"""Value pooled over the pages in the window of the fit: a number, or one per source if several."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of each page, fitted to the window from ``start`` to ``end`` of a trace.

    Attributes:
        signals: kind of recorded signals.
        start: start of the window, days since the record's start.
        end: end of the window, days since the record's start.
        change_rate: changes per day, >= 0, (m,) float64.
        recall: probability that a change is signalled, in [0, 1], (m,) float64, or (2, m) for
            ``both``, with a sum of at most 1.
        false_signal_rate: signals per day without a change, >= 0, (m,) or (2, m) float64.
        observed_days: days of existence in the window, (m,) float64.
        pooled_change_rate, pooled_recall, pooled_false_signal_rate: values of all pages of the
            window together, for reports.
    """

    signals: Signals
    start: float
    end: float
    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    observed_days: FloatArray
    pooled_change_rate: float
    pooled_recall: Pooled
    pooled_false_signal_rate: Pooled

    @property
    def num_sources(self) -> int:
        """Number of sources of signals, S."""
        return len(sources_of(self.signals))


def _columns_of(name: str, signals: Signals) -> list[str]:
    """Return the names of a parameter's columns: one, or one per source if there are several."""
    count = len(sources_of(signals))
    if count == 1 or name not in BY_SOURCE:
        return [name]
    return [f"{name}_{source}" for source in range(count)]


def parameters_path(folder: str | Path, signals: Signals) -> Path:
    """Return the path of the parameters fitted with ``signals``, in the ``folder`` of a trace.

    Raises:
        ValueError: ``signals`` is unknown.
    """
    return Path(folder) / f"parameters-{check_signals(signals)}.parquet"


def save_parameters(path: str | Path, parameters: Parameters, trace: Trace) -> None:
    """Write ``parameters`` of ``trace`` to ``path`` atomically.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"page_id": np.arange(trace.num_pages, dtype=np.int32)}
    for name in (*HIGHEST, "observed_days"):
        rows = np.atleast_2d(getattr(parameters, name))
        columns |= zip(_columns_of(name, parameters.signals), rows, strict=True)
    described = {name: getattr(parameters, name) for name in DESCRIPTION}
    metadata = {METADATA_KEY: json.dumps({"trace": trace.name, **described})}
    with replacing(path) as unfinished:
        pq.write_table(pa.table(columns, metadata=metadata), unfinished, compression="zstd")


def load_parameters(path: str | Path, trace: Trace) -> Parameters:
    """Read the parameters fitted to ``trace`` from a file, and check that they fit the trace.

    Args:
        path: the file, named as by :func:`parameters_path`.
        trace: the trace of the file.

    Raises:
        ValueError: the file is missing (the message names the command that writes it), belongs to
            another trace, is truncated, or has a value out of range.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file; to fit parameters to trace {trace.name!r} run "
            f"`{_command(path, trace)}`"
        )
    pages = read_table(path, {"page_id": "whole"})
    pages.check_dense("page_id")
    described = _description(path, pq.read_schema(path).metadata or {}, trace)
    if pages["page_id"].size != trace.num_pages:
        expected = f"the {trace.num_pages} of trace {trace.name!r}"
        raise column_error(path, "page_id", f"{pages['page_id'].size} pages", expected)
    highest = {**HIGHEST, "observed_days": described["end"] - described["start"]}
    for name, limit in highest.items():
        columns = _columns_of(name, described["signals"])
        table = read_table(path, dict.fromkeys(columns, "number"))
        for column in columns:
            table.check_range(column, 0.0, limit)
        rows = list(table.columns.values())
        described[name] = rows[0] if len(rows) == 1 else np.array(rows)
    return Parameters(**described)


def _command(path: Path, trace: Trace) -> str:
    """Return the shell command that fits the parameters and writes the file at ``path``."""
    stem = path.name.removesuffix(".parquet").removeprefix("parameters-")
    option = f" --signals {stem}" if path.name == f"parameters-{stem}.parquet" else ""
    elsewhere = "" if path.parent == trace.folder else f" --out {path}"
    return f"python -m scripts.data.fit_trace {trace.folder}{option}{elsewhere}"


def _description(path: Path, metadata: dict[bytes, bytes], trace: Trace) -> dict[str, Any]:
    """Return a file's metadata on the fit; ValueError if invalid or of another trace."""
    try:
        described = json.loads(metadata[METADATA_KEY.encode()])
        owner, metadata_values = described["trace"], {name: described[name] for name in DESCRIPTION}
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: metadata {METADATA_KEY!r} is incomplete: {error!r}") from None
    if owner != trace.name:
        raise ValueError(f"{path}: metadata 'trace' holds {owner!r}, expected {trace.name!r}")
    try:
        check_signals(metadata_values["signals"])
        trace.check_window(metadata_values["start"], metadata_values["end"])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: metadata: {error}") from None
    return metadata_values
