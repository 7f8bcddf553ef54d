"""Columns of a correction, after those of the belief.

They extend the arrays of :class:`crawl_envs.types.compiled_policies.Memory`: a page's, its history,
from ``Places.page_width`` on, a group's from ``Places.group_width`` on, and the episode's in
``shared`` from NUM_SHARED on, the weights of the networks last.
"""

from __future__ import annotations

from policies.ncis.belief.layout import NUM_SHARED

HYPOTHESES = 5
"""Number of hypotheses about the delay of signals; :mod:`agents.generalist.history` has them."""

# columns of a page; the first STATIC do not change in an episode
IMPORTANCE, SIGNALLED_RATE, PRECISION = range(3)
STATIC = 3
LAST_CHANGED, SURPRISE, DETECTED_AT, CRAWLED_AT, CRAWLS, ECHO, CHANGE_AT = range(3, 10)
COUNTED, FIRST, NEWEST, PACE, PACED = range(10, 15)
PENDING_COS, PENDING_SIN, COS, SIN, HOURS, CRAWL_COS, CRAWL_SIN = range(15, 22)
EVIDENCE = 22
COUNTS = EVIDENCE + HYPOTHESES
PAGE_WIDTH = COUNTS + HYPOTHESES
# columns of a group
GROUP_CHANGES, GROUP_EXPECTED, GROUP_SURPRISE = range(3)
GROUP_WIDTH = 3
# of the episode; calibrations by kind, of signals and then of intervals: changes, expected changes,
# and the ln of their ratio
SIGNAL_KINDS, INTERVAL_KINDS = 6, 6
KINDS = SIGNAL_KINDS + INTERVAL_KINDS
CYCLE, HIDDEN, BEST, TRUST, LEAST = range(NUM_SHARED, NUM_SHARED + 5)
CHANGES = NUM_SHARED + 5
EXPECTED, CALIBRATION = CHANGES + KINDS, CHANGES + 2 * KINDS
LIKELY = CHANGES + 3 * KINDS
WEIGHTS = LIKELY + HYPOTHESES + 1
