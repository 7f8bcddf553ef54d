"""Slow, obvious twin of a crawl log's intervals."""

from __future__ import annotations

from itertools import pairwise


def intervals(log):
    """Return (page, start, elapsed, signals by source, changed) of each interval, in order."""
    found = []
    for page in range(log.num_pages):
        crawls = sorted(
            (time, bool(changed), bool(gone))
            for of, time, changed, gone in zip(
                log.page, log.time, log.changed, log.gone, strict=True
            )
            if of == page
        )
        for (start, _, _), (end, changed, gone) in pairwise(crawls):
            if gone:
                continue
            signals = [0] * len(log.sources)
            for of, time, source in zip(
                log.signal_page, log.signal_time, log.signal_source, strict=True
            ):
                if of == page and start < time <= end:
                    signals[source] += 1
            found.append((page, start, end - start, signals, changed))
    return found
