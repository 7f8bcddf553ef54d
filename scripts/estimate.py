"""Estimate change rates and signal quality from a crawl log, and audit the sources of signals.

Prints a summary of the log: rows by outcome, rows left out and why, times, and guesses.

The change rate of a page is estimated together with its host (empirical Bayes), so pages with few
crawls have an estimate too. Pages first crawled late, if a host has many, are estimated together
as new pages. The column evidence says what the crawls of the page alone show;
change_rate_low and change_rate_high are their 95% interval. A log without any evidence of rates is
an error. Several changes between two crawls count as one, so the rates of pages with bursts of
changes, and their intervals, are too low.

The audit of signals has each source's precision (share of signals that follow a change), recall
(share of changes that it signals) and delay, and whether to trust it. The same recall and false
signals are in the table of pages.

Writes summary.csv and log.png; with signals audit.csv and audit.png; and pages.csv, which
scripts.schedule reads: url, importance, host, change_rate with its interval and evidence, recall
and false_signal_rate of each source, signals (their number since the last crawl), last_crawl, gone.
With --cost it also has cost, the mean of the page's last eight crawls, or of its host.
For people it also has change_rate_own (from the crawls of the page alone), standard errors and the
number of crawls.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from policies.live.logs import CrawlLog, write_page_table
from scripts.cli.commands import command_of
from scripts.cli.options import input_folder
from scripts.live.fitting import BOTH, ONCE, Fitted, errors_of, fit_log, table_of
from scripts.live.options import Cost, ReadingOptions, read_log, weights_and_groups
from scripts.live.signal_audit import write_signal_audit
from scripts.live.summary import date_of, print_summary, write_summary
from scripts.present import tables
from scripts.study.rows import check_folder


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(ReadingOptions):
    """Arguments of ``scripts.estimate``."""

    cost: Cost = None
    out: Annotated[Path | None, Option(help="Folder.", show_default="runs/estimate-LOG")] = None


def main(options: EstimateOptions) -> None:
    """Estimate rates and signal quality from a log, audit its signals, and write the results."""
    folder = options.out or input_folder("estimate", options.log[0])
    recorded = read_log(options, options.cost)
    importance, group = weights_and_groups(recorded, options)
    print_summary(recorded, options.title)
    fitted = fit_log(recorded, group)
    check_folder(folder)
    write_summary(recorded, options.title, folder)
    path = folder / "pages.csv"
    write_page_table(path, table_of(recorded, importance, fitted), errors_of(recorded, fitted))
    tell(recorded, fitted, path)
    if recorded.sources:
        write_signal_audit(recorded, fitted.audit, folder)


def tell(log: CrawlLog, fitted: Fitted, path: Path) -> None:
    """Print quantiles of the change rates, and how many of the rates rest on similar pages."""
    rate = fitted.quality.change_rate
    low, middle, high = np.quantile(rate, (0.1, 0.5, 0.9))
    pooled = log.num_pages - int((fitted.evidence == BOTH).sum())
    console, counted = tables.console(), tables.counted
    hosts = np.unique(fitted.group[~fitted.late]).size
    console.print(
        f"changes per day of {counted(log.num_pages, 'page')} on {counted(hosts, 'host')}: mean "
        f"{rate.mean():.4g}; a tenth of the pages below {low:.4g}, half below {middle:.4g}, a "
        f"tenth above {high:.4g} -> {path}",
        soft_wrap=True,
    )
    if fitted.late.any():
        console.print(_late_text(log, fitted), soft_wrap=True)
    if pooled:
        console.print(
            f"{counted(pooled, 'rate')} of {log.num_pages} rest on other pages: their own crawls "
            "all found a change, or none did (columns evidence, change_rate_low, _high)",
            soft_wrap=True,
        )


def _late_text(log: CrawlLog, fitted: Fitted) -> str:
    """Return a sentence with the number of late pages and their mean values."""
    quality, late = fitted.quality, fitted.late
    means = [f"{quality.change_rate[late].mean():.4g} changes per day"]
    for number, source in enumerate(log.sources):
        recall = np.nan_to_num(quality.recall[number, late]).mean()
        false = quality.false_signal_rate[number, late].mean()
        means.append(f"recall {recall:.3f} and {false:.4g} false signals per day of {source}")
    return (
        f"{late.sum()} pages first crawled after {date_of(log, fitted.late_day)} are estimated as "
        f"new pages, {(late & (fitted.evidence == ONCE)).sum()} of them from others alone: mean "
        f"{', '.join(means)} (other pages: {quality.change_rate[~late].mean():.4g} changes per day)"
    )


app = command_of(main, EstimateOptions, __doc__)

if __name__ == "__main__":
    app()
