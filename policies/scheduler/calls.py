"""The calls of a scheduler: which of them change it, and how they are divided among shards."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Noted(NamedTuple):
    """The answer of :meth:`CrawlScheduler.signal`.

    Attributes:
        ignored: signals of known pages that were ignored.
        unknown: ids of signals of unknown pages, which were ignored too, (k,).
    """

    ignored: int
    unknown: NDArray[Any]


Answers = Sequence[Mapping[str, Any]]
Join = Callable[[Answers, NDArray[Any]], Any]


def nothing(answers: Answers, unknown: NDArray[Any]) -> None:
    """Return None."""


def noted(answers: Answers, unknown: NDArray[Any]) -> Noted:
    """Return the number of ignored events of all shards, and the unknown ids."""
    return Noted(sum(answer["ignored"] for answer in answers), unknown)


def ignored(answers: Answers, unknown: NDArray[Any]) -> int:
    """Return the number of ignored events, and of unknown ids."""
    return int(sum(answer["answer"] for answer in answers)) + unknown.size


def first(answers: Answers, unknown: NDArray[Any]) -> dict[str, Any]:
    """Return the answer of the only shard that was asked."""
    return dict(answers[0])


class Call(NamedTuple):
    """A call.

    Attributes:
        by: the argument with the labels by which it is divided among shards: ids of pages, or
            hosts; without one, all shards are asked.
        join: makes one answer of those of the shards, and of the unknown ids.
        changes: whether it changes a scheduler.
        skips: whether unknown ids are left out; else they are errors.
    """

    by: str = ""
    join: Join = nothing
    changes: bool = True
    skips: bool = False


CALLS = {
    "add": Call("ids"),
    "update": Call("ids"),
    "remove": Call("ids"),
    "move": Call("ids"),
    "revive": Call("ids", ignored, skips=True),
    "limit_hosts": Call("hosts"),
    "hold": Call("host"),
    "configure": Call(),
    "reset_clock": Call(),
    "signal": Call("ids", noted, skips=True),
    "source_gap": Call(),
    "report": Call("ids", ignored, skips=True),
    "next": Call(),
    "next_batch": Call(),
    "ask": Call(),
    "describe": Call("page_id", first, changes=False),
    "why": Call(changes=False),
    "overview": Call(changes=False),
    "warm": Call(changes=False),
}
"""All calls of a scheduler."""


def wrapped(method: Any, make: Callable[[Any, str, dict[str, Any]], Any]) -> Any:
    """Return a method with the same arguments that makes a call: of self, its name, arguments."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        given = signature.bind(self, *arguments, **named).arguments
        given.pop("self")
        columns = given.pop("columns", {})
        return make(self, method.__name__, {**given, **columns})

    return call


def locked(method: Any) -> Any:
    """Return a call that waits for those of other threads, and that watchers see."""
    signature, call = inspect.signature(method), CALLS.get(method.__name__, Call(changes=False))
    forgets = call.changes and not method.__name__.startswith("next")

    @functools.wraps(method)
    def waiting(self: Any, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            if forgets:
                self.idle = -np.inf
            answer = method(self, *arguments, **named)
            for watcher in self.watchers if call.changes else ():
                bound = signature.bind(self, *arguments, **named)
                watcher(method.__name__, bound.arguments, answer)
            return answer

    return waiting
