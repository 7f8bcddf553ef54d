"""Processes that serve what is measured, and end with it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

SPAWN = multiprocessing.get_context("spawn")


class Started(NamedTuple):
    """A process, and the pipe on which it tells what it has to say."""

    process: BaseProcess
    pipe: Connection

    def told(self, others: Sequence[Started] = ()) -> Any:
        """Return what the process tells next.

        Raises:
            ValueError: it ended before, or one of some others that shall go on did.
        """
        ready = wait([each.pipe for each in (self, *others)])
        ended = [each for each in others if each.pipe in ready] or [self]
        try:
            return ended[0].pipe.recv()
        except EOFError:
            process = ended[0].process
            process.join()
            raise ValueError(
                f"process {process.name} must not end by itself, it did with exit code "
                f"{process.exitcode}"
            ) from None


@contextmanager
def started(run: Callable[..., None], *arguments: Any) -> Iterator[Started]:
    """Run a function in a process of its own for a block; the last argument is its pipe."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=run, args=(*arguments, theirs), name=run.__name__)
    process.start()
    theirs.close()  # so that the pipe ends with the process
    try:
        yield Started(process, ours)
    finally:
        process.kill()
        process.join()
