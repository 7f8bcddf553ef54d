"""What is kept while an import runs: parts that are whole, and what they were made from.

A part holds the URLs of one block of the file of histories and says, in its metadata, where the
next block begins. It gets its name when it is whole, so an import that is killed at any moment
leaves parts to go on from.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ABOUT = "about.json"


class Position(NamedTuple):
    """Where the next block begins: position in the unpacked file, and number of its line."""

    byte: int = 0
    line: int = 1


class Parts:
    """The parts of an import.

    Args:
        folder: where they are, or are to be; made if it is not there.
        about: what they are made from and how, plain values; kept beside the parts.
        force: whether parts that were made from something else are removed.

    Attributes:
        paths: the parts that are there, in order.
        position: where the next block begins.

    Raises:
        ValueError: the folder holds something else, or parts that were made from something else.
        OSError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any], force: bool = False) -> None:
        self.folder = folder
        self.paths: list[Path] = []
        self.position = Position()
        if folder.exists() and not self._holds(about):
            if not force:
                raise ValueError(
                    f"{folder}: holds parts of an import of other files or in another form, "
                    "expected none; --force starts anew"
                )
            self.remove()
        folder.mkdir(exist_ok=True)
        replace(folder / ABOUT, lambda path: path.write_text(json.dumps(about), "utf-8"))
        self._find()

    def _holds(self, about: Mapping[str, Any]) -> bool:
        """Whether the folder's parts were made from the same."""
        path = self.folder / ABOUT
        if not path.is_file():
            if any(self.folder.iterdir()):
                raise ValueError(f"{self.folder}: exists and is not of an import; move it away")
            return True
        try:
            return bool(json.loads(path.read_text("utf-8")) == json.loads(json.dumps(about)))
        except ValueError:
            return False

    def _find(self) -> None:
        """Find the parts that are there, up to the first that is missing or not whole."""
        while True:
            path = self._next_path()
            try:
                position = _read_position(path)
            except (OSError, ValueError, KeyError):  # Arrow's errors are ValueErrors
                path.unlink(missing_ok=True)
                return
            self.paths.append(path)
            self.position = position

    def _next_path(self) -> Path:
        return self.folder / f"part-{len(self.paths):06d}.parquet"

    def add(self, table: Any, position: Position) -> None:
        """Write the next part, an Arrow table, after which the next block begins at a position."""
        import pyarrow.parquet as pq

        path = self._next_path()
        marked = table.replace_schema_metadata({"position": json.dumps(position)})
        replace(path, lambda unfinished: pq.write_table(marked, unfinished, compression="zstd"))
        self.paths.append(path)
        self.position = position

    def tables(self, columns: list[str] | None = None) -> Iterator[Any]:
        """The parts' Arrow tables, in order, one at a time."""
        import pyarrow.parquet as pq

        for path in self.paths:
            yield pq.read_table(path, columns=columns).replace_schema_metadata(None)

    def remove(self) -> None:
        """Remove the folder, which holds nothing but an import."""
        shutil.rmtree(self.folder)


def _read_position(path: Path) -> Position:
    import pyarrow.parquet as pq

    metadata = pq.read_schema(path).metadata or {}
    return Position(*json.loads(metadata[b"position"]))


def replace(path: Path, write: Any) -> None:
    """Let ``write`` write a file beside ``path``, and give it that name when it is whole."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    write(unfinished)
    os.replace(unfinished, path)
