"""Where a belief about staleness keeps its numbers.

A signal comes by a channel. Without groups each of the S sources is a channel of its own. With
groups there are three of each source: signals that reach one page of its group alone; those that
reach one page at the instant of a broadcast to its group; and broadcasts, signals to several pages
of a group at one instant. Of C channels, the first ``Channels.own`` are of single pages.

There are D = 1 + C + own kinds of numbers of a page: the rate of changes that nothing tells of
(alpha), what a signal of each channel tells (b), and the rates of signals of single pages (gamma).

A page's row, ``Memory.pages`` (m, K), holds for each kind what its crawls amount to (a count and an
exposure), the number that is believed, and its scale; then signals heard since its last crawl by
channel of single pages; then, by source, the weights of broadcasts that are not about it; then how
many broadcasts of its group came before that crawl; its importance; whether it exists; its rate of
changes but for those that broadcasts tell of; and, by source, the chance that a broadcast of weight
1 changed it.

A group's row, ``Memory.groups`` (G, L), holds for each kind the shape and the rate of the
distribution that its pages share, in units of their scales; then the number of its broadcasts so
far, the instant that was last counted, how many of its pages exist, and signals counted in it by
source; what its broadcasts weighed of late, by source, and the time of the last one; then a ring
of the last RING broadcasts, by their numbers among all events, and rings of the sums of their
weights, by source.
"""

from __future__ import annotations

from typing import NamedTuple

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled

RING = 128
"""Broadcasts of a group that are remembered; what is older weighs as much as those on average."""
EVENTS = 8192
"""Broadcasts of all groups that are remembered one by one."""
CLASSES = 8
EVENT_WIDTH = 6

# columns of an event, Memory.events (EVENTS + CLASSES, 6): a broadcast to a group
WEIGHT, BASE, FOUND, EXPECTED, SOURCE, CLASS = range(6)
# columns of a class, in the last rows of the same array
CLASS_FOUND, CLASS_EXPECTED = range(2)

# Memory.shared
NUM_SOURCES, GROUPED, MEMORY, PACE_MEMORY, FLOOR, CRAWLS, DUE, EVENT, INSTANT = range(9)
CLASS_PRIOR, EVENT_PRIOR = range(9, 11)
NUM_SHARED = 11


class Places(NamedTuple):
    """Columns of the rows of pages and groups, for a number of sources."""

    sources: int
    channels: int
    own: int
    kinds: int
    believed: int
    scale: int
    heard: int
    excused: int
    before: int
    importance: int
    exists: int
    rate: int
    told: int
    page_width: int
    broadcasts: int
    instant: int
    size: int
    counted: int
    pace: int
    paced: int
    listed: int
    sums: int
    group_width: int


@compiled(inline="always")
def places_of(sources: int, grouped: bool) -> Places:
    """Return where everything is kept."""
    channels = 3 * sources if grouped else sources
    own = 2 * sources if grouped else sources
    kinds = 1 + channels + own
    heard = 4 * kinds
    before = heard + own + sources
    broadcasts = 2 * kinds
    counted = broadcasts + 3
    told = sources if grouped else 0
    paced = counted + 2 * sources
    listed = paced + 1
    return Places(
        sources, channels, own, kinds, 2 * kinds, 3 * kinds,
        heard, heard + own, before, before + 1, before + 2, before + 3, before + 4,
        before + 4 + told,
        broadcasts, broadcasts + 1, broadcasts + 2, counted, counted + sources, paced,
        listed, listed + RING, listed + (1 + sources) * RING,
    )  # fmt: skip


@compiled(inline="always")
def places(shared: FloatArray) -> Places:
    """Return where everything is kept, by what is shared."""
    return places_of(int(shared[NUM_SOURCES]), shared[GROUPED] > 0.0)
