"""A baseline of the compiled environment in NumPy alone: event-driven and batched.

It simulates ``CrawlNCIS-v0``: changes, signals and requests are one Poisson process per lane, with
K ~ Poisson(total rate / bandwidth) events per slot; each is a (page, kind) from Walker's alias
table at a uniform time of the slot. Crawls, the exact integral of freshness, hits, and the seven
columns of the observation are as in the environment; the random numbers differ, so that the two
agree in distribution only. All lanes share the same few calls, and the events of many slots, which
do not depend on actions, are drawn and sorted at once.

Not supported are checks of actions, delays, changing bandwidth, saturation of counts, logs of
signals and the ledger.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs import instances
from crawl_envs.sim.state import ALIAS
from crawl_envs.sim.tape import event_rates, fill_alias
from crawl_envs.types import FloatArray, IntArray

FEATURES = (
    "elapsed",
    "signals",
    "changed",
    "importance",
    "change_rate",
    "recall",
    "false_signal_rate",
)
NUM_KINDS = 4
RANKS = np.array([0, 1, 3, 2], np.uint16)
"""Order of the kinds within a slot: request, change, change with signal, false signal."""


class Block(NamedTuple):
    """The events of a block of slots, sorted by slot and kind.

    ``page`` is lane * m + page, ``time`` the elapsed share of the slot, ``offset`` the index of
    the first event of each (slot, kind), one row per slot, with the end of the last kind as the
    fifth column; ``requests`` is the number of requests, (slots, N).
    """

    page: IntArray
    lane: IntArray
    time: FloatArray
    offset: list[list[int]]
    requests: FloatArray


class NumPyBaseline:
    """N lanes of an NCIS world in NumPy, with the interface of a vector environment.

    Episodes of all lanes start and end together; the step after the end resets, as in Gymnasium's
    next-step autoreset mode.

    Args:
        num_envs: number of lanes, N.
        num_pages: number of pages per lane, m.
        bandwidth: crawls per unit time.
        horizon: length of an episode.
        instance: name of a synthetic instance without delays.
        block: number of slots whose events are drawn at once.
        copy: whether returned observations are copies.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        num_pages: int = 100,
        bandwidth: float = 100.0,
        horizon: float = 10.0,
        instance: str = "noisy",
        block: int = 64,
        copy: bool = True,
    ) -> None:
        self.num_envs, self.num_pages, self.bandwidth = num_envs, num_pages, bandwidth
        self.instance, self.block, self.copy = instance, block, copy
        self.last_slot = int(np.floor(horizon * bandwidth + 1e-9))
        # Features first, so that a column of all lanes is contiguous.
        self.rows = np.zeros((len(FEATURES), num_envs, num_pages), np.float32)
        self._elapsed, self._signals, self._changed = self.rows[0], *self.rows[1:3].reshape(2, -1)
        self._last_crawl = np.zeros(num_envs * num_pages, np.float32)
        self.stale_since = np.full(num_envs * num_pages, np.inf)
        self._base = np.arange(num_envs) * num_pages
        self._slot = self.last_slot

    def reset(self, *, seed: int) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Draw the instances of the environment for this seed, and start an episode."""
        shape = {"num_pages": self.num_pages, "bandwidth": self.bandwidth}
        drawn = [
            instances.make(self.instance, seed=seed + i, **shape) for i in range(self.num_envs)
        ]
        for row, name in enumerate(FEATURES[3:], start=3):
            self.rows[row] = [getattr(one, name) for one in drawn]
        self._importance = np.concatenate([one.importance for one in drawn])
        self._weight = np.array([one.importance.sum() for one in drawn])
        rates = np.stack([event_rates(one).ravel() for one in drawn])
        self._mean_events = rates.sum(1) / self.bandwidth
        alias = np.zeros(rates.shape, ALIAS)
        for lane_rates, lane_alias in zip(rates, alias, strict=True):
            fill_alias(lane_rates, lane_alias)
        self._cut, self._other = alias["cut"].ravel(), alias["other"].astype(np.int64).ravel()
        self._rng = np.random.default_rng(seed)
        self._begin()
        return self._observations(), {}

    def _begin(self) -> None:
        """Start an episode and advance to its first decision."""
        self.events, self._row = self._draw(), 0
        self._fresh_weight = self._weight.copy()
        self.stale_since.fill(np.inf)
        self._last_crawl.fill(0.0)
        self._signals.fill(0.0)
        self._changed.fill(-1.0)
        self._slot = 0
        self._advance()

    def _draw(self) -> Block:
        """Draw the events of the next slots."""
        rng, num_lanes = self._rng, self.num_envs
        counts = rng.poisson(self._mean_events, (self.block, num_lanes))
        lane = np.repeat(np.tile(np.arange(num_lanes), self.block), counts.ravel())
        slot = np.repeat(np.arange(self.block), counts.sum(1))
        width = NUM_KINDS * self.num_pages
        scaled = rng.random(lane.size) * width
        column = scaled.astype(np.int64)
        flat = lane * width + column
        code = np.where(scaled - column < self._cut[flat], column, self._other[flat])
        key = (slot * NUM_KINDS).astype(np.uint16) + RANKS[code & 3]
        order = np.argsort(key, kind="stable")
        ends = np.cumsum(np.bincount(key, minlength=NUM_KINDS * self.block))
        ends = ends.reshape(self.block, NUM_KINDS)
        starts = np.concatenate(([0], ends[:-1, -1]))
        asked = code & 3 == 0
        cells = self.block * num_lanes
        requests = np.bincount(slot[asked] * num_lanes + lane[asked], minlength=cells)
        return Block(
            page=(lane * self.num_pages + (code >> 2))[order],
            lane=lane[order],
            time=rng.random(lane.size),
            offset=np.column_stack([starts, ends]).tolist(),
            requests=requests.reshape(self.block, num_lanes).astype(np.float64),
        )

    def _advance(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Advance by a slot; return the freshness, hits and requests of each lane."""
        if self._row == self.block:
            self.events, self._row = self._draw(), 0
        events, slot, num_lanes = self.events, self._slot, self.num_envs
        first, changed, both, signalled, end = events.offset[self._row]

        page, passed = events.page[changed:signalled], events.time[changed:signalled]
        since = self.stale_since
        when = slot + passed
        was_fresh = since[page] == np.inf
        np.minimum.at(since, page, when)
        lost = self._importance[page] * (was_fresh & (since[page] == when))
        lane = events.lane[changed:signalled]
        lost_time = np.bincount(lane, lost * (1.0 - passed), num_lanes)
        freshness = (self._fresh_weight - lost_time) / self._weight
        self._fresh_weight -= np.bincount(lane, lost, num_lanes)

        hit = slot + events.time[first:changed] < since[events.page[first:changed]]
        hits = np.bincount(events.lane[first:changed], hit, num_lanes)
        np.add.at(self._signals, events.page[both:end], np.float32(1.0))
        requests = events.requests[self._row]
        self._row += 1
        self._slot += 1
        now = np.float32(self._slot / self.bandwidth)
        np.subtract(now, self._last_crawl.reshape(self._elapsed.shape), out=self._elapsed)
        return freshness, hits, requests

    def step(
        self, actions: IntArray
    ) -> tuple[
        NDArray[np.float32], FloatArray, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Crawl a page in every lane and advance to the next decision."""
        num_lanes = self.num_envs
        if self._slot > self.last_slot:
            self._begin()
            freshness = hits = requests = np.zeros(num_lanes)
        else:
            page = self._base + actions
            changed = self.stale_since[page] < np.inf
            self._fresh_weight += self._importance[page] * changed
            self.stale_since[page] = np.inf
            self._last_crawl[page] = self._slot / self.bandwidth
            self._signals[page] = 0.0
            self._changed[page] = changed
            freshness, hits, requests = self._advance()
        truncated = np.full(num_lanes, self._slot > self.last_slot)
        terminated = np.zeros(num_lanes, np.bool_)
        info = {"hits": hits, "requests": requests}
        return self._observations(), freshness, terminated, truncated, info

    def _observations(self) -> NDArray[np.float32]:
        rows = self.rows.copy() if self.copy else self.rows
        return rows.transpose(1, 2, 0)
