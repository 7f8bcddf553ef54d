"""The words of the suite: what is true, what is known, what was counted.

=========================  =====================  ==========================================
symbol in the papers       word in the API        meaning
=========================  =====================  ==========================================
m                          ``num_pages``          number of pages, rows 0 .. m-1
R                          ``bandwidth``          crawls per unit time
mu                         ``importance``         request rate, or any weight >= 0
Delta                      ``change_rate``        Poisson rate of changes
W^o (LambdaCrawl)          ``complete``           pages whose every change is signalled
C(n)                       ``penalty``            what n changes that no crawl has found cost
S                          ``num_sources``        sources of signals, numbered from 0
host, directory            ``group``              pages that belong together, numbered from 0
lambda (NCIS)              ``recall``             P(a change emits a signal)
nu                         ``false_signal_rate``  rate of signals with no change behind them
alpha                      ``unsignalled_rate``   (1 - lambda) Delta, lambda over all sources
gamma = lambda Delta + nu  ``signal_rate``        rate of all signals
lambda Delta / gamma       ``precision``          share of signals with a change behind
tau_ELAP                   ``elapsed``            time since the last crawl
n_CIS                      ``signals``            signals received since the last crawl
lambda (Lagrange)          ``multiplier``         price of one crawl
=========================  =====================  ==========================================

Time is continuous, in the instance's unit. Arrays put lanes first and pages last. What is said of
signals has the shape (m,) where they come from one source, and (S, m) where they come from S >= 2;
a true change is signalled by one of them at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types.arguments import (
    bandwidth_function,
    check_domain,
    floats,
    per_page,
    per_source,
    whole_per_page,
)
from crawl_envs.types.copies import Copies, Sketches
from crawl_envs.types.delay import Delay
from crawl_envs.types.ledgers import FragmentLedger as FragmentLedger
from crawl_envs.types.ledgers import Ledger as Ledger
from crawl_envs.types.ledgers import OfferLedger as OfferLedger
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.types.regions import Regions

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

MOST_SOURCES = 15
"""Largest number of sources: with it, a page has 32 kinds of events."""
RECALL_ROUNDING = 1e-12
"""By so much a sum of recalls may exceed 1."""


def _common_length(given: Mapping[str, FloatArray]) -> int:
    """Return the last length of the first array among the arguments, 1 where all are scalars."""
    for name, array in given.items():
        if array.ndim > 0:
            if array.shape[-1] == 0:
                raise ValueError(f"an instance must have at least one page, got {name} of length 0")
            return int(array.shape[-1])
    return 1


def _over_sources(values: FloatArray) -> FloatArray:
    """Return the sums over sources, (m,), of what is (m,) or (S, m)."""
    total: FloatArray = values if values.ndim == 1 else values.sum(0)
    return total


def check_sources(recall: FloatArray) -> None:
    """Raise ValueError where a recall exceeds 1, or those of a page's sources together do."""
    if np.any(recall > 1.0):
        raise ValueError(f"recall must lie in [0, 1], got {recall.max()}")
    total = _over_sources(recall)
    if np.any(total > 1.0 + RECALL_ROUNDING):
        page = int(np.argmax(total))
        raise ValueError(
            f"recall must sum to at most 1 over the sources, got {total[page]} for page {page}"
        )


