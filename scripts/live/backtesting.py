"""Estimate how fresh a policy would have kept the pages of a crawl log.

The times of changes between two crawls are unknown. They are drawn several times in agreement with
the log (:mod:`policies.live.logs.imputation`). In each draw every policy is simulated at every
budget, and so are the crawls of the log. The variation between draws is the uncertainty.

Policies know only what the crawls before the simulated days show. All copies are fresh when the
simulated days begin. If the log has costs, budgets are shares of its spend, and a crawl costs the
mean of its page's crawls in the simulated days, as far as they tell it
(:meth:`scripts.live.log_costs.Costs.drawn`); policies expect the mean of those before.

The draws allow for bursts of changes, for rates that rise or fall, and for late signals. They do
not allow for silences of a source: changes during a silence count as changes without a signal.
Pages that change together, as in a deployment, are drawn independently; :func:`dispersion` widens
the intervals for them. The coverage of the intervals is measured by
``python -m scripts.reproduce laws``, and on recorded sites by ``thinned``.
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
from scripts.live.log_costs import BLIND, Costs, LoggedPages, costs_within
from scripts.live.replay import crawls_within, freshness_served, in_turn, window
from scripts.study.entrants import candidate_of, failure, is_user_policy, try_choosing
from scripts.study.equal_freshness import crawls_at
from scripts.study.settings import Measure, Measurement
from scripts.study.specs import spec

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Budgets of a backtest: numbers of crawls, divided by that of the log; with costs, spends."""
LOG, REFERENCE = "your crawls", "RoundRobin"
NO_CHANGES = Changes(np.empty(0, np.int64), np.empty(0))


