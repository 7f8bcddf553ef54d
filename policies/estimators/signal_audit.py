r"""An audit of sources of signals: precision, recall and delay from the results of crawls.

A source (sitemaps, ETags, a feed, pushes) is worth its trust if its signals follow changes, soon.
Crawls tell only whether a page changed since its last crawl, so that a signal is never seen to be
true or false. It raises the probability of a change in its interval from what the page's other
crawls suggest. The likelihood is that of :mod:`policies.estimators.signal_likelihood` (Busa-Fekete
et al., section 3) with one precision p and one mean delay d for all pages. Delays are exponential:
F(x) = 1 - exp(-x / d), H(x) = d F(x). An interval of length tau, with signals at ages x_j, has

    P(no change) = exp(-alpha_i tau - p g H(tau)) prod_j (1 - p F(x_j)).

g is the rate of signals in the page's other intervals, shrunk towards the mean of all pages: a
signal still under way at a crawl arrives later. Signals after the interval would tell more about
the delay. They are left out, because the time of the next crawl may depend on the result.

**Every source is audited alone.** Changes that only another source signals are then among those
without a signal, whose rate is alpha_i. So the estimates hold whether two sources signal the same
changes (a feed and a sitemap) or different ones. What they need is that crawls are not prompted by
signals of *another* source: those of the source itself and earlier results may prompt crawls.

alpha_i is integrated out. It has a Gamma distribution of shape a and mean exp(z_i . k), where z_i
is 1, the log of the page's mean interval and the log of its rate of signals. Estimated page by
page, rates of pages that changed at every crawl would be infinite, and a precision of .5 was found
as .47; with one mean for all pages as .54, since pages with more changes have more signals.

Newton's method finds the maximum over arcsin sqrt(1 - p), sqrt(d), ln a and k. The first two and
arcsin sqrt(1 - recall) have normal intervals. Their variance is the larger of that by second
derivatives and that of a bootstrap over pages: pages get exponential weights (Rubin 1981), and a
resample is one step of Newton's method with weighted sums of pages' slopes (the score bootstrap,
Kline and Santos 2012). Intervals are at least as wide as binomial ones if so many signals had been
seen to be true or false: after n signals, that of a precision of 1 begins at 1 + ln(.025) / n.

Simulated logs, 200 of each kind: shares of intervals that cover the truth, and mean estimates

=======================================  ==========================  ==================
pages, crawls, precision, recall, delay  precision, recall, delay    estimates
=======================================  ==========================  ==================
300, 20, .7, .6, .3 mean intervals       .955, .955, .95             .703, .599, .305
300, 6, .5, .6, 0                        .98, .99, .975              .506, .602, .003
20, 60, .7, .6, .2                       .98, .98, .975              .712, .612, .219
100, 30, .9, .8, .1                      .94, .955, .975             .901, .802, .102
1000, 10, .6, .4, .2                     .95, .93, .955              .601, .397, .204
=======================================  ==========================  ==================

With few pages, or a delay of 0, intervals are too wide. Not included in them:

* Precisions that differ between pages: false signals at the same rate on all pages, with changes at
  very different ones (Gamma of shape 1/2), gave .47 instead of .70. Audit groups of similar pages.
* Crawls prompted by another source.

The lower end of the precision of a source of no use is below .05, or the source is "unknown".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import amounts, check_domain, floats, whole
from policies.estimators.gamma_prior import gamma_log_density, gamma_nodes
from policies.estimators.histories import rows_of_pages, truths
from policies.estimators.signal_likelihood import Crawls, log_likelihood_at
from policies.values.delays import EXPONENTIAL, arrived, under_way

FALSE, DELAY, SHAPE, MEAN = 0, 1, 2, slice(3, 6)
"""Positions of the parameters arcsin sqrt(1 - p), sqrt(d), ln a and k."""
PRIOR = np.array([0.0, 1.0, 0.25, 1e-2, 1.0, 1.0])
"""Precision of normal priors of mean 0, which keep finite what the crawls do not determine."""
STEP = np.diag([1e-4, 0.05, 1e-3, 1e-3, 1e-3, 1e-3])
"""Differences of parameters for derivatives; in delays, one that spans many ages."""
FARTHEST = np.array([0.2, 0.2, 1.0, 1.0, 1.0, 1.0])
PASSES, DECREMENT, GROWTH, CLOSE = 25, 3e-3, 1.2, 0.3
"""Longest step; number of steps; gain of the log-likelihood to be expected at which they end (.08
standard errors), its growth from step to step, since nodes that move may keep it up, and the gain
up to which they have converged if no step improves: small delays make kinks at signals' ages."""
AWAY = (0.0, 0.1, 0.2, 0.4)
FLOOR = np.array([1e-3, 0.03, -math.inf, -math.inf, -math.inf, -math.inf])
"""Values that are tried before parameter 1 or 2 is 0, where the slope is always 0; and values below
which they are 0: the smallest ages are no evidence of a delay."""
RESAMPLES, TAIL, QUANTILE = 200, 0.025, 1.96
NO_MAXIMUM = "the maximum of the likelihood was not found"
ROUNDING = 1e-15
"""Relative: start + elapsed need not be exactly the next start."""
TRUSTED, USELESS, WIDEST, SHORT, LONGEST = 0.9, 0.05, 0.5, 0.5, 3.0
"""Limits: of precisions, their range, and delays in mean intervals for a verdict and at all."""


