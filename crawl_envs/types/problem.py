"""Types of the suite: instances, their public part, trackers and logs.

=========================  =====================  ==========================================
symbol in the papers       word in the API        meaning
=========================  =====================  ==========================================
m                          ``num_pages``          number of pages, rows 0 .. m-1
R                          ``bandwidth``          crawls, or their costs, per unit time
mu                         ``importance``         request rate, or any weight >= 0
Delta                      ``change_rate``        Poisson rate of changes
W^o (LambdaCrawl)          ``complete``           pages with all changes signalled
C(n)                       ``penalty``            cost of n undetected changes
S                          ``num_sources``        sources of signals, numbered from 0
host, directory            ``group``              group of each page, numbered from 0
lambda (NCIS)              ``recall``             P(a change emits a signal)
nu                         ``false_signal_rate``  rate of signals without a change
alpha                      ``unsignalled_rate``   (1 - lambda) Delta, lambda over all sources
gamma = lambda Delta + nu  ``signal_rate``        rate of all signals
lambda Delta / gamma       ``precision``          share of signals with a change
tau_ELAP                   ``elapsed``            time since the last crawl
n_CIS                      ``signals``            signals received since the last crawl
lambda (Lagrange)          ``multiplier``         price of one crawl
=========================  =====================  ==========================================

Time is continuous, in the instance's unit. The first axis of arrays is lanes, the last pages.
Arrays of signals have shape (m,) for one source, and (S, m) for S >= 2 sources; a change is
signalled by at most one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import (
    bandwidth_function,
    check_domain,
    common_length,
    cost_per_page,
    floats,
    one_of,
    per_page,
    quantity,
    whole,
    whole_per_page,
)
from crawl_envs.types.contents import Regions
from crawl_envs.types.copies import Copies, Sketches
from crawl_envs.types.offer_features import OfferFeatures

MAX_SOURCES = 15
"""Largest number of sources: with it, a page has 32 kinds of events."""
OF_SOURCES = ("recall", "false_signal_rate")
"""Parameters of an instance that may differ between sources."""
RECALL_ROUNDING = 1e-12
"""How much more than 1 a sum of recalls may be by rounding."""
DELAY_KINDS = ("none", "constant", "exponential", "poisson")
MAX_POISSON_DELAY = 500.0
"""Largest mean, in quanta, of a Poisson delay: the draw is by inversion from exp(-mean)."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Distribution of the delay of signals, drawn for every signal, true or false.

    ``kind`` is one of ``none``, ``constant``, ``exponential`` or ``poisson``; ``mean`` is in time
    units. A Poisson delay is ``quantum`` times a Poisson count of mean ``mean / quantum``: in slots
    with ``quantum = 1 / bandwidth``, in units of time with ``quantum = 1``.
    """

    kind: Literal["none", "constant", "exponential", "poisson"] = "none"
    mean: float = 0.0
    quantum: float = 1.0

    def __post_init__(self) -> None:
        one_of("delay kind", self.kind, DELAY_KINDS)
        mean = quantity("delay mean", self.mean, least=0.0)
        quanta = mean / quantity("delay quantum", self.quantum, above=0.0)
        if self.kind == "none" and mean != 0.0:
            raise ValueError(f"delay mean must be 0 when its kind is 'none', got {mean!r}")
        if self.kind == "poisson" and quanta > MAX_POISSON_DELAY:
            raise ValueError(
                f"a poisson delay must have a mean of at most {MAX_POISSON_DELAY:g} quanta, "
                f"got {quanta:g}"
            )


def _over_sources(values: FloatArray) -> FloatArray:
    """Return the sums over sources, (m,), of an array that is (m,) or (S, m)."""
    total: FloatArray = values if values.ndim == 1 else values.sum(0)
    return total


def _check_recall(recall: FloatArray) -> None:
    """Raise ValueError if a recall, or the sum of a page's recalls over sources, exceeds 1."""
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
    """True parameters of a set of pages, and the budget.

    Arguments are arrays of length m (of NumPy, or columns of pandas, polars, pyarrow or torch), or
    scalars for all pages; they are stored as read-only float64 copies of shape (m,). Rates and
    times are 0 or in [1e-12, 1e12] (``crawl_envs.types.arguments.SMALLEST`` and ``LARGEST``). With
    S >= 2 sources of signals, ``recall`` and ``false_signal_rate`` have shape (S, m); if only one
    of them does, the other is the same for all sources. Each change is signalled by at most one
    source.

    Args:
        importance: request rate of each page, per unit time, >= 0 (mu). Every request is an event,
            so large weights cost time, and too large ones are refused at the start of an episode;
            only their proportions matter to policies.
        change_rate: Poisson rate of changes, >= 0 (Delta).
        recall: probability in [0, 1] that a change emits a signal (lambda of the NCIS paper), per
            page, or per source and page; the sum over sources is at most 1.
        false_signal_rate: rate of signals without a change, >= 0 (nu), of the shape of recall.
        bandwidth: crawls per unit time, > 0 (R), from time 0 on; with costs, the cost of crawls
            per unit time.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.
        delay: delay of signals.
        group: host or directory of each page, public as part of its URL: integers from 0, (m,),
            which policies may pool over; None if unknown.
        cost: cost of a crawl of each page, > 0, which it takes of the bandwidth; None for 1.

    Raises:
        ValueError: a rate is negative, not finite or outside the supported domain, a cost is not
            > 0, recall or its sum over sources is outside [0, 1], there are more than MAX_SOURCES
            sources, the bandwidth is not positive, an argument is not of real numbers, or shapes
            disagree.
    """

    importance: FloatArray
    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...]
    delay: Delay
    group: IntArray | None
    cost: FloatArray | None

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
        cost: ArrayLike | None = None,
    ) -> None:
        named = {
            "importance": importance,
            "change_rate": change_rate,
            "recall": recall,
            "false_signal_rate": false_signal_rate,
        }
        columns = {name: floats(name, value) for name, value in named.items()}
        num_pages = common_length(columns)
        rows = {name: len(columns[name]) for name in OF_SOURCES if columns[name].ndim == 2}
        for name, count in rows.items():
            whole(f"number of sources of {name}", count, 1, MAX_SOURCES)
        sources = dict.fromkeys(OF_SOURCES, max(rows.values(), default=1))
        rate, steps = bandwidth_function(bandwidth, bandwidth_steps)
        if not isinstance(delay, Delay | None):
            raise ValueError(f"delay must be a Delay or None, got {delay!r}")
        vars(self).update(
            {name: per_page(name, x, num_pages, sources.get(name)) for name, x in columns.items()},
            bandwidth=rate,
            bandwidth_steps=steps,
            delay=Delay() if delay is None else delay,
            group=None if group is None else whole_per_page("group", group, num_pages),
            cost=None if cost is None else cost_per_page(cost, num_pages),
        )
        for name in ("importance", "change_rate", "false_signal_rate"):
            check_domain(name, getattr(self, name))
        _check_recall(self.recall)

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
        """Rate of changes without a signal (alpha), shape (m,)."""
        return (1.0 - np.minimum(_over_sources(self.recall), 1.0)) * self.change_rate

    @property
    def signal_rate(self) -> FloatArray:
        """Rate of all signals, true and false (gamma), shape (m,) or (S, m)."""
        return self.recall * self.change_rate + self.false_signal_rate

    @property
    def precision(self) -> FloatArray:
        """Share of signals that report a change, (m,) or (S, m); 1 where there are no signals."""
        rate, true = self.signal_rate, self.recall * self.change_rate
        return np.divide(true, rate, out=np.ones_like(rate), where=rate > 0.0)

    @property
    def complete(self) -> BoolArray:
        """Mask of pages with complete observation: exactly their changes are signalled; (m,)."""
        if self.num_sources > 1:
            return np.zeros(self.num_pages, np.bool_)
        return np.asarray((self.recall == 1.0) & (self.false_signal_rate == 0.0))

    def with_cost(self, cost: ArrayLike | None) -> Self:
        """Return the same pages with other costs of crawls; None for 1."""
        pages = copy(self)
        vars(pages).pop("_problems", None)
        vars(pages)["cost"] = None if cost is None else cost_per_page(cost, self.num_pages)
        return pages

    def pooled(self) -> Instance:
        """Return an instance with one source of signals that sends the signals of all sources.

        Its recall and false-signal rate are the sums over the sources.
        """
        if self.num_sources == 1:
            return self
        arguments = {field.name: getattr(self, field.name) for field in fields(Instance)}
        arguments["recall"] = np.minimum(_over_sources(self.recall), 1.0)
        arguments["false_signal_rate"] = _over_sources(self.false_signal_rate)
        return Instance(**arguments)

    def problem(self, reveal: Reveal = "parameters", reveal_cost: bool = True) -> Problem:
        """Return what policies may know of the instance; repeated calls return the same object."""
        key = reveal, reveal_cost
        if key not in self._problems:
            problem = self._public(reveal)
            self._problems[key] = problem if reveal_cost else replace(problem, cost=None)
        return self._problems[key]

    @cached_property
    def _problems(self) -> dict[tuple[Reveal, bool], Problem]:
        return {}

    def _public(self, reveal: Reveal) -> Problem:
        revealed, complete = reveal == "parameters", self.complete
        complete.setflags(write=False)
        return Problem(
            num_pages=self.num_pages,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            importance=self.importance,
            change_rate=self.change_rate if revealed else None,
            recall=self.recall if revealed else None,
            false_signal_rate=self.false_signal_rate if revealed else None,
            delay=self.delay if revealed else None,
            num_sources=self.num_sources,
            complete=complete,
            group=self.group,
            cost=self.cost,
        )


