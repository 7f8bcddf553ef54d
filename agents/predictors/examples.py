"""Tables of examples: features of offers when a day begins, and labels of the day.

Features and labels are those of Han et al. 2020, Figure 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.predictors import TASKS
from agents.predictors.columns import Columns, columns_of
from crawl_envs.types.arguments import one_of, real, whole
from crawl_envs.types.offer_features import OfferFeatures

if TYPE_CHECKING:
    from crawl_envs.worlds.offers.log import MarketLog

BoolArray = NDArray[np.bool_]
PageArray = NDArray[np.int64]
Sample = Callable[[OfferFeatures, np.random.Generator], PageArray]
"""Returns pages of a day, sorted, without repeats, from the features of that day alone."""

TRAIN_DAYS, VALIDATION_DAYS, TEST_DAYS = 153, 9, 91
"""Days of Han et al. 2020: 2018-08-01 to 12-31, 2019-01-01 to 01-09, 2019-01-10 to 04-10."""


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


class Split(NamedTuple):
    """Days of training, validation and test; each range later than the one before."""

    train: range
    validation: range
    test: range


def split_days(num_days: int, first: int = 0) -> Split:
    """Split days in time, in the proportions of Han et al. 2020, 153 : 9 : 91.

    Args:
        num_days: days of the log.
        first: first day to use, >= 0; days before it may lack history.

    Raises:
        ValueError: fewer than 3 days from ``first`` on.
    """
    first = whole("first", first, 0)
    days = whole("num_days", num_days, first + 3) - first
    total = TRAIN_DAYS + VALIDATION_DAYS + TEST_DAYS
    validation = max(1, round(days * VALIDATION_DAYS / total))
    test = max(1, round(days * TEST_DAYS / total))
    train_end = num_days - test - validation
    return Split(
        range(first, train_end),
        range(train_end, train_end + validation),
        range(train_end + validation, num_days),
    )


@dataclass(frozen=True)
class UniformSample:
    """A uniform sample of each day's offers.

    Attributes:
        per_day: offers per day, >= 1; all where there are fewer.
    """

    per_day: int

    def __post_init__(self) -> None:
        whole("per_day", self.per_day, 1)

    def __call__(self, offers: OfferFeatures, rng: np.random.Generator) -> PageArray:
        """Return the pages of a day, sorted."""
        count = len(offers.change_frequency)
        return np.sort(rng.choice(count, min(self.per_day, count), replace=False))


@dataclass(frozen=True)
class ClickWeightedSample:
    """The union of a uniform sample of each day and one that is weighted by past clicks.

    Weights are the clicks of the last 30 days before the day. Only the uniform part includes offers
    without clicks. Probabilities depend on the past and not on the label, so that the sample does
    not change the share of positives among offers with equal history.

    Attributes:
        per_day: offers per day before repeats are dropped, >= 1.
        share: share of offers drawn by clicks, in [0, 1].
    """

    per_day: int
    share: float = 0.5

    def __post_init__(self) -> None:
        whole("per_day", self.per_day, 1)
        if real("share", self.share, least=0.0) > 1.0:
            raise ValueError(f"share must lie in [0, 1], got {self.share!r}")

    def __call__(self, offers: OfferFeatures, rng: np.random.Generator) -> PageArray:
        """Return the pages of a day, sorted."""
        by_clicks = round(self.per_day * self.share)
        pages = weighted_draw(offers.clicks_30.astype(np.float64), by_clicks, rng)
        rest = self.per_day - by_clicks
        if rest:
            pages = np.union1d(pages, UniformSample(rest)(offers, rng))
        return np.sort(pages)


def weighted_draw(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> PageArray:
    """Draw pages one after the other, each in proportion to weight among the remaining ones.

    By exponential keys (Efraimidis and Spirakis 2006, Weighted random sampling with a reservoir).

    Args:
        weights: (m,), >= 0; a page of weight 0 is never drawn.
        count: number of pages to draw, >= 0; fewer where fewer have a weight > 0.
        rng: the random numbers.

    Returns:
        The pages, unsorted.
    """
    able = np.flatnonzero(weights > 0.0)
    keys = rng.standard_exponential(len(able)) / weights[able]
    if count >= len(able):
        return able
    return able[np.argpartition(keys, count)[:count]] if count else able[:0]


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
        if sample is None:
            pages = np.arange(len(happened))
        else:
            pages = sample(offers, np.random.default_rng([seed, day]))
        about = pages.astype(np.int32), np.full(len(pages), day, np.int32)
        tables.append((*about, *columns_of(offers, pages), happened[pages]))
    page, day_of, history, metadata, events = (
        np.concatenate(parts) for parts in zip(*tables, strict=True)
    )
    return Examples(page, day_of, Columns(history, metadata), events)
