"""Index policies: crawl the page whose crawl value is largest (Busa-Fekete et al., Algorithm 1)."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.typing import NDArray

from crawl_envs.kernels import VALUE, compiled, ready
from crawl_envs.types import (
    BoolArray,
    Compiled,
    CompiledIndex,
    CrawlLog,
    FloatArray,
    IntArray,
    Problem,
    Tracker,
)
from policies.binding import ActionForm, CrawlPolicy

ROUNDING = 1e-12
"""Relative error of a time found as now minus elapsed."""

REMEMBERED = 64
"""An unbound policy keeps the tables of so many lanes of a batch from one call to the next."""

_SIGHT = (types.float64[::1], types.int64[::1], types.boolean[::1])


@compiled(types.int64(VALUE, types.float64[:, ::1], *_SIGHT))
def best_page(
    value: Any, parameters: FloatArray, elapsed: FloatArray, signals: IntArray, alive: BoolArray
) -> int:
    """The alive page of the largest value, ties to the lowest index; 0 if none is alive."""
    best = -1
    largest = -math.inf
    for page in range(elapsed.size):
        if alive[page]:
            worth = value(parameters, page, elapsed[page], signals[page])
            if best < 0 or worth > largest:
                best = page
                largest = worth
    return max(best, 0)


@compiled(types.float64[::1](VALUE, types.float64[:, ::1], *_SIGHT))
def page_values(
    value: Any, parameters: FloatArray, elapsed: FloatArray, signals: IntArray, alive: BoolArray
) -> FloatArray:
    """The value of every page, shape (m,); -inf where it is not alive."""
    worth = np.empty(elapsed.size)
    for page in range(elapsed.size):
        if alive[page]:
            worth[page] = value(parameters, page, elapsed[page], signals[page])
        else:
            worth[page] = -math.inf
    return worth


class ValuePointer(types.WrapperAddressProtocol):
    """A compiled value with its address at hand, for the choice among few pages.

    Numba takes compiled functions as arguments, but looks their address up at every call, for
    20 us; through the address at hand, on the other hand, a page can cost 20 ns more. Both run
    the same arithmetic.
    """

    def __init__(self, value: Any) -> None:
        self.value = ready(value)  # keeps the code alive
        found = value.get_compile_result(VALUE.signature)
        self.address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        """Where the function is."""
        return int(self.address)

    def signature(self) -> Any:
        """What it takes and returns."""
        return VALUE.signature


pointer = functools.cache(ValuePointer)
FEW_PAGES = 500


@dataclass
class IndexSeat:
    """One lane's episode: its table, and the signals counted since each page's last crawl.

    ``counted`` and ``last_crawl`` have shape (m,); they are kept only under a delay window.
    """

    episode: int
    compiled: CompiledIndex
    time: float
    counted: IntArray
    last_crawl: FloatArray

    def count(self, log: CrawlLog, tracker: Tracker) -> None:
        """Bring the counts to the decision at hand, from what the step before it taught.

        A birth counts as a crawl: where a page's elapsed time says that it was born, it is newer
        than its last crawl.
        """
        self.counted[log.page] = 0
        np.maximum.at(self.last_crawl, log.page, log.time)
        start = tracker.time - tracker.elapsed
        born = tracker.alive & (start > self.last_crawl + ROUNDING * tracker.time)
        self.last_crawl[born] = start[born]
        late = log.signal_time - self.last_crawl[log.signal_page] > self.compiled.delay_window
        np.add.at(self.counted, log.signal_page[late], 1)
        np.minimum(self.counted, tracker.signals, out=self.counted)
        self.time = tracker.time


class IndexPolicy(CrawlPolicy[IndexSeat]):
    """Crawls the alive page of the largest crawl value; ties go to the lowest index.

    The table of the pages' parameters is built once per episode and lane. Steps and
    :meth:`compile` use the same compiled value and table, so both choose the same pages.

    In the action form ``scores`` it takes the ``batch`` pages of the largest values, in
    ``refresh`` those whose value reaches ``threshold``.

    Args:
        env: a crawl environment; or, unbound, ``features``, ``action_form`` and ``batch`` as
            for :class:`policies.binding.CrawlPolicy`.
        features: the observation's columns; those that the policy needs must be among them.
        action_form: with ``features``, the form of the actions.
        batch: with ``features``, crawls per decision in the form ``scores``.
        threshold: in the form ``refresh``, the value from which a page is crawled, in units of
            importance times time, importance as given; None for the single best page.

    Raises:
        ValueError: as for the base class; a threshold in another form; at construction without
            an environment, or at the first ``predict`` with one, when parameters are missing.
    """

    uses_signals: ClassVar[bool] = False
    delay_window: float = 0.0

    def __init__(
        self,
        env: Any = None,
        *,
        features: Sequence[str] | None = None,
        action_form: ActionForm | None = None,
        batch: int | None = None,
        threshold: float | None = None,
    ) -> None:
        super().__init__(env, features=features, action_form=action_form, batch=batch)
        if threshold is not None and (self.action_form != "refresh" or math.isnan(threshold)):
            raise ValueError(
                "threshold must be a number, in the action form 'refresh'; "
                f"got {threshold!r} in the form {self.action_form!r}"
            )
        self.threshold = threshold
        self._tables: dict[int, tuple[NDArray[Any], CompiledIndex]] = {}
        if self.core is None:
            wanted = ("elapsed", *(("signals",) if self.uses_signals else ()), *self.needs)
            missing = [name for name in wanted if name not in self.features]
            if missing:
                raise ValueError(
                    f"{self.name} needs the columns {', '.join(missing)}, "
                    f"features has {', '.join(self.features)}"
                )

    @abstractmethod
    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        """The compiled value of type VALUE, and its table for ``problem``, shape (m, P)."""

    def compile(self, problem: Problem, slots: int, coins: np.random.Generator) -> CompiledIndex:
        """The compiled value and its table; ``slots`` and ``coins`` do not matter.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
        self._require(problem)
        value, table = self._index(problem)
        return CompiledIndex(ready(value), table, self.delay_window)

    def _sit(self, compiled: Compiled, tracker: Tracker) -> IndexSeat:
        assert isinstance(compiled, CompiledIndex)
        num_pages = tracker.elapsed.size
        return IndexSeat(
            episode=tracker.episode,
            compiled=compiled,
            time=math.nan,
            counted=np.zeros(num_pages, dtype=np.int64),
            last_crawl=np.zeros(num_pages),
        )

    def _choose(self, seat: IndexSeat, tracker: Tracker, lane: int) -> IntArray:
        signals = tracker.signals
        if self.delay_window > 0.0 and self.core is not None:
            log = self.core.last_log(lane)
            if math.isnan(seat.time) and log.page.size:  # joined in mid-episode
                seat.counted[:] = signals
                seat.last_crawl[:] = tracker.time - tracker.elapsed
                seat.time = tracker.time
            if seat.time != tracker.time:
                seat.count(log, tracker)
            signals = seat.counted
        return self._best(seat.compiled, tracker.elapsed, signals, tracker.alive)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        column = {
            name: np.ascontiguousarray(rows[:, k], dtype=np.float64)
            for k, name in enumerate(self.features)
        }
        elapsed = column["elapsed"]
        signals = np.zeros(elapsed.size, dtype=np.int64)
        if self.uses_signals:
            signals = np.rint(column["signals"]).astype(np.int64)
        alive = np.ones(elapsed.size, dtype=np.bool_)
        if "alive" in column:
            alive = column["alive"] > 0.5
        return self._best(self._tabulated(column, elapsed.size, lane), elapsed, signals, alive)

    def _tabulated(self, column: dict[str, FloatArray], num_pages: int, lane: int) -> CompiledIndex:
        """The table for these columns of parameters; that of the same lane before, if equal."""
        given = np.array([column[name] for name in self.needs])
        if lane in self._tables:
            known, index = self._tables[lane]
            if np.array_equal(known, given) and index.parameters.shape[0] == num_pages:
                return index
        problem = Problem(
            num_pages=num_pages,
            bandwidth=math.nan,
            importance=column.get("importance", np.ones(num_pages)),
            change_rate=column.get("change_rate"),
            recall=column.get("recall"),
            false_signal_rate=column.get("false_signal_rate"),
        )
        index = self.compile(problem, 0, np.random.default_rng(0))
        if lane < REMEMBERED:
            self._tables[lane] = given, index
        return index

    def _best(
        self, index: CompiledIndex, elapsed: FloatArray, signals: IntArray, alive: BoolArray
    ) -> IntArray:
        value = pointer(index.value) if elapsed.size < FEW_PAGES else index.value
        sight = (value, index.parameters, elapsed, signals, alive)
        if self.action_form == "refresh" and self.threshold is not None:
            return np.flatnonzero(alive & (ready(page_values)(*sight) >= self.threshold))
        if self.action_form == "scores" and self.batch > 1:
            return _largest(ready(page_values)(*sight), alive, self.batch)
        return np.array([ready(best_page)(*sight)])


