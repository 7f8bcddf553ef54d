"""Intermediate results of an import: complete parts, and a description of their sources.

A part contains the URLs of one block of the file of histories; its metadata have the position of
the next block. Parts are renamed when complete, so that an import killed at any moment can be
resumed.
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
    """Start of the next block: byte position in the unpacked file, and line number."""

    byte: int = 0
    line: int = 1


class Parts:
    """The parts of an import.

    Args:
        folder: folder of the parts, created if missing.
        about: description of sources and options, plain values; saved with the parts.
        force: whether to remove parts from other sources.

    Attributes:
        paths: existing parts, in order.
        position: start of the next block.

    Raises:
        ValueError: the folder has other contents, or parts from other sources.
        OSError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any], force: bool = False) -> None:
        self.folder = folder
        self.paths: list[Path] = []
        self.position = Position()
        if folder.exists() and not self._holds(about):
            if not force:
                raise ValueError(
                    f"{folder}: has parts of an import of other files or in another format, "
                    "expected none; --force starts over"
                )
            self.remove()
        folder.mkdir(exist_ok=True)
        replace(folder / ABOUT, lambda path: path.write_text(json.dumps(about), "utf-8"))
        self._find()

    def _holds(self, about: Mapping[str, Any]) -> bool:
        """Return whether the folder's parts are from the same sources."""
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
        """Find the existing parts, up to the first missing or incomplete one."""
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
        """Write the next part, an Arrow table, with the position of the next block."""
        import pyarrow.parquet as pq

        path = self._next_path()
        marked = table.replace_schema_metadata({"position": json.dumps(position)})
        replace(path, lambda unfinished: pq.write_table(marked, unfinished, compression="zstd"))
        self.paths.append(path)
        self.position = position

    def tables(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield the Arrow tables of the parts in order."""
        import pyarrow.parquet as pq

        for path in self.paths:
            yield pq.read_table(path, columns=columns).replace_schema_metadata(None)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)


def _read_position(path: Path) -> Position:
    import pyarrow.parquet as pq

    metadata = pq.read_schema(path).metadata or {}
    return Position(*json.loads(metadata[b"position"]))


def replace(path: Path, write: Any) -> None:
    """Call ``write`` with a temporary path beside ``path``, then rename it to ``path``."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    write(unfinished)
    os.replace(unfinished, path)
