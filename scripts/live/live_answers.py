"""Run a live scheduler: answer lines of standard input or HTTP requests, and poll feeds."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import typer

from policies.live.adapters import messages, page_tables
from policies.live.adapters.watching import listen
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.live.urls import normal_url
from scripts.live import planning
from scripts.present import tables

FETCHES_SAVED = 20.0
"""Least limit of the unused fetches that the scheduler saves up for HTTP requests."""


def answer(
    wanted: planning.Schedule, folder: Path | None, feeds: Polled, *, learn: bool, port: int | None
) -> None:
    """Run a scheduler that answers lines of standard input, or HTTP requests to ``port``."""
    count = len(feeds.addresses)
    listening = None if port is None else listen(port)
    if port is not None and wanted.bandwidth > 0.0:
        wanted = wanted._replace(start=wanted.start - FETCHES_SAVED / wanted.bandwidth)
    if wanted.table is not None:  # as messages and feeds spell them
        urls = np.array([normal_url(url) for url in wanted.table.urls], object)
        wanted = wanted._replace(table=replace(wanted.table, urls=urls))
    scheduler, table = None, None
    if folder is not None and DurableScheduler.holds(folder):
        resumes = f"resuming {folder}: its pages, signals, policy and bandwidth replace these"
        resumes += "; so do its cap and its promises"
        typer.echo(resumes, err=True)
    else:
        scheduler, table = wanted.scheduler(learn=learn, feeds=count), wanted.table
    if table is not None:
        for sentence in (*table.notes, *planning.policy_cautions(table, wanted.policy, learn)):
            typer.echo(sentence, err=True)
    policy = wanted.policy if ":" in wanted.policy else None  # a folder names no code
    durable = None if folder is None else DurableScheduler(folder, scheduler, policy=policy)
    with nullcontext(scheduler) if durable is None else durable as loop:
        assert loop is not None
        if scheduler is None:
            messages.take_back(loop, messages.day_of(None))
            share = loop.audits.share if loop.audits else 0.0
            typer.echo(f"{share:g} of the fetches are audits: audit_share changes it", err=True)
        planning.limit_hosts(loop, wanted.limits)
        with polling(loop, feeds, folder) as polls:
            if table is not None:
                page_tables.report_signals(loop, table, table.urls, wanted.start)
            if listening is not None:
                serve_requests(loop, listening, polls)
                return
            for line in messages.answers(loop, sys.stdin):
                print(line, flush=True)


class Polled(NamedTuple):
    """Addresses of feeds to poll, and the days between two polls of a feed."""

    addresses: Sequence[str]
    every: float


@contextmanager
def polling(
    scheduler: CrawlScheduler | DurableScheduler, feeds: Polled, folder: Path | None
) -> Iterator[Any]:
    """Poll feeds now and then regularly in a thread; yield the polls, or None without feeds."""
    if not feeds.addresses:
        yield None
        return
    from policies.live.adapters.feeds import PATIENCE, Polls

    if len(feeds.addresses) > scheduler.num_sources:
        raise ValueError(
            f"feed must be given at most {scheduler.num_sources} times, once for each source of "
            f"signals, got {len(feeds.addresses)}"
        )
    end, columns = threading.Event(), dict[str, Any]() if scheduler.learns else None

    def poll_due(polls: Polls) -> None:
        while not end.is_set() and (feed := polls.next(messages.day_of(None))) is not None:
            for fault in polls.fetch(scheduler, feed):
                typer.echo(fault, err=True)

    def poll_on(polls: Polls) -> None:
        days = 0.0
        while not end.wait(max(days, 0.0) * messages.SECONDS_PER_DAY):
            poll_due(polls)
            days = min(polls.due.values()) - messages.day_of(None)

    with TemporaryDirectory() if folder is None else nullcontext(folder / "feeds") as place:
        sources = {address: source for source, address in enumerate(feeds.addresses)}
        times = feeds.every, messages.day_of(None)
        polls = Polls(sources, Path(place), *times, columns, normal_url)
        poll_due(polls)
        thread = threading.Thread(target=poll_on, args=(polls,), daemon=True)
        thread.start()
        try:
            yield polls
        finally:
            end.set()
            thread.join(PATIENCE)


def serve_requests(
    scheduler: CrawlScheduler | DurableScheduler, listening: socket.socket, polls: Any
) -> None:
    """Answer HTTP requests for the next fetches on an open socket until an interrupt."""
    from policies.live.adapters.endpoint import serve

    def save_fetches(*_: Any) -> None:
        days = FETCHES_SAVED * scheduler.pace.mean_cost / scheduler.bandwidth
        if scheduler.burst < days:
            scheduler.configure(scheduler.time, burst=days)

    save_fetches()
    scheduler.watchers.append(save_fetches)  # costs are learned
    port = listening.getsockname()[1]
    tables.console().print(f"http://127.0.0.1:{port}/due?url=...", soft_wrap=True)
    serve(scheduler, listening, polls)
