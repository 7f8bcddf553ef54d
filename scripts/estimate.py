"""Estimate change rates and signal quality from a crawl log, and audit the sources of signals.

First it says what the log contains: rows by outcome, what was left out and why, times, guesses.
Rates of a page are estimated with those of its host (empirical Bayes), so that a page with few
crawls has one too; the column evidence tells what its own crawls show, and change_rate_low and
change_rate_high are a 95% interval by these alone. A log that tells no rate at all is refused. The
audit tells of each source how many of its signals follow changes (precision), how many changes it
signals (recall) and how late, and whether to trust it. Recall and false signals of pages are those
of the audit: late signals and silences of a source count as in it.

Changes between two crawls count as one. Where a page changes several times in a row, such a burst
counts once: changes per day and their intervals are then too low.

Writes summary.csv and log.png; pages.csv, which scripts.schedule reads: url, importance, host,
change_rate with its interval and evidence, recall and false_signal_rate of each source, signals
(their number since the last crawl), last_crawl, gone, and for people change_rate_own (by the page's
crawls alone), standard errors and the number of crawls; and with signals audit.csv and audit.png.
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
from scripts.live.audit import write_audit
from scripts.live.fitting import BOTH, Fitted, errors_of, fit_log, table_of
from scripts.live.options import ReadingOptions, read_log, weights_and_groups
from scripts.live.summary import print_summary, write_summary
from scripts.present import tables
from scripts.study.rows import check_folder


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(ReadingOptions):
    """Arguments of ``scripts.estimate``."""

    out: Annotated[Path | None, Option(help="Folder.", show_default="runs/estimate-LOG")] = None


def main(options: EstimateOptions) -> None:
    """Estimate, audit and write."""
    folder = options.out or input_folder("estimate", options.log[0])
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
        write_audit(recorded, fitted.audit, folder)


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
            f"{counted(others, 'rate')} of {log.num_pages} rest on other pages: their own crawls "
            "all found a change, or none did (columns evidence, change_rate_low, _high)",
            soft_wrap=True,
        )


app = command_of(main, EstimateOptions, __doc__)

if __name__ == "__main__":
    app()
