"""Make commands of functions: help texts, errors in one line, and exit codes.

Bad input ends a command with exit code 2, a failed write or a killed worker with 1, an interrupt
with 130. Each prints one line on standard error.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from crawl_envs.system.files import claiming
from crawl_envs.types.arguments import one_of

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
NOTHING_WRITTEN = "stopped; nothing was written"
USAGE_ERROR: Any = typer.BadParameter.__base__
"""What the parser raises for unknown options, missing arguments and bad values."""


class Command(TyperCommand):
    """A command that rejects empty arguments, since an empty path means the current folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command line; a wrong word ends the command with one line."""
        line = [*args]
        with one_line_errors():
            for word, previous in zip(args, ["", *args], strict=False):
                name, equals, value = word.partition("=")
                if not word or (name.startswith("--") and equals and not value):
                    option = f"{name if word else previous} {word!r}".strip()
                    raise ValueError(f"an argument must not be empty, got {option}")
            try:
                return super().parse_args(ctx, args)
            except USAGE_ERROR as error:
                if option := getattr(error, "option_name", ""):  # it is unknown
                    names = [o for param in self.params for o in param.opts if o[:2] == "--"]
                    one_of(f"option of {ctx.info_name}", option, [*names, "--help"])
                message = error.format_message().removesuffix(".")
                words = shlex.join(line) or "nothing"
                raise ValueError(f"{ctx.info_name}: {message}, got {words}") from None


def group(about: str | None, cls: type[Any] | None = None) -> typer.Typer:
    """Return a typer application without commands; ``cls`` is the class of the group, if any."""
    look: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
    return typer.Typer(cls=cls, help=about, add_completion=False, **look)


def command(
    main: Callable[..., None],
    about: str | None,
    name: str | None = None,
    among: typer.Typer | None = None,
) -> typer.Typer:
    """Return a command that runs a function with typer's annotations.

    Args:
        main: the function; its errors are printed in one line.
        about: help of the command.
        name: name of the command in a group.
        among: the group that receives the command, from :func:`group`; None for a new one.
    """
    app = among or group(None)

    @app.command(name, help=about, cls=Command)
    @wraps(main)
    def framed(**options: Any) -> None:
        with one_line_errors(), claiming():
            main(**options)

    return app


def command_of(
    main: Callable[[Any], None],
    kind: type,
    about: str | None,
    name: str | None = None,
    among: typer.Typer | None = None,
) -> typer.Typer:
    """Return a command that runs a function of one dataclass with typer's annotations, ``kind``.

    Its help lists fields of a class before fields of its base. See :func:`command`.
    """
    hints, entries = get_type_hints(kind, include_extras=True), {f.name: f for f in fields(kind)}
    own_first = dict.fromkeys(n for base in kind.__mro__ for n in inspect.get_annotations(base))

    def parameter(name: str) -> inspect.Parameter:
        default = entries[name].default
        default = inspect.Parameter.empty if default is MISSING else default
        by_name = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, by_name, default=default, annotation=hints[name])

    def called(**options: Any) -> None:
        main(kind(**options))

    parameters = [parameter(name) for name in own_first if name in entries]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer's
    return command(called, about, name, among)


@contextmanager
def one_line_errors(stopped: str = NOTHING_WRITTEN, place: Path | None = None) -> Iterator[None]:
    """Turn bad input, failed reads or writes, and interrupts into one printed line and an exit.

    Args:
        stopped: message after an interrupt: what was saved, and how to resume.
        place: file or folder to name in errors that name no file.
    """
    try:
        yield
    except ValueError as error:
        raise _exit(f"error: {' '.join(str(error).split())}", BAD_INPUT) from None
    except OSError as error:
        file = error.filename or place or "a file"
        message = f"error: cannot read or write {file}: {error.strerror or error}"
        raise _exit(message, FAILED) from None
    except MemoryError:
        raise _exit("error: out of memory", FAILED) from None
    except BrokenProcessPool:
        message = "error: a worker process was killed, perhaps out of memory"
        raise _exit(message, FAILED) from None
    except KeyboardInterrupt:
        raise _exit(f"\n{stopped}", INTERRUPTED) from None


def _exit(message: str, code: int) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(code)
