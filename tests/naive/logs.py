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


def placed(signal_page, day, crawls):
    """Return a time of each signal in its day; ``crawls`` are (page, time, changed), sorted."""
    times = []
    for page, start in zip(signal_page, day, strict=True):
        own = [(time, changed) for of, time, changed in crawls if of == page]
        ends = [(time, changed) for time, changed in own] + [(float("inf"), False)]
        begins = [float("-inf")] + [time for time, _ in own]
        pieces = [
            (max(begin, start), min(end, start + 1), changed)
            for begin, (end, changed) in zip(begins, ends, strict=True)
            if min(end, start + 1) > max(begin, start)
        ]
        changes = [piece for piece in pieces if piece[2]]
        longest = max(pieces, key=lambda piece: piece[1] - piece[0])
        begin, end, _ = changes[0] if len(changes) == 1 else longest
        times.append((begin + end) / 2)
    return times
