"""Write, draw and print the audit of the sources of signals in a log."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from rich.table import Table

from policies.estimators import SignalAudit
from policies.live.logs import CrawlLog
from scripts.live.summary import words_of
from scripts.present import tables
from scripts.study.rows import write_csv

AUDITED = ("precision", "recall", "delay")
ENDS = ("", ", low", ", high")
"""Suffixes of three columns: an estimate, and the low and high end of its 95% interval."""


def write_signal_audit(log: CrawlLog, audit: SignalAudit, folder: Path) -> None:
    """Write the audit of signals to ``folder`` (audit.csv, audit.png), and print it as a table."""
    from scripts.live.pictures import draw_signal_audit

    table = Table(title="Audit of signals, with 95% intervals", title_justify="left")
    words = ("source", "verdict", "why")
    for name in ("source", "signals", "precision", "recall", "delay in days", *words[1:]):
        table.add_column(name, justify="left" if name in words else "right")
    records = []
    for k, source in enumerate(log.sources):
        count, verdict, reason = int(audit.num_signals[k]), audit.verdict[k], _reason(log, audit, k)
        estimates = [(getattr(audit, x)[k], *getattr(audit, f"{x}_interval")[k]) for x in AUDITED]
        records.append((source, count, verdict, reason, *map(float, chain(*estimates))))
        table.add_row(source, str(count), *(_cell(*ends) for ends in estimates), verdict, reason)
    names = (
        "source",
        "signals",
        "verdict",
        "reason",
        *(f"{x}{end}" for x in AUDITED for end in ENDS),
    )
    write_csv(folder / "audit.csv", names, records)
    draw_signal_audit(folder / "audit.png", log.sources, audit)
    tables.console().print(table)


def _reason(log: CrawlLog, audit: SignalAudit, source: int) -> str:
    """Return why a source got its verdict, with its silences and the number of unused signals."""
    words = [audit.reason[source], *words_of(log, audit.silences[source])]
    outside = int((log.signal_source == source).sum() - audit.num_signals[source])
    if outside:
        words.append(f"{outside} before a page's first crawl or after its last one left out")
    return "; ".join(words)


def _cell(value: float, low: float, high: float) -> str:
    """Return an estimate and its interval as text; ``unknown`` if the estimate is NaN."""
    return "unknown" if value != value else f"{value:.3g} ({low:.3g} to {high:.3g})"