class Effort(NamedTuple):
    """Effort of a backtest for a log of more than ``above`` crawls.

    It has the number of draws of the changes, the passes of the Markov chain before the first draw
    (``first``) and between two draws (``passes``), and the budgets.
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
    """Return the effort of a backtest for a log: less for more crawls."""
    return next((less for less in LESS if log.page.size > less.above), STANDARD)


LOG_ARRAYS = ("page", "time", "changed", "gone", "signal_page", "signal_time", "signal_source")
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")


@dataclass(frozen=True, eq=False)
class Backtest:
    """A log, estimated parameters of its pages, and changes that agree with the log.

    Attributes:
        log: crawls and signals.
        parameters: ``importance`` and estimated parameters of the pages, arguments of an Instance.
        start: first simulated day.
        end: last simulated day.
        group: group of each page, (m,).
        changes: draws of the changes.
        costs: costs of crawls; None for crawls of equal cost.
    """

    log: CrawlLog
    parameters: Mapping[str, FloatArray]
    start: float
    end: float
    group: IntArray
    changes: tuple[Changes, ...] = ()
    costs: Costs | None = None

    def drawn(self, draws: int, seed: int) -> Backtest:
        """Return the backtest with drawn changes; fewer draws are the first of more draws."""
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
        """Return a hash, 16 hex digits, of all inputs that determine the results of a seed."""
        numbers = (self.start, self.end, seed, self.log.sources)
        digest = hashlib.sha256(repr(numbers).encode())
        arrays = [self.group, *(self.parameters[name] for name in PARAMETERS)]
        arrays += [] if self.costs is None else map(np.asarray, self.costs[:4])
        for values in arrays + [getattr(self.log, name) for name in LOG_ARRAYS]:
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()[:16]

    @property
    def widening(self) -> float:
        """Factor, at least 1, that widens the intervals since some pages change together."""
        return max(1.0, math.sqrt(dispersion(self.log)))

    @property
    def crawls_per_day(self) -> float:
        """Number of crawls in the log that could refresh a copy, per simulated day."""
        return crawls_within(self.log, self.start, self.end).size / (self.end - self.start)

    def budget(self, share: float) -> tuple[float, float]:
        """Return the crawls per day for a share of the log's crawls, and days until the last crawl.

        The days count from the start. The time slot after the last crawl ends with the log.
        """
        days = self.end - self.start
        number = max(1, round(share * self.crawls_per_day * days))
        per_day = (number + 1) / days
        return per_day, number / per_day

    def own_freshness(self, changes: Changes) -> float:
        """Return the freshness that the crawls of the log reach if the pages change as given."""
        importance = self.parameters["importance"]
        return freshness_served(self.log, changes, importance, self.start, self.end)

    def freshness(self, policy: str, share: float, changes: Changes, seed: int = 0) -> float:
        """Return the freshness that a policy reaches with a share of the log's crawls."""
        return self.freshness_and_spend(policy, share, changes, seed)[0]

    def freshness_and_spend(
        self, policy: str, share: float, changes: Changes, seed: int = 0
    ) -> tuple[float, float]:
        """Return a policy's freshness and spend with a share of the log's crawls, or its spend.

        Round robin ignores changes, so its crawls are computed without an environment.
        """
        costs = self.costs
        mean, paid = (1.0, None) if costs is None else (costs.mean, costs.drawn(seed))
        if policy == REFERENCE:
            per_day, days = self.budget(share)
            log, end = in_turn(self.log, self.start, self.start + days, per_day, paid)
            end, weight = end if costs is None else self.end, self.parameters["importance"]
            crawled_pages = log.page[crawls_within(log, self.start, end)]
            spend = crawled_pages.size if paid is None else paid[crawled_pages].sum()
            return freshness_served(log, changes, weight, self.start, end), mean * float(spend)
        env = self._env(share, changes, paid, policy.endswith(BLIND))
        env.reset(seed=seed)
        ledger = play(env, candidate_of(policy.removesuffix(BLIND)).factory(env), seed)
        return ledger.freshness, mean * ledger.spend

    def seconds(self, policy: str, shares: Sequence[float]) -> float:
        """Return the estimated seconds of one simulation of a policy, averaged over the shares.

        Simulations of more and more crawls are timed, up to a second, and extrapolated linearly.
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
        """Raise ValueError unless each policy can crawl one page at a time within a budget."""
        costs = self.costs
        env = self._env(1.0, NO_CHANGES, None if costs is None else costs.paid)
        env.reset(seed=0)
        for policy in (name for name in policies if not name.endswith(BLIND)):
            factory, name = candidate_of(policy).factory, policy.partition(":")[0]
            if not is_user_policy(policy):
                factory(env)
            else:
                try:
                    try_choosing(env, factory)
                except Exception as error:
                    raise failure(f"{policy} in the backtest", error, factory) from error
            if name in POLICIES and name not in crawl_policies.names("page"):
                raise ValueError(f"policies must crawl page by page in a budget, got {policy!r}")

    def _env(
        self,
        share: float,
        changes: Changes,
        paid: FloatArray | None = None,
        blind: bool = False,
    ) -> CrawlEnv:
        """Return an environment that replays the log with a share of its crawls, or its spend.

        With costs, ``paid`` is the cost of a crawl of each page, (m,), which a policy that is
        ``blind`` does not know.
        """
        tape = window(self.log, changes, self.start, self.end)
        per_day, days = self.budget(share)
        more: dict[str, Any] = {"draw": self._draw}
        if self.costs is not None:
            expected = None if blind else self.costs.expected
            more = {"draw": partial(self._draw, expected_cost=expected), "cost": paid}
        generator = Recorded(
            **more,
            num_pages=self.log.num_pages,
            bandwidth=per_day,
            num_sources=tape.num_sources,
            tape=tape,
        )
        form = action_form("page", generator.num_pages, 1)
        world: dict[str, Any] = {"horizon": days, "tape": tape}
        return CrawlEnv(partial(Lanes, generator=generator, form=form, **world), Objective())

    def _draw(self, rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
        """Return the instance that policies see: the pages with their estimated parameters."""
        values: dict[str, Any] = {**self.parameters, **more}
        return Instance(**values) if self.costs is None else LoggedPages(**values)


def backtest(
    log: CrawlLog,
    *,
    start: float | None = None,
    importance: FloatArray | None = None,
    group: IntArray | None = None,
    draws: int = STANDARD.draws,
    seed: int = 0,
) -> Backtest:
    """Return a backtest: parameters fitted to crawls before the start, and draws of changes.

    Args:
        log: crawls and signals.
        start: first simulated day; by default halfway between the first crawl and the last.
        importance: weight of each page, (m,); equal by default.
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
            f"log must have at least {fewest} crawls after day {begin:g} of pages that were "
            f"crawled before, got {count}"
        )
    quality = fit_log(log, group, until=begin).quality
    weight = np.ones(log.num_pages) if importance is None else importance
    parameters = {"importance": weight, **parameters_of(log, quality)}
    number = np.zeros(log.num_pages, np.int64) if group is None else group
    costs = None if log.cost is None else costs_within(log, begin, end)
    return Backtest(log, parameters, begin, end, number, costs=costs).drawn(draws, seed)


