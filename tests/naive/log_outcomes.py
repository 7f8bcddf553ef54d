"""Slow, obvious twin of what the rows of a crawl log observed."""

from __future__ import annotations


def outcomes(rows, kind, tolerance):
    """Return the outcome of each fetch, in order of time.

    Args:
        rows: (page, time, status, value) sorted by time, all times of a page different; status and
            value are None where there is none.
        kind: what the value is: "changed", "digest" or "last_modified".
        tolerance: of clocks.
    """
    found = [None] * len(rows)
    for page in {row[0] for row in rows}:
        before = known = digest = None
        for k, (of, time, status, value) in enumerate(rows):
            if of != page:
                continue
            if status in (404, 410):
                found[k] = "gone"
                continue
            if status is not None and 300 <= status < 400 and status != 304:
                found[k] = "redirected"
                continue
            if status is not None and (status < 100 or status >= 400):
                found[k] = "failed"
                continue
            if kind == "last_modified" and value is not None and value > time + tolerance:
                value = None
            content = [
                row
                for row in rows[:k]
                if row[0] == page and (row[2] is None or row[2] in (200, 304))
            ]
            excused = status == 304 or (not content and kind != "digest")
            if value is None and not excused:
                found[k] = "no evidence"
                continue
            if before is None:
                found[k] = "first"
            elif status == 304:
                found[k] = "unchanged"
            elif kind == "changed":
                found[k] = "changed" if value == 1 else "unchanged"
            elif kind == "digest":
                found[k] = "unchanged" if value == digest else "changed"
            elif known is None:
                found[k] = "changed" if value > before else "unchanged"
            else:
                later = value != known and value > before - tolerance
                found[k] = "changed" if later else "unchanged"
            if kind == "digest" and value is not None and (before is None or status != 304):
                digest = value
            if value is not None:
                known = value
            before = time
    return found
