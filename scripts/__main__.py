"""The program ``crawl-envs``: ``crawl-envs rank mini`` is ``python -m scripts.rank mini``."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from crawl_envs.types.arguments import one_of

BAD_INPUT = 2
HELP = ("-h", "--help")


def commands() -> dict[str, str]:
    """Return for every command, by name, the first line of its help."""
    files = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    docs = {file.stem: ast.get_docstring(ast.parse(file.read_text("utf-8"))) for file in files}
    return {name: (text or "").partition("\n")[0] for name, text in docs.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first argument names."""
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or HELP
    summaries = commands()
    if name in HELP:
        print("usage: crawl-envs COMMAND [OPTIONS]\n")
        print("\n".join(f"  {command:<10}  {summary}" for command, summary in summaries.items()))
        return
    if "" not in sys.path:
        sys.path.insert(0, "")  # finds policies in the current folder, as python -m does
    try:
        one_of("command", name, tuple(summaries))
        module = importlib.import_module(f"scripts.{name}")
    except ValueError as error:
        sys.exit(_stopped(str(error)))
    except ModuleNotFoundError as error:
        sys.exit(_stopped(f"{error.name} is not installed: pip install 'crawl-envs[agents]'"))
    module.app(args=rest, prog_name=f"crawl-envs {name}")


def _stopped(reason: str) -> int:
    print(f"error: {reason}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    main()
