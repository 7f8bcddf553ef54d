"""A live scheduler that answers lines of standard input or requests over HTTP, and polls feeds."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import typer

from policies.live import messages
from policies.scheduler import CrawlScheduler, DurableScheduler
from scripts.logs import planning
from scripts.present import tables

FETCHES_SAVED = 20.0
"""Least number of fetches that may be saved where pages are asked for over HTTP."""


def answer(
    wanted: planning.Schedule, folder: Path | None, feeds: Polled, *, learn: bool, port: int | None
) -> None:
    """Answer lines of standard input, or requests to a port."""
    count = len(feeds.addresses)
    listening = None if port is None else listen(port)
    if port is not None and wanted.bandwidth > 0.0:
        wanted = wanted._replace(start=wanted.start - FETCHES_SAVED / wanted.bandwidth)
    scheduler, table = None, None
    if folder is not None and DurableScheduler.holds(folder):
        resumes = f"{folder} goes on with its own pages, signals, policy and bandwidth, not these"
        typer.echo(resumes, err=True)
    else:
        scheduler, table = wanted.scheduler(learn=learn, feeds=count), wanted.table
    if table is not None:
        for sentence in planning.policy_cautions(table, wanted.policy, learn):
            typer.echo(sentence, err=True)
    with nullcontext(scheduler) if folder is None else DurableScheduler(folder, scheduler) as asked:
        assert asked is not None
        planning.limit_hosts(asked, wanted.limits)
        with polling(asked, feeds, folder):
            if table is not None:
                planning.report_signals(asked, table, table.urls, wanted.start)
            if listening is not None:
                serve_requests(asked, listening)
                return
            for line in messages.answers(asked, sys.stdin):
                print(line, flush=True)


class Polled(NamedTuple):
    """Feeds, and the days between two polls of them."""

    addresses: Sequence[str]
    every: float


@contextmanager
def polling(
    scheduler: CrawlScheduler | DurableScheduler, feeds: Polled, folder: Path | None
) -> Iterator[None]:
    """Poll feeds at once, and then again and again until the end."""
    if not feeds.addresses:
        yield
        return
    from policies.live.feeds import PATIENCE, Polls

    if len(feeds.addresses) > scheduler.num_sources:
        raise ValueError(
            f"feed must be given once for each source of signals, there are "
            f"{scheduler.num_sources}, got {len(feeds.addresses)}"
        )
    end, columns = threading.Event(), {} if scheduler.learns else None

    def poll_due(polls: Polls) -> None:
        while not end.is_set() and (feed := polls.next(messages.day_of(None))) is not None:
            for fault in polls.fetch(scheduler, feed):
                typer.echo(fault, err=True)

    def poll_on(polls: Polls) -> None:
        while not end.wait(days_to(polls) * messages.SECONDS_PER_DAY):
            poll_due(polls)

    def days_to(polls: Polls) -> float:
        return max(min(polls.due.values()) - messages.day_of(None), 0.0)

    with TemporaryDirectory() if folder is None else nullcontext(folder / "feeds") as place:
        sources = {address: source for source, address in enumerate(feeds.addresses)}
        polls = Polls(sources, Path(place), feeds.every, messages.day_of(None), columns)
        poll_due(polls)
        thread = threading.Thread(target=poll_on, args=(polls,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join(PATIENCE)


def listen(port: int) -> socket.socket:
    """Return a socket that listens to a port of this machine.

    Raises:
        ValueError: it is in use, or may not be used.
    """
    # with its protocol named, asyncio sends answers without delay (TCP_NODELAY)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise ValueError(f"port must be free, got {port}: {error.strerror}") from None
    return listening


def serve_requests(scheduler: CrawlScheduler | DurableScheduler, listening: socket.socket) -> None:
    """Answer requests over HTTP until an interrupt."""
    from policies.live.endpoint import serve

    if scheduler.burst * scheduler.bandwidth < FETCHES_SAVED:
        scheduler.configure(scheduler.time, burst=FETCHES_SAVED / scheduler.bandwidth)
    port = listening.getsockname()[1]
    tables.console().print(f"http://127.0.0.1:{port}/due?url=...", soft_wrap=True)
    serve(scheduler, listening)
