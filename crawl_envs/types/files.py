"""Files that are replaced at once or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield the path of a temporary file beside ``path``, which replaces it if the block succeeds.

    If the block fails, ``path`` stays as it was and the temporary file is removed.

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
