"""Feeds and sitemaps that a crawler fetches itself: when each is polled, and what it told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from policies.live.copies import digest
from policies.live.feeds import Memory, read_listing, sitemaps_of, tell
from policies.live.messages import Scheduler


class Polls:
    """The polls of a crawler.

    Args:
        feeds: feeds, sitemaps and indexes of sitemaps, with the source of signals of each.
        folder: where it is kept what they have told.
        every: days from a poll to the next.
        now: time of the first polls.
        spelled: spells a URL as the crawler does.

    Attributes:
        due: the time of each next poll, by address; sitemaps of an index are feeds too.
    """

    def __init__(
        self,
        feeds: Mapping[str, int],
        folder: Path,
        every: float,
        now: float,
        spelled: Callable[[str], str],
    ) -> None:
        self.feeds, self.folder, self.every, self.spelled = feeds, folder, every, spelled
        self.sources, self.due = dict(feeds), dict.fromkeys(feeds, now)
        self.within: dict[str, set[str]] = {}

    def next(self, now: float) -> str | None:
        """Return the address of a poll that is due, None without one."""
        for feed, due in self.due.items():
            if due <= now:
                self.due[feed] = now + self.every
                return feed
        return None

    def read(
        self, scheduler: Scheduler, feed: str, body: bytes, address: str, now: float
    ) -> list[str]:
        """Tell a scheduler what is new in a feed; return what is wrong, in sentences.

        Args:
            scheduler: its ids are URLs.
            feed: the feed as it was polled; one that its index lists no longer is not read.
            body: what was answered.
            address: the URL that answered, perhaps after redirects.
            now: the time.
        """
        if feed not in self.sources:
            return []
        try:
            listing = read_listing(body, address)
            if listing.kind == "index":
                more = self._follow(feed, *sitemaps_of(listing, address), now)
                return [*listing.faults, *more]
            entries = [each._replace(url=self.spelled(each.url)) for each in listing.entries]
            memory = Memory(self.folder / f"feed-{digest(feed)}.json")
            new = listing._replace(entries=entries)
            tell(scheduler, memory, new, now, self.sources[feed], {})
        except ValueError as error:
            return [str(error)]
        return listing.faults

    def _follow(self, index: str, sitemaps: list[str], faults: list[str], now: float) -> list[str]:
        """Poll the sitemaps of an index, and no longer those that it does not list."""
        if index not in self.feeds:  # an index of indexes
            return []
        for url in self.within.get(index, set()).difference(sitemaps):
            del self.sources[url], self.due[url]
        new = set(sitemaps) - self.sources.keys()
        self.sources |= dict.fromkeys(new, self.sources[index])
        self.due |= dict.fromkeys(new, now)
        self.within[index] = self.within.get(index, set()).intersection(sitemaps) | new
        return faults