@dataclass(frozen=True, eq=False, init=False)
class Instance:
    """What is true of a set of pages: the parameters of every process, and the budget.

    Arguments are arrays of length m (of NumPy, or columns of pandas, polars, pyarrow or torch), or
    scalars that hold for every page; they are stored as read-only float64 copies of shape (m,).
    Rates and times are 0 or lie between :data:`crawl_envs.types.arguments.SMALLEST` and LARGEST, 1e-12
    and 1e12. Signals come from one source, or from S >= 2: then ``recall`` and
    ``false_signal_rate`` have the shape (S, m), and where only one of them is given so, the other
    holds for every source. Each change is signalled by at most one source.

    Args:
        importance: request rate of each page, per unit time, >= 0 (mu). Every request is played,
            so large weights cost time, and too large ones are refused where an episode begins; only
            their proportions matter to policies.
        change_rate: Poisson rate of changes, >= 0 (Delta).
        recall: probability in [0, 1] that a change emits a signal (lambda of the NCIS paper), by
            page or by source and page; the sum over sources is at most 1.
        false_signal_rate: rate of signals with no change behind them, >= 0 (nu), likewise.
        bandwidth: crawls per unit time, > 0 (R), from time 0 on.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.
        delay: how long signals travel.
        group: host or directory of each page, as anybody sees it in its URL: (m,) whole numbers
            from 0, which policies may pool over; None where nothing is said.

    Raises:
        ValueError: a rate is negative, not finite or outside the supported domain, recall or its
            sum over sources is outside [0, 1], there are more than MOST_SOURCES sources, the
            bandwidth is not positive, an argument is not of real numbers, or shapes disagree.
    """

    importance: FloatArray
    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...]
    delay: Delay
    group: IntArray | None

    def __init__(
        self,
        importance: ArrayLike,
        change_rate: ArrayLike,
        recall: ArrayLike = 0.0,
        false_signal_rate: ArrayLike = 0.0,
        *,
        bandwidth: float,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        delay: Delay | None = None,
        group: ArrayLike | None = None,
    ) -> None:
        named = {
            "importance": importance,
            "change_rate": change_rate,
            "recall": recall,
            "false_signal_rate": false_signal_rate,
        }
        given = {name: floats(name, value) for name, value in named.items()}
        num_pages = _common_length(given)
        for name in ("importance", "change_rate"):
            object.__setattr__(self, name, per_page(name, given[name], num_pages))
        quality = per_source(
            {name: given[name] for name in ("recall", "false_signal_rate")}, num_pages, MOST_SOURCES
        )
        for name, array in quality.items():
            object.__setattr__(self, name, array)
        for name in ("importance", "change_rate", "false_signal_rate"):
            check_domain(name, getattr(self, name))
        check_sources(self.recall)
        rate, steps = bandwidth_function(bandwidth, bandwidth_steps)
        object.__setattr__(self, "bandwidth", rate)
        object.__setattr__(self, "bandwidth_steps", steps)
        if not isinstance(delay, Delay | None):
            raise ValueError(f"delay must be a Delay or None, got {delay!r}")
        object.__setattr__(self, "delay", delay if delay is not None else Delay())
        groups = None if group is None else whole_per_page("group", group, num_pages)
        object.__setattr__(self, "group", groups)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.importance.shape[0])

    @property
    def num_sources(self) -> int:
        """Number of sources of signals, S >= 1."""
        return 1 if self.recall.ndim == 1 else int(self.recall.shape[0])

    @property
    def unsignalled_rate(self) -> FloatArray:
        """Rate of changes that no source signals (alpha), shape (m,)."""
        return (1.0 - np.minimum(_over_sources(self.recall), 1.0)) * self.change_rate

    @property
    def signal_rate(self) -> FloatArray:
        """Rate of all signals, true and false (gamma), shape (m,) or (S, m)."""
        return self.recall * self.change_rate + self.false_signal_rate

    @property
    def precision(self) -> FloatArray:
        """Share of signals with a change behind them; 1 where there is none; (m,) or (S, m)."""
        rate = self.signal_rate
        true = self.recall * self.change_rate
        return np.divide(true, rate, out=np.ones_like(rate), where=rate > 0.0)

    @property
    def complete(self) -> BoolArray:
        """Which pages have complete observation: every change is signalled, nothing else; (m,)."""
        if self.num_sources > 1:
            return np.zeros(self.num_pages, np.bool_)
        return np.asarray((self.recall == 1.0) & (self.false_signal_rate == 0.0))

    def pooled(self) -> Instance:
        """The same with its sources taken for one, whose signals are told apart no more.

        Its recall and false-signal rate are the sums over sources; of one source it is itself.
        """
        if self.num_sources == 1:
            return self
        return Instance(
            self.importance,
            self.change_rate,
            np.minimum(_over_sources(self.recall), 1.0),
            _over_sources(self.false_signal_rate),
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            delay=self.delay,
            group=self.group,
        )

    def problem(self, reveal: Reveal = "parameters") -> Problem:
        """The part of the instance that a tracker is told."""
        told = reveal == "parameters"
        return Problem(
            num_pages=self.num_pages,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            importance=self.importance,
            change_rate=self.change_rate if told else None,
            recall=self.recall if told else None,
            false_signal_rate=self.false_signal_rate if told else None,
            delay=self.delay if told else None,
            num_sources=self.num_sources,
            complete=self.complete,
            group=self.group,
        )


