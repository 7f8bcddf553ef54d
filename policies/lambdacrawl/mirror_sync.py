"""Learning crawl rates without a model of changes, from the results of probes and crawls alone.

A step of descent is in a box with a bounded sum, by mirror descent or projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import digamma

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import one_of, quantity, real, share
from policies.base.binding import LearningPolicy
from policies.base.live import Description
from policies.base.registry import registered

MAX_STEPS = 200
TOLERANCE = 1e-14
"""Relative error of the total at which the search for the multiplier stops."""


def mirror_step(
    rates: FloatArray,
    gradient: FloatArray,
    step_size: float,
    slowest: float,
    fastest: float,
    total: float,
) -> FloatArray:
    r"""Return the rates r that minimise eta <g, r> + sum (r/r' - 1 - ln(r/r')).

    Over ``slowest <= r <= fastest`` and ``sum r <= total``: the update of MirrorSync (Kolobov,
    Bubeck and Zimmert, Online Learning for Active Cache Synchronization, ICML 2020). With the
    multiplier lambda >= 0 of the total, 1/r = 1/r' + eta g + lambda, clipped to the box; the sum
    decreases in lambda, and its root is computed by Newton's method within a bracket.

    Args:
        rates: r', > 0, (n,).
        gradient: g, (n,).
        step_size: eta, >= 0.
        slowest: least rate, > 0, at most ``total / n``.
        fastest: largest rate, >= slowest.
        total: largest sum of rates.

    Returns:
        (n,).
    """
    inverse = 1.0 / rates + step_size * gradient

    def at(multiplier: float) -> tuple[FloatArray, float]:
        result = 1.0 / np.clip(inverse + multiplier, 1.0 / fastest, 1.0 / slowest)
        inside = result[(result > slowest) & (result < fastest)]
        return result, float(inside @ inside)

    return _spend(at, 1.0 / slowest - float(inverse.min()), total)


def projected_step(
    rates: FloatArray,
    gradient: FloatArray,
    step_size: float,
    slowest: float,
    fastest: float,
    total: float,
) -> FloatArray:
    """Return the rates nearest to r' - eta g, over the same set: projected gradient descent.

    Arguments and result as for :func:`mirror_step`; r = r' - eta g - lambda, clipped to
    the box.
    """
    aim = rates - step_size * gradient

    def at(multiplier: float) -> tuple[FloatArray, float]:
        result = np.clip(aim - multiplier, slowest, fastest)
        return result, float(np.count_nonzero((result > slowest) & (result < fastest)))

    return _spend(at, float(aim.max()) - slowest, total)


def _spend(
    at: Callable[[float], tuple[FloatArray, float]], largest: float, total: float
) -> FloatArray:
    """Return the rates at the least multiplier >= 0 with a sum of at most the total.

    Args:
        at: function of the multiplier that returns the rates, and minus the slope of their sum.
        largest: a multiplier at which all rates are at their least.
        total: largest sum.
    """
    low, high, multiplier = 0.0, largest, 0.0
    result, slope = at(multiplier)
    for _ in range(MAX_STEPS):
        gap = float(result.sum()) - total
        if abs(gap) <= TOLERANCE * total or (gap < 0.0 and multiplier == 0.0):
            break
        low, high = (multiplier, high) if gap > 0.0 else (low, multiplier)
        newton = multiplier + gap / slope if slope > 0.0 else math.inf
        after = newton if low < newton < high else 0.5 * (low + high)
        if after in (low, high):
            break
        multiplier = after
        result, slope = at(multiplier)
    return result


class SyncJobs:
    r"""Plans a crawl of each page every 1/r, and with probability eps a probe in between.

    The mean cost of a page crawled every 1/r, with cost c(a) at age a, is J = r int_0^{1/r} c, and
    dJ/dr = (E c(U/r) - c(1/r)) / r with U uniform on (0, 1). A gap between two crawls with a probe
    gives the sample (c(probe) - c(crawl)) / (eps r), a gap without one gives 0: unbiased (Kolobov,
    Bubeck and Zimmert, ICML 2020).

    Each slot serves the job with the earliest due time, even ahead of it. Delays therefore do not
    accumulate, and times are off by a few slots; the true length of the gap replaces 1/r. A gap is
    planned when it begins, with the rate at that time; the gaps at the start of an episode, which
    all begin at once, give no sample. Slots leave a bias: measured with a probe in a twentieth of
    the gaps, samples are in sum 1.9% too steep on 20 pages (95% interval .7 to 3.0%), and .5% on
    100 pages (-.7 to 1.7%).

    Args:
        rates: r of each page, > 0, (m,).
        probing: eps, in (0, 1].
        now: the current time; all pages count as crawled then.
        rng: generator for the probes.
    """

    def __init__(
        self, rates: FloatArray, probing: float, now: float, rng: np.random.Generator
    ) -> None:
        m = rates.size
        self.rates, self.probing, self.rng = rates, probing, rng
        self._due: FloatArray = np.empty(m)
        self._next: FloatArray = np.empty(m)  # the earlier of the crawl and the probe
        self._probed: FloatArray = np.full(m, np.nan)  # cost seen by the probe of this gap
        self._opening: BoolArray = np.ones(m, np.bool_)
        self.total: FloatArray = np.zeros(m)
        self.gaps: IntArray = np.zeros(m, np.int64)
        for page in range(m):
            self._plan(page, now)

    def serve(self) -> tuple[int, bool]:
        """Return the page whose job is due first, and whether the job is a probe."""
        page = int(self._next.argmin())
        return page, bool(self._next[page] < self._due[page])

    def probed(self, page: int, cost: float) -> None:
        """Record the cost that a probe saw."""
        self._probed[page] = cost
        self._next[page] = self._due[page]

    def crawled(self, page: int, now: float, elapsed: float, cost: float) -> None:
        """Record the cost that a crawl saw ``elapsed`` after the last one; plan the next gap."""
        if self._opening[page]:
            self._opening[page] = False
        else:
            probe = self._probed[page]
            self.gaps[page] += 1
            if not np.isnan(probe):
                self.total[page] += (probe - cost) * elapsed / self.probing
        self._plan(page, now)

    def slopes(self) -> tuple[IntArray, FloatArray]:
        """Return the pages with samples since the last call, and their means; reset the samples."""
        pages = np.flatnonzero(self.gaps)
        means = self.total[pages] / self.gaps[pages]
        self.total[:] = 0.0
        self.gaps[:] = 0
        return pages, np.asarray(means)

    def _plan(self, page: int, now: float) -> None:
        gap = 1.0 / self.rates[page]
        self._due[page] = self._next[page] = now + gap
        self._probed[page] = np.nan
        uniform, where = self.rng.random(2)
        if uniform < self.probing:
            self._next[page] = now + where * gap


Penalty = Literal["binary", "harmonic"]


@registered(kind="bandit", paper="MirrorSync")
class AsyncMirrorSync(LearningPolicy):
    r"""Learns the crawl rate of each page from the slope of its cost, cycle by cycle.

    AsyncMirrorSync of Kolobov, Bubeck and Zimmert (Online Learning for Active Cache
    Synchronization, ICML 2020). Pages are arms that are played every 1/r_k; with probability
    ``probing`` an arm is also probed at a uniform time between two plays, which shows its cost and
    refreshes nothing. :class:`SyncJobs` turns these jobs into crawls, one per slot, and gaps
    between crawls into unbiased samples of the cost's slope. At the end of every cycle,
    :func:`policies.lambdacrawl.mirror_sync.mirror_step` updates the rates of the arms with new
    samples; their sum stays. Changes need no model, and only importance must be known.

    It differs from the public code in two ways. The public code divides the slopes by the number
    of updated arms, which changes the step size from cycle to cycle, and is 0/0 without samples.
    Here slopes are those of the sum of costs, so that the step of an arm does not depend on the
    number of the others, and a cycle without samples updates nothing. The public code moves the
    current play at random when a rate changes; here a new rate applies from the arm's next crawl
    on. Importance is divided by its mean, so that ``step_size`` does not depend on its unit.

    Args:
        env: a crawl environment with the action form "page" and ``probe=True``, single or vector.
        step_size: eta; None for .013. For 100 arms, the public code's values amount to this for
            Poisson changes (cycle 8 at R / m = .4, slowest 1/16, fastest 15) and .016 for
            polynomial costs (cycle 20, fastest 7.5).
        probing: eps, in (0, 1); crawls use R / (1 + eps) of the bandwidth R.
        cycle: length of a cycle, in units of time; None for a fifth of the longest gap.
        slowest: least rate, as a share of R / m.
        fastest: largest rate with its probes, as a multiple of R / m.
        penalty: the cost of a page: ``binary``, its importance while it is stale, or ``harmonic``,
            importance times H(n) with n uncrawled changes, which needs complete observation.

    Raises:
        ValueError: as for the base class; at the first ``predict``, an environment without probes,
            or pages without complete observation for the harmonic penalty.
    """

    acts: ClassVar[tuple[str, ...]] = ("probe",)
    """The form ``page``, but only where pages can be probed."""
    usual_step: ClassVar[float] = 0.013
    usual_cycles: ClassVar[float] = 5.0
    """Number of cycles in the longest gap."""

    def __init__(
        self,
        env: Any,
        *,
        step_size: float | None = None,
        probing: float = 0.05,
        cycle: float | None = None,
        slowest: float = 1.0 / 16.0,
        fastest: float = 15.0,
        penalty: Penalty = "binary",
    ) -> None:
        super().__init__(env)
        step_size = self.usual_step if step_size is None else step_size
        self.step_size = real("step_size", step_size, above=0.0)
        self.probing = share("probing", probing, above=True, below=True)
        self.cycle = None if cycle is None else quantity("cycle", cycle, above=0.0)
        self.slowest = real("slowest", slowest, above=0.0)
        self.fastest = real("fastest", fastest, least=1.0)
        if self.slowest * (1.0 + self.probing) > 1.0:
            raise ValueError(f"slowest must be at most 1 / (1 + probing), got {slowest!r}")
        self.penalty = one_of("penalty", penalty, Penalty)

    def _check_form(self) -> None:
        if self.action_form != "page":
            raise ValueError(
                f"action_form must be 'page' for {self.name}, got {self.action_form!r}"
            )

    def rates(self, lane: int = 0) -> FloatArray:
        """Return the present rates of crawls in a lane, without probes, (m,)."""
        return self._known(lane).jobs.rates.copy()

    def _cycle(self) -> float:
        """Return the length of a cycle."""
        longest = 1.0 / self.bounds[0]
        return longest / self.usual_cycles if self.cycle is None else self.cycle

    def _start(self, tracker: Tracker) -> None:
        assert self.core is not None
        problem = tracker.problem
        self._check(tracker)
        self.even = problem.bandwidth / problem.num_pages
        largest = problem.importance.max()
        weights = problem.importance / (largest if largest > 0.0 else 1.0)
        self.weights = weights / (weights.mean() if largest > 0.0 else 1.0)
        highest = self.fastest * self.even / (1.0 + self.probing)
        self.bounds = self.slowest * self.even, highest
        rates = np.full(problem.num_pages, self.even / (1.0 + self.probing))
        self.jobs = SyncJobs(rates, self.probing, tracker.time, self.core.rng(self.lane))
        self.end_of_cycle = tracker.time + self._cycle()

    def _check(self, tracker: Tracker) -> None:
        core: Any = self.core
        problem, complete = tracker.problem, tracker.problem.complete
        if not isinstance(core, Description):
            space = getattr(core, "single_action_space", None) or core.action_space
            if int(space.n) != 2 * problem.num_pages:
                raise ValueError(
                    f"env must let pages be probed (probe=True) for {self.name}, "
                    f"got {int(space.n)} actions for {problem.num_pages} pages"
                )
        if self.penalty == "harmonic" and (complete is None or not complete.all()):
            raise ValueError(
                "penalty must be 'binary' where pages lack complete observation, got 'harmonic'"
            )

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Read a log; update the rates at the end of a cycle."""
        if not self.first_log:
            self._read_log(log)
        if tracker.time >= self.end_of_cycle:
            self.end_of_cycle += self._cycle()
            self._renew()

    def _choose(self, tracker: Tracker) -> IntArray:
        page, probe = self.jobs.serve()
        return np.array([page + probe * self.jobs.rates.size])

    def _read_log(self, log: CrawlLog) -> None:
        signals = np.atleast_2d(log.signals)[0]
        probes = log.probe.tolist()
        for k, page in enumerate(log.page.tolist()):
            cost = self.weights[page] * self._cost(int(signals[k]), bool(log.changed[k]))
            if probes[k]:
                self.jobs.probed(page, cost)
            else:
                self.jobs.crawled(page, float(log.time[k]), float(log.elapsed[k]), cost)

    def _cost(self, signals: int, changed: bool) -> float:
        if self.penalty == "binary":
            return float(changed)
        return float(digamma(signals + 1.0) - digamma(1.0))  # H(n)

    def _renew(self) -> None:
        """Update the rates of the arms with samples; their sum stays."""
        pages, slopes = self.jobs.slopes()
        if pages.size:
            before = self.jobs.rates[pages]
            self.jobs.rates[pages] = self._descend(before, slopes)

    def _descend(self, rates: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return the rates after one step."""
        return mirror_step(rates, slopes, self.step_size, *self.bounds, float(rates.sum()))


@registered(kind="bandit", paper="MirrorSync")
class AsyncPSGDSync(AsyncMirrorSync):
    """The same with projected gradient steps: the baseline of the paper's experiments.

    One probed gap of the slowest arm, of mean importance, moves its rate by up to ``step_size /
    (slowest * probing)`` times R / m, however small the rate is, and all others pay for it; a
    mirror step changes 1/r instead. For 100 arms, the public code's values amount to the step .03
    for Poisson changes and .005 for polynomial costs (cycle half of the longest gap). In the long
    run .03 is too large: one gap moves an arm by 9.6 R / m, rates become random, and most arms are
    left at the slowest, where a sample is rare. On 100 pages with importance from U(0, 1) and
    change rates from U(0, 2 R / m), in one run, staleness was .75 to .76 from time 5,000 to
    20,000 m / R, .35 with the step .003 in the last quarter, and is .39 at equal rates without
    probes. Small steps keep the samples unbiased, which a bound on each step would not.

    Arguments as for :class:`AsyncMirrorSync`, but ``step_size`` is in units of R / m squared, None
    for .003, at which one gap moves an arm by about R / m, and ``cycle`` None for the longest gap.
    """

    usual_step, usual_cycles = 0.003, 1.0

    def _descend(self, rates: FloatArray, slopes: FloatArray) -> FloatArray:
        step_size = self.step_size * self.even * self.even
        return projected_step(rates, slopes, step_size, *self.bounds, float(rates.sum()))


@registered(kind="bandit", paper="MirrorSync")
class MirrorSync(AsyncMirrorSync):
    """The same in rounds of the length of the longest gap, in which every arm is played.

    MirrorSync of the same paper. An arm that is not played in a round, because its slot came too
    late, keeps its rate, and the sum of the others' rates stays. With any other cycle length the
    policy is :class:`AsyncMirrorSync`. For 100 arms, the public code's values amount to the step
    .05 for Poisson changes and .027 for polynomial costs.
    """

    usual_step, usual_cycles = 0.05, 1.0
