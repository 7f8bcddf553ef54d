"""Print, write and draw the results of a backtest, with warnings if they may mislead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from policies.live.logs.costs import with_unit
from scripts.live import backtesting
from scripts.live.backtesting import (
    LOG,
    REFERENCE,
    SHARES,
    STANDARD,
    Backtest,
    Effort,
    Estimate,
    Outcome,
)
from scripts.live.log_costs import BLIND, Costs
from scripts.present import tables
from scripts.study.rows import write_csv

NEEDED = "spend at the log's freshness", "spend at the log's freshness, half-width"
SLOW = "BeliefNCIS"
"""A slow policy that a backtest of a large log omits unless the user names it."""
CAVEAT = (
    "Intervals (95%) allow for bursts of changes, for rates that rise or fall, and for pages that "
    "change together. On logs simulated by eight laws, 95 to 99% of them contained the truth, at "
    "least 80% for each law."
)
NO_AIM = (
    "Your crawls kept pages less fresh than {as_much} of RoundRobin ({gain} for RoundRobin), so "
    "they had another aim. RoundRobin alone saves {saved}: compare policies with RoundRobin, since "
    "savings against your crawls say little about a policy."
)
ARCHIVE = (
    "This is the index of an archive, which seldom crawls to keep pages fresh: compare policies "
    "with RoundRobin."
)
PAID = (
    "A crawl costs the mean of its page's crawls in these days; policies expect the mean of the "
    "page's last eight crawls before them. Intervals allow for the standard errors of the means; "
    "how often they contain the truth was measured without costs:"
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

    costs, measured = test.costs, backtesting.MEASURED
    columns = ("policy", "share of crawls", "crawls per day", *measured)
    records = [(*x[:2], x.share * test.crawls_per_day, *x.numbers()) for x in outcomes]
    if costs is not None:
        columns = ("policy", "share of spend", "spend", *measured[:4], *NEEDED)
        paid = [(*needed_spend(item, costs),) for item in outcomes]
        records = [
            (*x[:2], x.spend, *x.numbers()[:4], *y) for x, y in zip(outcomes, paid, strict=True)
        ]
    write_csv(folder / "backtest.csv", columns, records)
    budget = test.crawls_per_day if costs is None else costs.spend
    draw_backtest(folder / "backtest.png", outcomes, budget, title, costs and costs.unit)
    console = tables.console()
    console.print(table_of(test, outcomes, title))
    if costs is not None:
        console.print(answer(outcomes, costs))
        console.print(PAID)
    console.print(CAVEAT)
    if test.log.of_archive:
        console.print(ARCHIVE)
    [alike] = [item for item in outcomes if item.policy == REFERENCE and item.share == 1.0]
    if alike.gain.mean > alike.gain.half_width:
        gain = tables.plus_minus(*alike.gain, signed=True)
        as_much = "as many" if costs is None else "crawls of the same cost"
        words = {"gain": gain, "saved": saved_in_words(alike), "as_much": as_much}
        console.print(NO_AIM.format(**words))


def table_of(test: Backtest, outcomes: Sequence[Outcome], title: str) -> Table:
    """Return a table: freshness of policies with as many crawls as the log, and saved crawls."""
    days, costs = test.end - test.start, test.costs
    budget, last = f"{test.crawls_per_day:.4g} crawls per day", "crawls saved at the same freshness"
    if costs is not None:
        budget, last = with_unit(costs.spend, costs.unit), "spend at the same freshness"
    table = Table(title=f"{title}: the last {days:.3g} days, {budget}", title_justify="left")
    for name in ("policy", "freshness", f"minus {LOG}", last):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for item in (item for item in outcomes if item.share == 1.0):
        saved = saved_in_words(item) if costs is None else spend_in_words(item, costs)
        gain = tables.plus_minus(*item.gain, signed=True)
        cells = ("", "" if costs is None else saved) if item.policy == LOG else (gain, saved)
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


def needed_spend(item: Outcome, costs: Costs) -> Estimate:
    """Return the spend with which a policy is as fresh as the log's crawls."""
    return Estimate(costs.spend * (1.0 - item.saved.mean), costs.spend * item.saved.half_width)


def spend_in_words(item: Outcome, costs: Costs) -> str:
    """Return the spend that a policy needs in words: amount and interval, or a bound."""
    mean, half = needed_spend(item, costs)
    if item.policy == LOG:
        return with_unit(costs.spend, costs.unit)
    if 1.0 - item.saved.mean <= SHARES[0] + 1e-9:
        return f"at most {with_unit(costs.spend * SHARES[0], costs.unit)}"
    if 1.0 - item.saved.mean >= SHARES[-1] - 1e-9:
        return f"over {with_unit(costs.spend * SHARES[-1], costs.unit)}"
    low, high = (with_unit(max(end, 0.0), costs.unit) for end in (mean - half, mean + half))
    return f"{with_unit(mean, costs.unit)} [{low}, {high}]"


def answer(outcomes: Sequence[Outcome], costs: Costs) -> str:
    """Return the sentence that says what the policy of the least spend would have spent."""
    rows = [x for x in outcomes if x.share == 1.0 and x.policy != LOG and BLIND not in x.policy]
    best = max(rows, key=lambda item: item.saved.mean)
    gain = tables.plus_minus(*best.gain, signed=True)
    return (
        f"Your crawls spent {with_unit(costs.spend, costs.unit)}. {best.policy} keeps the same "
        f"freshness for {spend_in_words(best, costs)} (95%). At the same spend, its freshness "
        f"differs by {gain}."
    )
