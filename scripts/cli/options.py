"""Options that several commands share, and functions that parse and check values of options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from typer import Option

EnvArgs = Annotated[
    list[str] | None,
    Option(help="Argument of the environment, such as num_pages=20; can be repeated."),
]
Fresh = Annotated[bool, Option("--fresh", help="Discard earlier results and start over.")]
MAX_COUNT = 10**6
"""Largest count of seeds, draws, trials or workers."""
PREFIX = "crawl_envs:"
NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
"""Numbers that are not valid JSON, such as .01, 1. or +1.5."""


def plain_value(text: str) -> Any:
    """Convert the text of a value: JSON, a number such as .01, 1. or +1.5, or else a string."""
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if NUMBER.fullmatch(text) else text


def named_values(
    pairs: Iterable[str], option: str = "env-arg", read: Callable[[str], Any] = plain_value
) -> dict[str, Any]:
    """Return the values of ``name=value`` texts by name; ``read`` converts the text of a value.

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
    """Read the arguments of an instance from a JSON file; return None without a path.

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


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def words_of(option: str, text: str | None) -> list[str]:
    """Return the comma-separated words of an option; an empty list for None.

    Raises:
        ValueError: the text has no words, or one twice.
    """
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if repeated := [word for word in words if words.count(word) > 1]:
        raise ValueError(f"{option} must name each once, got {repeated[0]!r} twice")
    if text is not None and not words:
        raise ValueError(f"{option} must be names separated by commas, got {text!r}")
    return words


def check_counts(minimum: int, **named: int) -> None:
    """Raise ValueError unless each named option has minimum <= value <= MAX_COUNT."""
    for name, value in named.items():
        if not minimum <= value <= MAX_COUNT:
            bound = f">= {minimum}" if value < minimum else f"<= {MAX_COUNT}"
            raise ValueError(f"{name.replace('_', '-')} must be an integer {bound}, got {value}")


def default_folder(*words: str) -> Path:
    """Return the folder ``runs/a-b-c`` for the words a, b and c."""
    return Path("runs") / "-".join(words).replace(":", "-").replace("/", "-")


def input_folder(command: str, path: Path) -> Path:
    """Return the default output folder of a command that reads a file, named after that file."""
    path = path.absolute()
    words = [path.name] if path.parent == Path.cwd() else [path.parent.name, path.name]
    return default_folder(command, *filter(None, words))


def changed(options: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, by name."""
    values = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    plain = {entry.name: entry.default for entry in fields(options)}
    return {name: value for name, value in values.items() if value not in (None, [], plain[name])}
