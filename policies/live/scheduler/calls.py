"""The calls of a scheduler, and which of them change it."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from numpy.typing import NDArray

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Noted(NamedTuple):
    """The signals that :meth:`CrawlScheduler.signal` ignored.

    Attributes:
        ignored: signals of known pages that were ignored.
        unknown: ids of signals of unknown pages, which were ignored too, (k,).
    """

    ignored: int
    unknown: NDArray[Any]


CHANGES = (
    *("add", "update", "remove", "move", "revive", "limit_hosts", "hold", "configure"),
    *("reset_clock", "signal", "source_gap", "report", "next", "next_batch", "ask"),
)
"""Names of the methods that change a scheduler."""
QUERIES = ("describe", "why", "overview", "freshness", "warm")
"""Names of the methods that change nothing."""


def locked(method: Any) -> Any:
    """Wrap a scheduler's method: it waits for calls of other threads, and watchers see it."""
    signature, changes = inspect.signature(method), method.__name__ in CHANGES
    forgets = changes and not method.__name__.startswith("next")

    @functools.wraps(method)
    def waiting(self: Any, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            if forgets:
                self.idle = -math.inf
            answer = method(self, *arguments, **named)
            for watcher in self.watchers if changes else ():
                bound = signature.bind(self, *arguments, **named)
                watcher(method.__name__, bound.arguments, answer)
            return answer

    return waiting


def passed_on(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Replace a method by one that passes the method's name and arguments to ``_call``."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Any:
        values = signature.bind(*arguments, **named).arguments
        scheduler, columns = values.pop("self"), values.pop("columns", {})
        return scheduler._call(method.__name__, {**values, **columns})

    return call
