"""The file of a predictor: plain arrays (.npz) with a header of JSON."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from crawl_envs.types.files import replacing

FORMAT, HEADER = 1, "header"
ERRORS = (AttributeError, EOFError, OSError, RuntimeError, TypeError, ValueError)


class Stored:
    """Arrays of a file. Each is checked when it is taken: kernels do not check their arguments.

    Args:
        arrays: by name.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def take(self, name: str, kind: Any, *shape: int | None) -> NDArray[Any]:
        """Return an array of a type and a shape, None for any length.

        Raises:
            KeyError: there is none of the name.
            ValueError: its type or shape is another, or it is not finite.
        """
        array = self._left.pop(name)
        fits = array.dtype == kind and len(shape) == array.ndim
        fits = fits and all(
            wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
        )
        if not fits or not np.isfinite(array).all():
            sizes = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(
                f"{name} must be finite {np.dtype(kind).name} of shape ({sizes}), got "
                f"{array.dtype} of shape {array.shape}"
            )
        return array

    def end(self) -> None:
        """Raise ValueError unless all arrays were taken."""
        if self._left:
            raise ValueError(f"it has other arrays: {', '.join(self._left)}")


@contextmanager
def reading(path: str | Path) -> Iterator[tuple[dict[str, Any], Stored]]:
    """Yield the header and the arrays of a file; nothing in it is executed.

    Raises:
        ValueError: there is no such file, it is damaged, foreign or of another format, or the
            block refuses it or leaves arrays in it.
    """
    try:
        with Path(path).open("rb") as file, NpzFile(file, allow_pickle=False) as read:
            arrays = dict(read)
        header = json.loads(str(arrays.pop(HEADER)))
        if header["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT}, got {header['format']!r}")
        stored = Stored(arrays)
        yield header, stored
        stored.end()
    except FileNotFoundError:
        raise ValueError(f"there is no predictor at {path}") from None
    except KeyError as error:
        raise ValueError(f"{path} is damaged or no predictor: {error} is missing") from None
    except (*ERRORS, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged or no predictor: {error}") from None


def write(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a file atomically; OSError if it cannot be written."""
    text = np.array(json.dumps({"format": FORMAT, **header}))
    contents: dict[str, Any] = {**arrays, HEADER: text}
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **contents)
