from __future__ import annotations

import functools
import io
import json
import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from rich.console import Console

import policies
from scripts.study.rows import read_rows
from scripts.study.runner import Store, run
from scripts.study.settings import Measurement
from scripts.study.specs import describe, spec, without_versions
from scripts.study.workers import Workers


@spec("halves", 3)
def halves(days: float) -> float:
    return days / 2.0


@spec("sum-of-terms")
def summed(seed: int, *, terms: tuple[float, ...], **more: Any) -> dict[str, float]:
    return {"y": seed + sum(terms)}


class Pair(NamedTuple):
    low: float
    high: float


UNIT = Pair(0.0, 1.0)


@dataclass(frozen=True)
class Knob:
    name: str
    steps: tuple[int, ...] = (1, 2)
    between: Pair = UNIT
    options: dict[str, Any] = field(default_factory=dict)


def test_descriptions_are_plain_values() -> None:
    knob = Knob("a", between=Pair(0.0, 2.0), options={"split": halves})
    made = partial(partial(summed, terms=(1.0, 2.0)), knob=knob, nothing=None, most=math.inf)
    described = describe(made)
    assert described == {
        "spec": "sum-of-terms",
        "version": 1,
        "terms": [1.0, 2.0],
        "knob": {
            "name": "a",
            "between": {"low": 0.0, "high": 2.0},
            "options": {"split": {"spec": "halves", "version": 3}},
        },
        "nothing": None,
        "most": "inf",
    }
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    policy = partial(policies.make, "GreedyNCISApprox", terms=1)
    assert describe(policy) == {"name": "GreedyNCISApprox", "terms": 1}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (test_descriptions_are_plain_values, r'write @spec\("name-of-the-measure"\) above it'),
        (partial(summed, terms=(object(),)), "must be a plain value or a function with a spec"),
        (partial(summed, version=2), "must have no argument 'version'"),
    ],
)
def test_what_cannot_be_described_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        describe({"label": value})


HALF = partial(halves, days=1.0)


@spec("share-of-days")
def shared(seed: int, *days: float, split: Any = HALF, least: int = 0) -> Any:
    return split() + sum(days) + least


@functools.wraps(halves)
def doubled(days: float) -> float:
    return 2.0 * halves(days)


@dataclass(frozen=True)
class Law:
    split: Any = halves
    count: int = 1
    shape: Any = ()


def test_defaults_with_a_spec_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (
        shared,
        partial(shared, 1),
        Law(),
        {"laws": (Law(),)},
        partial(shared, law=Law()),
    ):
        before = describe(value)
        with monkeypatch.context() as patch:
            patch.setattr(halves, "spec", {"spec": "halves", "version": 4})
            assert describe(value) != before
    half = {"spec": "halves", "version": 3}
    assert describe(Law()) == {"split": half}
    arguments = {"seed": 1, "split": {**half, "days": 1.0}}
    assert describe(partial(shared, 1)) == {"spec": "share-of-days", "version": 1, **arguments}
    assert describe(partial(shared, split=None))["split"] is None
    assert describe(Law(count=True)) == {"split": half, "count": True}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (partial(shared, 1, 2.0), r"must pass arguments by name, got positional ones of \*args"),
        (partial(halves, 1.0, 2.0), "must pass arguments by name"),
        (doubled, "with a spec of its own: write"),
        (partial(shared, split=doubled), "with a spec of its own: write"),
        (Law(split=doubled), "with a spec of its own: write"),
        (Law(shape=np.ones(2)), r"array\(\[1., 1.\]\) must be a plain value"),
    ],
)
def test_what_would_be_described_as_another_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        describe(value)


def test_versions_and_files_do_not_last() -> None:
    made = {"spec": "a", "version": 2, "terms": [{"spec": "b", "version": 1}], "file_digest": "0f"}
    assert without_versions(made) == {"spec": "a", "terms": [{"spec": "b"}]}


def jobs(**terms: tuple[float, ...]) -> list[Measurement]:
    measures = {label: partial(summed, terms=values) for label, values in terms.items()}
    return [Measurement(name, measures) for name in ("one", "two")]


def simulate(path: Path, settings: list[Measurement]) -> tuple[int, str]:
    store, console = Store(path, "sums", settings), Console(file=io.StringIO())
    store.load()
    return run(settings, 2, store, Workers("local", 1), console), console.file.getvalue()


def test_renamed_code_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert simulate(tmp_path / "rows.parquet", jobs(a=(1.0,)))[0] == 4
    for name in ("__name__", "__qualname__", "__module__"):
        monkeypatch.setattr(summed, name, "another")
    assert simulate(tmp_path / "rows.parquet", jobs(a=(1.0,)))[0] == 0
    with pytest.raises(ValueError, match="setting 'one' with the same a;"):
        simulate(tmp_path / "rows.parquet", jobs(a=(2.0,)))


def test_rows_of_an_older_version_are_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of settings that are not simulated now are dropped; those of others stay."""
    path = tmp_path / "rows.parquet"
    simulate(path, jobs(a=(1.0,)))
    one, two = jobs(a=(1.0,), b=(3.0,))
    simulate(path, [one])
    monkeypatch.setattr(halves, "spec", {"spec": "halves", "version": 4})
    assert simulate(path, [one])[0] == 0
    monkeypatch.setitem(summed.spec, "version", 2)  # type: ignore[attr-defined]
    units, said = simulate(path, [Measurement("one", {"a": one.measures["a"]})])
    assert (units, "a has changed: its rows are simulated again" in said) == (2, True)
    assert "b has changed" not in said
    rows, about = read_rows(path)
    assert [(row.setting, row.policy) for row in rows] == [("one", "a")] * 2 + [("one", "b")] * 2
    assert about["settings"]["one"]["labels"]["a"]["version"] == 2
    assert simulate(path, [one, two])[0] == 6
