"""Observations of trackers; hidden parameters are removed here only.

The memory layout is [lane, feature, page], so that features are contiguous; views have axes [lane,
page, feature].
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import inlined
from crawl_envs.sim.state import State
from crawl_envs.types import REVEALS, Instance, Reveal
from crawl_envs.types.arguments import one_of
from crawl_envs.types.offer_features import NO_CHANGE

ObservationArray: TypeAlias = NDArray[np.float32]
ObservationForm: TypeAlias = Literal["table", "flat", "dict", "flat_dict"]
"""Form of observations: ``table`` is (m, F), a row per page, and ``flat`` (m * F,), row by row.

``dict`` has ``observation``, the table, and ``action_mask``, (m,) int8, the mask of the pages that
may be chosen; ``flat_dict`` is the same with it flat.
"""

ELAPSED, SIGNALS, CHANGED, ALIVE = range(4)
"""Numbers of columns for one source of signals; each more shifts the last two by one."""
OFFER_CHANGED = 1
"""Number of the column ``changed`` of offers, which have no columns of signals."""
PARAMETERS = ("importance", "cost", "complete", "change_rate", "recall", "false_signal_rate")
"""Columns that do not change in an episode."""
SIGNAL_CAP = 1000.0
"""Largest number of signals in observations; trackers have exact counts."""
RATE_CAP = 1e6
"""Largest rate, weight and number of fragments in observations."""
NO_BASE = -1.0
"""Value of divergence and age where no base version exists; trackers have NaN instead."""
OFFER_LIMITS = {"change_frequency": 12.0, "days_since_change": NO_CHANGE, "day_of_week": 6.0}
"""Upper limits of features of shopping offers; prices change at most once in two hours."""
MAX_BUFFERS = 8
"""Largest number of buffers in a pool; further copies are new arrays."""
UNHELD = max(sys.getrefcount(buffer) for buffer in [np.empty(1)])
"""Reference count, seen in a loop, of a buffer to which only a list refers."""


def feature_names(
    reveal: Reveal,
    mortal: bool,
    num_sources: int = 1,
    *,
    complete: bool = False,
    costs: bool = False,
) -> tuple[str, ...]:
    """Return the names of the columns of an observation, in order.

    Features of signals have one column, or one per source for S >= 2 sources, with the number of
    the source as suffix: ``signals_0``, ``signals_1``.
    """
    one_of("reveal", reveal, REVEALS)

    def by_source(name: str) -> list[str]:
        return [name] if num_sources == 1 else [f"{name}_{s}" for s in range(num_sources)]

    names = ["elapsed", *by_source("signals"), "changed"]
    if mortal:
        names.append("alive")
    names.append("importance")
    if costs:
        names.append("cost")
    if complete:
        names.append("complete")
    if reveal == "parameters":
        names += ["change_rate", *by_source("recall"), *by_source("false_signal_rate")]
    return tuple(names)


def without_source(feature: str) -> tuple[str, int | None]:
    """Split a column ``signals_1`` into ``("signals", 1)``; the number is None if there is none."""
    name, _, number = feature.rpartition("_")
    return (name, int(number)) if number.isdigit() else (feature, None)


def observation_space(
    features: tuple[str, ...], num_pages: int, max_elapsed: float, form: ObservationForm
) -> Space[Any]:
    """Return the Gymnasium space of one lane's observations in a form, float32 with finite bounds.

    Elapsed time is at most ``max_elapsed``, signals SIGNAL_CAP, rates RATE_CAP. The printed bounds
    are those of one page, which hold for all.
    """
    highs = {"elapsed": max_elapsed, "age": max_elapsed, "signals": SIGNAL_CAP, **OFFER_LIMITS}
    shares = ("changed", "alive", "complete", "recall", "divergence")
    highs.update(dict.fromkeys(shares, 1.0))
    names = [without_source(feature)[0] for feature in features]
    unknown = ("changed", "divergence", "age")
    lows = [-1.0 if name in unknown else 0.0 for name in names]
    low = np.array(lows, np.float32)
    high = np.array([highs.get(name, RATE_CAP) for name in names], np.float32)
    shape = (num_pages * len(features),) if "flat" in form else (num_pages, len(features))
    lowest, highest = (np.tile(row, (num_pages, 1)).reshape(shape) for row in (low, high))
    box: Any = Box(lowest, highest, dtype=np.float32)
    box.low_repr, box.high_repr = (f"[{' '.join(f'{x:g}' for x in row)}]" for row in (low, high))
    if "dict" not in form:
        return cast(Space[Any], box)
    return Dict({"action_mask": Box(0, 1, (num_pages,), np.int8), "observation": box})


def batched(space: Any, num_lanes: int) -> Space[Any]:
    """Return the space of N lanes' observations, printed with the bounds of a single page."""
    if isinstance(space, Dict):
        return Dict({name: batched(part, num_lanes) for name, part in space.items()})
    box: Any = batch_space(space, num_lanes)
    box.low_repr, box.high_repr = space.low_repr, space.high_repr
    return cast(Space[Any], box)


