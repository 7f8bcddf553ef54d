"""Estimate change rates and signal quality from a crawl log, and audit the sources of signals.

First it says what the log contains: rows by outcome, what was left out and why, times, guesses.
Rates of a page are estimated with those of its host (empirical Bayes), so that a page with few
crawls has one too; the column evidence tells what its own crawls show, and change_rate_low and
change_rate_high are a 95% interval by these alone. A log that tells no rate at all is refused. The
audit tells of each source how many of its signals follow changes (precision), how many changes it
signals (recall) and how late, and whether to trust it.

Writes summary.csv and log.png; pages.csv, which scripts.schedule reads: url, importance, host,
change_rate with its interval and evidence, recall and false_signal_rate of each source, last_crawl,
gone, and for people change_rate_own (by the page's crawls alone), standard errors and the number of
crawls; and with signals audit.csv and audit.png.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from rich.table import Table

from crawl_envs.logs import (
    OUTCOMES,
    CrawlLog,
    PageTable,
    hosts_of,
    write_page_table,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import within_domain
from policies.estimators import SignalAudit, audit_signals
from scripts.cli.commands import command_of, default_folder
from scripts.logs.fitting import BOTH, Fitted, fit_log
from scripts.logs.options import ReadingOptions, read_log, weights_and_groups
from scripts.logs.summary import print_summary, write_summary
from scripts.present import tables
from scripts.study.rows import check_folder, write_csv

SECONDS_PER_DAY = 86400.0
AUDITED = ("precision", "recall", "delay")


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(ReadingOptions):
    """Arguments of ``scripts.estimate``."""

    out: Path | None = None
    """Folder [runs/estimate-LOG]."""


def main(options: EstimateOptions) -> None:
    """Estimate, audit and write."""
    folder = options.out or default_folder("estimate", options.title)
    recorded = read_log(options)
    importance, group = weights_and_groups(recorded, options)
    print_summary(recorded, options.title)
    fitted = fit_log(recorded, group)
    check_folder(folder)
    write_summary(recorded, options.title, folder)
    path = folder / "pages.csv"
    write_page_table(path, table_of(recorded, importance, fitted), errors_of(recorded, fitted))
    tell(recorded, fitted, path)
    if recorded.sources:
        audit(recorded, folder)


def table_of(log: CrawlLog, importance: FloatArray, fitted: Fitted) -> PageTable:
    """Return the estimates as a table of pages."""
    quality, signals = fitted.quality, bool(log.sources)
    last = np.full(log.num_pages, np.nan)
    np.fmax.at(last, log.page, log.time)
    gone = np.isin(np.arange(log.num_pages), log.page[log.gone])
    missed = (log.history.page >= 0) & (log.history.outcome == OUTCOMES.index("gone"))
    missed[missed] = gone[log.history.page[missed]]  # a page that is gone was last asked then
    np.fmax.at(last, log.history.page[missed], log.history.time[missed])
    if log.origin:
        origin = datetime.fromisoformat(log.origin).timestamp() / SECONDS_PER_DAY
        last += origin
    return PageTable(
        urls=log.urls,
        importance=importance,
        host=hosts_of(log.urls),
        change_rate=within_domain(quality.change_rate),
        change_rate_low=fitted.low,
        change_rate_high=fitted.high,
        evidence=fitted.evidence,
        gone=gone,
        recall=np.nan_to_num(quality.recall) if signals else None,
        false_signal_rate=within_domain(quality.false_signal_rate) if signals else None,
        last_crawl=last,
        dated=bool(log.origin),
        sources=log.sources,
    )


def errors_of(log: CrawlLog, fitted: Fitted) -> dict[str, FloatArray]:
    """Return the further columns: the rate by a page's crawls alone, errors, number of crawls."""
    quality = fitted.quality
    columns = {"change_rate_own": fitted.own, "change_rate_stderr": quality.change_rate_stderr}
    for number, source in enumerate(log.sources):
        columns[f"recall_stderr:{source}"] = quality.recall_stderr[number]
        columns[f"false_signal_rate_stderr:{source}"] = quality.false_signal_rate_stderr[number]
    return columns | {"crawls": fitted.crawls.astype(np.float64)}


def tell(log: CrawlLog, fitted: Fitted, path: Path) -> None:
    """Print what was estimated, and of how many pages from their own crawls."""
    rate = fitted.quality.change_rate
    low, middle, high = np.quantile(rate, (0.1, 0.5, 0.9))
    others = log.num_pages - int((fitted.evidence == BOTH).sum())
    console, counted = tables.console(), tables.counted
    console.print(
        f"changes per day of {counted(log.num_pages, 'page')} on "
        f"{counted(fitted.groups.mean.shape[0], 'host')}: mean {rate.mean():.4g}; a tenth of the "
        f"pages below {low:.4g}, half below {middle:.4g}, a tenth above {high:.4g} -> {path}",
        soft_wrap=True,
    )
    if others:
        console.print(
            f"{counted(others, 'rate')} of {log.num_pages} rest on other pages, as all crawls of "
            "the page found a change, or none (columns evidence, change_rate_low, _high)",
            soft_wrap=True,
        )


def audit(log: CrawlLog, folder: Path) -> None:
    """Audit the sources of signals; write and print the audit, and draw it."""
    from scripts.logs.pictures import draw_audit

    known = log.intervals()
    found = audit_signals(
        *(known.page, known.start, known.elapsed, known.changed),
        *(log.signal_page, log.signal_time, log.signal_source),
        num_sources=len(log.sources),
        timed=log.timed,
    )
    words = ("source", "signals", "verdict", "reason")
    names = (*words, *(f"{x}{end}" for x in AUDITED for end in ENDS))
    records = [
        (source, int(found.num_signals[k]), found.verdict[k], found.reason[k], *_numbers(found, k))
        for k, source in enumerate(log.sources)
    ]
    write_csv(folder / "audit.csv", names, records)
    draw_audit(folder / "audit.png", log.sources, found)
    tables.console().print(table_of_audit(log.sources, found))


ENDS = ("", ", low", ", high")
"""An estimate and the ends of its interval."""


def ends_of(found: SignalAudit, name: str, source: int) -> list[float]:
    """Return an estimate of a source, and the ends of its interval."""
    low, high = getattr(found, f"{name}_interval")[source]
    return [float(getattr(found, name)[source]), float(low), float(high)]


def _numbers(found: SignalAudit, source: int) -> list[float]:
    """Return the estimates of a source with the ends of their intervals."""
    return [value for name in AUDITED for value in ends_of(found, name, source)]


def table_of_audit(sources: tuple[str, ...], found: SignalAudit) -> Table:
    """Return the audit as a table."""
    table = Table(title="Audit of signals, with 95% intervals", title_justify="left")
    left = ("source", "verdict", "why")
    for name in ("source", "signals", "precision", "recall", "delay in days", *left[1:]):
        table.add_column(name, justify="left" if name in left else "right")
    for k, source in enumerate(sources):
        cells = [_cell(*ends_of(found, name, k)) for name in AUDITED]
        cells += [found.verdict[k], found.reason[k]]
        table.add_row(source, str(found.num_signals[k]), *cells)
    return table


def _cell(value: float, low: float, high: float) -> str:
    """Return an estimate and its interval."""
    return "unknown" if value != value else f"{value:.3g} ({low:.3g} to {high:.3g})"


app = command_of(main, EstimateOptions, __doc__)

if __name__ == "__main__":
    app()
