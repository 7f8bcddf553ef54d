"""The audit of a log's sources of signals: its file, its picture, its table."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from crawl_envs.logs import CrawlLog
from policies.estimators import SignalAudit
from scripts.logs.summary import words_of
from scripts.present import tables
from scripts.study.rows import write_csv

AUDITED = ("precision", "recall", "delay")
ENDS = ("", ", low", ", high")
"""An estimate and the ends of its interval."""


def write_audit(log: CrawlLog, audit: SignalAudit, folder: Path) -> None:
    """Write and print the audit of the sources of signals, and draw it."""
    from scripts.logs.pictures import draw_audit

    words = ("source", "signals", "verdict", "reason")
    names = (*words, *(f"{x}{end}" for x in AUDITED for end in ENDS))
    reasons = [_reason(log, audit, k) for k in range(len(log.sources))]
    records = [
        (source, int(audit.num_signals[k]), audit.verdict[k], reasons[k], *_numbers(audit, k))
        for k, source in enumerate(log.sources)
    ]
    write_csv(folder / "audit.csv", names, records)
    draw_audit(folder / "audit.png", log.sources, audit)
    tables.console().print(table_of_audit(log, audit))


def ends_of(audit: SignalAudit, name: str, source: int) -> list[float]:
    """Return an estimate of a source, and the ends of its interval."""
    low, high = getattr(audit, f"{name}_interval")[source]
    return [float(getattr(audit, name)[source]), float(low), float(high)]


def _numbers(audit: SignalAudit, source: int) -> list[float]:
    """Return the estimates of a source with the ends of their intervals."""
    return [value for name in AUDITED for value in ends_of(audit, name, source)]


def _reason(log: CrawlLog, audit: SignalAudit, source: int) -> str:
    """Return the reason of a verdict, with silences of the source and excluded signals."""
    words = [audit.reason[source], *words_of(log, audit.silences[source])]
    outside = int((log.signal_source == source).sum() - audit.num_signals[source])
    if outside:
        words.append(f"{outside} before a page's first crawl or after its last one left out")
    return "; ".join(words)


def table_of_audit(log: CrawlLog, audit: SignalAudit) -> Table:
    """Return the audit as a table."""
    table = Table(title="Audit of signals, with 95% intervals", title_justify="left")
    left = ("source", "verdict", "why")
    for name in ("source", "signals", "precision", "recall", "delay in days", *left[1:]):
        table.add_column(name, justify="left" if name in left else "right")
    for k, source in enumerate(log.sources):
        cells = [_cell(*ends_of(audit, name, k)) for name in AUDITED]
        cells += [audit.verdict[k], _reason(log, audit, k)]
        table.add_row(source, str(audit.num_signals[k]), *cells)
    return table


def _cell(value: float, low: float, high: float) -> str:
    """Return an estimate and its interval."""
    return "unknown" if value != value else f"{value:.3g} ({low:.3g} to {high:.3g})"
