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
from typer.core import TyperCommand

from crawl_envs.types.files import claiming

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
MOST = 10**6
"""Largest count of seeds, draws, trials or workers."""
NOTHING_WRITTEN = "stopped; nothing was written"

Fresh = Annotated[bool, typer.Option("--fresh", help="Discard what is there and start anew.")]


class _NoneEmpty(TyperCommand):
    """A command that refuses empty arguments; an empty path would be the current folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for position, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word == "" or (name.startswith("--") and equals and not value):
                before = args[position - 1] if position and not word else name
                ctx.fail(f"an argument must not be empty, got {f'{before} {word!r}'.strip()}")
        return super().parse_args(ctx, args)


def command(main: Callable[..., None], about: str | None) -> typer.Typer:
    """Return the command of a function with typer's annotations.

    Args:
        main: the function; its errors are printed in one line.
        about: help of the command.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command(help=about, cls=_NoneEmpty)
    @wraps(main)
    def framed(**options: Any) -> None:
        with one_line_errors(), claiming():
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


def words_of(option: str, text: str | None) -> list[str]:
    """Return the comma-separated words of an option, none of None.

    Raises:
        ValueError: a text without words.
    """
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not words:
        raise ValueError(f"{option} must be names separated by commas, got {text!r}")
    return words


def at_least(least: int, **named: int) -> None:
    """Raise ValueError unless the named integers are at least ``least`` and at most ``MOST``."""
    for name, value in named.items():
        if not least <= value <= MOST:
            bound = f">= {least}" if value < least else f"<= {MOST}"
            raise ValueError(f"{name.replace('_', '-')} must be an integer {bound}, got {value}")
