"""Records of web archives that are no responses: revisits, requests and metadata.

A revisit says that a response was that of an earlier record: it has the same digest, or the server
says that nothing has changed, in WARC 1.1 the profiles ``identical-payload-digest`` and
``server-not-modified`` (iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1).
Indexes often lack the status of both, and of the second have the digest of no bytes, or none.
"""

from __future__ import annotations

import re

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from policies.live.logs.columns import Columns
from policies.live.logs.digests import NOTHING
from policies.live.logs.observations import (
    FAILED,
    NO_EVIDENCE,
    NOT_MODIFIED,
    Evidence,
    are_revisits,
    kinds_of,
)

NO_RESPONSES = re.compile(r"(?i)warc/(request|metadata|warcinfo)|application/warc-fields|text/dns")


def leave_out_records(rows: Columns) -> None:
    """Mark rows of records that are neither responses nor revisits as not good, and note them."""
    no_response = rows.where("mime", lambda text: bool(NO_RESPONSES.match(text)))
    rows.note("records of an archive that are no responses, left out", no_response & rows.good)
    rows.good &= ~no_response


def status_of_revisits(
    rows: Columns, evidence: Evidence, page: IntArray, time: FloatArray, status: FloatArray
) -> FloatArray:
    """Return the status of rows, (n,), for a revisit without one that of what it revisits.

    This is the page's last record with the digest, or that of another page. Without a digest it is
    the page's record before; if this is content, the status is 304.
    """
    empty = np.isin(evidence.value, [k for k, x in enumerate(evidence.texts) if x in NOTHING])
    digest = np.where(empty | np.isnan(evidence.value), -1, evidence.value).tolist()
    missing = are_revisits(rows) & (np.isnan(status) | (empty & (status == 200.0)))
    if not evidence.texts or not missing.any():
        return status
    kinds = kinds_of(np.where(missing, np.nan, status)).tolist()
    statuses = np.where(missing, np.nan, status).tolist()
    last_of_page: dict[int, int] = {}
    last_of_digest: dict[tuple[int, int], int] = {}
    in_time = np.argsort(time, kind="stable")
    for row in in_time[rows.good[in_time]].tolist():
        here, anywhere = (int(page[row]), digest[row]), (-1, digest[row])
        unmodified = missing[row] and digest[row] < 0
        if unmodified:
            source = last_of_page.get(here[0], row)
        elif missing[row]:
            source = last_of_digest.get(here, last_of_digest.get(anywhere, row))
        else:
            source = row
            if statuses[row] != NOT_MODIFIED:
                last_of_digest[here] = last_of_digest[anywhere] = row
        statuses[row], kinds[row] = statuses[source], kinds[source]
        if unmodified and kinds[row] == NO_EVIDENCE:
            statuses[row] = float(NOT_MODIFIED)
        if kinds[row] != FAILED:
            last_of_page[here[0]] = row
    rows.note("revisits without a status, read as what they revisit", missing & rows.good)
    return np.array(statuses)
