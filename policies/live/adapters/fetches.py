"""The rules of a fetch: its outcome, what is reported, and how long its host is left alone."""

from __future__ import annotations

import logging
from calendar import timegm
from collections import deque
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from policies.live.adapters.copies import Copies, Copy, digest
from policies.live.adapters.messages import SECONDS_PER_DAY, Scheduler, take_back
from policies.live.adapters.outages import Outages
from policies.live.urls import host_of as host_of

logger = logging.getLogger(__name__)
HEADERS = ("etag", "last-modified", "retry-after")
LEAST_COST = 1e-3
"""Cost of a fetch that took nothing, as of a host that refuses connections."""
MAX_CAUSES = 10_000
"""Most fetches whose causes of failure are remembered."""


class Answer(NamedTuple):
    """The answer to a request; None where a header is missing.

    Attributes:
        status: its status, 0 without an answer.
        etag: its header ``ETag``.
        modified: its header ``Last-Modified``.
        retry_after: its header ``Retry-After``.
        content: the content to compare with the last copy, for a status 2xx, None if not known.
        url: the URL that answered, if it is not the page's, as after a redirect.
        cost: what the fetch cost, such as its bytes or seconds; None if it is not known.
    """

    status: int = 0
    etag: str | None = None
    modified: str | None = None
    retry_after: str | None = None
    content: str | bytes | None = b""
    url: str = ""
    cost: float | None = None

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], content: str | bytes, url: str) -> Answer:
        """Build an answer from a response; the names of its headers must be in lower case."""
        etag, modified, wait = (headers.get(name) for name in HEADERS)
        return cls(status, etag, modified, wait, content, url)

    @property
    def is_ok(self) -> bool:
        """Whether the page was answered: by a status 2xx or 304."""
        return self.status == 304 or 200 <= self.status < 300

    def changed(self, before: Copy) -> bool | None:
        """Return whether an answer 2xx or 304 differs from the last copy; None if not known."""
        if before.digest is None or self.status == 304:
            return None if before.digest is None else False
        return None if self.content is None else digest(self.content) != before.digest

    def is_news(self, before: Copy) -> bool:
        """Return whether a callback sees an answer 2xx or 304: it is new or has changed."""
        return self.status != 304 and (not before.processed or self.changed(before) is not False)


class Fetches:
    """Reports a crawler's fetches to a scheduler, by rules common to Scrapy, Crawlee and others.

    Call ``begin`` when a page is requested and ``end`` when the answer is there.

    Args:
        scheduler: a scheduler whose ids are URLs and whose times are days since 1970. Its clock is
            set back if it is ahead. Its fetches under way are reported as interrupted, so no
            other process may fetch its pages.
        copies: the copies of the crawler; ``end`` reads them and its caller writes them.
        now: the time.
        max_retry_after: the longest wait for a ``Retry-After``, in days.

    Attributes:
        sent: the times at which the fetches under way began, by page.
        causes: pages and how their last fetches ended, for the page to watch.
    """

    def __init__(
        self, scheduler: Scheduler, copies: Copies, now: float, max_retry_after: float = 1.0
    ) -> None:
        take_back(scheduler, now)
        if scheduler.under_way.size:
            scheduler.report(scheduler.under_way, now, "interrupted")
        self.scheduler, self.copies = scheduler, copies
        self.outages, self.max_retry_after = Outages(scheduler), max_retry_after
        self.sent: dict[str, float] = {}
        self.causes = deque[tuple[str, str]](maxlen=MAX_CAUSES)

    def begin(self, page: str, now: float) -> None:
        """Record that the crawler requests a page at a time."""
        self.sent[page] = now
        self.outages.ask(host_of(page), now)

    def end(self, page: str, answer: Answer, now: float) -> tuple[str, Copy]:
        """Report a fetch that ended at a time; return its outcome and the new copy.

        Outcomes are ``new``, ``changed``, ``unchanged``, ``not_modified`` (304), ``gone`` and
        ``failed``. A page is gone after a second 404 or 410 while its host answers other pages
        (:mod:`policies.live.adapters.outages`). A host that answers 429 or 503 with a
        ``Retry-After`` gets no requests until that time.
        """
        before, sent, host = self.copies[page], self.sent.pop(page, now), host_of(page)
        about: dict[str, Any] = {"ended": now}
        if answer.cost is not None:
            about["cost"] = answer.cost or LEAST_COST
        self.outages.note(host, page, answer.is_ok, sent, now, is_silent=answer.status == 0)
        if not answer.is_ok:
            if self.outages.is_gone(host, page, answer.status, sent, now):
                self.outages.forget(host, page)
                self.scheduler.report([page], sent, "gone", **about)
                return "gone", Copy(parser=before.parser)
            until = max(self.respect(page, answer, now), self.outages.next_turn(host, page, now))
            self.scheduler.report([page], sent, "failed", retry_at=until, **about)
            return "failed", before
        changed = answer.changed(before)
        self.scheduler.report([page], sent, changed=None if changed is None else [changed], **about)
        if answer.status == 304:
            return "not_modified", before
        is_new = changed is None or not before.processed
        outcome = "new" if is_new else "changed" if changed else "unchanged"
        content = None if answer.content is None else digest(answer.content)
        return outcome, Copy(answer.etag, answer.modified, content, before.parser)

    def respect(self, url: str, answer: Answer, now: float) -> float:
        """Return the time until which an answer's ``Retry-After`` asks to wait, else ``now``.

        With status 429 or 503 the host gets no requests until that time. A wait that is cut to
        ``max_retry_after`` gives one warning.
        """
        days_asked, place = retry_after(answer.retry_after or "", now), answer.url or url
        if days_asked is None:
            return now
        longest = self.max_retry_after
        until = now + min(days_asked, longest)
        if days_asked > longest and self.scheduler.opens(host_of(place)) < until - 0.5 * longest:
            days = f"it asks to wait for {days_asked:.3g} days, and waits for {longest:.3g}"
            logger.warning(f"Retry-After of {place} is too long: {days}")
        if answer.status in (429, 503):
            leave_alone(self.scheduler, place, until)
        return until

    def see_again(self, page: str) -> None:
        """Let a page's callback see its next fetch in any case."""
        if page and page in self.scheduler:
            self.copies.put({page: self.copies[page].unprocessed})


def leave_alone(scheduler: Scheduler, url: str, until: float) -> None:
    """Send no requests to a URL's host before a time, or before its present later time."""
    host = host_of(url)
    scheduler.hold(host, max(scheduler.opens(host), until))


def retry_after(text: str, now: float) -> float | None:
    """Return the days to wait by the text of a header ``Retry-After``; None if malformed."""
    text = text.strip()
    if text.isdecimal():
        return float(text) / SECONDS_PER_DAY
    try:
        until = timegm(parsedate_to_datetime(text).utctimetuple()) / SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return None
    return max(until - now, 0.0)
