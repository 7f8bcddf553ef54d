"""The slow, obvious twin of the simulator: plain Python, one event, page and number at a time.

It follows the words of the contract, not the kernels: streams are Python integers, a tape is a
sorted list, freshness is summed again over all pages at every event, and divergence
(:mod:`tests.naive.divergence`) whenever it may change. Where importances and rates have few binary
digits, so that no sum of them is rounded, kernels must agree with it bit for bit.
"""

from __future__ import annotations

import itertools
import math
import operator
from bisect import insort
from dataclasses import dataclass, field

import numpy as np

REQUEST, CHANGE, SIGNAL, CHANGE_SIGNAL = range(4)
BIRTH, DEATH = 32, 33
FRAGMENTS, PRICE, IMPORTANCE = 36, 37, 38
"""Kinds of events with a detail: the new fragments or price of a page, new importances of all."""

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


# Streams


def roots(seed, pages="any"):
    """The roots of a seed's three streams: instance, tape, random choices.

    A seed of training or tests has another key, and its roots end in the bit 0 or 1.
    """
    key, bit = {"any": ((), None), "train": ((1,), 0), "test": ((2,), 1)}[pages]
    words = np.random.SeedSequence(seed, spawn_key=key).generate_state(3, np.uint64).tolist()
    return words if bit is None else [word >> 1 << 1 | bit for word in words]


def splitmix(word):
    """Steele, Lea and Flood's hash of a word."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def rotated(word, bits):
    return (word << bits | word >> 64 - bits) & WORD


class Stream:
    """Blackman and Vigna's xoshiro256++, seeded by splitmix64 from a root and an episode."""

    def __init__(self, root, episode):
        seed = splitmix(root + GOLDEN * (episode + 1) & WORD)
        self.state = [splitmix(seed + GOLDEN * step & WORD) for step in (1, 2, 3, 4)]

    def word(self):
        a, b, c, d = self.state
        self.state = [
            a ^ b ^ d,
            b ^ c ^ a,
            c ^ a ^ (b << 17 & WORD),
            rotated(d ^ b, 45),
        ]
        return rotated(a + d & WORD, 23) + a & WORD

    def uniform(self):
        """A multiple of 2**-53 in (0, 1]."""
        return ((self.word() >> 11) + 1) / 2**53

    def exponential(self, mean):
        return -math.log(self.uniform()) * mean

    def delay(self, kind, mean, quantum):
        if kind == "constant":
            return mean
        if kind == "exponential":
            return self.exponential(mean)
        assert kind == "poisson"
        return quantum * poisson_quantile(1.0 - self.uniform(), mean / quantum)


def poisson_quantile(share, mean):
    """The smallest count whose Poisson probability, with all below, exceeds ``share``."""
    count, probability, left = 0, math.exp(-mean), share
    while left >= probability > 0.0:
        left -= probability
        count += 1
        probability *= mean / count
    return count


class AliasTable:
    """Vose's: every column keeps a share of itself and gives the rest of it to one other."""

    def __init__(self, weights):
        total = 0.0
        for weight in weights:
            total += weight
        count = len(weights)
        self.cut = [weight * count / total if total > 0.0 else 1.0 for weight in weights]
        self.other = list(range(count))
        poor = [column for column in range(count) if self.cut[column] < 1.0]
        rich = [column for column in range(count) if self.cut[column] >= 1.0]
        while poor and rich:
            low, high = poor.pop(), rich[-1]
            self.other[low] = high
            self.cut[high] -= 1.0 - self.cut[low]
            if self.cut[high] < 1.0:
                poor.append(rich.pop())
        for column in poor + rich:
            self.cut[column] = 1.0

    def draw(self, stream):
        scaled = (1.0 - stream.uniform()) * len(self.cut)
        column = int(scaled)
        return column if scaled - column < self.cut[column] else self.other[column]


# Tapes


def drawn_rates(instance):
    """The rate of every page's kinds of events, page by page, and zeros up to a power of two."""
    rates = []
    for page in range(instance.num_pages):
        change = float(instance.change_rate[page])
        recalls, false_rates = sources_of(instance, page)
        rates += [float(instance.importance[page]), (1.0 - min(sum(recalls), 1.0)) * change]
        for recall, false_rate in zip(recalls, false_rates, strict=True):
            rates += [false_rate, recall * change]
        rates += [0.0] * (num_columns(instance) - 2 - 2 * len(recalls))
    return rates