Reveal: TypeAlias = Literal["parameters", "importance", "history"]
REVEALS: tuple[Reveal, ...] = ("parameters", "importance")


@dataclass(frozen=True, eq=False)
class Problem:
    """The public part of an :class:`Instance`; ``None`` stands for what is not revealed.

    How many sources of signals there are is always public, and so is ``complete``: which pages
    signal their every change, and send no other signal, (m,) bool; None stands for no page. So is
    ``group``, the host or directory of each page, (m,) int64; None where there are none.
    ``regions`` are what pages consist of, where that is a model and revealed.
    """

    num_pages: int
    bandwidth: float
    importance: FloatArray
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    change_rate: FloatArray | None = None
    recall: FloatArray | None = None
    false_signal_rate: FloatArray | None = None
    delay: Delay | None = None
    num_sources: int = 1
    complete: BoolArray | None = None
    group: IntArray | None = None
    regions: Regions | None = None

    def __post_init__(self) -> None:
        if self.recall is not None and self.recall.ndim == 2:
            object.__setattr__(self, "num_sources", int(self.recall.shape[0]))

    def pooled(self) -> Problem:
        """The same with its sources taken for one; see :meth:`Instance.pooled`."""
        recall, false_rate = self.recall, self.false_signal_rate
        if recall is not None:
            recall = np.minimum(_over_sources(recall), 1.0)
        if false_rate is not None:
            false_rate = _over_sources(false_rate)
        return replace(self, recall=recall, false_signal_rate=false_rate, num_sources=1)


class Tracker(NamedTuple):
    """What the tracker of one lane knows at a decision: exact, unsaturated, fresh arrays.

    Attributes:
        problem: what it was told of the instance.
        episode: how often the lane was reset; a new number means that an episode starts.
        time: now, in the instance's unit.
        elapsed: time since each page's last crawl (before the first: since its birth), (m,);
            0 for a page that does not exist.
        signals: signals received since then, (m,) int64, or (S, m) from S >= 2 sources.
        changed: what the last crawl found: 1 a change, 0 none, -1 never crawled; (m,) int8.
        alive: whether the page exists, (m,) bool.
        probed: what the last probe since the last crawl found: 1 a change, 0 none, -1 no probe;
            (m,) int8.
        offers: where pages are shopping offers, what the day's book says of them.
        copies: where pages have fragments, what crawls have told about them.
    """

    problem: Problem
    episode: int
    time: float
    elapsed: FloatArray
    signals: IntArray
    changed: NDArray[np.int8]
    alive: BoolArray
    probed: NDArray[np.int8]
    offers: OfferFeatures | None = None
    copies: Copies | None = None


class CrawlLog(NamedTuple):
    """What the last step taught the tracker of one lane.

    Crawls, in the order made: ``page`` (int64), ``time``, ``elapsed`` since the previous crawl,
    ``signals`` received meanwhile, (n,), or (S, n) from S >= 2 sources, ``changed`` (whether the
    page had changed, bool), ``probe`` (bool: it was only looked at, so that the next crawl counts
    from the same crawl before), and of shopping offers ``price``, the price that was found, in
    cents, 0 where the offer is sold no more; None elsewhere. Of pages with fragments, else None:
    ``divergence`` and ``age``, how far the new copy is from each of the base versions that were
    kept, and how much older they are, (n, h), NaN where there is none
    (:class:`crawl_envs.types.copies.Copies`), and ``sketch``, what the new copies say.

    Signals that arrived in the step, in order of time: ``signal_page``, ``signal_time``,
    ``signal_source`` (the number of the source, 0 where there is a single one). After a reset there
    are no crawls, and the signals are those before the first decision.
    """

    page: IntArray
    time: FloatArray
    elapsed: FloatArray
    signals: IntArray
    changed: BoolArray
    signal_page: IntArray
    signal_time: FloatArray
    signal_source: IntArray
    probe: BoolArray
    price: IntArray | None = None
    divergence: FloatArray | None = None
    age: FloatArray | None = None
    sketch: Sketches | None = None


@runtime_checkable
class Policy(Protocol):
    """What can act in an environment: the prediction half of a Stable-Baselines3 model."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for ``observation``, batched like it, and the next hidden state."""
