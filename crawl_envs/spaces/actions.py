"""Action forms: action spaces, and their conversion to pages to crawl.

A slot form decodes a batch of actions into ``pages`` (N, B) int64 and ``counts`` (N,) int64; lane i
crawls its first ``counts[i]`` pages. The clock enforces the budget: a decision takes ``batch``
slots, and ``page`` and ``scores`` crawl that many pages. In the form ``rates`` actions are rates
and probabilities, (N, m), and :mod:`crawl_envs.worlds.budgets` enforces the budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, Space
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled
from crawl_envs.compiled.lazy_argmax import kth_largest
from crawl_envs.sim.state import BY_BATCH, BY_WAITING, UNPAID
from crawl_envs.types import IntArray
from crawl_envs.types.arguments import one_of, whole

INT64 = np.dtype(np.int64)
SLOT_FORMS = ("page", "scores", "refresh")
ACTION_FORMS = (*SLOT_FORMS, "rates", "shares")
Actions: TypeAlias = tuple[NDArray[Any], ...]
ROUNDING = 1e-6
"""Distance past the ends of [-1, 1] that is rounding of float32; such actions are moved there."""


class ActionForm(ABC):
    """Base class of action forms.

    Attributes:
        name: one of ACTION_FORMS.
        batch: slots per decision.
        max_pages: largest number of pages crawled at one decision.
        of_bandwidth: whether rates are in units of the bandwidth.
        payment: how crawls with costs are paid, of :mod:`crawl_envs.sim.state`.
        shape: shape of an action of one lane.
    """

    name: str
    batch = 1
    max_pages = 1
    of_bandwidth = False
    payment = UNPAID

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self.shape: tuple[int, ...] = (num_pages,)

    @abstractmethod
    def space(self) -> Space[Any]:
        """Return the action space of one lane."""

    @abstractmethod
    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return the pages to crawl in each of N lanes, (N, max_pages), and how many, (N,).

        Raises:
            ValueError: an action has another type, shape or range. Numbers of pages are checked at
                the crawl.
        """

    def decode_one(self, action: Any) -> Actions:
        """Return the decoded action of a single lane, as :meth:`decode` returns it for N = 1."""
        shape = getattr(action, "shape", self.shape)
        if shape != self.shape:
            raise ValueError(f"action must have shape {self.shape}, got {shape}")
        return self.decode([action], 1)

    def _checked(self, actions: Any, num_lanes: int, kinds: str, expected: str) -> Any:
        """Return N actions as an array; ValueError unless shape and dtype kind, of ``kinds``, fit.

        ``expected`` describes a right action in messages, which omit lanes for a list of one
        action.
        """
        shape, one = (num_lanes, *self.shape), num_lanes == 1 and isinstance(actions, list)
        wanted = f"{expected}, of shape {shape[one:]}" if shape[one:] else expected
        try:
            array = np.asarray(actions)
        except ValueError:
            raise ValueError(f"action must be {wanted}, got rows of different lengths") from None
        if array.shape != shape or array.dtype.kind not in kinds:
            scalar = one and array.ndim == 1
            got = repr(actions[0]) if scalar else f"{array.dtype} {array.shape[one:]}"
            raise ValueError(f"action must be {wanted}, got {got}")
        return array

    def _between_ones(self, actions: Any, num_lanes: int, what: str) -> Any:
        """Return the actions of N lanes in [-1, 1]; ValueError if outside by more than ROUNDING."""
        array = self._checked(actions, num_lanes, "fiu", f"{what} in [-1, 1]")
        size = np.abs(array)
        if np.all(size <= 1.0):
            return array
        if not np.all(size <= 1.0 + ROUNDING):
            raise ValueError(f"action must be {what} in [-1, 1], got {array.min()}..{array.max()}")
        return np.clip(array, -1.0, 1.0)


class PageChoice(ActionForm):
    """``page``: number of the page to crawl."""

    name = "page"
    payment = BY_WAITING

    def __init__(self, num_pages: int) -> None:
        super().__init__(num_pages)
        self.shape = ()
        self._one: tuple[IntArray, IntArray] = np.zeros((1, 1), np.int64), np.ones(1, np.int64)
        self._counts = self._one[1]

    def space(self) -> Discrete:
        """Return Discrete(m)."""
        return Discrete(self.num_pages)

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return the page to crawl in each of N lanes, (N, 1), and the count 1 of each, (N,)."""
        pages = actions if isinstance(actions, np.ndarray) else None
        if pages is None or pages.dtype is not INT64 or pages.shape != (num_lanes,):
            pages = self._checked(actions, num_lanes, "iu", f"a page in [0, {self.num_pages})")
            pages = pages.astype(np.int64)
        if len(self._counts) != num_lanes:
            self._counts = np.ones(num_lanes, np.int64)
        return pages[:, None], self._counts

    def decode_one(self, action: Any) -> Actions:
        """Return the page of one lane, in an array that the next call overwrites."""
        if type(action) in (int, np.int64) and 0 <= action < self.num_pages:
            self._one[0][0, 0] = action
            return self._one
        return super().decode_one(action)


class TopScores(ActionForm):
    """``scores``: a score per page; the ``batch`` highest are crawled, ties by lowest index.

    With ``costs`` of crawls all pages are ranked, and the bandwidth decides how many are crawled.
    """

    name = "scores"
    payment = BY_BATCH

    def __init__(self, num_pages: int, batch: int, costs: bool = False) -> None:
        super().__init__(num_pages)
        self.batch, self.max_pages = batch, num_pages if costs else batch

    def space(self) -> Box:
        """Return Box(-1, 1, (m,))."""
        return Box(-1.0, 1.0, self.shape, np.float32)

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return each lane's ``batch`` pages of highest scores, best first, and their number."""
        scores = self._between_ones(actions, num_lanes, "scores")
        pages = top_pages(np.ascontiguousarray(scores, np.float64), self.max_pages)
        return pages, np.full(num_lanes, self.max_pages, np.int64)


