"""The array layout of a belief about staleness: rows of pages and groups, and their columns.

Each signal belongs to a channel. Without groups, each of the S sources is one channel. With groups
each source has three: signals to one page of a group; signals to one page at the instant of a
broadcast to its group; and broadcasts, signals to most pages of a group at one instant. The first
``Places.own`` of the C channels are signals to single pages.

A page has D = 1 + C + own kinds of numbers: the rate of unsignalled changes (alpha), the evidence
of a signal by channel (b), and the rates of signals to single pages (gamma).

A page's row, ``Memory.pages`` (m, K), contains for each kind the data of its crawls (a count and an
exposure), the estimate, and the scale. Then follow the single signals since its last crawl, by
channel; the weights of broadcasts that do not count for it, by source; the number of broadcasts of
its group before that crawl; its importance; whether it exists; its rate of changes without those of
broadcasts, the rate of its single signals, and the rate of changes that these report; the
probability that it was active at its last crawl; and the probability that a broadcast of weight 1
changed it, by source.

A group's row, ``Memory.groups`` (G, L), contains for each kind the shape and the rate of the
distribution that its pages share, in units of their scales. Then follow the number of its
broadcasts so far, the instant that was last counted, the number of its pages that exist, and the
signals at that instant by source; the recent weight of its broadcasts, by source, and the time of
the last one; how many of its pages stopped, and how long its pages were active; then a ring of the
last RING broadcasts, by number of the event, and rings of the sums of their weights, by source.
"""

from __future__ import annotations

from typing import NamedTuple

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray

RING = 128
"""Number of stored broadcasts of a group; older ones count with the mean weight of the stored."""
EVENTS = 8192
"""Number of stored broadcasts of all groups."""
CLASSES = 8
EVENT_WIDTH = 6

# columns of an event, Memory.events (EVENTS + CLASSES, 6): a broadcast to a group
WEIGHT, BASE, OBSERVED, EXPECTED, SOURCE, CLASS = range(6)
# columns of a class, in the last rows of the same array
CLASS_OBSERVED, CLASS_EXPECTED = range(2)

# Memory.shared
NUM_SOURCES, GROUPED, MEMORY, PACE_MEMORY, FLOOR, CRAWLS, DUE, EVENT, INSTANT = range(9)
CLASS_PRIOR, EVENT_PRIOR, POOL_STEPS = range(9, 12)
STOPS, ACTIVE_TIME, PRIOR_ACTIVE = range(12, 15)
NUM_SHARED = 15


class Places(NamedTuple):
    """Column numbers in the rows of pages and groups, for a given number of sources."""

    sources: int
    channels: int
    own: int
    kinds: int
    believed: int
    scale: int
    signals: int
    excluded: int
    before: int
    importance: int
    exists: int
    rate: int
    signal_rate: int
    signalled_rate: int
    active: int
    change_chance: int
    page_width: int
    broadcasts: int
    instant: int
    size: int
    counted: int
    pace: int
    paced: int
    stops: int
    active_time: int
    listed: int
    sums: int
    group_width: int


@compiled(inline="always")
def places_of(sources: int, grouped: bool) -> Places:
    """Return the column numbers for a number of sources, with groups of pages or without."""
    channels = 3 * sources if grouped else sources
    page_channels = 2 * sources if grouped else sources
    kinds = 1 + channels + page_channels
    signals = 4 * kinds
    before = signals + page_channels + sources
    broadcasts = 2 * kinds
    counted = broadcasts + 3
    chances = sources if grouped else 0
    paced = counted + 2 * sources
    listed = paced + 3
    return Places(
        sources, channels, page_channels, kinds, 2 * kinds, 3 * kinds,
        signals, signals + page_channels, before, before + 1, before + 2, before + 3, before + 4,
        before + 5, before + 6, before + 7, before + 7 + chances,
        broadcasts, broadcasts + 1, broadcasts + 2, counted, counted + sources, paced,
        paced + 1, paced + 2, listed, listed + RING, listed + (1 + sources) * RING,
    )  # fmt: skip


@compiled(inline="always")
def places(shared: FloatArray) -> Places:
    """Return the column numbers for the number of sources stored in ``shared``."""
    return places_of(int(shared[NUM_SOURCES]), shared[GROUPED] > 0.0)
