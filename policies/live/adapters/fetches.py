"""What the fetch of a page found: reported to a scheduler, and compared with the copy before."""

from __future__ import annotations

import logging
from calendar import timegm
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from policies.live.adapters.copies import Copy, digest
from policies.live.adapters.messages import SECONDS_PER_DAY, Scheduler
from policies.live.adapters.outages import Outages, outages_of
from policies.live.urls import host_of as host_of

logger = logging.getLogger(__name__)
HEADERS = ("etag", "last-modified", "retry-after")


class Answer(NamedTuple):
    """The answer to a request; None for what it has not.

    Attributes:
        status: its status, 0 where there is no answer.
        etag: its header ``ETag``.
        modified: its header ``Last-Modified``.
        retry_after: its header ``Retry-After``.
        content: what tells copies apart, of a status 2xx.
        url: what answered, if that is not the page, as after a redirect.
    """

    status: int = 0
    etag: str | None = None
    modified: str | None = None
    retry_after: str | None = None
    content: str | bytes = b""
    url: str = ""

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], content: str | bytes, url: str) -> Answer:
        """Return an answer; names of headers are in lower case."""
        etag, modified, wait = (headers.get(name) for name in HEADERS)
        return cls(status, etag, modified, wait, content, url)

    @property
    def is_ok(self) -> bool:
        """Whether there is a copy: as it is here, or for 304 as it was."""
        return self.status == 304 or 200 <= self.status < 300


def note_fetch(
    scheduler: Scheduler,
    page: str,
    before: Copy,
    answer: Answer,
    sent: float,
    now: float,
    outages: Outages | None = None,
) -> tuple[str, Copy]:
    """Report what a fetch found; return the outcome, and what is known of the copy from now on.

    Outcomes are ``new``, ``changed``, ``unchanged``, ``not_modified``, ``gone`` and ``failed``. A
    page is gone after a second 404 or 410 while its host answers other pages well, else it fails
    only (:mod:`policies.live.adapters.outages`). A host that answers 429 or 503 with a
    ``Retry-After`` is left alone until then at least, up to a day.

    Args:
        scheduler: its ids are URLs, and its times days since 1970.
        page: the page.
        before: what is known of the copy before.
        answer: the answer.
        sent: time at which the fetch began.
        now: time at which it ended.
        outages: of the hosts of the crawler, which say how long a host may be left alone too; None
            for those that all fetches of the scheduler share.
    """
    hosts = outages_of(scheduler) if outages is None else outages
    host = host_of(page)
    hosts.note(host, page, answer.is_ok, sent, now, is_silent=answer.status == 0)
    if not answer.is_ok:
        if hosts.is_gone(host, page, answer.status, sent, now):
            hosts.forget(host, page)
            scheduler.report([page], sent, "gone", ended=now)
            return "gone", Copy(parser=before.parser)
        until = respect(scheduler, page, answer, now, hosts.max_retry_after) or now
        until = max(until, hosts.next_turn(host, page, now))
        scheduler.report([page], sent, "failed", retry_at=until, ended=now)
        return "failed", before
    mark = before.digest if answer.status == 304 else digest(answer.content)
    changed = None if before.digest is None else mark != before.digest
    known = None if changed is None else [changed]
    scheduler.report([page], sent, changed=known, ended=now)
    if answer.status == 304:
        return "not_modified", before
    outcome = "new" if changed is None else "changed" if changed else "unchanged"
    return outcome, Copy(answer.etag, answer.modified, mark, before.parser)


def respect(
    scheduler: Scheduler, url: str, answer: Answer, now: float, longest: float = 1.0
) -> float | None:
    """Return the time until which an answer asks to wait, and leave its host alone if it says so.

    None if it does not; ``url`` was asked, ``answer.url`` may be of another host. It waits for at
    most ``longest`` days, with a warning unless the host waits already.
    """
    asked, place = retry_after(answer.retry_after or "", now), answer.url or url
    if asked is None:
        return None
    until = now + min(asked, longest)
    if asked > longest and scheduler.opens(host_of(place)) < until - 0.5 * longest:
        days = f"it asks to wait for {asked:.3g} days, and waits for {longest:.3g}"
        logger.warning(f"Retry-After of {place} is too long: {days}")
    if answer.status in (429, 503):
        leave_alone(scheduler, place, until)
    return until


def leave_alone(scheduler: Scheduler, url: str, until: float) -> None:
    """Ask the host of a URL not before a time, nor before it may be asked by what is known."""
    host = host_of(url)
    scheduler.hold(host, max(scheduler.opens(host), until))


def retry_after(told: str, now: float) -> float | None:
    """Return the days for which a server asks to wait; None if it does not."""
    told = told.strip()
    if told.isdecimal():
        return float(told) / SECONDS_PER_DAY
    try:
        until = timegm(parsedate_to_datetime(told).utctimetuple()) / SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return None
    return max(until - now, 0.0)