class RefreshSet(ActionForm):
    """``refresh``: one bit per page; any set of pages is crawled, without a budget."""

    name = "refresh"

    def __init__(self, num_pages: int) -> None:
        super().__init__(num_pages)
        self.max_pages = num_pages

    def space(self) -> MultiBinary:
        """Return MultiBinary(m)."""
        return MultiBinary(self.num_pages)

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return the pages whose bit is 1 in each lane, ascending, and how many there are, (N,)."""
        bits = self._checked(actions, num_lanes, "iubf", "bits 0 or 1")
        if not np.all((bits == 0) | (bits == 1)):
            raise ValueError(f"action must be bits 0 or 1, got {bits.min()}..{bits.max()}")
        pages = np.argsort(bits == 0, axis=1, kind="stable")
        return np.ascontiguousarray(pages, np.int64), np.count_nonzero(bits, axis=1)


class CrawlRates(ActionForm):
    """``rates``: crawl rates for an epoch, or crawl probabilities on signals.

    Pages without complete observation are crawled by Poisson processes of the given rates; pages
    with it are crawled on each signal with the given probability (LambdaCrawl, eqs. 3, 6 and 7).
    """

    name = "rates"

    def __init__(self, num_pages: int, highest: float) -> None:
        super().__init__(num_pages)
        self.highest = max(highest, 1.0)

    def space(self) -> Box:
        """Return Box(0, max(bandwidth, 1), (m,)) of float64; probabilities are at most 1."""
        return Box(0.0, self.highest, self.shape, np.float64)

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return a tuple of one array, (N, m): the rate or probability of each page."""
        expected = "rates, and probabilities where every change is signalled"
        rates = self._checked(actions, num_lanes, "fiu", expected)
        if not np.all(np.isfinite(rates) & (rates >= 0.0)):
            raise ValueError(f"action must be {expected}, >= 0, got {rates.min()}..{rates.max()}")
        return (np.ascontiguousarray(rates, np.float64),)


class BandwidthShares(CrawlRates):
    """``shares``: rates in units of the bandwidth, from -1, a share of 0, to 1, a share of 1.

    Shares of pages with complete observation are the probabilities themselves.
    """

    name = "shares"
    of_bandwidth = True

    def __init__(self, num_pages: int) -> None:
        super().__init__(num_pages, 1.0)

    def space(self) -> Box:
        """Return Box(-1, 1, (m,)) of float32, as learners expect it."""
        return Box(-1.0, 1.0, self.shape, np.float32)

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return the shares of all lanes, in [0, 1], one array (N, m)."""
        shares = self._between_ones(actions, num_lanes, "shares")
        return (0.5 * (shares.astype(np.float64) + 1.0),)


class SampledRates(CrawlRates):
    """``rates`` of offers: crawls per day, sampled at every step.

    An offer is crawled with probability rate / steps per day, at most 1, and the number of crawls
    is the sum of the probabilities, rounded down or up.
    """

    def decode(self, actions: Any, num_lanes: int) -> Actions:
        """Return the rates of all lanes, one array (N, m); their values are checked at the step."""
        rates = self._checked(actions, num_lanes, "fiu", "rates")
        return (np.ascontiguousarray(rates, np.float64),)


@compiled()
def top_pages(scores: Any, batch: int) -> IntArray:
    """Return the pages of the ``batch`` highest scores in each lane, (N, batch), best first.

    Among equal scores the lowest page comes first.
    """
    pages = np.empty((scores.shape[0], batch), np.int64)
    for lane in range(scores.shape[0]):
        reached = np.flatnonzero(scores[lane] >= kth_largest(scores[lane].copy(), batch))
        order = np.argsort(-scores[lane][reached], kind="mergesort")
        pages[lane] = reached[order[:batch]]
    return pages


def action_form(name: str, num_pages: int, batch: int = 1, costs: bool = False) -> ActionForm:
    """Return the action form named ``page``, ``scores`` or ``refresh``, for m pages.

    Raises:
        ValueError: ``name`` is unknown, ``batch`` is outside [1, m], or the form does not support
            batches.
    """
    one_of("action", name, ACTION_FORMS)
    whole("batch", batch, 1, num_pages)
    if name == "scores":
        return TopScores(num_pages, batch, costs)
    if batch != 1:
        raise ValueError(f"batch must be 1 with action {name!r}, got {batch!r}")
    return PageChoice(num_pages) if name == "page" else RefreshSet(num_pages)
