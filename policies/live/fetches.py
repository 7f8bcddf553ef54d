"""What the fetch of a page found: reported to a scheduler, and compared with the copy before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from policies.live.copies import Copy, digest
from policies.live.messages import SECONDS_PER_DAY, Scheduler

LONGEST_WAIT = 30.0
"""Days that a server may ask to wait."""
HOUR = 1.0 / 24.0
HEADERS = ("etag", "last-modified", "retry-after")


class Answer(NamedTuple):
    """The answer to a request; None for what it has not.

    Attributes:
        status: its status, 0 where there is no answer.
        etag: its header ``ETag``.
        modified: its header ``Last-Modified``.
        retry_after: its header ``Retry-After``.
        content: what tells copies apart, of a status 2xx.
    """

    status: int = 0
    etag: str | None = None
    modified: str | None = None
    retry_after: str | None = None
    content: str | bytes = b""

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], content: str | bytes) -> Answer:
        """Return the answer of a status, headers with names in lower case, and a content."""
        etag, modified, wait = (headers.get(name) for name in HEADERS)
        return cls(status, etag, modified, wait, content)

    @property
    def is_ok(self) -> bool:
        """Whether there is a copy: as it is here, or for 304 as it was."""
        return self.status == 304 or 200 <= self.status < 300


class Found(NamedTuple):
    """What a fetch found.

    Attributes:
        outcome: ``new``, ``changed``, ``unchanged``, ``not_modified``, ``gone`` or ``failed``.
        copy: what is known of the page's copy from now on.
        rest: time until which its host is left alone, -inf for none.
    """

    outcome: str
    copy: Copy
    rest: float = -math.inf


def note_fetch(
    scheduler: Scheduler,
    page: str,
    before: Copy,
    answer: Answer,
    sent: float,
    now: float,
    retry: float = HOUR,
) -> Found:
    """Report what a fetch found, and return it.

    A page is gone after 410, or 404 right after another failure. A host that answers 429 or 503
    with a ``Retry-After`` is left alone until then.

    Args:
        scheduler: its ids are URLs, and its times days since 1970.
        page: the page.
        before: what is known of the copy before.
        answer: the answer.
        sent: time at which the fetch began.
        now: time at which it ended.
        retry: the scheduler's first wait after a failure, in days; a server may ask for more.
    """
    if not answer.is_ok:
        failures = scheduler.describe(page)["failures"] if page in scheduler else 0
        if answer.status == 410 or (answer.status == 404 and failures):
            scheduler.report([page], sent, "gone", ended=now)
            return Found("gone", Copy())
        return Found("failed", before, _fail(scheduler, page, answer, sent, now, retry))
    mark = before.digest if answer.status == 304 else digest(answer.content)
    changed = None if before.digest is None else mark != before.digest
    known = None if changed is None else [changed]
    scheduler.report([page], sent, changed=known, ended=now)
    if answer.status == 304:
        return Found("not_modified", before)
    outcome = "new" if changed is None else "changed" if changed else "unchanged"
    return Found(outcome, Copy(answer.etag, answer.modified, mark, before.parser))


def _fail(
    scheduler: Scheduler, page: str, answer: Answer, sent: float, now: float, retry: float
) -> float:
    """Report a failure, and return the time until which the host is left alone."""
    wait = retry_after(answer.retry_after or "", now)
    longer = None if wait is None or wait <= retry else now + wait
    scheduler.report([page], sent, "failed", retry_at=longer, ended=now)
    if wait is None or answer.status not in (429, 503):
        return -math.inf
    scheduler.hold(urlsplit(page).hostname or "", now + wait)
    return now + wait


def retry_after(told: str, now: float) -> float | None:
    """Return the days for which a server asks to wait, at most 30; None if it does not."""
    told = told.strip()
    if told.isdecimal():
        return min(float(told) / SECONDS_PER_DAY, LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(told).timestamp() / SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return None
    return min(max(until - now, 0.0), LONGEST_WAIT)
