"""Failure of a command: one line on standard error, and a non-zero exit status."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import typer

INTERRUPTED = 130


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn a ValueError of the block into one line and exit status 1."""
    try:
        yield
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def plain_interrupt(message: str) -> Iterator[None]:
    """Turn a keyboard interrupt of the block into ``message`` and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{message}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenProcessPool:
        typer.echo("error: a worker process was killed, perhaps out of memory", err=True)
        raise typer.Exit(1) from None