def sources_of(instance, page):
    """The recall and the false-signal rate of each source of a page's signals."""
    if instance.recall.ndim == 1:
        return [float(instance.recall[page])], [float(instance.false_signal_rate[page])]
    return instance.recall[:, page].tolist(), instance.false_signal_rate[:, page].tolist()


def num_columns(instance):
    """The smallest power of two that no page's number of kinds exceeds."""
    columns = 4
    while columns < 2 + 2 * len(sources_of(instance, 0)[0]):
        columns *= 2
    return columns


def drawn_events(instance, seed, episode, until, pages="any"):
    """The events before ``until`` of a generated tape, as (time, page, kind) in order of time.

    Every source event draws its gap, its page and kind and, where signals travel, its delay. A
    signal that travels leaves its source event and becomes one of its own.
    """
    stream = Stream(roots(seed, pages)[1], episode)
    rates = drawn_rates(instance)
    total = math.fsum(rates)
    if total == 0.0:
        return []
    table, delay = AliasTable(rates), instance.delay
    time, sources, arrivals = 0.0, [], []
    while True:
        time += stream.exponential(1.0 / total)
        if time >= until:
            break
        page, kind = divmod(table.draw(stream), num_columns(instance))
        if delay.kind == "none" or kind in (REQUEST, CHANGE):
            sources.append((time, page, kind))
            continue
        changes, source = kind % 2, (kind - SIGNAL) // 2
        if changes:
            sources.append((time, page, CHANGE))
        travel = stream.delay(delay.kind, delay.mean, delay.quantum)
        insort(arrivals, (time + travel, page, SIGNAL + 2 * source))
    arrived = [event for event in arrivals if event[0] < until]
    return sorted(sources + arrived, key=lambda event: event[0])


def written_events(**lists):
    """The events of hand-written lists of (times, pages), as (time, page, kind) in order of time.

    At equal times: births, changes, signals, requests, deaths. Signals may be (times, pages,
    sources).
    """
    order = {"births": BIRTH, "changes": CHANGE, "signals": SIGNAL, "requests": REQUEST}
    order["deaths"] = DEATH
    events = []
    for rank, (name, kind) in enumerate(order.items()):
        times, pages, *sources = lists.get(name, ((), ()))
        sources = sources[0] if sources else [0] * len(times)
        for number, (time, page, source) in enumerate(zip(times, pages, sources, strict=True)):
            events.append((float(time), rank, number, int(page), kind + 2 * int(source)))
    return [(time, page, kind) for time, _, _, page, kind in sorted(events)]


# The clock


def slot_time(bandwidth, steps, slot):
    """When a bandwidth that changes at the given (time, bandwidth) has allowed ``slot`` crawls."""
    start, allowed, rate = 0.0, 0.0, bandwidth
    for time, later_rate in steps:
        by_then = allowed + (time - start) * rate
        if by_then > slot:
            break
        start, allowed, rate = time, by_then, later_rate
    return start + (slot - allowed) / rate


# The world


@dataclass
class Page:
    importance: float
    alive: bool
    since: float = 0.0  # the last crawl, or the birth
    changes: int = 0
    signals: list = field(default_factory=list)  # the source of each since then
    changed: int = -1  # outcome of the last crawl: 1 a change, 0 none, -1 no crawl yet
    first_change: float = math.nan  # time of the first change since then
    area: float = 0.0  # integral of the divergence since then

    @property
    def fresh(self):
        return self.changes == 0

    def mark(self, time):
        """Note the time of a change."""
        if math.isnan(self.first_change):
            self.first_change = time

    def renew(self, time, changed):
        """Reset the page: nothing has happened to it since ``time``."""
        self.since, self.changes, self.signals, self.changed = time, 0, [], changed
        self.first_change, self.area = math.nan, 0.0


@dataclass
class Slot:
    fresh_time: float = 0.0
    alive_time: float = 0.0
    divergence_time: float = 0.0
    divergent_time: float = 0.0  # of the weights of divergence
    requests: int = 0
    hits: int = 0
    crawls: list = field(default_factory=list)  # (page, time, elapsed, signals, changed)
    signals: list = field(default_factory=list)  # (page, time, source)


