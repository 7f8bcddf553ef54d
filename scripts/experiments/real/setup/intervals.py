"""Intervals of a backtest against the truth."""

from __future__ import annotations

from collections.abc import Sequence

from crawl_envs.logs.imputation import Changes
from scripts.logs.backtesting import Backtest, estimate, fewer_crawls

QUANTITIES = ("", " of freshness", " of own freshness")
"""Suffixes of metrics: of the saved crawls, the freshness of the policy, and that of the log."""


def against_truth(
    test: Backtest, true: Changes, policy: str, shares: Sequence[float]
) -> dict[str, float]:
    """Return, for each quantity, its estimate by the log, half-width and value by the truth.

    ``contained`` says whether the interval contains this value, the ``record``.
    """
    own = [test.own_freshness(changes) for changes in (*test.changes, true)]
    played = [
        [test.freshness(policy, share, changes) for share in shares]
        for changes in (*test.changes, true)
    ]
    saved = [fewer_crawls(mine, shares, of) for mine, of in zip(own, played, strict=True)]
    same = [of[shares.index(1.0)] for of in played]
    measured = {"widening": test.widening}
    for name, values in zip(QUANTITIES, (saved, same, own), strict=True):
        *drawn, record = values
        mean, half_width = estimate(drawn, test.widening)
        measured[f"contained{name}"] = float(abs(record - mean) <= half_width)
        measured |= {f"log{name}": mean, f"half width{name}": half_width, f"record{name}": record}
    return measured
