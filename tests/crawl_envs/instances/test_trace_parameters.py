from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from crawl_envs.instances import traces
from crawl_envs.instances.traces.instance import recorded
from tests.crawl_envs.instances.recorded import META, tiny_tables, tiny_trace, write


def some_parameters(**changed: Any) -> traces.Parameters:
    pages = np.arange(5.0)
    fields: dict[str, Any] = {
        "signals": "mentions",
        "start": 0.0,
        "end": 5.0,
        "change_rate": pages / 3.0,
        "recall": pages / 5.0,
        "false_signal_rate": pages / 7.0,
        "observed_days": pages,
        "pooled_change_rate": 0.1,
        "pooled_recall": 0.5,
        "pooled_false_signal_rate": 0.25,
    }
    return traces.Parameters(**(fields | changed))


def of_both(**changed: Any) -> traces.Parameters:
    pages = np.arange(5.0)
    fields: dict[str, Any] = {
        "signals": "both",
        "recall": np.array([pages / 8.0, pages / 9.0]),
        "false_signal_rate": np.array([pages, pages / 7.0]),
        "pooled_recall": (0.5, 0.25),
        "pooled_false_signal_rate": (1.0, 0.125),
    }
    return some_parameters(**(fields | changed))


@pytest.mark.parametrize("parameters", [some_parameters(), of_both()])
def test_parameters_come_back_as_they_were(tmp_path: Path, parameters: traces.Parameters) -> None:
    trace = tiny_trace(tmp_path)
    path = traces.parameters_path(tmp_path, parameters.signals)
    assert path == tmp_path / f"parameters-{parameters.signals}.parquet"
    traces.save_parameters(path, parameters, trace)
    loaded = traces.load_parameters(path, trace)
    assert loaded.num_sources == parameters.num_sources
    for name, value in vars(parameters).items():
        assert np.array_equal(getattr(loaded, name), value), name
    assert sorted(file.name for file in tmp_path.glob("parameters*")) == [path.name]


def test_parameters_of_one_source_are_not_taken_for_two(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    path = tmp_path / "parameters-both.parquet"
    traces.save_parameters(path, some_parameters(), trace)
    with pytest.raises(ValueError, match=r"2 sources for signals='both', got those of 'mentions'"):
        recorded(str(tmp_path), signals="both", parameters=str(path))


def test_missing_parameters_name_the_command_that_makes_them(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    command = f"python -m scripts.data.fit_trace {tmp_path} --signals both"
    with pytest.raises(ValueError, match=re.escape(f"`{command}`")):
        traces.load_parameters(traces.parameters_path(tmp_path, "both"), trace)
    other = tmp_path / "else" / "mine.parquet"
    with pytest.raises(ValueError, match=re.escape(f"fit_trace {tmp_path} --out {other}`")):
        traces.load_parameters(other, trace)


TWO_RECALLS = np.array([np.zeros(5), np.full(5, 1.5)])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (some_parameters(change_rate=np.array([0, 0, -1.0, 0, 0])), "'change_rate' holds -1.0"),
        (some_parameters(change_rate=np.array([0, 0, np.nan, 0, 0])), "'change_rate' holds nan"),
        (some_parameters(recall=np.array([0, 0, 1.5, 0, 0])), "'recall' holds 1.5.*from 0 to 1"),
        (some_parameters(false_signal_rate=np.full(5, -0.5)), "'false_signal_rate' holds -0.5"),
        (some_parameters(observed_days=np.full(5, 6.0)), "'observed_days' holds 6.0.*from 0 to 5"),
        (some_parameters(start=6.0), "metadata: end must lie in"),
        (some_parameters(end=11.0), "metadata: end must lie in"),
        (some_parameters(end="late"), "metadata: "),
        (some_parameters(signals="smoke"), "metadata: signals must be one of"),
        (of_both(recall=TWO_RECALLS), "'recall_1' holds 1.5.*from 0 to 1"),
        (of_both(false_signal_rate=np.full((2, 5), -1.0)), "'false_signal_rate_0' holds -1.0"),
    ],
)
def test_bad_parameters_are_named(
    tmp_path: Path, parameters: traces.Parameters, message: str
) -> None:
    trace = tiny_trace(tmp_path)
    path = tmp_path / "parameters.parquet"
    traces.save_parameters(path, parameters, trace)
    with pytest.raises(ValueError, match=message) as raised:
        traces.load_parameters(path, trace)
    assert str(path) in str(raised.value)


def test_parameters_of_another_trace_are_refused(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path / "tiny")
    other = traces.load(write(tmp_path / "other", tiny_tables(), META | {"site": "other"}))
    path = tmp_path / "parameters-mentions.parquet"
    traces.save_parameters(path, some_parameters(), other)
    with pytest.raises(ValueError, match="'trace' holds 'other', expected 'tiny'"):
        traces.load_parameters(path, trace)
    traces.save_parameters(path, some_parameters(), trace)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 3), path)
    with pytest.raises(ValueError, match="3 pages, expected the 5"):
        traces.load_parameters(path, trace)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(ValueError, match="metadata 'trace_parameters' is incomplete"):
        traces.load_parameters(path, trace)
