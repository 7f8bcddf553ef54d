"""Inputs of the correction of a belief, by page: numbers without a unit, mostly in [-3, 3].

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
        "last_changed",
    ),
    *("surprise", "since_changed", "crawls", "episode", "renewed", "regular"),
)
"""The belief about the page, and the results of its crawls.

In order: the probability exp(-x) that the page is fresh; x; the expected number of changes B; the
change rate; the time since the last crawl; the importance relative to the mean; whether the last
crawl saw a change, 1 or -1, 0 before the first; the recent mean of observed minus expected changes;
the time since the last crawl that saw one; the number of crawls; the time since the episode began;
the time since the estimated newest change, in mean gaps between changes; how near that is to 1.
"""
SIGNALS = (
    *("signals", "newest", "first", "signal_evidence", "signal_pace", "signal_rate"),
    *("echo", "kind", "soon", "without_signals", "doubt"),
)
"""Signals of the page since its crawl.

In order: their number; how new the newest is; the time from the crawl to the first; their evidence;
the recent number over the usual one; the usual number. ``echo``: whether a signal may belong to a
change that was crawled before it, 1 where the last crawl saw an unsignalled change, -1 where it saw
none, else 0, also without a signal. Then two calibrations ln((c + changes) / (c + expected)) over
the episode's crawls so far: those in this page's state (no signal, or the range of the time to the
first one), and those with a signal soon after the crawl. Then the logarithm of the crawl value
without signals over the corrected one; and that times the second calibration, < 0 for late signals.
"""
SHARED = ("group_surprise", "broadcast_evidence", "tried", "weight")
"""The page's group: the calibration of its crawls; the evidence of broadcasts since the page's
crawl; the expected changes tested after the newest one, and its weight against its class's."""
TIMED = ("hour", "hour_slope", "hour_evidence")
"""Density of the page's changes over the hours of a day, a unit of time: its excess now; how fast
that rises; and the excess since the page's crawl."""
HYPOTHESIS = ("delay_hypothesis", "delay_hypothesis_trusted")
"""The logarithm of the crawl value under the given parameters and the likeliest delay of signals
(:mod:`agents.generalist.belief.delay_hypotheses`) over the corrected value; and that times the
trust in this hypothesis rather than the belief, in (0, 1), by the results of crawls."""
INPUTS = (*BELIEVED, *SIGNALS, *SHARED, *TIMED, *HYPOTHESIS)
"""All inputs, in the order of the rows of the network's input."""
