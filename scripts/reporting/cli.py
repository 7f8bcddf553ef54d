"""How commands end that cannot go on: one clear line, and an exit status that is not 0."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import typer

INTERRUPTED = 130


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn a ValueError of the block, which prepares the work, into a line and status 1."""
    try:
        yield
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def plain_interrupt(message: str) -> Iterator[None]:
    """Turn an interrupt of the block, which does the work, into ``message`` and status 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{message}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenProcessPool:
        typer.echo("error: a worker process was killed, maybe for want of memory", err=True)
        raise typer.Exit(1) from None
