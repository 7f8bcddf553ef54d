"""Values of options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

PREFIX = "crawl_envs:"
NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
"""Numbers that are not valid JSON, such as .01, 1. or +1.5."""


def plain_value(text: str) -> Any:
    """Parse a value: JSON, a number such as .01, 1. or +1.5, or else a string."""
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if NUMBER.fullmatch(text) else text


def named_values(
    pairs: Iterable[str], option: str = "env-arg", read: Callable[[str], Any] = plain_value
) -> dict[str, Any]:
    """Parse ``name=value`` pairs, whose values ``read`` makes of text.

    Raises:
        ValueError: a pair without ``=``, or without a name.
    """
    values = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not (name and separator):
            raise ValueError(f"{option} must be name=value, got {pair!r}")
        values[name] = read(text)
    return values


def read_instance(path: Path | None) -> dict[str, Any] | None:
    """Read the arguments of an instance from a JSON file.

    Raises:
        ValueError: the file cannot be read, or is not a JSON object.
    """
    if path is None:
        return None
    try:
        instance = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"instance file {path} cannot be read: {error}") from None
    if not isinstance(instance, dict):
        raise ValueError(f"instance file {path} must hold a JSON object, got {instance!r}")
    return instance


def given_only(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def refuse(given: Mapping[str, Any], when: str) -> None:
    """Raise ValueError if an option is given that does not apply."""
    for name in given_only(given):
        raise ValueError(f"--{name.replace('_', '-')} does not apply {when}")
