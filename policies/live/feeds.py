"""Feeds and sitemaps as signals: what they list is a state, and what is new in it is told once.

RSS, Atom, a sitemap or an index of sitemaps is read (:mod:`policies.live.listings`)
and compared with what it listed before (:class:`Memory`): an entry is new if its url, id and date
were not listed then. :func:`tell` gives new ones to a scheduler, as pages and signals, and only
then notes that they were told, so that a crash between loses none. :class:`Polls` says when each of
some feeds is asked again, and follows indexes; :func:`poll` does all of it for a URL or a file.

The time of a signal is the date of its entry where that can be right: it has a time of day, and is
not before the last poll by more than ``LATE``. Else it is the time of the poll, and never after it:
a clock that is days off, a date without a time, or none, costs no more than the wait for the poll.
At the first poll entries have their own dates, and those without one are pages but no signals.

What is not as it should be is refused, or read as far as it goes, with a sentence that says so.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from policies.live.copies import Copy, digest
from policies.live.fetches import host_of
from policies.live.listings import (
    MOST_BYTES,
    MOST_ENTRIES,
    Entry,
    Listing,
    listed,
    sitemaps_of,
)
from policies.live.messages import Scheduler, day_of
from policies.live.outages import bring_back

LATE = 1.0 / 24.0
"""Days by which a new entry may be dated before the last poll, as where a cache held it back."""
AT_ONCE = 1000
"""Pages of one call of a scheduler."""
PATIENCE = 30.0
"""Seconds that an answer may take."""


class Memory:
    """What a feed or sitemap listed when it was last told, in a file.

    Attributes:
        polled: time of the last poll, None before the first.
        keys: keys of its entries; where it was damaged or empty, with those before.

    Raises:
        ValueError: the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.polled: float | None = None
        self.keys: dict[str, None] = {}
        if path.exists():
            try:
                self.polled, keys = json.loads(path.read_text("utf-8"))
                self.keys = dict.fromkeys(keys)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path} must be what a feed listed: {error}") from None

    def signals(self, listing: Listing, now: float) -> list[tuple[str, float]]:
        """Return the url of each new entry and the time of its signal, NaN for none."""
        new = (entry for entry in listing.entries if entry.key not in self.keys)
        return [(entry.url, self._time(entry, now)) for entry in new]

    def _time(self, entry: Entry, now: float) -> float:
        if self.polled is None or (entry.exact and entry.day >= self.polled - LATE):
            return now if entry.day > now else entry.day
        return now

    def is_overrun(self, listing: Listing) -> bool:
        """Return whether a feed lists nothing of what it listed, so that entries were lost.

        Where it lists all of it with other dates, none were.
        """
        listed = {entry.key for entry in listing.entries}
        dated_again = {key[:16] for key in self.keys} <= {key[:16] for key in listed}
        overlaps = not (self.keys and listed) or listed & self.keys.keys() or dated_again
        return listing.kind == "feed" and not overlaps

    def keep(self, listing: Listing, now: float) -> None:
        """Note that what is new in a listing was told."""
        keys = [entry.key for entry in listing.entries]
        if listing.faults or not keys:
            keys = [*dict.fromkeys([*keys, *self.keys])][: 2 * MOST_ENTRIES]
        self.keys = dict.fromkeys(keys)
        self.pass_poll(now)

    def pass_poll(self, now: float) -> None:
        """Note a poll at which nothing was new."""
        self.polled = now
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([now, [*self.keys]]), "utf-8")
        os.replace(part, self.path)


