"""The frame of every command: the look of its help, errors in one line, and exit codes.

Bad input ends a command with exit code 2, a failed write or a killed worker with 1, an interrupt
with 130. Each prints one line on standard error.
"""

from __future__ import annotations

import ast
import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from crawl_envs.types.arguments import one_of
from crawl_envs.types.files import claiming

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
MOST = 10**6
"""Largest count of seeds, draws, trials or workers."""
NOTHING_WRITTEN = "stopped; nothing was written"

Fresh = Annotated[bool, typer.Option("--fresh", help="Discard what is there and start anew.")]


USAGE_ERROR: Any = typer.BadParameter.__base__
"""What the parser raises for unknown options, missing arguments and bad values."""


class _NoneEmpty(TyperCommand):
    """A command that refuses empty arguments; an empty path would be the current folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for position, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word == "" or (name.startswith("--") and equals and not value):
                before = args[position - 1] if position and not word else name
                ctx.fail(f"an argument must not be empty, got {f'{before} {word!r}'.strip()}")
        return super().parse_args(ctx, args)


class _Program(_NoneEmpty):
    """One of several commands behind a name: what only another takes is refused in one line."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        line, names = " ".join(args), [each.opts[0] for each in self.params]
        known = [*(name for name in names if name[:2] == "--"), "--help"]
        with one_line_errors():
            try:
                rest: list[str] = super().parse_args(ctx, args)
            except USAGE_ERROR as error:
                if option := getattr(error, "option_name", ""):  # an unknown one
                    one_of(f"option of {ctx.info_name}", option, known)
                said = error.format_message().removesuffix(".")
                raise ValueError(f"{said}, got {line}") from None
            if ctx.args:
                named = [name.upper() for name in names if name not in known]
                takes = " and ".join([*named, "its options"])
                raise ValueError(f"{ctx.info_name} takes {takes} alone, got {ctx.args[0]!r}")
        return rest


def _app(**look: Any) -> typer.Typer:
    look |= {"rich_markup_mode": None, "pretty_exceptions_enable": False}
    return typer.Typer(add_completion=False, **look)


def programs(chosen: Callable[[list[str]], list[str]], about: str | None) -> typer.Typer:
    """Return a command that is one of several, which :func:`command_of` adds to it.

    Args:
        chosen: returns the arguments of the command line with the name of the program in front.
        about: help of the command.
    """

    class Programs(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            with one_line_errors():
                given = args if args[:1] == ["--help"] else chosen(args)
            return super().parse_args(ctx, given)

    return _app(cls=Programs, help=about)


def command(
    main: Callable[..., None],
    about: str | None,
    name: str | None = None,
    among: typer.Typer | None = None,
) -> typer.Typer:
    """Return the command of a function with typer's annotations.

    Args:
        main: the function; its errors are printed in one line.
        about: help of the command.
        name: name of the program, if it is one of several.
        among: the command of these.
    """
    app = among or _app()

    @app.command(name, help=about, cls=_Program if among else _NoneEmpty)
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
    """Return the command of a function of a dataclass: every field is an argument.

    The text below a field is its help, and the end of the text in brackets the default as shown.
    Fields of ``kind.POSITIONAL`` are arguments without a name; fields with annotations of typer
    keep those. The help has those of a class before those of its base.

    Args:
        main: the function; its errors are printed in one line.
        kind: the class of its argument.
        about: help of the command.
        name: name of the program, if it is one of several.
        among: the command of these, as of :func:`programs`.
    """
    texts = _texts(kind)
    hints = get_type_hints(kind, include_extras=True)
    entries = {entry.name: entry for entry in fields(kind)}
    positional: tuple[str, ...] = kind.POSITIONAL  # type: ignore[attr-defined]  # of such classes
    own_first = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
    parameters = []
    for field in dict.fromkeys((*positional, *(name for name in own_first if name in entries))):
        hint, default = hints[field], entries[field].default
        if not hasattr(hint, "__metadata__"):
            words, _, shown = texts[field].removesuffix(".").removesuffix("]").partition(" [")
            look: dict[str, Any] = {"help": f"{words}.", "show_default": shown or True}
            option = f"--{field.replace('_', '-')}"
            unnamed = field in positional
            made = typer.Argument(**look) if unnamed else typer.Option(option, **look)
            hint = Annotated[hint, made]
        default = inspect.Parameter.empty if default is MISSING else default
        kinds = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(field, kinds, default=default, annotation=hint))

    def called(**options: Any) -> None:
        main(kind(**options))

    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer's
    return command(called, about, name, among)


def _texts(kind: type) -> dict[str, str]:
    """Return the texts below the fields of a dataclass and its bases, by name."""
    texts: dict[str, str] = {}
    for base in kind.__mro__[-2::-1]:
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                texts[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return texts


def given(options: Any) -> dict[str, Any]:
    """Return the fields of a dataclass of options that are not at their defaults, by name."""
    values = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    plain = {entry.name: entry.default for entry in fields(options)}
    return {name: value for name, value in values.items() if value not in (None, [], plain[name])}


def spelled(module: str, chosen: Mapping[str, Any], positional: str) -> str:
    """Return the command line of a module with the chosen options, one of them without a name."""
    words = ["python", "-m", module, str(chosen[positional])]
    for name, value in chosen.items():
        if name != positional:
            words.append(f"--{name.replace('_', '-')}")
            words += [] if value is True else [str(value)]
    return shlex.join(words)


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
