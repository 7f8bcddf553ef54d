"""The spend of a scheduler's fetches, and a cap of it in each period."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from crawl_envs.types.arguments import quantity

SMALL_COST = 0.1
"""Mean cost below which the bandwidth pays that before the first fetch, else 1."""


class Spending:
    """The spend of the fetches that were handed out, and its hard limit in each period.

    A fetch counts with the cost that is expected, and with its actual cost once that is reported.
    For the cap it counts with ``max_cost`` until then, in the period in which it was handed out.
    So the actual spend is never above the cap; a lost fetch, or one whose report has no cost, keeps
    its reserve.

    Args:
        cap: largest spend of the fetches handed out in each period, >= max_cost; None for no cap.
        cap_period: length of the periods [k, k + 1) * cap_period, > 0.
        max_cost: largest cost of a fetch, > 0.

    Attributes:
        fetches: number of fetches that were handed out.
        spend: their total cost.
        before: how many of them were handed out before the first cost, at cost 1.
        mean_known: mean of all costs that are known, 1 without any.
        unit: what the bandwidth must have paid before the first fetch.
        next_lookup: number of known costs at which pages without a cost look theirs up again.
        period: number k of the period of the last fetch, and ``period_spend``, its reserved spend.
        overcharged: number of reports of a cost above ``max_cost``.
    """

    def __init__(self, cap: Any = None, cap_period: Any = None, max_cost: Any = None) -> None:
        settings = {"cap": cap, "cap_period": cap_period, "max_cost": max_cost}
        missing = [name for name, value in settings.items() if value is None]
        if 0 < len(missing) < len(settings):
            present = " and ".join(name for name in settings if name not in missing)
            raise ValueError(
                f"{' and '.join(missing)} must be given with {present}, got None: a cap needs its "
                "period and the largest cost of a fetch, which is reserved until a report"
            )
        self.cap, self.cap_period, self.max_cost = math.inf, math.inf, 0.0
        if not missing:
            self.cap_period = quantity("cap_period", cap_period, above=0.0)
            self.max_cost = quantity("max_cost", max_cost, above=0.0)
            self.cap = self.check_cap(cap)
        self.fetches = self.before = self.overcharged = 0
        self.spend = self.period_spend = 0.0
        self.mean_known = self.unit = 1.0
        self.next_lookup, self.period = 1, -math.inf

    @property
    def has_cap(self) -> bool:
        """Whether there is a cap."""
        return self.cap < math.inf

    @property
    def mean(self) -> float:
        """The mean cost of the fetches that were handed out, or of all known costs before them."""
        return self.spend / self.fetches if self.fetches else self.mean_known

    def set_mean_known(self, mean: float) -> None:
        """Set the mean of all known costs; small ones before the first fetch set the unit."""
        self.mean_known = mean
        if self.fetches == 0:
            self.unit = mean if mean < SMALL_COST else 1.0

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
        free = (self.cap - spend) / self.max_cost
        fetches = math.floor(min(max(free, 0.0), count))
        exceeds = spend + fetches * self.max_cost > self.cap  # by rounding
        return fetches - (exceeds and fetches > 0)

    def opens(self, time: float) -> float:
        """Return the start of the period after that of a time."""
        period = time // self.cap_period + 1.0
        start = period * self.cap_period
        return start if start // self.cap_period >= period else math.nextafter(start, math.inf)

    def hand_out(self, fetches: int, spend: float, time: float) -> None:
        """Add fetches of an expected spend, at a time."""
        if fetches and self.has_cap and (period := time // self.cap_period) > self.period:
            self.period, self.period_spend = period, 0.0
        self.fetches, self.spend = self.fetches + fetches, self.spend + spend
        self.period_spend += fetches * self.max_cost

    def add_up(self, parts: Collection[Mapping[str, Any]]) -> None:
        """Set the spend to the sum of some states; each reserves its part of the common cap."""
        for name in ("fetches", "before", "overcharged", "spend"):
            setattr(self, name, sum(part[name] for part in parts))
        self.mean_known = sum(part["mean_known"] for part in parts) / len(parts)
        self.unit = min(part["unit"] for part in parts)
        self.period = max(self.period, *(part["period"] for part in parts))
        present = [part for part in parts if part["period"] == self.period]
        self.period_spend = sum(part["period_spend"] for part in present)

    def turn_back(self, time: float) -> bool:
        """Set the clock back; return whether that is to an earlier period, which is then used up.

        What was spent in that period is not known any more.
        """
        earlier = self.has_cap and time // self.cap_period < self.period
        if earlier:
            self.period, self.period_spend = time // self.cap_period, self.cap
        return earlier

    def overview(self, time: float) -> dict[str, float]:
        """Return the spend and the cap at a time by name."""
        if not self.has_cap:
            return {"spend": self.spend}
        spend = self.spend_at(time)
        left = {"period_spend": spend, "cap_left": self.cap - spend}
        return {"spend": self.spend, **left, "overcharged": self.overcharged}

    def state(self) -> dict[str, Any]:
        """Return all attributes by name, for :meth:`restored`."""
        return dict(vars(self))

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Spending:
        """Return the spending whose :meth:`state` is given."""
        spending = cls()
        vars(spending).update({name: state[name] for name in vars(spending)})
        return spending
