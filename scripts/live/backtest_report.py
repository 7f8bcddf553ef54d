"""Print, write and draw the results of a backtest, with warnings if they may mislead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from scripts.live import backtesting
from scripts.live.backtesting import LOG, REFERENCE, SHARES, STANDARD, Backtest, Effort, Outcome
from scripts.present import tables
from scripts.study.rows import write_csv

SLOW = "BeliefNCIS"
"""A slow policy that a backtest of a large log omits unless the user names it."""
CAVEAT = (
    "Intervals (95%) allow for bursts of changes, for rates that rise or fall, and for pages that "
    "change together. On logs simulated by eight laws, 95 to 99% of them contained the truth, at "
    "least 80% for each law."
)
NO_AIM = (
    "Your crawls kept pages less fresh than as many of RoundRobin ({gain} for RoundRobin), so they "
    "had another aim. RoundRobin alone saves {saved}: compare policies with RoundRobin, since "
    "savings against your crawls say little about a policy."
)
ARCHIVE = (
    "This is the index of an archive, which seldom crawls to keep pages fresh: compare policies "
    "with RoundRobin."
)


def less(effort: Effort, named: bool) -> str:
    """Return the sentence that a large log gets less effort; ``named``: the user named policies."""
    _, draws, first, passes, shares = STANDARD
    left_out = effort.shares != SHARES and not named
    end = f"; {SLOW} is left out." * left_out
    return (
        f"The log has over {effort.above} crawls: {effort.draws} draws (default {draws}) after "
        f"{effort.first} passes (default {first}) and {effort.passes} (default {passes}) between "
        f"draws, and {len(effort.shares)} budgets (default {len(shares)}){end or '.'}"
    )


def report(test: Backtest, outcomes: Sequence[Outcome], title: str, folder: Path) -> None:
    """Print the table of a backtest, and write backtest.csv and backtest.png to ``folder``."""
    from scripts.live.pictures import draw_backtest

    columns = ("policy", "share of crawls", "crawls per day", *backtesting.MEASURED)
    records = [
        (item.policy, item.share, item.share * test.crawls_per_day, *item.numbers())
        for item in outcomes
    ]
    write_csv(folder / "backtest.csv", columns, records)
    draw_backtest(folder / "backtest.png", outcomes, test.crawls_per_day, title)
    console = tables.console()
    console.print(table_of(test, outcomes, title))
    console.print(CAVEAT)
    if test.log.of_archive:
        console.print(ARCHIVE)
    [alike] = [item for item in outcomes if item.policy == REFERENCE and item.share == 1.0]
    if alike.gain.mean > alike.gain.half_width:
        gain = tables.plus_minus(*alike.gain, signed=True)
        console.print(NO_AIM.format(gain=gain, saved=saved_in_words(alike)))


def table_of(test: Backtest, outcomes: Sequence[Outcome], title: str) -> Table:
    """Return a table: freshness of policies with as many crawls as the log, and saved crawls."""
    days = test.end - test.start
    table = Table(
        title=f"{title}: the last {days:.3g} days, {test.crawls_per_day:.4g} crawls per day",
        title_justify="left",
    )
    for name in ("policy", "freshness", f"minus {LOG}", "crawls saved at the same freshness"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for item in (item for item in outcomes if item.share == 1.0):
        gain, saved = tables.plus_minus(*item.gain, signed=True), saved_in_words(item)
        cells = ("", "") if item.policy == LOG else (gain, saved)
        table.add_row(item.policy, tables.plus_minus(*item.freshness), *cells)
    return table


def saved_in_words(item: Outcome) -> str:
    """Return the share of crawls that a policy saves in words: percent and interval, or a bound."""
    mean, half = 100.0 * item.saved.mean, 100.0 * item.saved.half_width
    if item.saved.mean >= 1.0 - SHARES[0] - 1e-9:
        return f"at least {mean:.0f}%"
    if item.saved.mean <= 1.0 - SHARES[-1] + 1e-9:
        return f"none: needs over {SHARES[-1]:g} times as many"
    return f"{mean:.0f}% ± {half:.0f}%"