class SignalAudit(NamedTuple):
    """Quality of S sources; nan where a number is not known.

    Attributes:
        precision: share of signals that follow a change, over all pages, (S,).
        precision_interval: of 95%, as the others, (S, 2).
        recall: share of changes that are signalled, (S,).
        recall_interval: (S, 2).
        delay: mean time from a change to its signal, (S,); at most three mean intervals: longer
            ones cannot be told from false signals. nan without times, and for the verdict "ignore".
        delay_interval: (S, 2).
        num_signals: signals in the intervals given, (S,).
        verdict: "trust", "discount", "ignore" or "unknown", (S,); see :func:`audit_signals`.
        converged: whether the maximum of the likelihood was found, or none looked for, (S,) bool.
            Where it was not, all numbers but ``num_signals`` are nan.
        reason: of the verdict, a short sentence, (S,).
    """

    precision: FloatArray
    precision_interval: FloatArray
    recall: FloatArray
    recall_interval: FloatArray
    delay: FloatArray
    delay_interval: FloatArray
    num_signals: IntArray
    verdict: tuple[str, ...]
    converged: BoolArray
    reason: tuple[str, ...]


class _Crawls(NamedTuple):
    """Intervals longer than 0, sorted by page and start."""

    page: IntArray
    start: FloatArray
    elapsed: FloatArray
    changed: BoolArray


