"""Read and write files of records: snapshots, journals of calls, and copies of pages.

A file begins with a line that names its format. Each record after it has a length, checksums of the
payload and of this head, and a payload: a line of JSON and the bytes of arrays of numbers.
Nothing in it is code: nothing is unpickled, imported, or called but the declared calls that change
a scheduler.

A record of a report takes 25 to 57 us to append, one of SQLite (3.40, WAL, ``synchronous=OFF``, a
transaction each) 53 to 112, with ``NORMAL`` 69 to 116 (three runs on two busy cores). SQLite has no
checksums of its tables; after a kill, one flipped bit in its write-ahead log took all transactions
since with it, on average half of 200, without an error (30 of 30 times). Here it is an error.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.system.files import replacing
from policies.live.scheduler.ids import as_array

MAGIC = b"crawl_envs scheduler, format 4\n"
HEAD = struct.Struct("<QII")
"""Head of a record: the payload's length and CRC-32, and the CRC-32 of these two numbers."""
SECTOR = 512
"""Number of bytes that a disk writes as a whole or not at all."""


class Record(NamedTuple):
    """Named data: ``arrays``, and ``values`` that are numbers, strings, None or lists of them."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def named(self) -> dict[str, Any]:
        """All values and arrays by name."""
        return {**self.values, **self.arrays}


def framed(record: Record) -> list[bytes | memoryview]:
    """Encode a record as bytes: its head, then the parts of its payload."""
    arrays = {name: np.ascontiguousarray(array) for name, array in record.arrays.items()}
    about = [[name, np.lib.format.dtype_to_descr(a.dtype), a.shape] for name, a in arrays.items()]
    line = json.dumps([record.values, about], ensure_ascii=False, separators=(",", ":")) + "\n"
    payload: list[bytes | memoryview] = [line.encode()]
    payload += [array.reshape(-1).view(np.uint8).data for array in arrays.values()]
    length = checksum = 0
    for piece in payload:
        length, checksum = length + len(piece), zlib.crc32(piece, checksum)
    head_checksum = zlib.crc32(HEAD.pack(length, checksum, 0))
    return [HEAD.pack(length, checksum, head_checksum), *payload]


def decoded(payload: bytes) -> Record:
    """Decode the payload of a record, whose checksum has been verified."""
    line, _, rest = payload.partition(b"\n")
    values, about = json.loads(line)
    arrays, start = {}, 0
    for name, descr, shape in about:
        if not isinstance(descr, str):  # JSON has no tuples
            descr = [tuple(field) for field in descr]
        dtype = np.lib.format.descr_to_dtype(descr)
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(rest, dtype, count, start).reshape(shape)
        start += count * dtype.itemsize
    return Record(values, arrays)


def records_of(path: Path) -> Iterator[tuple[Record, int]]:
    """Yield each record of a file and the byte where it ends; a cut-off last one is left out.

    Raises:
        ValueError: the file is of another format, or a record is damaged.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            reason = "an older or newer version, or another program, wrote it: begin another folder"
            raise ValueError(f"{path} must begin with {MAGIC.decode().strip()!r}; {reason}")
        end, total = len(MAGIC), os.fstat(file.fileno()).st_size
        while total - end >= HEAD.size:
            start, (length, checksum, head_checksum) = end, HEAD.unpack(file.read(HEAD.size))
            if zlib.crc32(HEAD.pack(length, checksum, 0)) != head_checksum:
                if _is_torn(file, start, start + HEAD.size):
                    return
                raise ValueError(f"{path} must not be damaged, the record at byte {end} is")
            if total - end - HEAD.size < length:
                return
            payload = file.read(length)
            end += HEAD.size + length
            if zlib.crc32(payload) != checksum:
                if _is_torn(file, start, end):
                    return
                raise ValueError(f"{path} must not be damaged, the record up to byte {end} is")
            yield decoded(payload), end


def _is_torn(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a file has only zeros from a disk block within bytes ``start:end`` on.

    A machine that stops while it writes a record leaves such a file.
    """
    file.seek(start)
    written = len(file.read().rstrip(b"\0"))
    return not written or -(-(start + written) // SECTOR) * SECTOR < end


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records to a file; a crash leaves either the old file or the whole new one."""
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        file.write(MAGIC)
        for record in records:
            file.writelines(framed(record))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_snapshot(path: Path) -> Record:
    """Read the only record of a snapshot file.

    Raises:
        ValueError: the file is of another format, damaged or cut off.
    """
    for record, end in records_of(path):
        if end == path.stat().st_size:
            return record
    raise ValueError(f"{path} must be a whole snapshot, it is cut off")


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Journal:
    """A file to which records are appended.

    A record is handed to the operating system before :meth:`append` returns, so that it outlives
    the process; with ``durable``, it is on the disk then, and outlives the machine.

    Args:
        path: the file, which may be there already.
        durable: whether each record is on the disk before :meth:`append` returns.
        whole: whether a last record that is cut off is an error.
        there: whether a missing file is an error.
        repeat: function that is called with each record of an existing file.

    Raises:
        ValueError: the file is of another format, damaged, or cut off where it must not be.
        OSError: the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        durable: bool = False,
        whole: bool = False,
        there: bool = False,
        repeat: Callable[[Record], None] = lambda record: None,
    ) -> None:
        self.path, self.durable = path, durable
        self.size = len(MAGIC)
        if not path.exists() or path.stat().st_size < len(MAGIC):
            if there:
                raise ValueError(f"{path} must be there and whole, calls would be lost")
            with path.open("wb") as file:
                file.write(MAGIC)
                file.flush()
                os.fsync(file.fileno())
            if durable:
                sync_folder(path.parent)
        for record, self.size in records_of(path):
            repeat(record)
        if whole and self.size != path.stat().st_size:
            raise ValueError(f"{path} must be whole, it is cut off")
        self._handle = os.open(path, os.O_RDWR)
        os.ftruncate(self._handle, self.size)

    def append(self, record: Record) -> None:
        """Append a record; if writing fails, the file is cut back to the records before it."""
        data, written = b"".join(framed(record)), 0
        try:
            while written < len(data):
                written += os.pwrite(self._handle, data[written:], self.size + written)
            if self.durable:
                self.sync()
        except OSError as error:
            os.ftruncate(self._handle, self.size)
            raise OSError(error.errno, f"{self.path} could not be written: {error}") from error
        self.size += len(data)

    def sync(self) -> None:
        """Wait until all appended records are on the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file, once."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


def plain(values: Mapping[str, Any]) -> Record:
    """Return a record of a call's arguments: number arrays in ``arrays``, the rest in ``values``.

    Raises ValueError for types that a record cannot hold, such as bytes; see :func:`as_array`.
    """
    record = Record({}, {})
    for name, value in values.items():
        if isinstance(value, dict | int | float | None):
            record.values[name] = value
            continue
        array = as_array(name, value)
        if array.ndim and array.dtype.kind != "O":
            record.arrays[name] = array
        else:
            record.values[name] = array.tolist()
    return record