def tell(
    scheduler: Scheduler,
    memory: Memory,
    listing: Listing,
    now: float,
    source: int = 0,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Tell a scheduler what is new in a listing, then note that it was told.

    A page that is gone comes back, as it is listed anew; it waits longer each time it was gone.

    Args:
        scheduler: its ids are URLs.
        memory: what was listed before.
        listing: what is listed now.
        now: the time, in days since 1970.
        source: number of the source of signals.
        columns: columns of pages that are not known yet, as for ``add``; None leaves them out.
    """
    if memory.polled is not None and memory.is_overrun(listing):
        scheduler.source_gap(source, memory.polled)
    found = memory.signals(listing, now)
    for some in (found[first : first + AT_ONCE] for first in range(0, len(found), AT_ONCE)):
        urls, added = list(dict.fromkeys(url for url, _ in some)), 0
        if columns is not None:
            hosts = [host_of(url) for url in urls]
            added = scheduler.add(urls, known="skip", host=hosts, **columns)
        if added < len(urls):
            bring_back(scheduler, urls, wait=True)
        if dated := [(url, day) for url, day in some if not math.isnan(day)]:
            told, days = zip(*dated, strict=True)
            scheduler.signal(list(told), list(days), source)
    memory.keep(listing, now)


class Polls:
    """The polls of feeds, sitemaps and indexes of sitemaps.

    Args:
        feeds: the source of signals of each, by address: a URL, or a path for :meth:`fetch`.
        folder: where it is kept what they have told.
        every: days from a poll to the next.
        now: time of the first polls.
        columns: columns of pages that are not known yet, as for :func:`tell`.
        spelled: spells a URL as the crawler does.

    Attributes:
        due: the time of each next poll, by address; sitemaps of an index are feeds too.
        answers: the time of each last poll, and what was wrong with it, "" for nothing.
    """

    def __init__(
        self,
        feeds: Mapping[str, int],
        folder: Path,
        every: float,
        now: float,
        columns: Mapping[str, Any] | None = None,
        spelled: Callable[[str], str] = str,
    ) -> None:
        self.feeds, self.folder, self.every = feeds, folder, every
        self.columns, self.spelled = columns, spelled
        self.sources, self.due = dict(feeds), dict.fromkeys(feeds, now)
        self.within: dict[str, list[str]] = {}  # the sitemaps of each index
        self.validators: dict[str, Copy] = {}
        self.answers: dict[str, tuple[float, str]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def next(self, now: float) -> str | None:
        """Return the address of a poll that is due, None without one."""
        for feed, due in self.due.items():
            if due <= now:
                self.due[feed] = now + self.every
                return feed
        return None

    def conditions(self, feed: str) -> dict[str, bytes]:
        """Return the headers by which a server answers 304 if a feed has nothing new."""
        return self.validators.get(feed, Copy()).conditions

    def read(self, feed: str, body: bytes, address: str) -> Listing | None:
        """Return what an answer lists; None if it is that of the last poll, which had no fault."""
        mark = digest(address) + digest(body)
        if self.validators.get(feed, Copy()).digest == mark:
            return None
        return listed(body, address)._replace(mark=mark)

    def take(
        self,
        scheduler: Scheduler,
        feed: str,
        listing: Listing | None,
        address: str,
        now: float,
        validators: Copy | None = None,
    ) -> list[str]:
        """Tell a scheduler what is new in a feed; return what is wrong, in sentences.

        Args:
            scheduler: its ids are URLs.
            feed: the feed as it was polled; one that its index lists no longer is left out.
            listing: what it lists, of :meth:`read`; None where the answer was 304.
            address: the URL that answered, perhaps after redirects.
            now: the time.
            validators: those of the answer, for the next poll; None for none.
        """
        if feed not in self.sources:
            return []
        try:
            memory = Memory(self.path(feed))
            if listing is None:
                if memory.polled is not None:  # it is no index
                    memory.pass_poll(now)
                return []
            faults = listing.faults
            if listing.kind == "index":
                faults = [*faults, *self._follow(feed, *sitemaps_of(listing, address), now)]
            elif listing.kind:
                entries = [
                    each if each.key in memory.keys else each._replace(url=self.spelled(each.url))
                    for each in listing.entries
                ]
                new = listing._replace(entries=entries)
                tell(scheduler, memory, new, now, self.sources[feed], self.columns)
        except (OSError, ValueError) as error:  # it is told again at the next poll
            return [str(error)]
        if validators is not None and not faults:
            self.validators[feed] = validators._replace(digest=listing.mark)
        return faults

    def note(self, feed: str, now: float, faults: list[str]) -> list[str]:
        """Keep what was wrong with a poll, and return it."""
        if feed in self.sources:
            self.answers[feed] = now, "; ".join(faults)
        return faults

    def path(self, feed: str) -> Path:
        """Return the file that keeps what a feed has told."""
        return self.folder / f"feed-{digest(feed)}.json"

    def _follow(self, index: str, sitemaps: list[str], faults: list[str], now: float) -> list[str]:
        """Poll the sitemaps of an index, and no longer those that no index lists."""
        if index not in self.feeds:  # an index of indexes
            return []
        self.within[index] = sitemaps
        indexes = [each for each in reversed([*self.feeds]) if each in self.within]
        found = {url: self.feeds[each] for each in indexes for url in self.within[each]}
        self.sources = found | dict(self.feeds)
        for url in self.due.keys() - self.sources.keys():
            del self.due[url]
            self.answers.pop(url, None)
            self.validators.pop(url, None)
            self.path(url).unlink(missing_ok=True)
        self.due |= {url: now for url in found if url not in self.due}
        return faults

    def fetch(self, scheduler: Scheduler, feed: str, now: float | None = None) -> list[str]:
        """Fetch a feed, tell a scheduler what is new in it, and return what is wrong.

        ``now`` is in days since 1970, None for the time of the answer.
        """
        try:
            body, address, validators = fetch(feed, self.conditions(feed))
        except (OSError, http.client.HTTPException, ValueError) as error:
            fault = str(error) if feed in str(error) else f"{feed} cannot be read: {error}"
            return self.note(feed, day_of(now), [fault])
        listing = None if body is None else self.read(feed, body, address)
        faults = self.take(scheduler, feed, listing, address, day_of(now), validators)
        return self.note(feed, day_of(now), faults)


def poll(
    scheduler: Scheduler,
    address: str,
    folder: Path,
    source: int = 0,
    columns: Mapping[str, Any] | None = None,
    now: float | None = None,
) -> list[str]:
    """Read a feed or a sitemap, an index with its sitemaps, and tell a scheduler what is new.

    ``address`` is a URL of http or https, or a path. Feeds may share ``folder``, which keeps what
    was told. ``now`` is in days since 1970, None for now; the others are as for :func:`tell`. What
    is wrong with the feed is returned, a sentence each. For several feeds, or one that is polled
    again and again, :class:`Polls` does less.
    """
    faults, own = list[str](), folder / digest(address)
    polls = Polls({address: source}, own, math.inf, -math.inf, columns)
    while (feed := polls.next(day_of(now))) is not None:
        faults += polls.fetch(scheduler, feed, now)
    kept = {polls.path(feed) for feed in polls.sources}
    for path in set(own.glob("*.json")) - kept if polls.within else ():
        path.unlink()  # of a sitemap that is no longer listed
    return faults


def fetch(address: str, conditions: Mapping[str, bytes] = {}) -> tuple[bytes | None, str, Copy]:
    """Return a file of a URL or path, where it came from, and its validators.

    It is read as far as it is not too large, and None where a server answers 304, that it has not
    changed by the headers ``conditions``.

    Raises:
        OSError, http.client.HTTPException, ValueError: it cannot be read.
    """
    if not re.match("https?://", address):
        with open(address, "rb") as file:
            return file.read(MOST_BYTES + 1), address, Copy()
    sent = {name: text.decode("latin-1") for name, text in conditions.items()}
    request = urllib.request.Request(address, headers={"User-Agent": "crawl-envs", **sent})
    body, end = bytearray(), time.monotonic() + PATIENCE
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            while (part := answer.read1(2**16)) and len(body) <= MOST_BYTES:
                body += part
                if time.monotonic() > end:
                    raise OSError(f"no end within {PATIENCE:g} seconds")
            told = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
            return bytes(body), answer.url, Copy(*told)
    except urllib.error.HTTPError as error:
        if error.code == 304:
            return None, address, Copy()
        raise