class World:
    """One lane, from its reset on: it stands at its first decision when it has been made.

    ``events`` are (time, page, kind) in order of time, with a detail if they have one; ``slots``
    pass per decision, or an ``epoch``, with the first decision at time 0. ``divergence`` is one of
    :mod:`tests.naive.divergence`. With costs, one page per decision (``paced``) is paid by the time
    to the next decision, at most to the first whole slot after the ``horizon``, and pages of a
    batch out of the bandwidth so far (``rationed``). With ``start="crawled"`` a round of crawls of
    all pages comes before the first slot, whose log has it too.
    """

    def __init__(
        self,
        instance,
        events,
        *,
        alive=None,
        slots=1,
        epoch=None,
        divergence=None,
        action="page",
        horizon=None,
        start="fresh",
    ):
        weights = [float(weight) for weight in instance.importance]
        alive = [True] * len(weights) if alive is None else alive
        self.instance, self.events, self.slots = instance, list(events), slots
        self.clock = (instance.bandwidth, instance.bandwidth_steps)
        self.cost = [1.0] * len(weights) if instance.cost is None else instance.cost.tolist()
        self.paced = action == "page" and epoch is None
        self.end = math.inf
        if horizon is not None:
            after = (slot for slot in itertools.count(1) if self.is_after(slot, horizon))
            self.end = next(after)
        self.rationed = action == "scores"
        if epoch is not None:
            self.clock = (1.0 / epoch, ())
        self.divergence = divergence
        self.pages = [
            Page(weight, bool(there)) for weight, there in zip(weights, alive, strict=True)
        ]
        self.time, self.integrated, self.slot_number, self.played = 0.0, 0.0, 0, 0
        self.lead, self.epoch = 0, epoch
        self.begin()
        crawls, signals = self.play_round() if start == "crawled" else ([], [])
        self.begin()
        if epoch is not None:
            self.slot_number -= slots
        self.play_slot([])
        self.slot.crawls[:0], self.slot.signals[:0] = crawls, signals

    def begin(self):
        """Begin the episode now."""
        self.integrate_from_now()
        counts = "requests hits crawls denied wasted changes changes_found signals"
        self.ledger = dict.fromkeys(counts.split(), 0)
        self.ledger.update(spend=0.0, time=0.0, fresh_time=0.0, alive_time=0.0, penalty_time=None)
        self.divergence_time, self.origin = 0.0, self.time

    def integrate_from_now(self):
        self.slot = Slot()
        self.integrate()
        self.slot = Slot()

    def play_round(self):
        """Crawl each page of time 0, in order, when the bandwidth pays it; return the log.

        With epochs, as for offers, each is crawled at the last epoch before that.
        """
        paid, bandwidth = 0, self.instance.bandwidth
        for number in [number for number, page in enumerate(self.pages) if page.alive]:
            paid += self.cost[number]
            due = slot_time(bandwidth, (), paid)
            if self.epoch is not None:
                due = slot_time(*self.clock, math.ceil(due / self.epoch - 1e-9) - 1)
            self.play_up_to(due)
            self.crawl(number)
        self.lead = paid
        if self.epoch is not None:
            self.lead = math.ceil(slot_time(bandwidth, (), paid) / self.epoch - 1e-9)
        self.play_up_to(slot_time(*self.clock, self.lead))
        return self.slot.crawls, self.slot.signals

    def play_slot(self, pages):
        """Crawl the pages now; then let everything happen that does before the next decision.

        Prices and importances that change at the time of the decision have changed before it.
        """
        self.slot = Slot()
        for number in pages:
            if self.rationed and self.ledger["spend"] + self.cost[number] > self.slot_number:
                break
            self.crawl(number)
        self.play_up_to(self.next_decision())
        self.enter()

    def play_up_to(self, until):
        """Let everything happen that does before a decision or crawl at this time."""
        while self.next_event_time() <= until:
            if self.next_event_time() == until and self.events[self.played][2] < PRICE:
                break
            self.play_event()
        self.pass_time(until)

    def next_decision(self):
        """Return the time of the next decision, the end of the next slots."""
        self.slot_number += self.slots
        if self.paced and self.instance.cost is not None:
            return slot_time(*self.clock, self.lead + min(1 + self.ledger["spend"], self.end))
        return slot_time(*self.clock, self.lead + self.slot_number)

    def is_after(self, slot, horizon):
        """Whether a slot is after the horizon, by more than a billionth of a slot."""
        return slot_time(*self.clock, slot - 1e-9) > horizon

    def next_event_time(self):
        return self.events[self.played][0] if self.played < len(self.events) else math.inf

    def play_event(self):
        """Play the next event; return it."""
        time, number, kind, *detail = self.events[self.played]
        self.played += 1
        self.pass_time(time)
        if kind == IMPORTANCE:
            self.integrate()
            for page, weight in zip(self.pages, *detail, strict=True):
                page.importance = weight
        elif kind in (FRAGMENTS, PRICE):
            self.integrate()
            self.pages[number].mark(time)
            self.ledger["changes"] += self.divergence.change(number, self.pages[number], *detail)
        else:
            self.happen(self.pages[number], number, kind)
        return number, kind

    def enter(self):
        """Enter the slot into the ledger."""
        self.integrate()
        for name in ("fresh_time", "alive_time", "requests", "hits"):
            self.ledger[name] += getattr(self.slot, name)
        self.divergence_time += self.slot.divergence_time
        if getattr(self.divergence, "is_penalty", False):
            self.ledger["penalty_time"] = self.divergence_time
        self.ledger["signals"] += len(self.slot.signals)
        self.ledger["time"] = self.time - self.origin

    def crawl(self, number):
        page = self.pages[number]
        self.ledger["crawls"] += 1
        self.ledger["spend"] += self.cost[number]
        if not page.alive:
            self.ledger["wasted"] += 1
            self.slot.crawls.append((number, self.time, None, self.counted([]), False))
            return
        self.integrate()
        changed = not page.fresh
        self.ledger["changes_found"] += changed
        elapsed = self.time - page.since
        signals = self.counted(page.signals)
        self.slot.crawls.append((number, self.time, elapsed, signals, changed))
        self.renew(number, int(changed))

    def renew(self, number, changed):
        """Replace the copy of a page by the live page."""
        self.pages[number].renew(self.time, changed)
        if self.divergence is not None:
            self.divergence.renew(number, self.pages[number])

    def happen(self, page, number, kind):
        if kind in (BIRTH, DEATH) and page.alive == (kind == DEATH):
            self.integrate()
            page.alive = kind == BIRTH
            self.renew(number, -1)
        if not page.alive or kind >= BIRTH:
            return
        if kind == REQUEST:
            self.slot.requests += 1
            self.slot.hits += page.fresh
        if kind % 2:
            self.integrate()
            self.ledger["changes"] += 1
            page.changes += 1
            page.mark(self.time)
        if kind >= SIGNAL:
            page.signals.append((kind - SIGNAL) // 2)
            self.slot.signals.append((number, self.time, page.signals[-1]))

    def counted(self, signals):
        """How many signals came from a page's source, or a list of how many from each."""
        num_sources = len(sources_of(self.instance, 0)[0])
        counts = [signals.count(source) for source in range(num_sources)]
        return counts if num_sources > 1 else counts[0]

    def pass_time(self, until):
        alive = [page for page in self.pages if page.alive]
        fresh = math.fsum(page.importance for page in alive if page.fresh)
        self.slot.fresh_time += (until - self.time) * fresh
        self.slot.alive_time += (until - self.time) * math.fsum(page.importance for page in alive)
        self.time = until

    def integrate(self):
        """Add the divergence since it was last added."""
        passed, self.integrated = self.time - self.integrated, self.time
        if self.divergence is None:
            return
        alive = [(number, page) for number, page in enumerate(self.pages) if page.alive]
        weights = [self.divergence.weight(page) for _, page in alive]
        distances = [self.divergence.of(number, page) for number, page in alive]
        for (_, page), distance in zip(alive, distances, strict=True):
            page.area += passed * distance
        self.slot.divergence_time += passed * math.fsum(map(operator.mul, weights, distances))
        self.slot.divergent_time += passed * math.fsum(weights)

    def freshness(self):
        """The slot's reward: the share of existing pages' importance and time that was fresh.

        It counts by the length of the slot where that is the cost of its crawl.
        """
        slot, length = self.slot, 1.0
        if self.paced and self.instance.cost is not None:
            length = self.cost[slot.crawls[0][0]]
            length -= max(1 + self.ledger["spend"] - self.end, 0)
        share = min(slot.fresh_time / slot.alive_time, 1.0) if slot.alive_time > 0.0 else 0.0
        return length * share

    def seen(self, number, horizon):
        """The observation of a page, by the names of its columns."""
        page, instance = self.pages[number], self.instance
        shown = {
            "elapsed": min(self.time - page.since, horizon) if page.alive else 0.0,
            "changed": page.changed,
            "complete": int(bool(instance.complete[number])),
            "alive": int(page.alive),
        }
        shown["cost"] = min(self.cost[number], 1e6)
        for name in ("importance", "change_rate"):
            shown[name] = min(float(getattr(instance, name)[number]), 1e6)
        recalls, false_rates = sources_of(instance, number)
        for source, recall in enumerate(recalls):
            end = f"_{source}" if len(recalls) > 1 else ""
            shown["signals" + end] = min(page.signals.count(source), 1000)
            shown["recall" + end] = recall
            shown["false_signal_rate" + end] = min(false_rates[source], 1e6)
        return shown