class SignalPolicy(IndexPolicy):
    """An index policy that counts signals, and can leave out those that come soon after a crawl.

    Args:
        env: a crawl environment, or None with ``features``.
        delay_window: signals that arrive within this time of a crawl of their page (and of time
            0, when every page is taken to be crawled) are not counted (Busa-Fekete et al.,
            Appendix C). It is kept from the log of each step, so it needs an environment, and is
            exact when ``predict`` is called once per decision from the episode's start on.
        **binding: ``features``, ``action_form``, ``batch`` and ``threshold``, as for
            :class:`IndexPolicy`.

    Raises:
        ValueError: as for :class:`IndexPolicy`; a delay window that is negative or not finite;
            at ``predict``, one that is positive without an environment.
    """

    uses_signals = True

    def __init__(self, env: Any = None, *, delay_window: float = 0.0, **binding: Any) -> None:
        super().__init__(env, **binding)
        if not (math.isfinite(delay_window) and delay_window >= 0.0):
            raise ValueError(f"delay_window must be finite and >= 0, got {delay_window!r}")
        self.delay_window = float(delay_window)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        if self.delay_window > 0.0:
            raise ValueError(
                "delay_window must be 0 to predict without an environment, whose log it is read "
                f"from; got {self.delay_window!r}"
            )
        return super()._read(rows, lane)


def _largest(worth: FloatArray, alive: BoolArray, count: int) -> IntArray:
    """The ``count`` alive pages of the largest values, best first, ties to the lowest index."""
    count = min(count, int(alive.sum()))
    if count == 0:
        return np.zeros(1, dtype=np.int64)
    bound = np.partition(worth, worth.size - count)[worth.size - count]
    candidates = np.flatnonzero(alive & (worth >= bound))
    return candidates[np.argsort(-worth[candidates], kind="stable")[:count]]