@spec("backtest-own-crawls")
def served(seed: int, *, test: Backtest) -> Mapping[str, float]:
    """Return the freshness that the crawls of the log reach in draw number ``seed``."""
    return {"freshness": test.own_freshness(test.changes[seed])}


@spec("backtest-policy")
def crawled(
    seed: int, *, test: Backtest, policy: str, share: float, file_digest: str = ""
) -> Mapping[str, float]:
    """Return a policy's freshness, and with costs its spend, in draw ``seed``.

    ``file_digest`` is a hash of the policy's file.
    """
    run = policy, share, test.changes[seed], seed
    if test.costs is None:
        return {"freshness": test.freshness(*run)}
    return dict(zip(("freshness", "spend"), test.freshness_and_spend(*run), strict=True))


@dataclass(frozen=True, kw_only=True)
class BacktestRuns(Measurement):
    """Simulations of a backtest; the backtest's digest among the arguments identifies the rows."""

    test: Backtest

    @property
    def policies(self) -> Mapping[str, PolicyFactory]:
        """Factories of the policies by name; they tell errors of a user's policy from others."""
        names = [name for name in self.labels if name != LOG]
        return {name: candidate_of(name.removesuffix(BLIND)).factory for name in names}

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of a policy, or of the log's crawls (LOG), in draw number ``seed``."""
        arguments = {**self.arguments, "test": self.test}
        del arguments["digest"]
        return Measurement(self.name, self.measures, arguments).play(label, seed)


def measurements(
    test: Backtest, digest: str, names: Sequence[str], shares: Sequence[float]
) -> list[BacktestRuns]:
    """Return the simulations of a backtest: the log's crawls, and all policies at all budgets."""
    measures: dict[str, Measure] = {}
    for name in names:
        measures[name] = partial(crawled, policy=name)
        if file_digest := candidate_of(name.removesuffix(BLIND)).digest:
            measures[name] = partial(crawled, policy=name, file_digest=file_digest)
    log_runs = BacktestRuns(LOG, {LOG: served}, {"digest": digest}, test=test)
    return [log_runs] + [
        BacktestRuns(
            setting_of(share, test.costs), measures, {"digest": digest, "share": share}, test=test
        )
        for share in shares
    ]


def setting_of(share: float, costs: Costs | None = None) -> str:
    """Return the name of a budget, such as ``0.5 of the crawls``, with costs ``of the spend``."""
    return f"{share:g} of the {'crawls' if costs is None else 'spend'}"


class Estimate(NamedTuple):
    """Mean over draws, and half-width of the 95% interval of the true value."""

    mean: float
    half_width: float


def estimate(values: Sequence[float], widening: float = 1.0) -> Estimate:
    """Return the mean of the values of draws, and the 95% prediction interval of another draw."""
    count = len(values)
    spread = float(np.std(values, ddof=1)) if count > 1 else math.nan
    half_width = float(stdtrit(count - 1.0, 0.975)) * spread * math.sqrt(1.0 + 1.0 / count)
    return Estimate(float(np.mean(values)), widening * half_width)


