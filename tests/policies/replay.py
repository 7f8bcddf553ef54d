"""A plain-Python environment of explicit events, with the attributes that policies read."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import Instance
from policies.base.live import LivePages, empty_log

COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate", "complete")
FEATURES = ("elapsed", "signals", "changed", *COLUMNS)
CHANGE, SIGNAL = range(2)


class ReplayLane:
    """One lane: crawl j at j / R, after all events before it; fresh at time 0.

    ``events`` are (time, kind, page) with kinds CHANGE and SIGNAL, in any order.
    """

    epoch, reveal = None, "parameters"

    def __init__(self, instance, events=(), horizon=1.0, seed=0):
        self.instance, self.events = instance, sorted(events)
        self.horizon, self.seed, self.episode = horizon, seed, 0

    def reset(self):
        self.pages = LivePages(self.instance.problem(self.reveal))
        self.alive, self.stale = (np.full(self.instance.num_pages, each) for each in (True, False))
        self.episode, self.crawled, self.slot, self.cursor = self.episode + 1, [], 0, 0
        self._play([], 1 if self.epoch is None else 0)

    @property
    def time(self):
        return self.pages.time

    def step(self, pages, slots=1):
        self.crawled += pages
        self._play(pages, slots)

    def _play(self, crawled, slots):
        """Crawl pages, and let time pass until the next decision."""
        known, crawled = self.tracker(), np.array(crawled, np.int64)
        changed, signals = self.stale[crawled], []
        self.stale[crawled] = False
        self.slot += slots
        end = self.slot / self.instance.bandwidth if self.epoch is None else self.slot * self.epoch
        while self.cursor < len(self.events) and self.events[self.cursor][0] < end:
            time, kind, page = self.events[self.cursor]
            self.cursor += 1
            if kind == CHANGE:
                self.stale[page] = True
            else:
                signals.append((page, time))
        self.log = empty_log()._replace(
            page=crawled,
            time=np.full(crawled.size, known.time),
            elapsed=known.elapsed[crawled],
            signals=known.signals[crawled],
            changed=changed,
            signal_page=np.array([page for page, _ in signals], np.int64),
            signal_time=np.array([time for _, time in signals]),
            signal_source=np.zeros(len(signals), np.int64),
        )
        self.pages.advance(self.log, end)

    def tracker(self):
        return self.pages.tracker()._replace(episode=self.episode, alive=self.alive.copy())

    def observation(self):
        known = self.tracker()
        columns = [getattr(self.instance, name) for name in COLUMNS]
        rows = known.elapsed, known.signals, known.changed, *columns
        return np.stack(rows, axis=-1).astype(np.float32)


class ReplayCore:
    """The attributes that policies read from an environment, for any number of lanes.

    In the action form ``rates`` an action has no consequences: decision k is at k * epoch.
    """

    features = FEATURES

    def __init__(self, *lanes, action_form="page", batch=1, epoch=1.0):
        self.lanes = lanes
        self.epoch = epoch if action_form == "rates" else np.nan
        for lane in lanes:
            lane.epoch = epoch if action_form == "rates" else None
        self.num_lanes = len(lanes)
        self.action_form = action_form
        self.batch = batch
        self.unwrapped = self

    def reset(self):
        for lane in self.lanes:
            lane.reset()
        return np.stack([lane.observation() for lane in self.lanes])

    def step(self, actions):
        for lane, action in zip(self.lanes, actions, strict=True):
            if self.action_form == "rates":
                pages = []
            elif self.action_form == "page":
                pages = [int(action)]
            elif self.action_form == "refresh":
                pages = np.flatnonzero(action).tolist()
            else:
                pages = np.argsort(-action, kind="stable")[: self.batch].tolist()
            lane.step(pages, self.batch)
        return np.stack([lane.observation() for lane in self.lanes])

    def tracker(self, lane=0):
        return self.lanes[lane].tracker()

    def last_log(self, lane=0):
        return self.lanes[lane].log

    def rng(self, lane=0):
        return np.random.default_rng([self.lanes[lane].seed, self.lanes[lane].episode])

    def declare(self, change_rate, lane=0):
        pass

    def num_slots(self, lane=0):
        return round(self.lanes[lane].horizon * self.lanes[lane].instance.bandwidth)


def run(policy, core, steps):
    """Crawl sequences of all lanes over one episode of ``steps`` decisions."""
    observation = core.reset()
    for step in range(steps):
        action, _ = policy.predict(observation)
        if step < steps - 1:
            observation = core.step(action)
        else:
            core.step(action)
    return [lane.crawled for lane in core.lanes]


def random_lane(num_pages, seed, bandwidth=10.0, horizon=5.0, complete=0):
    """A lane with parameters and events drawn from ``seed``.

    The last ``complete`` pages signal their every change, and send no other signal.
    """
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    recall, false_rate = rng.beta(0.25, 0.25, num_pages), rng.uniform(0.1, 0.6, num_pages)
    signalled = np.arange(num_pages) >= num_pages - complete
    instance = Instance(
        importance,
        change_rate,
        np.where(signalled, 1.0, recall),
        np.where(signalled, 0.0, false_rate),
        bandwidth=bandwidth,
    )
    events = []
    for page in range(num_pages):
        for kind, rate in enumerate((instance.change_rate[page], instance.signal_rate[page])):
            times = rng.uniform(0.0, horizon, rng.poisson(rate * horizon))
            if kind == CHANGE or not signalled[page]:
                events += [(time, kind, page) for time in times]
            if kind == CHANGE and signalled[page]:
                events += [(time, SIGNAL, page) for time in times]
    return ReplayLane(instance, events, horizon, seed)
