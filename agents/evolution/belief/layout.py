"""Where a correction keeps its numbers, beyond those of the belief.

They stand in further columns of the arrays of :class:`crawl_envs.types.compiled_policies.Memory`: those of a
page from ``Places.page_width`` on, those of a group from ``Places.group_width`` on, and those of
the episode in ``shared`` from NUM_SHARED on, the weights of the network last.
"""

from __future__ import annotations

from policies.ncis.belief.layout import NUM_SHARED

GUESSES = 5
"""How many delays of signals are thought of, of which ``agents.evolution.belief.delay_guesses`` has the means."""

# columns of a page; the first three stay as they are
IMPORTANCE, HEARD_RATE, PRECISION = range(3)
LAST_FOUND, SURPRISE, FOUND_AT, CRAWLED_AT, CRAWLS, UNTOLD, CHANGE_AT = range(3, 10)
COUNTED, FIRST, NEWEST, PACE, PACED = range(10, 15)
PENDING_COS, PENDING_SIN, COS, SIN, HOURS, CRAWL_COS, CRAWL_SIN = range(15, 22)
EVIDENCE = 22
COUNTS = EVIDENCE + GUESSES
PAGE_WIDTH = COUNTS + GUESSES
STANDING = 3
# columns of a group
GROUP_FOUND, GROUP_EXPECTED, GROUP_SURPRISE = range(3)
GROUP_WIDTH = 3
# of the episode; calibrations by kind: what was found, what was expected, and ln of the quotient
KINDS = 6
CYCLE, DAY, HIDDEN, BEST, TRUST, LEAST = range(NUM_SHARED, NUM_SHARED + 6)
FOUND = NUM_SHARED + 6
EXPECTED, CALIBRATION = FOUND + KINDS, FOUND + 2 * KINDS
LIKELY = FOUND + 3 * KINDS
WEIGHTS = LIKELY + GUESSES + 1
