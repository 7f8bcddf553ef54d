"""The slow, obvious twin of the market of offers: one merchant, offer, price and click at a time.

A market is a list of offers and one of merchants, all counts are stored by day, and fresh offers
are found by comparing all prices. Numbers are rounded to single precision where the kernels do so,
and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from crawl_envs.worlds.offers.law import MarketNumbers
from tests.naive.pages import Stream

STEPS, HISTORY, GONE = 12, 30, 0


def single(number):
    """The number in single precision."""
    return float(np.float32(number))


# Draws


def normal(stream):
    """Box and Muller's."""
    radius = math.sqrt(-2.0 * math.log(stream.uniform()))
    return radius * math.cos(2.0 * math.pi * stream.uniform())


def poisson(stream, mean):
    """Inversion; a large mean is cut into parts of 30."""
    total = 0
    while mean > 0.0:
        part = mean if mean < 30.0 else 30.0
        mean, left, probability, number = mean - part, stream.uniform(), math.exp(-part), 0
        while left > probability and number < 200:
            left, number = left - probability, number + 1
            probability *= part / number
        total += number
    return total


def step_of(stream, cumulative):
    """The first step whose cumulative share reaches a uniform number."""
    share = stream.uniform()
    reached = [step for step in range(STEPS) if share <= cumulative[step]]
    return reached[0] if reached else STEPS - 1


# The market


@dataclass
class Merchant:
    drift: float = 0.0
    end: int = -(2**30)  # the day on which its promotion ends
    discount: int = 0
    news: str = ""  # what its promotion does today


@dataclass
class Offer:
    merchant: int
    price: int
    base: int
    before: int
    change_level: float
    demand_level: float
    discount: int = 0
    clicks: dict = field(default_factory=dict)  # all three by day
    views: dict = field(default_factory=dict)
    changes: dict = field(default_factory=dict)  # the steps at which its price changed

    def last_change(self, day):
        """When its price last changed before a day."""
        times = [
            before + step / STEPS for before in self.changes if before < day
            for step in self.changes[before]
        ]  # fmt: skip
        return single(max(times, default=-math.inf))


@dataclass
class Day:
    """The events of a day, by step; and their true rates, by offer."""

    changes: list = field(default_factory=lambda: [[] for _ in range(STEPS)])  # (offer, price)
    clicks: list = field(default_factory=lambda: [[] for _ in range(STEPS)])
    click_mean: list = field(default_factory=list)
    view_mean: list = field(default_factory=list)
    change_chance: list = field(default_factory=list)


