"""Checks of the file of a predictor; kernels do not check their arguments."""

from __future__ import annotations

import itertools
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.arguments import real
from crawl_envs.types.offer_features import HISTORY_FEATURES, METADATA_FEATURES

FORMAT = 1
HEADER = "header"
Arrays = Mapping[str, NDArray[Any]]


def read_stored(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a predictor's file.

    Raises:
        ValueError: there is no such file, or it is damaged, foreign or of another format.
    """
    if not isinstance(path, str | Path):
        raise ValueError(f"path must be that of a predictor's file, got {path!r}")
    try:
        with Path(path).open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                raise ValueError(f"{path} is no predictor: it is no .npz file")
            file.seek(0)
            return _header(path, _arrays(path, file))
    except FileNotFoundError:
        raise ValueError(f"there is no predictor at {path}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None


def _arrays(path: str | Path, file: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of an open archive."""
    try:
        with np.load(file, allow_pickle=False) as read:
            return dict(read)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _header(
    path: str | Path, arrays: dict[str, NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Remove the header from the arrays; return both."""
    if HEADER not in arrays:
        raise ValueError(f"{path} is no predictor: it has no {HEADER}")
    try:
        header = json.loads(str(arrays.pop(HEADER)))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its {HEADER} is no JSON: {error}") from None
    if not isinstance(header, dict) or "format" not in header:
        raise ValueError(f"{path} is no predictor: its {HEADER} names no format")
    if header["format"] != FORMAT:
        raise ValueError(f"{path} must have format {FORMAT}, got {header['format']!r}")
    if not isinstance(header.get("settings"), dict):
        raise ValueError(f"{path} is damaged: its settings must be values by name")
    return header, arrays


def check_stored(
    model: str, features: str, settings: Any, header: Mapping[str, Any], arrays: Arrays
) -> None:
    """Raise ValueError unless numbers are finite, and arrays fit the settings and each other.

    Args:
        model: ``network`` or ``trees``.
        features: ``metadata``, ``history`` or ``both``.
        settings: of the model.
        header: of the file.
        arrays: the other arrays of the file.
    """
    if not isinstance(header["calibration"], list) or len(header["calibration"]) != 2:
        raise ValueError(f"calibration must be two numbers, got {header['calibration']!r}")
    for number in header["calibration"]:
        real("calibration", number)
    real("validation_auc", header["validation_auc"], least=0.0)
    history = len(HISTORY_FEATURES) if features != "metadata" else 0
    ids = len(METADATA_FEATURES) if features != "history" else 0
    check_array(arrays, "mean", np.float32, history)
    spread = check_array(arrays, "spread", np.float32, history)
    if not (spread > 0.0).all():
        raise ValueError(f"spread must be > 0, got {spread.min()}")
    if model == "network":
        check_network(settings, history, ids, arrays)
    else:
        check_trees(history, ids, arrays)


def check_array(arrays: Arrays, name: str, kind: Any, *shape: int | None) -> NDArray[Any]:
    """Return an array; check its type, its shape (None for any) and that it is finite."""
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    array = arrays[name]
    fits = len(shape) == array.ndim and all(
        wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
    )
    if array.dtype != kind or not fits:
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} must be {np.dtype(kind).name} of shape ({sizes}), got {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def check_count(arrays: Arrays, prefix: str, wanted: int) -> None:
    """Raise ValueError unless ``wanted`` arrays have a name with the prefix."""
    count = sum(name.startswith(prefix) for name in arrays)
    if count != wanted:
        raise ValueError(f"there must be {wanted} arrays {prefix}.., got {count}")


def check_vocabulary(columns: int, arrays: Arrays) -> int:
    """Check the known ids of all columns; return the number of rows of their table."""
    check_count(arrays, "model_known_", columns)
    rows = columns
    for column in range(columns):
        known = check_array(arrays, f"model_known_{column}", np.int32, None)
        if known.min(initial=0) < 0 or (np.diff(known) <= 0).any():
            raise ValueError(f"model_known_{column} must rise from 0 or more")
        rows += known.size
    return rows


def check_network(settings: Any, history: int, ids: int, arrays: Arrays) -> None:
    """Check the arrays of a network on columns of history and of ids."""
    shapes: list[tuple[int, ...]] = [(check_vocabulary(ids, arrays), settings.dimension)]
    sizes = (history + ids * settings.dimension, *settings.hidden, 1)
    for inward, outward in itertools.pairwise(sizes):
        shapes += [(inward, outward), (outward,)]
    check_count(arrays, "model_weight_", len(shapes))
    for number, shape in enumerate(shapes):
        check_array(arrays, f"model_weight_{number}", np.float32, *shape)


def check_trees(history: int, ids: int, arrays: Arrays) -> None:
    """Check the arrays of trees on columns of history and of ids.

    Every node's children come after it, so that each row reaches a leaf.
    """
    columns = ids + 1 if ids else 0  # with each merchant on each weekday
    shares = check_array(arrays, "model_shares", np.float64, check_vocabulary(columns, arrays))
    if shares.size and not 0.0 <= shares.min() <= shares.max() <= 1.0:
        raise ValueError("model_shares must lie in [0, 1]")
    check_array(arrays, "model_baseline", np.float64)
    size = check_array(arrays, "model_node_value", np.float64, None).size
    feature = check_array(arrays, "model_node_feature", np.int64, size)
    left = check_array(arrays, "model_node_left", np.int64, size)
    right = check_array(arrays, "model_node_right", np.int64, size)
    threshold = arrays.get("model_node_threshold", np.empty(0))
    if threshold.shape != (size,) or threshold.dtype != np.float64 or np.isnan(threshold).any():
        raise ValueError(f"model_node_threshold must be {size} numbers")
    roots = check_array(arrays, "model_node_roots", np.int64, None)
    node, inner = np.arange(size), left != -1
    after = all(((side > node) & (side < size))[inner].all() for side in (left, right))
    looks = ((feature >= 0) & (feature < history + columns))[inner].all()
    if not (after and looks and ((roots >= 0) & (roots < size)).all()):
        raise ValueError("model_node must be trees: every node before its children, of columns")