def dispersion(log: CrawlLog) -> float:
    """Return the variance of found changes per period, divided by that of independent pages.

    A period is the median time between crawls of a page. The expected number of found changes
    follows from the change rates (Pearson's dispersion; McCullagh and Nelder 1989, section 4.5).
    The rates are fitted to the same crawls, so the result is too small: 100 independent pages have
    .65, .81, .83 and .96 with 2, 3, 5 and 10 intervals each, on average.
    """
    gaps = log.intervals()
    valid = gaps.elapsed > 0.0
    page, elapsed, changed = gaps.page[valid], gaps.elapsed[valid], gaps.changed[valid]
    offsets = np.append(0, np.cumsum(np.bincount(page, minlength=log.num_pages)))
    rate = match_moments(elapsed, changed, offsets).change_rate
    frequency = -np.expm1(-rate[page] * elapsed)
    time = ((gaps.start[valid] + elapsed - log.time[0]) / np.median(elapsed)).astype(np.int64)
    time = np.unique(time, return_inverse=True)[1]
    excess = np.bincount(time, changed - frequency)
    variance = float((frequency * (1.0 - frequency)).sum())
    return float((excess**2).sum()) / variance if variance > 0.0 else 1.0


def fewer_crawls(
    target: float,
    shares: Sequence[float],
    freshness: Sequence[float],
    spent: Sequence[float] | None = None,
) -> float:
    """Return the share of crawls that a policy saves at the freshness ``target`` of the log.

    :func:`crawls_at` finds the crawls that the policy needs from its freshness at each of the
    shares; with costs, from the shares that it ``spent``, which differ by less than a crawl. The
    result lies between 1 - shares[-1] and 1 - shares[0].
    """
    budgets = np.maximum.accumulate(shares if spent is None else spent)
    return 1.0 - min(max(crawls_at(target, budgets, freshness), shares[0]), shares[-1])


MEASURED = (
    *("freshness", "freshness, half-width"),
    *("minus the log's", "minus the log's, half-width"),
    *("share of crawls saved", "share of crawls saved, half-width"),
)


class Outcome(NamedTuple):
    """The result of a policy with a share of the log's crawls.

    Attributes:
        policy: name of the policy, or LOG for the log's crawls.
        share: number of the policy's crawls, divided by the number of crawls in the log.
        freshness: share of time in which copies were fresh.
        gain: freshness minus that of the log's crawls, in the same draws.
        saved: share of crawls that the policy saves at the log's freshness; equal at all shares.
        spend: mean cost of the policy's crawls; NaN without costs.

    With costs, shares are of the log's spend.
    """

    policy: str
    share: float
    freshness: Estimate
    gain: Estimate
    saved: Estimate
    spend: float = math.nan

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers of the outcome in the order of the columns MEASURED."""
        return (*self.freshness, *self.gain, *self.saved)


def outcomes(
    rows: Sequence[Row],
    names: Sequence[str],
    shares: Sequence[float],
    widening: float,
    costs: Costs | None = None,
) -> list[Outcome]:
    """Return outcomes from rows of freshness: the log's crawls first, then policies by budget."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        values.setdefault((row.setting, row.policy, row.metric), {})[row.seed] = row.value
    base = values[LOG, LOG, "freshness"]
    none, total = Estimate(0.0, 0.0), math.nan if costs is None else costs.spend
    results = [Outcome(LOG, 1.0, estimate(list(base.values()), widening), none, none, total)]
    for name in names:
        settings = [(setting_of(share, costs), name) for share in shares]
        runs = [values[*setting, "freshness"] for setting in settings]
        paid = [values.get((*setting, "spend"), {}) for setting in settings]
        saved = []
        for k in base:
            spent = None if costs is None else [draws[k] / total for draws in paid]
            saved.append(fewer_crawls(base[k], shares, [draws[k] for draws in runs], spent))
        less = estimate(saved, widening)
        for share, draws, spends in zip(shares, runs, paid, strict=True):
            gain = estimate([draws[k] - base[k] for k in base], widening)
            freshness = estimate(list(draws.values()), widening)
            spend = math.nan if costs is None else float(np.mean(list(spends.values())))
            results.append(Outcome(name, share, freshness, gain, less, spend))
    return results