Reveal: TypeAlias = Literal["parameters", "importance", "history"]
REVEALS: tuple[Reveal, ...] = ("parameters", "importance")


@dataclass(frozen=True, eq=False)
class Problem:
    """What policies may know of an :class:`Instance`; hidden parameters are None.

    Always public are the number of sources, ``complete``, the mask of pages with exactly their
    changes signalled, (m,) bool, None for no page, ``group``, the host or directory of each
    page, (m,) int64, None if there are none, and ``cost``, the cost of a crawl of each page, (m,),
    or a scalar for all, None for 1. ``regions`` is the model of the pages' content, if
    there is one and it is revealed.

    Raises:
        ValueError: a bandwidth is not > 0 (NaN: unknown), times of its steps do not increase, or a
            cost is not > 0.
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
    cost: FloatArray | None = None

    def __post_init__(self) -> None:
        finite = 1.0 if math.isnan(self.bandwidth) else self.bandwidth
        bandwidth_function(finite, self.bandwidth_steps)
        if self.cost is not None:
            object.__setattr__(self, "cost", cost_per_page(self.cost, self.num_pages))
        for name in ("importance", "change_rate", "recall", "false_signal_rate", "complete"):
            shape = np.shape(getattr(self, name))
            if shape and shape[-1] != self.num_pages:
                raise ValueError(f"{name} must have {self.num_pages} pages, got shape {shape}")
        if self.recall is not None and self.recall.ndim == 2:
            object.__setattr__(self, "num_sources", int(self.recall.shape[0]))

    def pooled(self) -> Problem:
        """Return the problem with all sources of signals merged; see :meth:`Instance.pooled`."""
        recall, false_rate = self.recall, self.false_signal_rate
        if recall is not None:
            recall = np.minimum(_over_sources(recall), 1.0)
        if false_rate is not None:
            false_rate = _over_sources(false_rate)
        return replace(self, recall=recall, false_signal_rate=false_rate, num_sources=1)

    def per_cost(self) -> Problem:
        """Return the problem with importance per unit of cost, and crawls of equal cost.

        The best pages by a value that is proportional to importance are then those of the largest
        values per unit of cost. The bandwidth is divided by the mean cost of the pages.
        """
        if self.cost is None:
            return self
        mean = float(self.cost.mean()) if self.cost.size else 1.0
        return replace(
            self,
            importance=self.importance / self.cost,
            bandwidth=self.bandwidth / mean,
            bandwidth_steps=tuple((time, rate / mean) for time, rate in self.bandwidth_steps),
            cost=None,
        )

    def spend(self, rates: FloatArray) -> float:
        """Return the cost per unit of time of crawls at the given rates, (m,)."""
        return float(rates.sum() if self.cost is None else rates @ self.cost)


class Tracker(NamedTuple):
    """What a tracker knows of one lane at a decision, in new arrays of exact numbers.

    Attributes:
        problem: public part of the instance.
        episode: number of resets of the lane; a new number means a new episode.
        time: current time, in the instance's unit.
        elapsed: time since each page's last crawl, or since its birth, (m,); 0 for a page that
            does not exist.
        signals: signals since the last crawl, (m,) int64, or (S, m) from S >= 2 sources.
        changed: result of the last crawl: 1 a change, 0 none, -1 never crawled; (m,) int8.
        alive: whether the page exists, (m,) bool.
        offers: features of shopping offers on the current day, else None.
        copies: data on the copies of pages with fragments, else None.
    """

    problem: Problem
    episode: int
    time: float
    elapsed: FloatArray
    signals: IntArray
    changed: NDArray[np.int8]
    alive: BoolArray
    offers: OfferFeatures | None = None
    copies: Copies | None = None


class CrawlLog(NamedTuple):
    """Crawls and signals of the last step of one lane.

    Crawls, in order: ``page`` (int64), ``time``, ``elapsed`` since the previous crawl, ``signals``
    in that time, (n,), or (S, n) from S >= 2 sources, ``changed`` (whether the page had changed,
    bool), and for shopping offers ``price``, the observed price in cents, 0 if the offer is
    withdrawn; else None. For pages with fragments, else None: ``divergence`` and ``age``, the
    distance of the new copy from each base version, and how much older that is, (n, h), NaN if
    there is none (:class:`crawl_envs.types.copies.Copies`), and ``sketch``, sketches of the new
    copies. ``cost`` is the cost of each crawl, None where crawls have no costs.

    Signals of the step, sorted by time: ``signal_page``, ``signal_time``, ``signal_source`` (number
    of the source, 0 for a single source). After a reset the signals are those before the first
    decision, and there are no crawls, except with ``start="crawled"`` those before the episode.
    """

    page: IntArray
    time: FloatArray
    elapsed: FloatArray
    signals: IntArray
    changed: BoolArray
    signal_page: IntArray
    signal_time: FloatArray
    signal_source: IntArray
    price: IntArray | None = None
    divergence: FloatArray | None = None
    age: FloatArray | None = None
    sketch: Sketches | None = None
    cost: FloatArray | None = None


@runtime_checkable
class Policy(Protocol):
    """A policy with the prediction interface of a Stable-Baselines3 model."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action, or a batch of them, for ``observation``, and the next hidden state."""
