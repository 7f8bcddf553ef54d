"""Files of parameters fitted to a trace.

There is one Parquet file per kind of signal, ``parameters-<signals>.parquet``, with a row per page.
Its metadata, under the key ``trace_parameters``, are the window of the fit and the pooled values
for pages that did not exist in that window. ``python -m scripts.data.fit_trace`` writes it. With
two sources, ``both``, columns ``recall_0`` and ``recall_1`` replace ``recall``, likewise for the
false-signal rate, and pooled values are lists.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from crawl_envs.instances.traces.tables import ColumnKind, check_dense, check_range, read_columns
from crawl_envs.instances.traces.windows import Signals, Trace, check_signals, sources_of
from crawl_envs.types import FloatArray

METADATA_KEY = "trace_parameters"
HIGHEST = {"change_rate": math.inf, "recall": 1.0, "false_signal_rate": math.inf}
NUMBER: ColumnKind = "number"
BY_SOURCE = ("recall", "false_signal_rate")
DESCRIPTION = ("trace", "signals", "start", "end", *(f"pooled_{name}" for name in HIGHEST))


Pooled: TypeAlias = float | tuple[float, ...]
"""Value for pages outside the window of the fit: a number, or one per source if several."""


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
        pooled_change_rate: change rate of a page that did not exist in the window.
        pooled_recall: recall of such a page.
        pooled_false_signal_rate: false-signal rate of such a page.
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


def _columns_of(num_sources: int) -> dict[str, tuple[str, int | None]]:
    """Return the field and the source of each numeric column."""
    columns: dict[str, tuple[str, int | None]] = {}
    for name in (*HIGHEST, "observed_days"):
        if num_sources > 1 and name in BY_SOURCE:
            columns |= {f"{name}_{source}": (name, source) for source in range(num_sources)}
        else:
            columns[name] = (name, None)
    return columns


def parameters_path(folder: str | Path, signals: Signals) -> Path:
    """Return the file of the parameters for ``signals`` of the trace in ``folder``.

    Raises:
        ValueError: ``signals`` is unknown.
    """
    check_signals(signals)
    return Path(folder) / f"parameters-{signals}.parquet"


def save_parameters(path: str | Path, parameters: Parameters, trace: Trace) -> None:
    """Write ``parameters`` of ``trace`` to ``path`` atomically.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "page_id": np.arange(trace.num_pages, dtype=np.int32),
            **{
                column: getattr(parameters, name)[... if source is None else source]
                for column, (name, source) in _columns_of(parameters.num_sources).items()
            },
        }
    )
    described = {"trace": trace.name} | {
        name: getattr(parameters, name) for name in DESCRIPTION if name != "trace"
    }
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(
            table.replace_schema_metadata({METADATA_KEY: json.dumps(described)}),
            unfinished,
            compression="zstd",
        )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_parameters(path: str | Path, trace: Trace) -> Parameters:
    """Read the parameters fitted to ``trace``.

    Args:
        path: the file, named as by :func:`parameters_path`.
        trace: the trace of the file.

    Raises:
        ValueError: the file is missing (the message names the command that writes it), belongs to
            another trace, is truncated, or has a value out of range.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file; to fit parameters to trace {trace.name!r} run "
            f"`{_command(path, trace)}`"
        )
    _, metadata = read_columns(path, {"page_id": "whole"})
    table = _columns_of(_sources_in(metadata))
    wanted: dict[str, ColumnKind] = {"page_id": "whole", **dict.fromkeys(table, NUMBER)}
    columns, _ = read_columns(path, wanted)
    check_dense(path, "page_id", columns["page_id"])
    rows = columns["page_id"].shape[0]
    if rows != trace.num_pages:
        raise ValueError(
            f"{path}: column 'page_id' holds {rows} pages, expected the {trace.num_pages} "
            f"of trace {trace.name!r}"
        )
    for column, (name, _) in table.items():
        if name in HIGHEST:
            check_range(path, column, columns[column], 0.0, HIGHEST[name])
    described = _description(path, metadata, trace)
    check_range(
        path, "observed_days", columns["observed_days"], 0.0, described["end"] - described["start"]
    )
    fields: dict[str, Any] = dict(described)
    for name in {name for name, _ in table.values()}:
        rows = [columns[column] for column, (own, _) in table.items() if own == name]
        fields[name] = rows[0] if len(rows) == 1 else np.array(rows)
    return Parameters(
        **{field.name: fields[field.name] for field in dataclasses.fields(Parameters)}
    )


def _sources_in(metadata: dict[str, str]) -> int:
    """Return the number of sources in a file's metadata, 1 if missing."""
    try:
        return len(sources_of(json.loads(metadata[METADATA_KEY])["signals"]))
    except (KeyError, ValueError, TypeError):
        return 1


def _command(path: Path, trace: Trace) -> str:
    """Return the command that writes the file at ``path``."""
    stem = path.name.removesuffix(".parquet").removeprefix("parameters-")
    option = f" --signals {stem}" if path.name == f"parameters-{stem}.parquet" else ""
    elsewhere = "" if path.parent == trace.folder else f" --out {path}"
    return f"python -m scripts.data.fit_trace {trace.folder}{option}{elsewhere}"


def _description(path: Path, metadata: dict[str, str], trace: Trace) -> dict[str, Any]:
    """Return the metadata of a file; raise ValueError if they are invalid or of another trace."""
    try:
        described = json.loads(metadata[METADATA_KEY])
        missing = [name for name in DESCRIPTION if name not in described]
    except (KeyError, ValueError, TypeError):
        missing, described = [METADATA_KEY], {}
    if missing:
        raise ValueError(f"{path}: metadata {missing[0]!r} is missing, expected {DESCRIPTION}")
    if described["trace"] != trace.name:
        raise ValueError(
            f"{path}: metadata 'trace' holds {described['trace']!r}, expected {trace.name!r}"
        )
    try:
        check_signals(described["signals"])
        trace.check_window(described["start"], described["end"])
        for name, highest in HIGHEST.items():
            value = described[f"pooled_{name}"]
            count = len(sources_of(described["signals"])) if name in BY_SOURCE else 1
            if count > 1:
                value = described[f"pooled_{name}"] = tuple(value)
                if len(value) != count:
                    raise ValueError(f"pooled_{name} must be {count} numbers, got {value!r}")
            for one in value if count > 1 else (value,):
                if not 0.0 <= one <= highest:
                    raise ValueError(f"pooled_{name} must lie in [0, {highest:g}], got {value!r}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: metadata: {error}") from None
    return {name: described[name] for name in DESCRIPTION}