def audit_signals(
    page: ArrayLike,
    start: ArrayLike,
    elapsed: ArrayLike,
    changed: ArrayLike,
    signal_page: ArrayLike,
    signal_time: ArrayLike,
    signal_source: ArrayLike,
    num_sources: int,
    timed: ArrayLike | None = None,
    seed: int = 0,
) -> SignalAudit:
    """Estimate precision, recall and mean delay of every source, and judge it.

    Verdicts, the first that holds:

    * "unknown": no signals, no change or no unchanged crawl; no maximum of the likelihood was
      found; or the interval of the precision is wider than 1/2.
    * "ignore": the lower end of the precision is below .05. It is 0 where the delay may be three
      mean intervals or more: the results are then about as likely if all signals are false.
    * "trust": the lower end is above .9, and the upper end of the delay is below half the mean
      interval between crawls. Without times the precision decides alone.
    * "discount": otherwise. The source helps if its precision is taken into account.

    Args:
        page: page of each interval between two successive crawls, (n,) int.
        start: time of the earlier crawl, (n,).
        elapsed: time until the later crawl, 0 or in [1e-12, 1e12], (n,). Intervals of a page must
            not overlap.
        changed: whether the later crawl found a change, (n,) bool.
        signal_page: page of each signal, (k,) int; in any order. Signals outside of all intervals
            (start, start + elapsed] are left out.
        signal_time: its time, (k,).
        signal_source: its source, 0 .. S - 1, (k,) int.
        num_sources: S.
        timed: whether the times of a source are known, (S,) bool; None for all. Otherwise only
            the number in each interval matters, and signals are taken to be immediate.
        seed: of the bootstrap, >= 0.

    Raises:
        ValueError: numbers are not finite or outside the domain, shapes disagree, a page or source
            is out of range, intervals overlap, or a page changed in no time.
    """
    crawls = _checked_intervals(page, start, elapsed, changed)
    num_sources, seed = whole("num_sources", num_sources, 0), whole("seed", seed, 0)
    time = floats("signal_time", signal_time)
    if time.ndim != 1 or not np.isfinite(time).all():
        raise ValueError(f"signal_time must be (k,) finite numbers, got {time}")
    of = _checked_rows("signal_page", signal_page, time.size, math.inf)
    source = _checked_rows("signal_source", signal_source, time.size, num_sources)
    known = truths("timed", np.ones(num_sources, bool) if timed is None else timed, (num_sources,))
    row = _intervals_of(crawls, of, time)
    numbers, number, judged = np.full((3, num_sources, 3), math.nan), np.zeros(num_sources, int), []
    for s in range(num_sources):
        mine = np.flatnonzero((row >= 0) & (source == s))
        mine = mine[np.argsort(row[mine], kind="stable")]
        at, number[s] = row[mine], mine.size
        age = np.minimum(time[mine] - crawls.start[at], crawls.elapsed[at])
        judged.append(_audit_source(crawls, at, age, bool(known[s]), seed, numbers[:, s]))
    values, ends = numbers[:, :, 0], numbers[:, :, 1:]
    return SignalAudit(
        *(values[0], ends[0], values[1], ends[1], values[2], ends[2], number),
        verdict=tuple(verdict for verdict, _ in judged),
        converged=np.array([reason != NO_MAXIMUM for _, reason in judged], bool),
        reason=tuple(reason for _, reason in judged),
    )


def _checked_intervals(
    page: ArrayLike, start: ArrayLike, elapsed: ArrayLike, changed: ArrayLike
) -> _Crawls:
    """Check intervals and sort them by page and start; pages are numbered anew."""
    begin, length = floats("start", start), amounts("elapsed", elapsed)
    if begin.ndim != 1 or not np.isfinite(begin).all():
        raise ValueError(f"start must be (n,) finite numbers, got {begin}")
    if length.shape != begin.shape:
        raise ValueError(f"elapsed must have shape {begin.shape}, got {length.shape}")
    check_domain("elapsed", length)
    flags = truths("changed", changed, begin.shape)
    if np.any(flags & (length == 0.0)):
        raise ValueError("changed must be False where elapsed is 0, got True")
    of, _ = rows_of_pages(page, None, begin.size)
    order = np.lexsort((begin, of))
    order = order[length[order] > 0.0]
    crawls = _Crawls(of[order], begin[order], length[order], flags[order])
    gap = crawls.start[1:] - crawls.start[:-1] - crawls.elapsed[:-1]
    rounding = ROUNDING * np.abs(crawls.start[1:])
    overlap = (crawls.page[1:] == crawls.page[:-1]) & (gap < -rounding)
    if overlap.any():
        raise ValueError(
            "start must not lie in another interval of the page, got "
            f"{crawls.start[1:][overlap][0]} of page {crawls.page[1:][overlap][0]}"
        )
    return crawls


def _checked_rows(name: str, values: ArrayLike, size: int, below: float) -> IntArray:
    rows = np.asarray(values)
    if rows.shape != (size,) or (rows.dtype.kind not in "iu" and size):
        raise ValueError(f"{name} must be {size} whole numbers, got {rows.dtype}, {rows.shape}")
    wrong = rows[(rows < 0) | (rows >= below)]
    if wrong.size:
        raise ValueError(f"{name} must be >= 0 and below {below:g}, got {wrong[0]}")
    return rows.astype(np.int64)


def _intervals_of(crawls: _Crawls, page: IntArray, time: FloatArray) -> IntArray:
    """Return the interval (start, start + elapsed] of each signal, or -1."""
    pages = np.concatenate([page, crawls.page])
    times = np.concatenate([time, crawls.start])
    starts = np.arange(pages.size) >= page.size
    order = np.lexsort((starts, times, pages))  # a signal at a crawl belongs before it
    before = np.empty(pages.size, np.int64)
    before[order] = np.cumsum(starts[order]) - 1
    row = before[: page.size]
    if crawls.page.size == 0:
        return row
    age = time - crawls.start[row]
    within = age <= crawls.elapsed[row] + ROUNDING * np.abs(time)
    own = (row >= 0) & (crawls.page[row] == page) & within
    return np.where(own, row, -1)


