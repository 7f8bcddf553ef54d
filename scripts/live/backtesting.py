"""What a policy would have served, had it made the crawls of a log.

Changes between two crawls are not known. They are drawn several times so that they agree with the
log (:mod:`policies.live.logs.imputation`); each draw is played by every policy at every
budget, and by the log's own crawls. What varies between draws is what the log does not tell.

Policies know what crawls before the played days tell, so that they have no hindsight. All copies
are fresh when the played days begin.

The draws allow for changes of a page in bursts, for rates that rise or fall in the course of the
log, and for late signals. A silence of a source is not allowed for: there its changes count as
changes without a signal. Pages that change together (in one deployment, say) are outside their
model: they are drawn as if on their own, and intervals are widened by :func:`dispersion`. How often
intervals contain the truth is measured by ``python -m scripts.reproduce laws``, and on recorded
sites by ``thinned``.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

import policies as crawl_policies
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import PolicyFactory, Row, play
from crawl_envs.instances.traces.instance import Recorded
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.worlds.lanes import Lanes
from policies.base.registry import POLICIES
from policies.estimators import match_moments
from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.imputation import FIRST_PASSES, PASSES, Changes, impute
from scripts.live.fitting import fit_log, parameters_of
from scripts.live.replay import crawls_within, freshness_served, in_turn, window
from scripts.study.entrants import candidate_of, failure, is_user_policy, try_choosing
from scripts.study.equal_freshness import crawls_at
from scripts.study.settings import Measure, Measurement
from scripts.study.specs import spec

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Budgets, as shares of the log's crawls."""
OWN, REFERENCE = "your crawls", "RoundRobin"
NO_CHANGES = Changes(np.empty(0, np.int64), np.empty(0))


class Effort(NamedTuple):
    """Draws of the changes, passes of the chain before the first and up to each, and budgets.

    It is that of logs of more than ``above`` crawls.
    """

    above: int
    draws: int
    first: int
    passes: int
    shares: tuple[float, ...]


STANDARD = Effort(0, 20, FIRST_PASSES, PASSES, SHARES)
LESS = (
    Effort(200_000, 6, 80, 10, (0.125, 0.5, 1.0, 2.0)),
    Effort(20_000, 20, 150, 25, SHARES),
)


def effort_for(log: CrawlLog) -> Effort:
    """Return the effort for a log."""
    return next((less for less in LESS if log.page.size > less.above), STANDARD)


LOG_ARRAYS = ("page", "time", "changed", "gone", "signal_page", "signal_time", "signal_source")
KNOWN = ("importance", "change_rate", "recall", "false_signal_rate")


