"""What the correction of a belief is told of a page: numbers without a unit, mostly in [-3, 3].

Time is measured in cycles T = m / R. Most inputs are of the form y / (1 + y), y >= 0.
"""

from __future__ import annotations

BELIEVED = (
    *(
        "fresh",
        "evidence",
        "expected_changes",
        "change_rate",
        "elapsed",
        "importance",
        "last_found",
    ),
    *("surprise", "since_found", "crawls", "episode", "renewed", "regular"),
)
"""What is believed of the page, and what its crawls found.

The probability that it is fresh, exp(-x); x; the expected number of changes B; the rate of changes;
the time since its last crawl; its importance relative to the mean; what the last crawl found, 1 or
-1, 0 before it; by how much its crawls found more than expected of late; the time since one that
found a change; how many crawls it had; the time since the episode began; the time since its newest
change, as it is thought to have been, in mean gaps between changes; and how near that is to 1.
"""
HEARD = (
    *("signals", "newest", "first", "signal_evidence", "signal_pace", "signal_rate"),
    *("echo", "kind", "soon", "unheeding", "doubt"),
)
"""What was heard.

Signals of the page since its crawl; how new the newest of them is; the time from the crawl to the
first; the evidence of all of them; signals of late by what is usual; how many are usual. Whether a
signal that came may tell of a change that was found without one: 1 where the last crawl found such
a change, -1 where it found none, 0 else. Then calibrations of the episode's crawls so far,
ln((c + found) / (c + expected)): of those of pages in the state that this page is in (without a
signal, or with a first one so long after the crawl), and of those with one soon after the crawl.
Then the logarithm of the crawl value if no signal was heeded, over the one that is corrected; and
that times the second calibration, which is negative where signals come late.
"""
SHARED = ("group_surprise", "broadcast_evidence", "tried", "weight")
"""Of its group: the calibration of the crawls of its pages; the evidence of broadcasts since the
page's crawl; how far the last of these is known, and its weight beside that of its class."""
TIMED = ("hour", "hour_slope", "hour_evidence")
"""Of the hours at which the page was found to change: how usual changes are now; how fast that
rises; and how much more usual they were since its crawl than on average. 0 where no day is told."""
TOLD = ("as_told", "as_told_trusted")
"""The logarithm of the crawl value if what is told were true and signals came as late as is
likeliest (:mod:`agents.evolution.belief.delay_guesses`), over the one that is corrected; and that times how far
this is to be trusted rather than the belief, in (0, 1), by what crawls found."""
INPUTS = (*BELIEVED, *HEARD, *SHARED, *TIMED, *TOLD)
"""All inputs, in the order of the rows of the network's input."""
