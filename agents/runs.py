"""Read and write the files of a training run: arguments as JSON, curves as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_type_hints

from crawl_envs.system.files import replacing

CONFIG, CURVE = "config.json", "curve.csv"
CurvePoint = TypeVar("CurvePoint", bound=NamedTuple)


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """Arguments of a run, as plain values."""

    FREE: ClassVar[tuple[str, ...]] = ()
    """Arguments in which a resumed run may differ from the earlier one."""

    def to_json(self) -> str:
        """Return the arguments as JSON; ValueError for values that are not plain."""
        try:
            return json.dumps(asdict(self), indent=2) + "\n"
        except TypeError as error:
            raise ValueError(f"arguments must hold plain values: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the arguments in a text of :meth:`to_json`.

        Raises:
            ValueError: the text is not JSON, or not such arguments.
        """
        values = json.loads(text)
        names = {entry.name for entry in fields(cls)}
        if not isinstance(values, dict) or not set(values) <= names:
            raise ValueError(f"arguments must be among {', '.join(sorted(names))}, got {values!r}")
        return cls(**values)

    def check_resumes(self, earlier: Self) -> None:
        """Raise ValueError unless a run with these arguments may resume an earlier one."""
        mine, theirs = (json.loads(json.dumps(asdict(run))) for run in (self, earlier))
        for name, value in theirs.items():
            if name not in self.FREE and mine[name] != value:
                raise ValueError(
                    f"{name} must be {value!r} as in the run to resume, got {mine[name]!r}"
                )


def read_rows(path: Path, kind: type[CurvePoint]) -> list[CurvePoint]:
    """Return the rows of a curve, a CSV file with the fields of ``kind``; none without a file.

    Raises:
        ValueError: the file is not such a curve.
    """
    if not path.exists():
        return []
    types: list[Any] = list(get_type_hints(kind).values())
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *lines = csv.reader(file)
        if tuple(header) != kind._fields:
            raise ValueError(header)
        return [kind(*(t(text) for t, text in zip(types, line, strict=True))) for line in lines]
    except ValueError:
        raise ValueError(f"{path} is not a curve with {', '.join(kind._fields)}") from None


def write_rows(path: Path, kind: type[CurvePoint], rows: Iterable[CurvePoint]) -> None:
    """Replace a curve, a CSV file with the fields of ``kind``, atomically by new rows."""
    replace_text(path, csv_text([kind._fields, *rows]))


def trim_rows(path: Path, kind: type[CurvePoint], steps: int) -> list[CurvePoint]:
    """Drop the rows of a curve beyond a number of steps, and return the remaining ones."""
    rows = [row for row in read_rows(path, kind) if row[0] <= steps]
    write_rows(path, kind, rows)
    return rows


def append_row(path: Path, row: Sequence[Any]) -> None:
    """Append a row to the CSV file of a curve."""
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(csv_text([row]))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file atomically."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ValueError: there is no such file, or it is not a JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no {path.name} in {path.parent}") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} is damaged: it must hold values by name, got a {type(values).__name__}"
        )
    return values