class Market:
    """A market from its history on: it stands at the beginning of day 0 when it has been made."""

    def __init__(self, law, root, episode):
        self.law, self.numbers = law, MarketNumbers(*(float(number) for number in law.numbers))
        self.stream, self.day = Stream(root, episode), -HISTORY
        self.merchants = [Merchant() for _ in law.week]
        self.offers = [
            Offer(int(seller), int(price), int(price), int(price), float(change), float(demand))
            for seller, price, change, demand in zip(
                law.merchant, law.price, law.change_level, law.demand_level, strict=True
            )
        ]
        while self.day < 0:
            self.draw_day()

    def weekday(self):
        return int(self.day + self.numbers.first_weekday) % 7

    def season(self):
        """The factors of price changes, promotions and demand."""
        return [float(factor) for factor in self.law.season[self.day_of_year()]]

    def day_of_year(self):
        return int(self.day + self.numbers.first_day) % 365

    def draw_day(self):
        """Draw the next day and return it."""
        happened = Day()
        factors = [self.draw_merchant(number) for number in range(len(self.merchants))]
        leaving = [self.draw_habits(offer) for offer in self.offers]
        means = [self.change_mean(number, factors) for number in range(len(self.offers))]
        changing = [
            self.draw_changes(offer, mean) for offer, mean in zip(self.offers, means, strict=True)
        ]
        happened.change_chance = [single(1.0 - math.exp(-mean)) for mean in means]
        promoted = [self.draw_promotion(n, happened) for n in range(len(self.offers))]
        for number in range(len(self.offers)):
            self.draw_demand(number, happened)
        for number, plan in enumerate(zip(changing, promoted, leaving, strict=True)):
            self.draw_prices(number, *plan, happened)
        for number, offer in enumerate(self.offers):
            for _ in range(offer.clicks[self.day]):
                step = step_of(self.stream, self.law.click_hours[0])
                happened.clicks[step].append(number)
        self.day += 1
        return happened

    def draw_merchant(self, number):
        """Draw its drift and its promotion; return its factor of price changes."""
        merchant, numbers = self.merchants[number], self.numbers
        spread, memory = numbers.drift_spread, numbers.drift_memory
        shock = normal(self.stream)
        merchant.drift = memory * merchant.drift + spread * math.sqrt(1.0 - memory * memory) * shock
        change, campaign, _ = self.season()
        begins = self.stream.uniform() <= float(self.law.campaign_rate[number]) * campaign
        merchant.news = ""
        if merchant.end == self.day:
            merchant.news = "ends"
        elif merchant.end < self.day and begins:
            merchant.news = "begins"
            merchant.end = self.day + 2 + int(self.stream.uniform() * 8.999)
            merchant.discount = 10 + 5 * int(self.stream.uniform() * 8.999)
        level = math.exp(merchant.drift - 0.5 * spread * spread)
        return level * float(self.law.week[number, self.weekday()]) * change

    def draw_habits(self, offer):
        """Return the step at which the offer goes, or None."""
        numbers = self.numbers
        kind = self.stream.uniform()
        gone = offer.price == GONE
        if gone:
            offer.demand_level = single(offer.demand_level * 0.5)
        if kind <= numbers.change_jump:
            offer.change_level = single(math.exp(numbers.change_spread * normal(self.stream)))
            return None
        jumping = numbers.change_jump + numbers.demand_jump
        if gone or kind > jumping + numbers.obsolete_rate:
            return None
        if kind <= jumping:
            offer.demand_level = single(math.exp(numbers.demand_spread * normal(self.stream)))
            return None
        return min(int(self.stream.uniform() * STEPS), STEPS - 1)

    def change_mean(self, number, factors):
        """The price changes that are expected of an offer today, promotions aside."""
        offer = self.offers[number]
        rate = float(self.law.change_scale[number]) * offer.change_level * factors[offer.merchant]
        return 0.0 if offer.price == GONE else rate

    def draw_changes(self, offer, mean):
        """The steps of an offer's price changes."""
        hours = self.law.hours[offer.merchant]
        return {step_of(self.stream, hours) for _ in range(poisson(self.stream, mean))}

    def draw_promotion(self, number, happened):
        """Return the step at which an offer joins a promotion or leaves it, or None."""
        offer = self.offers[number]
        news = self.merchants[offer.merchant].news
        if not news or offer.price == GONE:
            return None
        chance = float(offer.discount > 0)
        if news == "begins":
            chance = float(self.law.campaign_share[offer.merchant])
            moves = self.stream.uniform() <= chance
        else:
            moves = offer.discount > 0
        stays = (1.0 - happened.change_chance[number]) * (1.0 - chance)
        happened.change_chance[number] = single(1.0 - stays)
        return step_of(self.stream, self.law.hours[offer.merchant]) if moves else None

    def draw_demand(self, number, happened):
        offer = self.offers[number]
        views = float(self.law.view_scale[number]) * offer.demand_level * self.season()[2]
        clicks = views * float(self.law.click_share[number])
        clicked = poisson(self.stream, clicks)
        others = poisson(self.stream, views - clicks)
        offer.clicks[self.day] = min(clicked, 60_000)
        offer.views[self.day] = min(clicked + others, 60_000)
        happened.click_mean.append(single(clicks))
        happened.view_mean.append(single(views))

    def draw_prices(self, number, changing, promoted, leaving, happened):
        """Let an offer's day pass, step by step."""
        offer, steps = self.offers[number], []
        for step in range(STEPS):
            if step in changing:
                self.draw_base(offer)
            if step == promoted:
                leaves = offer.discount > 0
                offer.discount = 0 if leaves else self.merchants[offer.merchant].discount
            price = max(offer.base * (100 - offer.discount) // 100, 1)
            if step == leaving:
                price = GONE
            moves = step in changing or step in (promoted, leaving)
            if moves and price != offer.price:
                offer.price = price
                steps.append(step)
                happened.changes[step].append((number, price))
            if step == leaving:
                break
        offer.changes[self.day] = steps

    def draw_base(self, offer):
        """A new price without promotion, never the present one."""
        now = offer.base
        if self.stream.uniform() <= self.numbers.back and offer.before != now:
            offer.base = offer.before
        else:
            price = max(int(now * (0.85 + 0.3 * self.stream.uniform())), 1)
            offer.base = price + (price == now)
        offer.before = now


# Books


def daily_mean(counts, day, span):
    """The mean of a dictionary of counts by day, over the ``span`` days before a day."""
    return single(sum(counts[before] for before in range(day - span, day)) / span)


def history(clicks, views, changes, last_change, day):
    """Table 3's history features of one offer, by name; counts are dictionaries by day."""
    since = day - last_change
    features = {
        "change_frequency": daily_mean(changes, day, 30),
        "days_since_change": single(since) if since <= HISTORY else 31.0,
    }
    for name, counts in (("clicks", clicks), ("impressions", views)):
        for span in (1, 7, 14, 30):
            features[f"{name}_{span}"] = daily_mean(counts, day, span)
    return features


# Crawls


def systematic(chances, offset):
    """The offers in whose stretch of the cumulative chances a point offset + k lies, exactly."""
    chosen, begin, offset = [], Fraction(0), Fraction(offset)
    for number, chance in enumerate(chances):
        end = begin + min(Fraction(chance), Fraction(1))
        points = math.floor(end - offset) - math.floor(begin - offset)
        assert points in (0, 1)
        chosen += [number] * points
        begin = end
    return chosen


class Tracker:
    """The held prices of all offers and all their crawls, in an episode of a market.

    Which offers are fresh, and their weight, is found again whenever prices change.
    """

    def __init__(self, law, root, episode):
        self.market = Market(law, root, episode)
        self.true = [offer.price for offer in self.market.offers]
        self.held = list(self.true)
        self.logged = [
            {day: len(steps) for day, steps in offer.changes.items()}
            for offer in self.market.offers
        ]
        self.latest = [offer.last_change(0) for offer in self.market.offers]
        self.crawls = [[] for _ in self.true]  # (time, changed)
        self.time, self.day = 0.0, -1
        self.clicks = self.hits = self.changes = 0
        self.days, self.areas = [], []
        self.before, self.origin = (0, 0), 0.0
        self.events = happening(self.market)
        self.coming = next(self.events)

    def begin(self):
        """Begin the episode now: count from here on."""
        self.clicks = self.hits = self.changes = 0
        self.days, self.areas = [], []
        self.before = (self.before[0] + self.num_crawls(), self.before[1] + self.num_found())
        self.origin = self.time

    def crawl(self, chosen):
        """Crawl offers; return the log: (offer, time, elapsed, changed, price)."""
        log = []
        for offer in chosen:
            last = self.crawls[offer][-1][0] if self.crawls[offer] else 0.0
            changed = self.held[offer] != self.true[offer]
            self.held[offer] = self.true[offer]
            self.crawls[offer].append((self.time, changed))
            log.append((offer, self.time, self.time - last, changed, self.true[offer]))
        return log

    def advance(self, until):
        """Play on, prices at the end included and clicks not.

        Return the integrals of the expected clicks on fresh offers, and on all, and of the number
        of fresh offers.
        """
        start = len(self.areas)
        while self.coming[0] < until or (self.coming[0] == until and self.coming[1] != "click"):
            time, kind, what = self.coming
            if kind == "click":
                self.clicks += 1
                self.hits += self.held[what] == self.true[what]
            elif kind == "price":
                self.measure(time)
                self.true[what[0]] = what[1]
                self.changes += 1
            else:
                self.measure(time)
                self.end_day()
                self.means = what.click_mean
            self.coming = next(self.events)
        self.measure(until)
        return [math.fsum(column) for column in zip(*self.areas[start:], strict=True)]

    def measure(self, until):
        passed, self.time = until - self.time, until
        if passed > 0.0:
            fresh = self.fresh()
            expected = math.fsum(self.means[offer] for offer in fresh)
            now = (expected, math.fsum(self.means), len(fresh))
            self.areas.append([passed * amount for amount in now])

    def end_day(self):
        """Note clicks, hits and crawls of the day, and the share of fresh offers at midnight."""
        self.day += 1
        if self.day > 0:
            totals = (self.clicks, self.hits, self.num_crawls())
            before = [sum(column) for column in zip(*self.days, strict=True)] or [0] * 4
            counts = (now - then for now, then in zip(totals, before[:3], strict=True))
            self.days.append((*counts, len(self.fresh()) / len(self.true)))

    def fresh(self):
        return [offer for offer, held in enumerate(self.held) if self.true[offer] == held]

    def num_crawls(self):
        return sum(len(crawls) for crawls in self.crawls) - self.before[0]

    def num_found(self):
        return sum(changed for crawls in self.crawls for _, changed in crawls) - self.before[1]

    def found_on(self, offer, day):
        """How many changes were seen on a day: by crawls, or before the episode, in the log."""
        if day < 0:
            return self.logged[offer][day]
        return sum(changed and math.floor(time) == day for time, changed in self.crawls[offer])

    def last_found(self, offer):
        """When a change was last seen before the present day."""
        times = [
            single(time) for time, changed in self.crawls[offer] if changed and time < self.day
        ]
        return max([self.latest[offer], *times])

    def features(self, crawled):
        """Table 3's history features of the present day; of changes found by crawls, or of all."""
        day, columns = self.day, []
        for number, offer in enumerate(self.market.offers):
            changes = {before: len(steps) for before, steps in offer.changes.items()}
            latest = offer.last_change(day)
            if crawled:
                changes = {before: self.found_on(number, before) for before in range(day - 30, day)}
                latest = self.last_found(number)
            columns.append(history(offer.clicks, offer.views, changes, latest, day))
        return {name: [column[name] for column in columns] for name in columns[0]}


def happening(market):
    """Yield the events of days in order of time: (time, kind, what).

    Prices change at the beginning of a step, clicks are spread evenly over it.
    """
    while True:
        day = market.day
        happened = market.draw_day()
        yield float(day), "day", happened
        for step in range(STEPS):
            begin = day * STEPS + step
            for change in happened.changes[step]:
                yield begin / STEPS, "price", change
            clicks = happened.clicks[step]
            for row, offer in enumerate(clicks):
                yield (begin + (row + 0.5) / len(clicks)) / STEPS, "click", offer