def _audit_source(
    crawls: _Crawls, row: IntArray, age: FloatArray, timed: bool, seed: int, numbers: FloatArray
) -> tuple[str, str]:
    """Return the verdict of a source with signals in these intervals, sorted, and its reason.

    Sets ``numbers``, (3, 3): precision, recall and delay, each with its interval.
    """
    if row.size == 0:
        return "unknown", "no signal lies in the intervals"
    if crawls.changed.all() or not crawls.changed.any():
        return "unknown", "there are not both changes and intervals without one"
    best = _climb(_source(crawls, row, age, timed))
    if best is None:
        return "unknown", NO_MAXIMUM
    numbers[:] = _intervals(*best, seed)
    if numbers[2, 2] >= LONGEST:  # signals as late as that are like false ones
        numbers[:2, 1] = 0.0
    low, high = numbers[0, 1:]
    longest = numbers[2, 2]
    numbers[2] *= crawls.elapsed.mean() if timed and low >= USELESS else math.nan
    if high - low > WIDEST:
        return "unknown", f"the interval of the precision is wider than {WIDEST:g}"
    if low < USELESS:
        return "ignore", f"the lower end of the precision, {low:.3g}, is below {USELESS:g}"
    if low <= TRUSTED:
        return "discount", f"the lower end of the precision, {low:.3g}, is not above {TRUSTED:g}"
    if timed and longest >= SHORT:
        reason = f"the upper end of the delay, {longest:.3g} mean intervals, is not below {SHORT:g}"
        return "discount", reason
    return "trust", f"the lower end of the precision, {low:.3g}, is above {TRUSTED:g}"


class _Source(NamedTuple):
    """Intervals between crawls of m pages and the signals of one source; unit: mean interval."""

    offsets: IntArray  # the intervals of page i are rows offsets[i] .. offsets[i + 1] - 1, (m + 1,)
    elapsed: FloatArray  # length of each interval, (n,)
    changed: BoolArray  # whether the page changed in it, (n,)
    signal_offsets: IntArray  # first signal of each interval, (n + 1,)
    age: FloatArray  # time of each signal after the start of its interval, (k,)
    other_rate: FloatArray  # g, (n,)
    covariates: FloatArray  # z_i, (m, 3)
    time: FloatArray  # sum of the page's intervals, (m,)
    signals: FloatArray  # number of the page's signals, (m,)


def _source(crawls: _Crawls, row: IntArray, age: FloatArray, timed: bool) -> _Source:
    """Return the data of a source.

    Rates of signals are posterior means of a Gamma distribution whose variance is that of the
    pages' counts beyond Poisson's.
    """
    _, of, intervals = np.unique(crawls.page, return_inverse=True, return_counts=True)
    elapsed, own = crawls.elapsed / crawls.elapsed.mean(), np.bincount(row, minlength=len(of))
    time, counts = (np.bincount(of, x).astype(np.float64) for x in (elapsed, own))
    pooled = counts.sum() / time.sum()
    excess = ((counts - pooled * time) ** 2).sum() - counts.sum()
    rate = pooled / max(excess / (time**2).sum(), 1e-6 * pooled**2)
    z = np.log(np.stack([time / intervals, (counts + pooled * rate) / (time + rate)]))
    z -= z.mean(axis=1, keepdims=True)
    return _Source(
        offsets=np.append(0, np.cumsum(intervals)),
        elapsed=elapsed,
        changed=crawls.changed,
        signal_offsets=np.append(0, np.cumsum(own)),
        age=age / crawls.elapsed.mean() if timed else np.full(len(age), math.inf),
        other_rate=timed * (counts[of] - own + pooled * rate) / (time[of] - elapsed + rate),
        covariates=np.column_stack([np.ones(len(time)), *z]),
        time=time,
        signals=counts,
    )