class Buffers:
    """A pool of arrays of one shape and dtype for copies, reused once nobody refers to them."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[Any]] = []

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a C-contiguous copy of an array, in a buffer that nobody else refers to."""
        for buffer in self._buffers:
            if sys.getrefcount(buffer) == UNHELD:
                np.copyto(buffer, array)
                return buffer
        fresh = array.copy()
        if len(self._buffers) < MAX_BUFFERS:
            self._buffers.append(fresh)
        return fresh

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        """Pickle the pool without its arrays, since callers may still use them."""
        return Buffers, ()


def write_parameters(rows: ObservationArray, instance: Instance, features: tuple[str, ...]) -> None:
    """Write the visible parameters of an instance into a lane's columns of observations, (F, m)."""
    for row, feature in enumerate(features):
        name, source = without_source(feature)
        if name == "cost" and instance.cost is None:
            rows[row] = 1.0
        elif name in PARAMETERS:
            values = getattr(instance, name)
            rows[row] = np.minimum(values if source is None else values[source], RATE_CAP)


@inlined(forceinline=True)
def write_page(page: Any, features: Any, lane: int, number: int, extra: int, mortal: bool) -> None:
    """Write a page's signals, last outcome and existence into the observations, (N, F, m).

    With several sources, the page's total goes into the first of ``1 + extra`` columns of signals.
    """
    features[lane, SIGNALS, number] = min(float(page.signals), SIGNAL_CAP)
    features[lane, CHANGED + extra, number] = page.changed
    if mortal:
        features[lane, ALIVE + extra, number] = page.alive


@inlined()
def write_sources(features: ObservationArray, counts: NDArray[np.int32], lane: int) -> None:
    """Write each page's number of signals by source into the observations of a lane."""
    for source in range(counts.shape[1]):
        for number in range(counts.shape[2]):
            features[lane, SIGNALS + source, number] = min(
                float(counts[lane, source, number]), SIGNAL_CAP
            )


@inlined("copies", forceinline=True)
def write_copy(state: State, lane: int, number: int) -> None:
    """Write the features of a page's held copy into the last columns of the observations.

    They are its number of fragments, and its divergence from and age after each base version; the
    latter two are NO_BASE without a base version.
    """
    bases, features = state.bases[lane, number], state.observations
    count = bases.shape[0]
    first = features.shape[1] - 1 - 2 * count
    oldest = state.lanes[lane].max_elapsed
    features[lane, first, number] = min(float(state.copies[lane, number].held), RATE_CAP)
    for slot in range(count):
        has_base = not np.isnan(bases[slot].made)
        divergence = bases[slot].divergence if has_base else NO_BASE
        age = min(bases[slot].age, oldest) if has_base else NO_BASE
        features[lane, first + 1 + slot, number] = divergence
        features[lane, first + 1 + count + slot, number] = age


@inlined(forceinline=True)
def write_observations(state: State) -> None:
    """Update the observations of all lanes that moved in this step.

    All pages get their elapsed times, 0 for pages that do not exist. Other features change only for
    pages with a crawl or a signal in the last slot.
    """
    lanes, pages, features = state.lanes, state.pages, state.observations
    last_crawl = state.last_crawl
    num_pages, extra = features.shape[2], max(state.source_signals.shape[1] - 1, 0)
    priced, copied = state.prices.shape[1] > 0, state.copies.shape[1] > 0
    crawl_log, signal_log = state.crawl_log, state.signal_log
    for lane in range(lanes.shape[0]):
        record = lanes[lane]
        if not record.moved:
            continue
        record.moved = False
        if features.shape[1] == 0:
            continue
        now, oldest, mortal = record.time, record.max_elapsed, record.mortal
        for number in range(num_pages):
            features[lane, ELAPSED, number] = now - last_crawl[lane, number]
        if now > oldest:
            for number in range(num_pages):
                features[lane, ELAPSED, number] = min(features[lane, ELAPSED, number], oldest)
        if mortal:
            for number in range(num_pages):
                features[lane, ELAPSED, number] *= pages[lane, number].alive
        count = num_pages if record.reshaped else record.slot_crawls
        for position in range(count):
            number = position if record.reshaped else crawl_log[lane, position].page
            page = pages[lane, number]
            if priced:
                features[lane, OFFER_CHANGED, number] = page.changed
                continue
            write_page(page, features, lane, number, extra, mortal)
            if copied:
                write_copy(state, lane, number)
        for position in range(record.logged * (not record.reshaped)):
            number = signal_log[lane, position].page
            write_page(pages[lane, number], features, lane, number, extra, mortal)
        if extra > 0:
            write_sources(features, state.source_signals, lane)