@dataclass(frozen=True, eq=False)
class Backtest:
    """A log, what policies know, and changes that agree with the log.

    Attributes:
        log: crawls and signals.
        known: the pages' ``importance`` and estimated parameters, as of an Instance.
        start: the first played day.
        end: the last one.
        group: group of each page, (m,).
        changes: draws of the changes.
    """

    log: CrawlLog
    known: Mapping[str, FloatArray]
    start: float
    end: float
    group: IntArray
    changes: tuple[Changes, ...] = ()

    def drawn(self, draws: int, seed: int) -> Backtest:
        """Return the backtest with draws of the changes, of which fewer are the first ones."""
        log, effort = self.log, effort_for(self.log)
        drawn = impute(
            log,
            np.random.default_rng(seed),
            first=effort.first,
            passes=effort.passes,
            end=float(log.time[-1]),
            group=self.group,
        )
        return replace(self, changes=tuple(islice(drawn, draws)))

    def digest(self, seed: int) -> str:
        """Return a digest of all that determines the draws of a seed, and the plays of each."""
        numbers = (self.start, self.end, seed, self.log.sources)
        digest = hashlib.sha256(repr(numbers).encode())
        arrays = [self.group, *(self.known[name] for name in KNOWN)]
        for values in arrays + [getattr(self.log, name) for name in LOG_ARRAYS]:
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()[:16]

    @property
    def widening(self) -> float:
        """Factor of the intervals, at least 1: pages may change together."""
        return max(1.0, math.sqrt(dispersion(self.log)))

    @property
    def crawls_per_day(self) -> float:
        """Crawls of the log that could refresh a copy, per played day."""
        return crawls_within(self.log, self.start, self.end).size / (self.end - self.start)

    def budget(self, share: float) -> tuple[float, float]:
        """Return the crawls per day of a share of the log's crawls, and the days until the last.

        The slot of the last crawl ends with the log.
        """
        days = self.end - self.start
        number = max(1, round(share * self.crawls_per_day * days))
        per_day = (number + 1) / days
        return per_day, number / per_day

    def own_freshness(self, changes: Changes) -> float:
        """Return the freshness under the log's own crawls."""
        return freshness_served(self.log, changes, self.known["importance"], self.start, self.end)

    def freshness(self, policy: str, share: float, changes: Changes, seed: int = 0) -> float:
        """Return the freshness under a policy with a share of the log's crawls.

        Round robin crawls whatever changes: its crawls are those of a log.
        """
        if policy == REFERENCE:
            per_day, days = self.budget(share)
            log, end = in_turn(self.log, self.start, self.start + days, per_day)
            return freshness_served(log, changes, self.known["importance"], self.start, end)
        env = self._env(share, changes)
        env.reset(seed=seed)
        return float(play(env, candidate_of(policy).factory(env), seed).freshness)

    def seconds(self, policy: str, shares: Sequence[float]) -> float:
        """Return about how long a play takes, the mean over shares of the crawls.

        Plays of ever more crawls are timed, up to a second; the time is linear in their number.
        """
        times: dict[float, float] = {}
        for share in (0.0, 0.0, *(min(shares) / 16.0 ** np.arange(3.0, -1.0, -1.0))):
            start = time.perf_counter()  # the first play compiles
            self.freshness(policy, share, NO_CHANGES)
            times[share] = time.perf_counter() - start
            if times[share] > times[0.0] + 1.0:
                break
        per_share = max(times[share] - times[0.0], 0.0) / share
        return float(times[0.0] + per_share * np.mean(shares))

    def check(self, policies: Sequence[str]) -> None:
        """Raise ValueError unless each policy can crawl the pages one by one, within a budget."""
        env = self._env(1.0, NO_CHANGES)
        env.reset(seed=0)
        for policy in policies:
            factory, name = candidate_of(policy).factory, policy.partition(":")[0]
            if not is_user_policy(policy):
                factory(env)
            else:
                try:
                    try_choosing(env, factory)
                except Exception as error:
                    raise failure(f"{policy} in the backtest", error, factory) from error
            if name in POLICIES and name not in crawl_policies.names("page"):
                raise ValueError(f"policies must keep to a budget, page by page, got {policy!r}")

    def _env(self, share: float, changes: Changes) -> CrawlEnv:
        """Return an environment that plays the log with a share of its crawls."""
        tape = window(self.log, changes, self.start, self.end)
        per_day, days = self.budget(share)
        generator = Recorded(
            draw=self._draw,
            num_pages=self.log.num_pages,
            bandwidth=per_day,
            num_sources=tape.num_sources,
            tape=tape,
        )
        form = action_form("page", generator.num_pages, 1)
        given: dict[str, Any] = {"horizon": days, "tape": tape}
        return CrawlEnv(partial(Lanes, generator=generator, form=form, **given), Objective())

    def _draw(self, rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
        """Return the pages as policies know them."""
        given: dict[str, Any] = {**self.known, **more}
        return Instance(**given)


def backtest(
    log: CrawlLog,
    *,
    start: float | None = None,
    importance: FloatArray | None = None,
    group: IntArray | None = None,
    draws: int = STANDARD.draws,
    seed: int = 0,
) -> Backtest:
    """Estimate what policies know, and draw changes.

    Args:
        log: crawls and signals.
        start: the first played day; by default halfway between the first crawl and the last.
        importance: weight of each page, (m,); all alike by default.
        group: group of each page, from 0, (m,); one group by default.
        draws: number of draws of changes.
        seed: seed of the draws.

    Raises:
        ValueError: ``start`` is not within the log, no page was crawled twice before it, or too
            few crawls after it could refresh a copy.
    """
    first, end = float(log.time[0]), float(log.time[-1])
    begin = (first + end) / 2.0 if start is None else start
    if not first < begin < end:
        raise ValueError(f"start must lie in the log, between {first:g} and {end:g}, got {begin:g}")
    count, fewest = crawls_within(log, begin, end).size, math.ceil(1.0 / min(SHARES))
    if count < fewest:
        raise ValueError(
            f"log must have at least {fewest} crawls after day {begin:g} of pages that it had "
            f"crawled before, got {count}"
        )
    quality = fit_log(log, group, until=begin).quality
    weight = np.ones(log.num_pages) if importance is None else importance
    known = {"importance": weight, **parameters_of(log, quality)}
    number = np.zeros(log.num_pages, np.int64) if group is None else group
    return Backtest(log, known, begin, end, number).drawn(draws, seed)


@spec("backtest-own-crawls")
def served(seed: int, *, test: Backtest) -> Mapping[str, float]:
    """Return the freshness under the log's own crawls in one draw."""
    return {"freshness": test.own_freshness(test.changes[seed])}


@spec("backtest-policy")
def crawled(
    seed: int, *, test: Backtest, policy: str, share: float, file_digest: str = ""
) -> Mapping[str, float]:
    """Return the freshness under a policy in one draw; ``file_digest`` tells agents apart."""
    return {"freshness": test.freshness(policy, share, test.changes[seed], seed)}


@dataclass(frozen=True, kw_only=True)
class Plays(Measurement):
    """Plays of a backtest; its digest, in the arguments, is what their rows are recognised by."""

    test: Backtest

    @property
    def policies(self) -> Mapping[str, PolicyFactory]:
        """What makes each policy, by which errors of one of the user's own are told apart."""
        names = [name for name in self.labels if name != OWN]
        return {name: candidate_of(name).factory for name in names}

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of one policy, or of the log's own crawls, in one draw."""
        arguments = {**self.arguments, "test": self.test}
        del arguments["digest"]
        return Measurement(self.name, self.measures, arguments).play(label, seed)


def measurements(
    test: Backtest, digest: str, names: Sequence[str], shares: Sequence[float]
) -> list[Plays]:
    """Return the plays of a backtest: of the log, and of every policy at every budget."""
    measures: dict[str, Measure] = {}
    for name in names:
        measures[name] = partial(crawled, policy=name)
        if file_digest := candidate_of(name).digest:
            measures[name] = partial(crawled, policy=name, file_digest=file_digest)
    own = Plays(OWN, {OWN: served}, {"digest": digest}, test=test)
    return [own] + [
        Plays(setting_of(share), measures, {"digest": digest, "share": share}, test=test)
        for share in shares
    ]


def setting_of(share: float) -> str:
    """Return the name of a budget."""
    return f"{share:g} of the crawls"


class Estimate(NamedTuple):
    """Mean over draws, and half-width of the 95% interval of what happened."""

    mean: float
    half_width: float


def estimate(values: Sequence[float], widening: float = 1.0) -> Estimate:
    """Return the mean of draws, and the interval of the true value, which is like one more draw."""
    count = len(values)
    spread = float(np.std(values, ddof=1)) if count > 1 else math.nan
    half_width = float(stdtrit(count - 1.0, 0.975)) * spread * math.sqrt(1.0 + 1.0 / count)
    return Estimate(float(np.mean(values)), widening * half_width)


def dispersion(log: CrawlLog) -> float:
    """Return the variance of the changes found in a time over that of pages that change apart.

    Times are as long as the median time between crawls of a page. A page is expected to be found
    changed with the probability of its change rate (Pearson's dispersion; McCullagh and Nelder
    1989, section 4.5). Rates are fitted to the same crawls, which makes it too small: 100 pages
    that change apart have .65, .81, .83 and .96 with 2, 3, 5 and 10 intervals each, on average.
    """
    known = log.intervals()
    kept = known.elapsed > 0.0
    page, elapsed, changed = known.page[kept], known.elapsed[kept], known.changed[kept]
    offsets = np.append(0, np.cumsum(np.bincount(page, minlength=log.num_pages)))
    rate = match_moments(elapsed, changed, offsets).change_rate
    frequency = -np.expm1(-rate[page] * elapsed)
    time = ((known.start[kept] + elapsed - log.time[0]) / np.median(elapsed)).astype(np.int64)
    time = np.unique(time, return_inverse=True)[1]
    excess = np.bincount(time, changed - frequency)
    variance = float((frequency * (1.0 - frequency)).sum())
    return float((excess**2).sum()) / variance if variance > 0.0 else 1.0


def fewer_crawls(own: float, shares: Sequence[float], freshness: Sequence[float]) -> float:
    """Return the share of crawls that a policy saves at the log's own freshness.

    It is that of :func:`crawls_at`, at most that of the smallest budget, 1 - shares[0], and at
    least that of the largest.
    """
    return 1.0 - min(max(crawls_at(own, shares, freshness), shares[0]), shares[-1])


MEASURED = (
    *("freshness", "freshness, half-width"),
    *("minus the log's", "minus the log's, half-width"),
    *("share of crawls saved", "share of crawls saved, half-width"),
)


class Outcome(NamedTuple):
    """What a policy reached with a share of the log's crawls.

    Attributes:
        policy: its name, or OWN for the log's crawls.
        share: its crawls over those of the log.
        freshness: share of the time in which copies were current.
        ahead: the freshness minus that of the log's crawls, in the same draws.
        saved: share of the crawls that the policy saves at the log's freshness; the same at every
            share.
    """

    policy: str
    share: float
    freshness: Estimate
    ahead: Estimate
    saved: Estimate

    def numbers(self) -> tuple[float, ...]:
        """Return the columns MEASURED."""
        return (*self.freshness, *self.ahead, *self.saved)


def outcomes(
    rows: Sequence[Row], names: Sequence[str], shares: Sequence[float], widening: float
) -> list[Outcome]:
    """Return the outcome of the log's own crawls, and of every policy at every budget."""
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        values.setdefault((row.setting, row.policy), {})[row.seed] = row.value
    own = values[OWN, OWN]
    none = Estimate(0.0, 0.0)
    found = [Outcome(OWN, 1.0, estimate(list(own.values()), widening), none, none)]
    for name in names:
        played = [values[setting_of(share), name] for share in shares]
        saved = estimate(
            [fewer_crawls(own[k], shares, [of[k] for of in played]) for k in own], widening
        )
        for share, of in zip(shares, played, strict=True):
            ahead = estimate([of[k] - own[k] for k in own], widening)
            found.append(Outcome(name, share, estimate(list(of.values()), widening), ahead, saved))
    return found
