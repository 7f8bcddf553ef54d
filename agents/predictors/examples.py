"""Make tables of examples: features of offers at the start of a day, and labels of the day.

Source: Han et al. 2020, Figure 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.predictors import TASKS
from crawl_envs.types import BoolArray, IntArray
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures

if TYPE_CHECKING:
    from crawl_envs.worlds.offers.log import MarketLog

FloatColumns = NDArray[np.float32]
Sample = Callable[[OfferFeatures, np.random.Generator], IntArray]
"""Function that draws pages of a day, sorted and distinct, from the features of that day alone."""

COUNTED = {
    "change_frequency": HISTORY_DAYS,
    "days_since_change": 1,
    **{f"{what}_{days}": days for what in ("clicks", "impressions") for days in (1, 7, 14, 30)},
}
"""Days d of each history feature, in the order of HISTORY_FEATURES: its daily rate times d is a
count."""


class Columns(NamedTuple):
    """Features of n offers when a day begins.

    Attributes:
        history: log(1 + count) of each history feature, in the order of HISTORY_FEATURES,
            (n, 10) float32, since counts are heavy-tailed; (n, 0) without history.
        metadata: ids in the order of METADATA_FEATURES, (n, 7) int32; (n, 0) without metadata.
    """

    history: FloatColumns
    metadata: NDArray[np.int32]

    def select(self, features: str) -> Columns:
        """Return these columns with only ``metadata``, only ``history``, or ``both``."""
        history, metadata = self
        return Columns(
            history if features != "metadata" else history[:, :0],
            metadata if features != "history" else metadata[:, :0],
        )


Table: TypeAlias = tuple[Columns, BoolArray]
"""Scaled columns of n examples and their labels, (n,) bool."""


def columns_of(offers: OfferFeatures, pages: IntArray | slice = slice(None)) -> Columns:
    """Return the feature columns of offers when a day begins, for some ``pages``, (n,), or all."""
    ids = [array[pages] for array in offers.metadata]
    counts = [getattr(offers, name)[pages] * np.float32(days) for name, days in COUNTED.items()]
    weekday = np.full(len(ids[0]), offers.day_of_week, np.int32)
    return Columns(np.log1p(np.column_stack(counts)), np.column_stack([*ids, weekday]))


class Scaling(NamedTuple):
    """Means and spreads of the history columns of a training table, (10,) float32 each."""

    mean: FloatColumns
    spread: FloatColumns

    @classmethod
    def learn(cls, columns: Columns) -> Scaling:
        """Return the scaling of history to mean 0 and spread 1; constants are only shifted."""
        mean = columns.history.mean(axis=0, dtype=np.float64)
        spread = columns.history.std(axis=0, dtype=np.float64)
        return cls(mean.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32))

    def __call__(self, columns: Columns) -> Columns:
        """Return the columns with their history scaled."""
        return columns._replace(history=(columns.history - self.mean) / self.spread)


@dataclass(frozen=True, eq=False)
class Examples:
    """A table of n examples.

    Attributes:
        page: the offers, (n,) int32.
        day: the days, (n,) int32.
        columns: features when the day began.
        happened: whether each event of TASKS happened within the day, (n, 3) bool.
    """

    page: NDArray[np.int32]
    day: NDArray[np.int32]
    columns: Columns
    happened: BoolArray

    def __len__(self) -> int:
        """Return the number of examples, n."""
        return len(self.page)

    def labels(self, task: str) -> BoolArray:
        """Return the labels of ``price``, ``click`` or ``impression``, (n,) bool.

        Raises:
            ValueError: another task.
        """
        labels: BoolArray = self.happened[:, TASKS.index(one_of("task", task, TASKS))]
        return labels


def examples(
    log: MarketLog, days: Iterable[int], sample: Sample | None = None, seed: int = 0
) -> Examples:
    """Return a table of examples.

    Args:
        log: a recorded market, or another object with its ``num_days``, ``features`` and
            ``labels``.
        days: the days, in [0, ``log.num_days``).
        sample: the sample of a day's offers; None for all. It depends on ``seed`` and the day.
        seed: seed of the sample, >= 0.

    Raises:
        ValueError: no days, or a day that the log does not have.
    """
    seed, days = whole("seed", seed, 0), list(days)
    if not days:
        raise ValueError("days must hold at least one day, got none")
    tables = []
    for day in days:
        whole("days", day, 0, log.num_days - 1)
        offers, happened = log.features(day), np.column_stack(log.labels(day))
        rng = np.random.default_rng([seed, day])
        pages = np.arange(len(happened)) if sample is None else sample(offers, rng)
        about = pages.astype(np.int32), np.full(len(pages), day, np.int32)
        tables.append((*about, *columns_of(offers, pages), happened[pages]))
    page, day_of, history, metadata, events = map(np.concatenate, zip(*tables, strict=True))
    return Examples(page, day_of, Columns(history, metadata), events)
