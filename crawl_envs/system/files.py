"""Replace files atomically, and lock folders for one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows, where folders are not claimed
    fcntl = None  # type: ignore[assignment]

_CLAIMED: dict[Path, int] = {}
"""The claimed folders of this process, and their file descriptors."""


def claim(folder: str | Path) -> None:
    """Lock a folder against other processes that claim it, until the end of :func:`claiming`.

    The operating system holds the lock and releases it after a crash. File systems without locks
    are not protected.

    Raises:
        ValueError: another process has claimed the folder.
    """
    place = Path(folder).resolve()
    if fcntl is None or place in _CLAIMED:
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(
            f"another run is writing to {folder}: wait for its end, or name another folder"
        ) from None
    except OSError:
        os.close(descriptor)
        return
    _CLAIMED[place] = descriptor


@contextmanager
def claiming() -> Iterator[None]:
    """Release the folders claimed in the block when it ends."""
    before = set(_CLAIMED)
    try:
        yield
    finally:
        for place in set(_CLAIMED) - before:
            os.close(_CLAIMED.pop(place))


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; the file replaces ``path`` if the block succeeds.

    If the block fails, ``path`` is unchanged and the temporary file is removed.

    Raises:
        OSError: the file cannot be written. Its ``filename`` is ``path`` if the system names none.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)
