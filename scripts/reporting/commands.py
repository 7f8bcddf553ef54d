"""The frame of every command: the look of its help, errors in one line, and exit codes.

Bad input ends a command with exit code 2, a failed write or a killed worker with 1, an interrupt
with 130. Each prints one line on standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
NOTHING_WRITTEN = "stopped; nothing was written"

Fresh = Annotated[bool, typer.Option("--fresh", help="Discard what is there and start anew.")]


def command(main: Callable[..., None], about: str | None) -> typer.Typer:
    """Return the command of a function with typer's annotations.

    Args:
        main: the function; its errors are printed in one line.
        about: help of the command.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command(help=about)
    @wraps(main)
    def framed(**options: Any) -> None:
        with one_line_errors():
            main(**options)

    return app


@contextmanager
def one_line_errors(stopped: str = NOTHING_WRITTEN, place: Path | None = None) -> Iterator[None]:
    """Exit with one line on bad input, a failed read or write, or an interrupt.

    Args:
        stopped: message after an interrupt: what was saved, and how to go on.
        place: what is written, for errors that name no file.
    """
    try:
        yield
    except ValueError as error:
        raise _exit(f"error: {' '.join(str(error).split())}", BAD_INPUT) from None
    except OSError as error:
        at = error.filename or place or "a file"
        said = f"error: cannot read or write {at}: {error.strerror or error}"
        raise _exit(said, FAILED) from None
    except MemoryError:
        raise _exit("error: out of memory", FAILED) from None
    except BrokenProcessPool:
        said = "error: a worker process was killed, perhaps out of memory"
        raise _exit(said, FAILED) from None
    except KeyboardInterrupt:
        raise _exit(f"\n{stopped}", INTERRUPTED) from None


def _exit(message: str, code: int) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(code)


def default_folder(*words: str) -> Path:
    """Return the folder under ``runs`` of a name of several words."""
    return Path("runs") / "-".join(words).replace(":", "-").replace("/", "-")


def words_of(text: str | None) -> list[str]:
    """Return the comma-separated words of a text."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def at_least(least: int, **named: int) -> None:
    """Raise ValueError unless the named integers are at least ``least``."""
    for name, value in named.items():
        if value < least:
            raise ValueError(f"{name.replace('_', '-')} must be an integer >= {least}, got {value}")
