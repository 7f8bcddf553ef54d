"""A slow, obvious twin of the belief about staleness: plain dictionaries and lists, no rings.

Every broadcast is an object, and every page has a list of the broadcasts since its last crawl.
Integrals over the time at which a page stops are computed numerically.
"""

from __future__ import annotations

import math

import mpmath
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import digamma

from policies.estimators.gamma_beliefs import PSEUDO_PAGES, SHAPES
from policies.ncis.belief.activity import RETURN
from policies.ncis.belief.kernels import SMALLEST
from policies.ncis.belief.policy import CLASS_PRIOR, EVENT_PRIOR, FLOOR, PRIOR_ACTIVE
from policies.ncis.belief.warm_start import BIRTH, CHANGE, DEATH, SIGNAL


class NaiveLearner:
    """A belief about m pages; ``group`` is a list or None; ``scales`` a list per page and kind.

    Kinds are "silent", the unsignalled changes, ("evidence", channel) and ("rate", channel);
    channels are ("alone", s), and with groups ("beside", s) and ("broadcast", s).
    """

    def __init__(
        self, importance, group, sources, bandwidth, scales, shapes, memory, pace_memory, steps=1
    ):
        """``shapes``: of unsignalled changes, and of all other kinds."""
        self.steps = steps
        self.m, self.sources, self.grouped = len(importance), sources, group is not None
        self.importance, self.memory, self.pace_memory = importance, memory, pace_memory
        self.floor = FLOOR * bandwidth / self.m
        self.group = list(group) if self.grouped else [0] * self.m
        ways = ("alone", "beside", "broadcast") if self.grouped else ("alone",)
        self.channels = [(way, s) for way in ways for s in range(sources)]
        self.own = [channel for channel in self.channels if channel[0] != "broadcast"]
        self.kinds = ["silent"]
        self.kinds += [("evidence", channel) for channel in self.channels]
        self.kinds += [("rate", channel) for channel in self.own]
        self.pages = [
            {
                "scale": dict(zip(self.kinds, scales[page], strict=True)),
                "count": dict.fromkeys(self.kinds, 0.0),
                "exposure": dict.fromkeys(self.kinds, 0.0),
                "exists": True,
                "active": 1.0,
            }
            for page in range(self.m)
        ]
        self.groups = [
            {
                "shape": dict.fromkeys(self.kinds, shapes[1]) | {"silent": shapes[0]},
                "rate": dict.fromkeys(self.kinds, shapes[1]) | {"silent": shapes[0]},
                "broadcasts": [],
                "stops": 0.0,
                "active time": 0.0,
            }
            for _ in range(max(self.group) + 1)
        ]
        self.classes = {}
        self.crawls, self.due = 0, max(self.m // 4, 1)
        for page in range(self.m):
            self.forget(page)

    def shape(self, page, kind):
        return self.groups[self.group[page]]["shape"][kind] + self.pages[page]["count"][kind]

    def rate(self, page, kind):
        return self.groups[self.group[page]]["rate"][kind] + self.pages[page]["exposure"][kind]

    def believed(self, page, kind):
        return self.shape(page, kind) / self.rate(page, kind) * self.pages[page]["scale"][kind]

    def cautious(self, page, kind):
        return self.believed(page, kind) * math.exp(-0.5 / (self.shape(page, kind) + 0.1))

    def forget(self, page):
        self.pages[page]["signals"] = dict.fromkeys(self.own, 0.0)
        self.pages[page]["since"] = []
        self.pages[page]["excluded"] = [0.0] * self.sources

    def weights(self, page):
        row = self.pages[page]
        weights = dict(row["signals"])
        if self.grouped:
            for s in range(self.sources):
                total = sum(item["weight"] for item in row["since"] if item["source"] == s)
                left = total - row["excluded"][s]
                weights["broadcast", s] = left if left > 1e-9 * total else 0.0
        return weights

    def evidence(self, page, elapsed):
        weights = self.weights(page).items()
        total = sum(self.believed(page, ("evidence", c)) * n for c, n in weights)
        return self.believed(page, "silent") * elapsed + total

    def expected_changes(self, page, elapsed):
        total = self.believed(page, "silent") * elapsed
        for channel, weight in self.weights(page).items():
            if weight > 0.0:
                own = channel[0] != "broadcast"
                number = weight if own else len(self.pages[page]["since"])
                each = self.believed(page, ("evidence", channel)) * weight / number
                total += number * (1.0 - math.exp(-each))
        return total

    def change_rate(self, page, now):
        rate = self.cautious(page, "silent") + self.floor
        for channel in self.own:
            chance = 1.0 - math.exp(-self.believed(page, ("evidence", channel)))
            rate += self.believed(page, ("rate", channel)) * chance
        for item in self.groups[self.group[page]]["broadcasts"]:
            fade = math.exp(-(now - item["time"]) / self.pace_memory) / self.pace_memory
            evidence = self.cautious(page, ("evidence", ("broadcast", item["source"])))
            rate += item["first"] * fade * (1.0 - math.exp(-evidence))
        return rate

    def stays_active(self, page, elapsed):
        """Probability that an active page does not stop in a time; the mean of all pages first."""
        stops, time = (sum(row[key] for row in self.groups) for key in ("stops", "active time"))
        mean = (PRIOR_ACTIVE * self.memory + time) / (1.0 + stops)
        own = self.groups[self.group[page]]
        return (1.0 + elapsed / (mean + own["active time"])) ** -(1.0 + max(own["stops"], 0.0))

    def active(self, page):
        """Probability that a page was active at its last crawl, or was signalled as changed since.

        Signals to it alone leave it as it was with probability exp(-b) each.
        """
        alone = self.pages[page]["signals"].items()
        evidence = sum(self.believed(page, ("evidence", channel)) * n for channel, n in alone)
        return 1.0 - (1.0 - self.pages[page]["active"]) * math.exp(-evidence)

    def score(self, page, now, elapsed):
        rate, stays = self.change_rate(page, now), self.stays_active(page, elapsed)
        active, value = self.active(page), self.active_value(page, now, elapsed)
        x = self.evidence(page, elapsed)
        waited = elapsed * quad(lambda u: 2.0 * (1.0 - u) * -math.expm1(-x * u), 0.0, 1.0)[0]
        of_active = stays * value + (1.0 - stays) * max(value, waited)
        back = RETURN * rate
        idle = -(math.expm1(-back * elapsed) / back + elapsed * math.exp(-back * elapsed))
        return self.importance[page] * (active * of_active + (1.0 - active) * idle)

    def active_value(self, page, now, elapsed):
        fresh, rate = math.exp(-self.evidence(page, elapsed)), self.change_rate(page, now)
        value = (1.0 - (1.0 + self.expected_changes(page, elapsed)) * fresh) / rate
        if any(self.pages[page]["signals"].values()):
            return value
        signals = sum(self.believed(page, ("rate", channel)) for channel in self.own)
        reported = sum(
            self.believed(page, ("rate", channel))
            * -math.expm1(-self.believed(page, ("evidence", channel)))
            for channel in self.own
        )

        def gained(t):
            return math.exp(-signals * t) * (math.exp(-(rate - reported) * t) - fresh)

        return max(value, quad(gained, 0.0, elapsed)[0])

    def on_birth_or_death(self, page, alive):
        self.forget(page)
        self.pages[page]["exists"], self.pages[page]["active"] = alive, 1.0

    def learn(self, page, elapsed, changed):
        weights = self.weights(page)
        certain = 1.0 - math.exp(-self.evidence(page, elapsed))
        for item in self.pages[page]["since"]:
            evidence = self.believed(page, ("evidence", ("broadcast", item["source"])))
            self.update_weight(item, evidence, certain, changed)
        self.learn_page(page, elapsed, weights, changed)
        self.forget(page)
        self.crawls += 1
        if self.crawls >= self.due:
            self.due = self.crawls + self.m
            self.pool()

    def update_weight(self, item, evidence, certain, changed):
        """Update the observed and expected changes of a broadcast and of its class."""
        before = item["weight"]
        observed = evidence * before / max(certain, 1e-9) if changed else 0.0
        among = self.classes[item["class"]]
        among[0] += observed
        among[1] += evidence * before / item["first"]
        item["observed"] += observed
        item["expected"] += evidence * item["first"]
        ratio = (EVENT_PRIOR + item["observed"]) / (EVENT_PRIOR + item["expected"])
        item["weight"] = item["first"] * ratio

    def learn_page(self, page, elapsed, weights, changed):
        row = self.pages[page]
        exposures = {"silent": elapsed} | {("evidence", c): n for c, n in weights.items()}
        exposures = {kind: x * row["scale"][kind] for kind, x in exposures.items()}
        before = {kind: (self.shape(page, kind), self.rate(page, kind)) for kind in exposures}
        self.learn_activity(page, elapsed, before, exposures, changed)
        if not changed:
            exposures = {kind: x * row["active"] for kind, x in exposures.items()}
        fade = math.exp(-elapsed / self.memory)
        for kind in self.kinds:
            row["count"][kind] *= fade
            row["exposure"][kind] *= fade
        before = {kind: (self.shape(page, kind), self.rate(page, kind)) for kind in exposures}
        with mpmath.workdps(50):  # what is nearly certain to be fresh cancels in float64
            self.learn_hazards(row, page, before, exposures, changed)
        for channel in self.own:
            row["count"]["rate", channel] += weights[channel]
            scale = row["scale"]["rate", channel]
            row["exposure"]["rate", channel] += elapsed * scale

    def learn_activity(self, page, elapsed, before, exposures, changed):
        """Bayes' rule, with the time of a stop exponential within the interval."""
        row, own = self.pages[page], self.groups[self.group[page]]
        active = self.active(page)
        silent = self.cautious(page, "silent") + self.floor
        signalled = (
            self.believed(page, ("rate", channel))
            * -math.expm1(-self.believed(page, ("evidence", channel)))
            for channel in self.own
        )
        active += (1.0 - active) * -math.expm1(-RETURN * (silent + sum(signalled)) * elapsed)
        fresh = -sum(a * math.log1p(exposures[kind] / r) for kind, (a, r) in before.items())
        stays = math.log(self.stays_active(page, elapsed))
        stopped = [  # at a share u of the interval: with a change before, without
            lambda u: -stays * math.exp(stays * u) * -math.expm1(fresh * u),
            lambda u: -stays * math.exp((stays + fresh) * u),
        ]
        stayed = [math.exp(stays) * -math.expm1(fresh), math.exp(stays + fresh)]
        chance, time = (
            [
                kept + quad(lambda u, of=of, power=power: u**power * of(u), 0.0, 1.0, epsabs=0.0)[0]
                for kept, of in zip(stayed, stopped, strict=True)
            ]
            for power in (0, 1)
        )
        if changed:
            possible = fresh < 0.0
            after = stayed[0] / chance[0] if possible else 1.0
            share = time[0] / chance[0] if possible else 1.0
        else:
            likely = active * chance[1] + 1.0 - active
            after, share = active * stayed[1] / likely, active * time[1] / likely
        own["stops"] += row["active"] - after
        own["active time"] += share * elapsed
        row["active"] = after

    def learn_hazards(self, row, page, before, exposures, changed):
        before = {kind: (mpmath.mpf(a), mpmath.mpf(r)) for kind, (a, r) in before.items()}
        fresh = mpmath.fprod((r / (r + exposures[kind])) ** a for kind, (a, r) in before.items())
        for kind, (a, r) in before.items():
            x = exposures[kind]
            if not changed:
                row["exposure"][kind] += x
            elif x > 0.0:
                moments = [
                    (unseen - unseen_and_fresh) / (1.0 - fresh)
                    for unseen, unseen_and_fresh in (
                        (a / r, fresh * a / (r + x)),
                        (a * (a + 1) / r**2, fresh * a * (a + 1) / (r + x) ** 2),
                    )
                ]
                variance = moments[1] - moments[0] ** 2
                self.take_moments(page, kind, float(moments[0]), float(variance))

    def take_moments(self, page, kind, mean, variance):
        """Where a Gamma of these moments would need a negative exposure, or count, it is 0."""
        row, own = self.pages[page], self.groups[self.group[page]]
        rate = mean / variance if variance > 0.0 else 0.0
        row["exposure"][kind] = max(0.0, rate - own["rate"][kind])
        row["count"][kind] = max(0.0, mean * self.rate(page, kind) - own["shape"][kind])

    def on_signal(self, signals):
        """Signals (page, time, source), in order of time."""
        instants = {}
        for page, time, source in signals:
            instants.setdefault(time, []).append((page, source))
        for time, signals in instants.items():
            self.on_signals_together(time, signals)

    def on_signals_together(self, time, signals):
        size = [0] * len(self.groups)
        for page, row in enumerate(self.pages):
            size[self.group[page]] += row["exists"]
        count = {}
        for page, source in signals:
            key = self.group[page], source
            count[key] = count.get(key, 0) + 1
        most = [key for key, n in count.items() if self.grouped and n > 1 and n > size[key[0]] / 2]
        touched = len({group for group, _ in count})
        alone = any((self.group[page], source) not in most for page, source in signals)
        entered = {key: self.broadcast(*key, touched, alone, time) for key in most}
        for page, source in signals:
            if (self.group[page], source) in most:
                continue
            beside = [item for (group, _), item in entered.items() if group == self.group[page]]
            for item in beside:
                self.pages[page]["excluded"][item["source"]] += item["first"]
            self.pages[page]["signals"]["beside" if beside else "alone", source] += 1.0

    def broadcast(self, group, source, touched, alone, time):
        size = sum(touched > limit for limit in (1, 3, 9))
        observed, expected = self.classes.setdefault((size, alone), [0.0, 0.0])
        first = (CLASS_PRIOR + observed) / (CLASS_PRIOR + expected)
        item = {
            "time": time, "source": source, "class": (size, alone),
            "first": first, "weight": first, "observed": 0.0, "expected": 0.0,
        }  # fmt: skip
        self.groups[group]["broadcasts"].append(item)
        for page in range(self.m):
            if self.group[page] == group:
                self.pages[page]["since"].append(item)
        return item

    def pool(self):
        for _ in range(self.steps):
            self.pool_once()

    def pool_once(self):
        for kind in self.kinds:
            seen = {g: [] for g in range(len(self.groups))}
            for page, row in enumerate(self.pages):
                if row["count"][kind] + row["exposure"][kind] > 0.0:
                    a, r = self.shape(page, kind), self.rate(page, kind)
                    seen[self.group[page]].append((a / r, float(digamma(a)) - math.log(r)))
            every = [pair for pairs in seen.values() for pair in pairs]
            if not every:
                continue
            whole = [sum(part) / len(every) for part in zip(*every, strict=True)]
            for g, pairs in seen.items():
                size = len(pairs) + PSEUDO_PAGES
                mean, log = (
                    (sum(pair[i] for pair in pairs) + PSEUDO_PAGES * whole[i]) / size
                    for i in (0, 1)
                )
                mean = max(mean, SMALLEST)
                shape = shape_of(math.log(mean) - log)
                self.groups[g]["shape"][kind] = shape
                self.groups[g]["rate"][kind] = shape / mean

    def replay_history(self, history):
        """Crawl every page just before and just after each of its events, and at the end."""
        alive = [bool(exists) for exists in history.alive]
        last = [0.0] * self.m
        for page in range(self.m):
            self.on_birth_or_death(page, alive[page])
        events = zip(history.time.tolist(), history.page, history.kind, strict=True)
        instants = {}
        for time, page, kind in events:
            instants.setdefault(time, []).append((int(page), int(kind)))
        for now, entries in instants.items():
            changed = {page for page, kind in entries if kind == CHANGE}
            signals = [(page, now, kind - SIGNAL) for page, kind in entries if kind >= SIGNAL]
            signalled = {page for page, _, _ in signals}
            for page, kind in entries:
                if kind == BIRTH:
                    alive[page], last[page] = True, now
                    self.on_birth_or_death(page, True)
            for page, kind in entries:
                if alive[page] and kind >= CHANGE and last[page] < now:
                    self.learn(page, now - last[page], False)
                    last[page] = now
                    if page in changed and page not in signalled:
                        self.pages[page]["count"]["silent"] += 1.0
                        stopped = 1.0 - self.pages[page]["active"]
                        self.groups[self.group[page]]["stops"] -= stopped
                        self.pages[page]["active"] = 1.0
            self.on_signal(signals)
            for page, kind in entries:
                if alive[page] and page in signalled:
                    signalled.remove(page)
                    self.learn(page, 0.0, page in changed)
                if kind == DEATH:
                    alive[page] = False
                    self.on_birth_or_death(page, False)
        for page in range(self.m):
            if alive[page] and last[page] < history.duration:
                self.learn(page, history.duration - last[page], False)
        for page in range(self.m):
            self.forget(page)
        for row in self.groups:
            for item in row["broadcasts"]:
                item["time"] -= history.duration


def shape_of(gap):
    """Shape of the Gamma distribution with ln E - E ln = gap, clipped."""

    def excess(shape):
        return math.log(shape) - digamma(shape) - gap

    if excess(SHAPES[0]) <= 0.0 or excess(SHAPES[1]) >= 0.0:
        return SHAPES[0] if excess(SHAPES[0]) <= 0.0 else SHAPES[1]
    return brentq(excess, *SHAPES, xtol=1e-14, rtol=1e-14)
