"""Options, default folders and errors of commands."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from scripts.reporting.cli import INTERRUPTED
from scripts.reporting.comparisons import plain_value

PREFIX = "crawl_envs:"


def named_values(pairs: Iterable[str], option: str = "env-arg") -> dict[str, Any]:
    """Parse ``name=value`` pairs; see :func:`scripts.reporting.comparisons.plain_value`.

    Raises:
        ValueError: a pair without ``=``, or without a name.
    """
    values = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not (name and separator):
            raise ValueError(f"{option} must be name=value, got {pair!r}")
        values[name] = plain_value(text)
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


def default_folder(*words: str) -> Path:
    """Return the folder under ``runs`` of a name of several words."""
    return Path("runs") / "-".join(words).replace(":", "-").replace("/", "-")


def at_least(least: int, **named: int) -> None:
    """Raise ValueError unless the named integers are at least ``least``."""
    for name, value in named.items():
        if value < least:
            raise ValueError(f"{name.replace('_', '-')} must be an integer >= {least}, got {value}")


def given_only(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


@contextlib.contextmanager
def one_line_errors(out: Path, stopped: str) -> Iterator[None]:
    """Exit with one line on bad input, a failed write or an interrupt.

    Args:
        out: output folder.
        stopped: message after an interrupt: what was saved, and how to resume.
    """
    try:
        yield
    except ValueError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"error: cannot write {out}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(stopped, err=True)
        raise typer.Exit(INTERRUPTED) from None