@compiled()
def _evidence(source: _Source, precision: float, delay: float) -> FloatArray:
    """Return -ln P(no change) - alpha tau of every interval, (n,)."""
    result = np.empty(len(source.elapsed))
    for k in range(len(result)):
        pending = under_way(EXPONENTIAL, delay, 0.0, source.elapsed[k])
        result[k] = precision * source.other_rate[k] * pending
        for j in range(source.signal_offsets[k], source.signal_offsets[k + 1]):
            soon, _ = arrived(EXPONENTIAL, delay, 0.0, source.age[j])
            result[k] -= math.log(max(1.0 - precision * soon, 1e-12))
    return result


def _posterior(
    source: _Source, nodes: tuple[FloatArray, FloatArray], theta: FloatArray
) -> FloatArray:
    """Return every page's marginal log-likelihood, and mean and variance of its alpha, (3, m)."""
    alpha, log_weight = nodes
    shape, mean = math.exp(theta[SHAPE]), np.exp(source.covariates @ theta[MEAN])
    evidence = _evidence(source, math.cos(theta[FALSE]) ** 2, theta[DELAY] ** 2)
    design = np.column_stack([source.elapsed, evidence])
    weight = log_likelihood_at(Crawls(design, source.changed, source.offsets), alpha)
    weight += gamma_log_density(alpha, shape, shape / mean) + log_weight
    top = weight.max(axis=1)
    weight = np.exp(weight - top[:, None])
    total = weight.sum(axis=1)
    mean, square = (weight * alpha).sum(axis=1) / total, (weight * alpha**2).sum(axis=1) / total
    return np.stack([top + np.log(total), mean, np.maximum(square - mean**2, 1e-12 * mean**2)])


def _climb(source: _Source) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return the maximum with its :func:`_derivatives`; None if it is not found.

    Newton's method; quadrature nodes follow the posteriors of the pages.
    """
    guess = (source.changed.sum() + 0.5) / (source.elapsed @ np.where(source.changed, 0.5, 1.0))
    theta = np.array([math.pi / 4.0, 0.3, 0.0, math.log(guess), 0.0, 0.0])
    changes = 1.0 + np.add.reduceat(source.changed, source.offsets[:-1], dtype=np.float64)
    nodes = gamma_nodes(changes, changes / (1.0 / guess + source.time))

    def value_at(theta: FloatArray) -> float:
        return float(_posterior(source, nodes, theta)[0].sum() - PRIOR @ theta**2 / 2.0)

    for number in range(PASSES):
        _, mean, variance = _posterior(source, nodes, theta)
        nodes = gamma_nodes(mean**2 / variance, mean)
        value, (columns, inverse) = value_at(theta), _derivatives(source, nodes, theta)
        slope = columns[:, :6].sum(axis=0) - PRIOR * theta
        step, gain = inverse @ slope, slope @ inverse @ slope / 2.0
        step *= min(1.0, (FARTHEST / np.maximum(abs(step), 1e-300)).min())
        trials, least = [theta + step / 2.0**k for k in range(10)], value
        trials = [np.where(x < FLOOR, 0.0, x) for x in trials]
        if gain < DECREMENT * GROWTH**number:
            kinds = [j for j in (FALSE, DELAY) if theta[j] < AWAY[1]]
            trials = [np.where(np.arange(6) == j, x, theta) for j in kinds for x in AWAY]
            least = value + DECREMENT
        near = next((x for x in trials if value_at(x) > least), None)
        if near is None:
            return (theta, columns, inverse) if gain < CLOSE else None
        theta = near
    return None


def _derivatives(
    source: _Source, nodes: tuple[FloatArray, FloatArray], theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return derivatives by differences: columns of pages, (m, 14), and inverse second ones.

    Columns are the first derivatives of a page's log-likelihood (6), its number of signals, the
    expected number of its changes without a signal, and the derivatives of that (6). Second
    derivatives, (6, 6), are minus those of the penalised sum, and made positive definite.
    """
    size, here = np.diag(STEP), _posterior(source, nodes, theta)
    above, below = (
        np.stack([_posterior(source, nodes, theta + side * step) for step in STEP])
        for side in (1.0, -1.0)
    )
    slopes = (above - below) / (2.0 * size[:, None, None])
    minus = np.diag((2.0 * here - above - below)[:, 0].sum(axis=1) / size**2 + PRIOR)
    for i in range(6):
        for j in range(i):
            both = _posterior(source, nodes, theta + STEP[i] + STEP[j])[0]
            both += _posterior(source, nodes, theta - STEP[i] - STEP[j])[0]
            bend = (above[i] + above[j] + below[i] + below[j] - 2.0 * here)[0] - both
            minus[i, j] = minus[j, i] = bend.sum() / (2.0 * size[i] * size[j])
    scale = 1.0 / np.sqrt(np.maximum(abs(np.diag(minus)), 1e-12))
    values, vectors = np.linalg.eigh(minus * scale * scale[:, None])
    inverse = vectors / np.maximum(abs(values), 1e-6) @ vectors.T * scale * scale[:, None]
    unsignalled = np.vstack([here[1], slopes[:, 1]]) * source.time
    return np.vstack([slopes[:, 0], source.signals, unsignalled]).T, inverse


