"""The spend of a scheduler's fetches, and a cap of it in each period."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from crawl_envs.types.arguments import quantity


@dataclass
class Spending:
    """The spend of the fetches that were handed out, and its hard limit in each period.

    A fetch counts with the cost that is expected, and with its actual cost once that is reported.
    For the cap it counts with ``max_cost`` until then, in the period in which it was handed out.
    So the actual spend is never above the cap; a lost fetch, or one whose report has no cost, keeps
    its reserve.
    """

    cap: float = math.inf  # largest spend of the fetches handed out in a period
    cap_period: float = math.inf  # length of the periods [k, k + 1) * cap_period
    max_cost: float = 0.0  # largest cost of a fetch; 0 without a cap
    mean_known: float = 1.0  # mean of the known costs, for use before the first fetch
    fetches: int = 0  # fetches that were handed out
    before: int = 0  # those of them that were handed out before the first cost, at cost 1
    spend: float = 0.0  # total cost of the fetches
    overcharged: int = 0  # reports of a cost above max_cost
    next_lookup: int = 1  # known costs at which pages without a cost follow them again
    period: float = -math.inf  # number k of the period of the last fetch
    period_spend: float = 0.0  # what is reserved in that period

    @property
    def has_cap(self) -> bool:
        """Whether there is a cap."""
        return self.cap < math.inf

    @property
    def mean(self) -> float:
        """The mean cost of the fetches that were handed out, or of all known costs before them."""
        return self.spend / self.fetches if self.fetches else self.mean_known

    def check_cap(self, cap: Any) -> float:
        """Return a new cap; ValueError if there is no period for it, or it is too low."""
        if self.max_cost == 0.0:
            raise ValueError(
                f"cap must be left out, got {cap!r}: the scheduler was made without cap_period and "
                "max_cost"
            )
        limit: float = quantity("cap", cap, above=0.0)
        if limit < self.max_cost:
            raise ValueError(
                f"cap must be at least max_cost, {self.max_cost:g}, got {limit:g}: no page could "
                "be fetched"
            )
        return limit

    def spend_at(self, time: float) -> float:
        """Return the spend reserved in the period of a time; 0 in a later period than the last."""
        return 0.0 if time // self.cap_period > self.period else self.period_spend

    def room(self, time: float, count: int) -> int:
        """Return how many of ``count`` fetches the cap allows at a time."""
        if not self.has_cap:
            return count
        spend = self.spend_at(time)
        fetches = math.floor(min(max((self.cap - spend) / self.max_cost, 0.0), count))
        exceeds = spend + fetches * self.max_cost > self.cap  # by rounding
        return fetches - (exceeds and fetches > 0)

    def opens(self, time: float) -> float:
        """Return the start of the period after that of a time."""
        period = time // self.cap_period + 1.0
        start = period * self.cap_period
        return start if start // self.cap_period >= period else math.nextafter(start, math.inf)

    def hand_out(self, fetches: int, spend: float, time: float) -> None:
        """Add fetches of an expected spend, at a time."""
        if fetches and (period := time // self.cap_period) > self.period:
            self.period, self.period_spend = period, 0.0
        self.fetches, self.spend = self.fetches + fetches, self.spend + spend
        self.period_spend += fetches * self.max_cost

    def add_up(self, parts: Collection[Mapping[str, Any]]) -> None:
        """Set the spend to the sum of those of shards; each reserves its part of the common cap."""
        for name in ("fetches", "spend", "mean_known"):
            setattr(self, name, sum(part[name] for part in parts))
        self.mean_known /= len(parts)
        self.period = max(self.period, *(part["period"] for part in parts))
        present = [part for part in parts if part["period"] == self.period]
        self.period_spend = sum(part["period_spend"] for part in present)

    def turn_back(self, time: float) -> None:
        """Set the clock back; an earlier period is used up, as its spend is not known any more."""
        if self.has_cap and (period := time // self.cap_period) < self.period:
            self.period, self.period_spend = period, self.cap

    def overview(self, time: float) -> dict[str, float]:
        """Return the spend and the cap at a time by name."""
        if not self.has_cap:
            return {"spend": self.spend}
        spend = self.spend_at(time)
        in_period = {"period_spend": spend, "cap_left": self.cap - spend}
        return {"spend": self.spend, **in_period, "overcharged": self.overcharged}


def capped(cap: Any, cap_period: Any, max_cost: Any) -> Spending | None:
    """Return a spending with a cap, whose three settings are > 0; None if they all are."""
    settings = {"cap": cap, "cap_period": cap_period, "max_cost": max_cost}
    missing = [name for name, value in settings.items() if value is None]
    if len(missing) == len(settings):
        return None
    if missing:
        present = " and ".join(name for name in settings if name not in missing)
        raise ValueError(
            f"{' and '.join(missing)} must be given with {present}, got None: a cap needs its "
            "period and the largest cost of a fetch, which is reserved until a report"
        )
    period = quantity("cap_period", cap_period, above=0.0)
    largest = quantity("max_cost", max_cost, above=0.0)
    spending = Spending(cap_period=period, max_cost=largest, mean_known=largest)
    spending.cap = spending.check_cap(cap)
    return spending
