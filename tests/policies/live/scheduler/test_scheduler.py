"""The live scheduler against its twin, and against simulated crawls."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from crawl_envs.types import Delay, Problem
from policies.base.allocated import AllocatedPolicy
from policies.base.index import IndexPolicy
from policies.live.scheduler import CrawlScheduler
from policies.live.scheduler.states import STATES
from tests.naive.scheduler import Host, NaiveScheduler, Page

ANSWERS = ("fresh", "stale", "missed", "open", "drawn")
COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")


def drawn(rng, count):
    """Draw the columns of pages."""
    return {
        "importance": rng.random(count),
        "change_rate": rng.random(count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_signal_rate": rng.uniform(0.1, 0.6, count),
    }


def value_of(name):
    """Return the value of a page by its columns, elapsed time and numbers of signals by source."""
    policy = policies.make(name)
    names, forms = sorted({*policy.needs, "importance"}), {}

    def form_of(columns):
        given = {key: np.asarray(columns[key])[..., None] for key in names}
        known = b"".join(each.tobytes() for each in given.values())
        if known not in forms:
            problem = Problem(1, math.nan, **given)
            forms[known] = policy.compile(problem, 0, np.random.default_rng(0))
        return forms[known]

    def value(columns, elapsed, signals):
        form, weights = form_of(columns), np.ones(len(signals))
        if form.signal_weight is not None:
            each = range(len(signals))
            weights = [form.signal_weight(form.parameters, 0, 0.0, source) for source in each]
        return form.value(form.parameters, 0, elapsed, float(np.dot(weights, signals)))

    return value


class Both:
    """A scheduler and its twin, which must answer alike."""

    def __init__(
        self, policy, bandwidth, sources, costs=None, promises=False, audit_share=0.0, **limits
    ):
        slack, self.costs, self.promises = [0.0, 0.3][:sources], costs, promises
        settings = {"timeout": 1.5, "retry": 0.4, "audit_share": audit_share, "seed": 7}
        settings |= {"cap": 30.0, "cap_period": 2.5, "max_cost": 4.0} if costs == "cap" else {}
        self.scheduler = CrawlScheduler(
            policy,
            bandwidth,
            burst=0.0,
            num_sources=sources,
            resolution=slack,
            keep_gone=1e9,
            most_interval=40.0 if promises else None,
            **settings,
        )
        self.scheduler.limit_hosts(**limits)
        self.naive = NaiveScheduler(value_of(policy), bandwidth, slack=slack, **settings)
        self.naive.limits = limits.get("gap", 0.0), limits.get("most", math.inf)
        self.sources, self.largest, self.out, self.time = sources, 0, [], 0.0
        self.fetches = 0

    def new_id(self, count):
        self.largest += count
        return [int(key) for key in range(self.largest - count, self.largest)]

    def some_costs(self, rng, count):
        """Draw costs, some not known; they and their sums are exact numbers."""
        costs = rng.integers(1, 33, count) / 8.0
        unknown = rng.random(count) < (0.4 if self.costs else 1.1)
        return np.where(unknown, math.nan, costs)

    def drawn(self, rng, count):
        columns = drawn(rng, count)
        if self.sources > 1:
            columns["recall"] = rng.uniform(0.05, 0.45, (self.sources, count))
            columns["false_signal_rate"] = rng.uniform(0.1, 0.6, (self.sources, count))
        return columns

    def add(self, rng, ids=None):
        """Add new pages, beside some that are known, or pages that are gone."""
        back, ids = ids is not None, self.new_id(rng.integers(1, 30)) if ids is None else ids
        every = ids if back else [*ids, *self.naive.present()[:2]]
        count = len(every)
        hosts = None if rng.random() < 0.3 else [f"host{h}" for h in rng.integers(0, 4, count)]
        columns, fetched = self.drawn(rng, count), rng.random(count) < 0.6
        copies = np.where(fetched, self.scheduler.time - rng.random(count), math.nan)
        least = np.where(rng.random(count) < 0.3, 0.7, 0.0)
        new = {} if back else {"known": "skip", "least_interval": least}
        costs = self.some_costs(rng, count)
        new |= {"cost": costs} if self.costs else {}
        longest = self.some_promises(rng, count)
        columns["most_interval"], visits = longest, {"host": hosts, "last_crawl": copies, **new}
        usual = np.where(np.isnan(longest), 40.0 if self.promises else math.inf, longest)
        more = self.naive.more_needed(usual[: len(ids)], costs[: len(ids)])
        if more is None:
            with pytest.raises(ValueError, match="most_interval must leave u"):
                self.scheduler.add(every, **visits, **columns)
            more, usual = 0.0, np.full(count, math.inf)
            columns["most_interval"] = usual
        assert self.scheduler.add(every, **visits, **columns) == len(ids)
        rows = self.scheduler.pages.ids.rows(np.asarray(ids))
        pages = []
        for k, key in enumerate(ids):
            own = {name: columns[name][..., k] for name in COLUMNS}
            host, copy = None if hosts is None else hosts[k], float(copies[k])
            copy = copy if fetched[k] else None
            if back:
                if host:
                    self.naive.hosts.setdefault(host, Host(*self.naive.limits))
                self.naive.come_back(key, own, host, copy)
            else:
                page = Page(rows[k], own, host, copy, least=float(least[k]))
                pages.append((key, page, own["importance"]))
        self.naive.begin_costs(costs[: len(ids)])
        for _, page, _ in pages if self.naive.uses_costs else []:
            page.begin = self.naive.time
        self.naive.add(pages)
        self.naive.give_costs(ids, costs[: len(ids)])
        if ids:
            self.naive.promise(ids, usual[: len(ids)], more)

    def some_promises(self, rng, count):
        """Draw longest intervals; inf is none, NaN that of the scheduler."""
        longest = np.where(rng.random(count) < 0.2, math.nan, rng.uniform(4.0, 30.0, count))
        return np.where(rng.random(count) < (0.5 if self.promises else 1.1), math.inf, longest)

    def restart(self, rng):
        self.scheduler = CrawlScheduler.from_state(self.scheduler.state())
        self.naive.share = 0.0
        self.naive.renew_lead()

    def remove(self, rng):
        for key in rng.choice(self.naive.present(), size=1):
            self.scheduler.remove([key])
            self.naive.remove(key)

    def gone(self, rng):
        key, time = int(rng.choice(self.naive.present())), self.time + 100.0 * (rng.random() < 0.5)
        cost = self.some_costs(rng, 1)
        self.begin([key], cost)
        old = self.naive.gone(key, time, cost[0])
        assert self.scheduler.report([key], time, "gone", cost=cost) == old
        self.naive.look_up()
        assert (key in self.scheduler) == old
        if not old and rng.random() < 0.3:
            assert self.scheduler.add([key], known="skip", **self.drawn(rng, 1)) == 0
            self.add(rng, [key])

    def move(self, rng):
        key, (new,) = int(rng.choice(self.naive.present())), self.new_id(1)
        away = self.naive.pages[key].state in ("sent", "parked") or rng.random() < 0.5
        host = None if away else f"host{rng.integers(4)}"
        self.naive.hosts.setdefault(host, Host(*self.naive.limits)) if host else None
        self.scheduler.move([key], [new], host)
        self.naive.move(key, new, host)
        self.out = [new if other == key else other for other in self.out]

    def revive(self, rng):
        keys = [int(key) for key in rng.choice([*self.naive.pages, -1], size=3)]
        wait = bool(rng.random() < 0.5)
        unknown = sum(self.naive.revive(key, wait) for key in keys)
        assert self.scheduler.revive(keys, wait) == unknown

    def reset(self, rng):
        """The clock was ahead, perhaps by a choice, and is taken back."""
        if rng.random() < 0.5:
            self.time += rng.exponential(3.0)
            self.next(rng)
        if self.scheduler.time > 0.0:
            self.time = float(self.scheduler.time - rng.exponential(2.0))
            self.scheduler.reset_clock(self.time)
            self.naive.reset_clock(self.time)

    def update(self, rng):
        key = rng.choice(self.naive.present())
        if rng.random() < 0.3 and self.costs:
            cost = self.some_costs(rng, 1)
            longest = [self.naive.pages[key].longest]
            more = self.naive.more_needed(longest, cost, [key])
            if more is None:
                with pytest.raises(ValueError, match="most_interval must leave u"):
                    self.scheduler.update([key], cost=cost)
                return
            self.scheduler.update([key], cost=cost)
            self.naive.begin_costs(cost)
            self.naive.give_costs([key], cost)
            self.naive.promise([key], longest, more)
            self.naive.set_least(key, self.naive.pages[key].least)  # its wait may be over
            return
        if rng.random() < 0.5:
            self.scheduler.update([key], importance=2.0)
            longest = [self.naive.pages[key].longest]
            self.naive.promise([key], longest, 0.0)
            self.naive.pages[key].parameters["importance"] = 2.0
            self.naive.set_least(key, self.naive.pages[key].least)
            return
        least, page = float(rng.choice([0.0, 0.5, 3.0])), self.naive.pages[key]
        some = {} if rng.random() < 0.5 else {"most_interval": self.some_promises(rng, 1)}
        longest = np.nan_to_num(
            some.get("most_interval", [page.longest]), nan=40.0, posinf=math.inf
        )
        more = self.naive.more_needed(longest, [page.cost], [key])
        if more is not None:
            self.scheduler.update([key], least_interval=least, **some)
            self.naive.promise([key], longest, more)
            self.naive.set_least(key, least)

    def hold(self, rng):
        name, until = f"host{rng.integers(4)}", self.time + rng.uniform(-0.5, 1.0)
        self.scheduler.hold(name, until)
        self.naive.hold(name, until)

    def begin(self, keys, costs):
        """The first cost of a report of a page is the first of all."""
        present = self.naive.present()
        self.naive.begin_costs(
            [cost for key, cost in zip(keys, costs, strict=True) if key in present]
        )

    def report(self, rng):
        if not self.out:
            return
        key = self.out.pop(rng.integers(len(self.out)))
        moment = self.time + rng.choice(
            [-rng.exponential(0.02), 0.0, 0.1, 50.0], p=[0.5, 0.2, 0.2, 0.1]
        )
        cost = self.some_costs(rng, 1)
        self.begin([key], cost)
        changed = bool(rng.random() < 0.5)
        old = self.naive.report(key, moment, cost[0], changed)
        assert self.scheduler.report([key], moment, changed=[changed], cost=cost) == old
        self.naive.look_up()

    def fail(self, rng):
        if not self.out:
            return
        key, at = self.out.pop(), None if rng.random() < 0.7 else self.time + rng.random()
        status = str(rng.choice(["failed", "interrupted"], p=[0.7, 0.3]))
        self.fail_at(rng, [key], [self.time], status, at)

    def fail_at(self, rng, keys, times, status, at=None):
        counts, costs = status == "failed", self.some_costs(rng, len(keys))
        self.begin(keys, costs)
        fetches = zip(keys, times, costs, strict=True)
        old = [self.naive.fail(key, time, at, counts, cost) for key, time, cost in fetches]
        assert self.scheduler.report(keys, times, status, retry_at=at, cost=costs) == sum(old)
        self.naive.look_up()

    def repeat(self, rng):
        """Report some pages at about the times of their copies or failures, some of them twice."""
        keys = rng.choice([*self.naive.pages, -1], size=rng.integers(1, 5)).tolist()
        pages = [self.naive.pages.get(key) for key in keys]
        times = [[page.copy, page.failure_time, page.sent] if page else [0.0] for page in pages]
        times = [rng.choice([t for t in each if t and t > -math.inf] or [0.0]) for each in times]
        times = (np.array(times) + rng.choice([-0.3, 0.0, 0.0, 0.1], len(keys))).tolist()
        status = str(rng.choice(["ok", "failed", "interrupted", "gone"], p=[0.5, 0.2, 0.2, 0.1]))
        if status == "gone":
            assert self.scheduler.report(keys[:1], times[0], status) == self.naive.gone(
                keys[0], times[0]
            )
        elif status == "ok":
            for page, time in zip(pages, times, strict=True):  # by the copies before this call
                if not self.naive.is_old(page, time):
                    self.naive.answer(page)
            costs = self.some_costs(rng, len(keys))
            self.begin(keys, costs)
            old = sum(self.naive.report(*each) for each in zip(keys, times, costs, strict=True))
            assert self.scheduler.report(keys, times, cost=costs) == old
            self.naive.look_up()
        else:
            self.fail_at(rng, keys, times, status)

    def agree(self):
        """Check that both have the same of every page and host."""
        tables, pages = self.scheduler.pages, self.naive.pages
        choices, rows = tables.choices, tables.ids.rows(np.array([*pages], np.int64))
        known = [STATES[k] for k in choices.status[rows]], choices.fails[rows].tolist()
        copies = tables.lazy.pages["last_crawl"][rows].tolist()
        counts = tables.signal_counts(rows).tolist()
        expected = [
            ((page.state, page.fails), math.inf if page.copy is None else page.copy)
            for page in pages.values()
        ]
        assert list(zip(zip(*known, strict=True), copies, strict=True)) == expected
        assert counts == [self.naive.counts(page) for page in pages.values()]
        spending = self.scheduler.pace.spending
        assert (spending is not None) == self.naive.uses_costs
        if spending is not None and pages:
            costs = [page.cost for page in pages.values()]
            assert tables.choices.cost[rows] == pytest.approx(costs, rel=1e-12)
            assert spending.spend == pytest.approx(self.naive.spend, rel=1e-12, abs=1e-12)
            assert spending.spend_at(self.naive.time) == self.naive.spend_at(self.naive.time)
        facts, late = self.scheduler.overview(), self.naive.late_fetches
        if self.naive.promises:
            assert facts["late_fetches"] == late
            living = [pages[key] for key in self.naive.present()]
            now, copied = self.scheduler.time, [page for page in living if page.copy is not None]
            late = max([now - page.copy - page.longest for page in copied], default=0.0)
            assert facts["most_late"] == pytest.approx(max(self.naive.most_late, late), rel=1e-9)
            assert facts["promised"] == sum(page.longest < math.inf for page in living)
            used = self.naive.needed() / self.naive.promised
            assert facts["promised_share"] == pytest.approx(used, rel=1e-8, abs=1e-12)
        if self.scheduler.audits is not None:
            records, audits = self.scheduler.audits.records(), self.naive.audits
            assert [ANSWERS[k] for k in records["answer"]] == [audit.answer for audit in audits]
            assert records["time"].tolist() == [audit.time for audit in audits]
            unsure = [audit.unsure for audit in audits if audit.answer in ("fresh", "stale")]
            assert records["unsure"][records["answer"] < 2].tolist() == unsure
            beliefs = np.array([audit.beliefs for audit in audits]).reshape(-1, 2)
            assert records["page_belief"] == pytest.approx(beliefs[:, 0], abs=1e-12)
            assert records["mean_belief"] == pytest.approx(beliefs[:, 1], abs=1e-12)
        for name, host in self.naive.hosts.items():
            code = tables.hosts[name]
            assert (choices.busy[code], choices.opens[code]) == (host.busy, host.opens)

    def next(self, rng):
        count = int(rng.choice([1, 3, 20]))
        chosen = self.scheduler.next_batch(self.time, count).tolist()
        assert chosen == self.naive.next_batch(self.time, count)
        self.out.extend(chosen)
        self.fetches += len(chosen)

    def signal(self, rng):
        for key in rng.choice([*self.naive.present(), -1], size=rng.poisson(2.0)):
            moment = max(
                self.time + rng.choice([-0.25, -0.05, 0.0, 30.0], p=[0.5, 0.3, 0.15, 0.05]), 0.0
            )
            source = int(rng.integers(self.sources))
            noted = self.scheduler.signal([key], moment, source)
            assert noted.ignored + noted.unknown.size == self.naive.signal(key, moment, source)


KINDS = {
    "add": 0.1,
    "remove": 0.03,
    "gone": 0.03,
    "move": 0.04,
    "update": 0.04,
    "revive": 0.04,
    "reset": 0.02,
    "hold": 0.05,
    "report": 0.2,
    "fail": 0.1,
    "repeat": 0.1,
    "next": 0.24,
    "restart": 0.01,
}


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    policy=st.sampled_from(["Greedy", "GreedyNCIS", "RoundRobin"]),
    sources=st.sampled_from([1, 2]),
    limits=st.sampled_from([{}, {"gap": 0.4}, {"most": 1}, {"gap": 0.2, "most": 2}]),
    costs=st.sampled_from([None, "costs", "cap"]),
    promises=st.booleans(),
    audit_share=st.sampled_from([0.0, 0.15, 0.7]),
)
def test_every_answer_is_that_of_the_twin(
    seed, policy, sources, limits, costs, promises, audit_share
):
    play(seed, policy, sources, limits, costs, promises=promises, audit_share=audit_share)


@pytest.mark.parametrize("seed", [64, 11], ids=["adding", "before time 0"])
def test_games_that_once_disagreed(seed):
    """Pages being added count in what promises need; without a cap no period is used up."""
    play(seed, "GreedyNCIS", 1, {}, "some", promises=True, audit_share=0.15)


def play(seed, policy, sources, limits, costs, turns=120, promises=False, audit_share=0.0):
    """Return the number of fetches of a scheduler and its twin, which must answer alike."""
    rng = np.random.default_rng(seed)
    both = Both(policy, 10.0, sources, costs, promises, audit_share, **limits)
    for _ in range(turns):
        both.time += rng.choice(
            [0.0, rng.exponential(0.1), rng.exponential(1.0)], p=[0.2, 0.7, 0.1]
        )
        both.signal(rng)
        kind = rng.choice(list(KINDS), p=list(KINDS.values()))
        if kind in ("add", "next", "report", "fail", "hold") or both.naive.present():
            getattr(both, kind)(rng)
    both.agree()
    assert len(both.scheduler) == len(both.naive.present())
    return both.fetches


@pytest.mark.parametrize("law", ["noisy", "sources"])
@pytest.mark.parametrize("policy", ["GreedyNCIS", "Greedy", "GreedyCIS", "GreedyNCISApprox"])
def test_it_crawls_as_the_policy_does_in_an_environment(policy, law):
    env = gym.make("crawl_envs:CrawlNCIS-v0", num_pages=30, horizon=8.0, instance=law)
    observation, _ = env.reset(seed=3)
    core, player = env.unwrapped, policies.make(policy, env)
    problem = core.tracker().problem
    columns = {name: getattr(problem, name) for name in COLUMNS}
    scheduler = CrawlScheduler(policy, problem.bandwidth, num_sources=problem.num_sources)
    scheduler.add(np.arange(30), last_crawl=0.0, **columns)
    ended, slots = False, 0
    while not ended:
        log, time = core.last_log(), core.tracker().time
        scheduler.signal(log.signal_page, log.signal_time, log.signal_source)
        page, _ = scheduler.next(time)
        assert page == player.predict(observation)[0]
        scheduler.report([page], time)
        observation, _, terminated, truncated, _ = env.step(page)
        ended, slots = terminated or truncated, slots + 1
    assert slots > 100


def scheduled(names):
    """Return the policies that a scheduler takes, so not the one whose pages share a price."""
    kinds = IndexPolicy | AllocatedPolicy
    apart = [name for name in names if issubclass(policies.find(name), kinds)]
    apart.remove("LagrangianIndex")
    delayed = policies.GreedyNCISDelayed(delay=Delay("constant", 0.1))
    return [delayed if name == "GreedyNCISDelayed" else name for name in apart]


@pytest.mark.parametrize("policy", scheduled(policies.names()))
def test_every_index_policy_and_every_allocation_can_be_scheduled(policy):
    rng = np.random.default_rng(5)
    scheduler = CrawlScheduler(policy, bandwidth=50.0, burst=50)
    scheduler.add([f"https://{k}.example/" for k in range(30)], last_crawl=0.0, **drawn(rng, 30))
    fetched = []
    for day in range(1, 11):
        known = rng.choice(30, 8)
        scheduler.signal([f"https://{k}.example/" for k in known], day - 0.5)
        chosen = scheduler.next_batch(day, 30)
        scheduler.report(chosen, day)
        fetched.extend(chosen.tolist())
    assert len(fetched) == 300
    assert len(set(fetched)) > 3


def test_allocations_crawl_at_their_rates():
    rng = np.random.default_rng(0)
    columns = drawn(rng, 40)
    scheduler = CrawlScheduler("LambdaCrawl", bandwidth=30.0)
    scheduler.add(np.arange(40), last_crawl=0.0, **columns)
    problem = Problem(40, 30.0, **{name: columns[name] for name in ("importance", "change_rate")})
    rates = policies.LambdaCrawl().rates(problem, 30.0)
    crawls = np.zeros(40)
    for slot in range(1, 6001):
        page, _ = scheduler.next(slot / 30.0)
        scheduler.report([page], slot / 30.0)
        crawls[page] += 1
    assert abs(crawls - 200.0 * rates).max() <= 2.0


def filled(**more):
    """Return a scheduler of 20 pages with copies of time 0."""
    scheduler = CrawlScheduler("Greedy", bandwidth=10.0, **more)
    rng = np.random.default_rng(1)
    columns = {"importance": rng.random(20), "change_rate": rng.random(20)}
    scheduler.add(np.arange(20), last_crawl=0.0, **columns)
    return scheduler


def test_a_fetch_comes_at_the_time_that_was_said():
    scheduler, times = filled(), []
    time = 0.0
    while time < 1.0:
        page, again = scheduler.next(time)
        if page is None:
            assert again > time
            time = again
        else:
            times.append(time)
    assert np.allclose(times, np.arange(1, len(times) + 1) / 10.0)
    assert scheduler.next(time).id is not None
    scheduler.configure(time, bandwidth=1.0)
    assert scheduler.next(time).ask_again == pytest.approx(time + 1.0)
    scheduler.configure(time, burst=5.0, timeout=0.5, retry=2.0)
    assert len(scheduler.next_batch(time + 5.0, 20)) == 5
    scheduler.report([0], time + 5.0, "failed")
    assert scheduler.describe(0)["why"] == "it waits until 8 after 1 failure"
    assert scheduler.next(time + 5.0).ask_again == pytest.approx(time + 6.0)
    assert len(scheduler.next_batch(time + 26.0, 20)) == 20  # lost ones too


def test_unknown_and_old_events_are_counted_and_change_nothing():
    scheduler = filled()
    noted = scheduler.signal([3, 99, 98], [-1.0, 1.0, 1.0])
    assert noted.ignored == 1
    assert noted.unknown.tolist() == [99, 98]
    assert scheduler.report([99], 1.0) == 1
    assert scheduler.report([3], 0.0) == 1
    assert scheduler.report([3, 99], 1.0, "gone") == 1
    assert len(scheduler) == 19
    assert scheduler.report([3], 2.0) == 1


def test_limits_of_hosts_change_one_by_one():
    scheduler = CrawlScheduler("RoundRobin", bandwidth=10.0, burst=100, timeout=99.0)
    scheduler.add([1, 2, 3, 4], host=["a", "a", "a", "b"], last_crawl=0.0)
    scheduler.limit_hosts(most=1)
    assert scheduler.next_batch(10.0, 4).tolist() == [1, 4]
    assert scheduler.next(11.0).id is None
    scheduler.limit_hosts("a", most=2)
    assert scheduler.next_batch(12.0, 4).tolist() == [2]
    scheduler.limit_hosts("a", gap=0.0)
    assert scheduler.next_batch(12.5, 4).tolist() == []
    scheduler.limit_hosts("a", most=math.inf)
    assert scheduler.next_batch(13.0, 4).tolist() == [3]
    assert scheduler.report([1, 1], 13.0, "gone") == 0
    scheduler.add([])
    assert len(scheduler) == 3


def test_the_gap_of_a_host_counts_from_the_end_of_a_fetch():
    scheduler = CrawlScheduler("RoundRobin", bandwidth=100.0, burst=1.0, timeout=5.0)
    scheduler.limit_hosts(gap=1.0)
    scheduler.add([1, 2, 3], host="a", last_crawl=0.0)
    assert scheduler.next_batch(10.0, 3).tolist() == [1]
    assert scheduler.next(11.9) == (None, 15.0)  # it may be lost
    assert "1 sent" in scheduler.why()
    scheduler.report([1], 10.0, ended=12.0)
    assert scheduler.next(12.0) == (None, 13.0)
    assert scheduler.next(13.0).id == 2
    scheduler.report([2], 13.0, "failed", ended=14.0, retry_at=99.0)
    assert scheduler.next(14.0) == (None, 15.0)
    scheduler.hold("a", 20.0)
    assert scheduler.next(16.0) == (None, 20.0)
    assert "20 on" in scheduler.describe(3)["why"]
    scheduler.hold("a", 17.0)
    assert scheduler.next(17.0).id == 3


@pytest.mark.parametrize("batch", [8, 100, 1000])
def test_batches_are_those_of_a_dense_search_and_compare_few_pages(batch):
    """Of 5,000 pages: a dense search needs 5,000 values per batch, and 5,000 for a single fetch."""
    rng, pages, bandwidth = np.random.default_rng(4), 5000, 500.0
    columns, time = drawn(rng, pages), 0.0
    scheduler = CrawlScheduler("GreedyNCIS", bandwidth, burst=batch / bandwidth)
    last = -10.0 * rng.random(pages)
    scheduler.add(np.arange(pages), last_crawl=last, **columns)
    policy = policies.GreedyNCIS()
    problem = Problem(pages, math.nan, **{n: columns[n] for n in {*policy.needs, "importance"}})
    form = policy.compile(problem, 0, rng)

    def values_after(turns, count):
        nonlocal time
        before = scheduler.pages.lazy.search["evaluated"][0]
        for _ in range(turns):
            time += count / bandwidth
            chosen = scheduler.next_batch(time, count)
            values = [
                form.value(form.parameters, row, time - last[row], 0.0) for row in range(pages)
            ]
            assert chosen.tolist() == np.argsort(-np.array(values), kind="stable")[:count].tolist()
            assert scheduler.report(chosen, time) == 0
            last[chosen] = time
        return (scheduler.pages.lazy.search["evaluated"][0] - before) / (turns * count)

    values_after(200 // batch + 5, batch)
    assert values_after(20, batch) < 40.0
    values_after(50, 1)  # what was a batch is forgotten
    assert values_after(50, 1) < 300.0