def _angles(theta: FloatArray, sums: FloatArray, step: FloatArray) -> FloatArray:
    """Return arcsin sqrt(1 - precision), the same of recall, and sqrt(delay), (B, 3).

    ``sums`` are weighted sums of columns, (B, 14), and ``step`` is the way from theta, (B, 6).
    """
    false, delay = (theta + step)[:, :SHAPE].T
    missed = np.maximum(sums[:, 7] + (sums[:, 8:] * step).sum(axis=1), 0.0)
    recall = np.arctan2(np.sqrt(missed), abs(np.cos(false)) * np.sqrt(sums[:, 6]))
    return np.column_stack([false, recall, delay])


def _intervals(
    theta: FloatArray, columns: FloatArray, inverse: FloatArray, seed: int
) -> FloatArray:
    """Return precision, recall and delay, each with the ends of its interval, (3, 3)."""
    rng, pages, total = np.random.default_rng(seed), len(columns), columns.sum(axis=0)
    weights = (rng.standard_exponential(pages) for _ in range(RESAMPLES))
    sums = np.stack([total, *(w @ columns / w.mean() for w in weights)])
    steps = (sums[:, :6] - PRIOR * theta) @ inverse
    angles = _angles(theta, sums, steps)
    slopes = (_angles(theta, np.tile(total, (6, 1)), steps[0] + STEP) - angles[0]).T / np.diag(STEP)
    curvature = ((slopes @ inverse) * slopes).sum(axis=1)
    spread = angles[1:].var(axis=0) * pages / max(pages - len(theta), 1)
    middle = np.where(angles[0] < [FLOOR[FALSE], 0.0, FLOOR[DELAY]], 0.0, angles[0])
    reach = QUANTILE * np.sqrt(np.maximum(curvature, spread))
    shares, (root, farther) = middle[:2], (middle[2], reach[2])
    low, high = np.clip([shares + reach[:2], shares - reach[:2]], 0.0, math.pi / 2.0)
    numbers = np.cos(np.stack([shares, low, high], axis=1)) ** 2
    numbers[:, 1] = np.clip(numbers[:, 0] - np.sin(2.0 * shares) * reach[:2], 0.0, numbers[:, 1])
    seen = 1.0 / (curvature[0] * (4.0 if shares[0] > 0.0 else 2.0))
    for share, number in zip(
        numbers, (seen, total[6] * numbers[0, 0] / numbers[1, 0]), strict=True
    ):
        _widen(share, number)
    delay = np.clip([root**2, root**2 - 2.0 * root * farther, (root + farther) ** 2], 0.0, LONGEST)
    return np.vstack([numbers, delay])


def _widen(share: FloatArray, number: float) -> None:
    """Widen an interval to that of as many binomial observations (Clopper and Pearson 1934).

    If n of N signals are seen to be false, n ln sin^2 x + (N - n) ln cos^2 x has the second
    derivative -4 N at its maximum, and -2 N for n = 0.
    """
    yes, no = number * share[0], number * (1.0 - share[0])
    if yes > 0.0:
        share[1] = min(share[1], 1.0 - betaincinv(no + 1.0, yes, 1.0 - TAIL))
        share[2] = max(share[2], 1.0 - (betaincinv(no, yes + 1.0, TAIL) if no > 0.0 else 0.0))
