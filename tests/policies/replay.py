"""A plain-Python environment of explicit events, with the attributes that policies read."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import CrawlLog, Instance, Tracker

FEATURES = (
    "elapsed",
    "signals",
    "changed",
    "importance",
    "change_rate",
    "recall",
    "false_signal_rate",
    "complete",
)
CHANGE, SIGNAL, REQUEST = range(3)
_KINDS = {CHANGE: (CHANGE, SIGNAL), SIGNAL: (), REQUEST: (REQUEST,)}


class ReplayLane:
    """One lane: crawl j at j / R, after all events before it; fresh at time 0.

    ``events`` are (time, kind, page) with kinds CHANGE, SIGNAL and REQUEST, in any order.
    """

    epoch = None

    def __init__(self, instance, events=(), horizon=1.0, seed=0):
        self.instance = instance
        self.events = sorted(events)
        self.horizon = horizon
        self.seed = seed
        self.episode = 0
        self.reveal = "parameters"

    def reset(self):
        m = self.instance.num_pages
        self.episode += 1
        self.slot = self.cursor = self.hits = self.requests = 0
        self.time = 0.0
        self.last_crawl = [0.0] * m
        self.signals = [0] * m
        self.stale = [False] * m
        self.changed = [-1] * m
        self.alive = np.ones(m, dtype=bool)
        self.crawled = []
        self._play([], 1 if self.epoch is None else 0)

    def step(self, pages, slots=1):
        crawls = []
        for page in pages:
            self.crawled.append(page)
            elapsed = self.time - self.last_crawl[page]
            crawls.append((page, self.time, elapsed, self.signals[page], self.stale[page]))
            self.changed[page] = int(self.stale[page])
            self.last_crawl[page], self.signals[page], self.stale[page] = self.time, 0, False
        self._play(crawls, slots)

    def _play(self, crawls, slots):
        self.slot += slots
        end = self.slot / self.instance.bandwidth if self.epoch is None else self.slot * self.epoch
        signals = []
        while self.cursor < len(self.events) and self.events[self.cursor][0] < end:
            time, kind, page = self.events[self.cursor]
            self.cursor += 1
            if kind == CHANGE:
                self.stale[page] = True
            elif kind == SIGNAL:
                self.signals[page] += 1
                signals.append((page, time, 0))
            else:
                self.requests += 1
                self.hits += not self.stale[page]
        self.time = end
        self.log = CrawlLog(
            *(
                np.array([row[k] for row in rows], dtype=dtype)
                for rows, dtypes in ((crawls, "i8 f8 f8 i8 ?"), (signals, "i8 f8 i8"))
                for k, dtype in enumerate(dtypes.split())
            ),
            probe=np.zeros(len(crawls), np.bool_),
        )

    def tracker(self):
        return Tracker(
            problem=self.instance.problem(self.reveal),
            episode=self.episode,
            time=self.time,
            elapsed=self.time - np.array(self.last_crawl),
            signals=np.array(self.signals, dtype=np.int64),
            changed=np.array(self.changed, dtype=np.int8),
            alive=self.alive.copy(),
            probed=np.full(self.alive.size, -1, np.int8),
        )

    def observation(self):
        known = self.tracker()
        columns = {name: getattr(self.instance, name) for name in FEATURES[3:]}
        columns |= {"elapsed": known.elapsed, "signals": known.signals, "changed": known.changed}
        return np.stack([columns[name] for name in FEATURES], axis=-1).astype(np.float32)


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
        rates = (instance.change_rate[page], instance.signal_rate[page], 1.0)
        for kind, rate in enumerate(rates):
            times = rng.uniform(0.0, horizon, rng.poisson(rate * horizon))
            kinds = _KINDS[kind] if signalled[page] else (kind,)
            events += [(time, each, page) for each in kinds for time in times]
    return ReplayLane(instance, events, horizon, seed)
