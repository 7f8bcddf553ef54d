"""Index policies: crawl the page whose crawl value is largest (Busa-Fekete et al., Algorithm 1)."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, ready
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.compiled_policies import UNDEFINED, CompiledIndex
from policies.base.binders import ActionForm
from policies.base.binding import CrawlPolicy
from policies.base.live import is_complete

ROUNDING = 1e-12
"""Relative error of a time computed as now minus elapsed."""

REMEMBERED = 64
"""Number of lanes whose tables an unbound policy keeps from one call to the next."""

_PAGE_STATE = (types.float64[::1], types.float64[::1], types.boolean[::1])


@compiled(types.int64(VALUE, types.float64[:, ::1], *_PAGE_STATE))
def best_page(
    value: Any, parameters: FloatArray, elapsed: FloatArray, signals: FloatArray, alive: BoolArray
) -> int:
    """Return the alive page of the largest value, ties to the lowest index; 0 if none is alive.

    If the value of page i is NaN, return -1 - i.
    """
    best = -1
    largest = -math.inf
    for page in range(elapsed.size):
        if alive[page]:
            page_value = value(parameters, page, elapsed[page], signals[page])
            if math.isnan(page_value):
                return -1 - page
            if best < 0 or page_value > largest:
                best = page
                largest = page_value
    return max(best, 0)


@compiled(types.float64[::1](VALUE, types.float64[:, ::1], *_PAGE_STATE))
def page_values(
    value: Any, parameters: FloatArray, elapsed: FloatArray, signals: FloatArray, alive: BoolArray
) -> FloatArray:
    """Return the value of every page, (m,); -inf where it is not alive."""
    values = np.full(elapsed.size, -math.inf)
    for page in range(elapsed.size):
        if alive[page]:
            values[page] = value(parameters, page, elapsed[page], signals[page])
    return values


@compiled(types.int64(types.float64[::1]))
def first_undefined(values: FloatArray) -> int:
    """Return the first page whose value is NaN, -1 if there is none."""
    for page in range(values.size):
        if math.isnan(values[page]):
            return page
    return -1


@compiled(
    types.float64[::1](
        SIGNAL_WEIGHT, types.float64[:, ::1], types.int64[::1], types.float64[::1], types.int64[::1]
    )
)
def weighted_signals(
    signal_weight: Any, parameters: FloatArray, page: IntArray, age: FloatArray, source: IntArray
) -> FloatArray:
    """Return the weight of each signal, by its page, age and source, (n,)."""
    counts = np.empty(page.size)
    for signal in range(page.size):
        counts[signal] = signal_weight(parameters, page[signal], age[signal], source[signal])
    return counts


@compiled(SIGNAL_WEIGHT.signature)
def ignore_signal(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return 0: the value does not depend on signals."""
    return 0.0


class ValuePointer(types.WrapperAddressProtocol):
    """A compiled value with its address, for the choice among few pages.

    Numba takes compiled functions as arguments, but looks up their address at every call, which
    takes 20 us; with the stored address, a page can take 20 ns more. Both run the same arithmetic.
    """

    def __init__(self, value: Any) -> None:
        self.value = ready(value)  # keeps the code alive
        result = value.get_compile_result(VALUE.signature)
        self.address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        """Return the address of the function."""
        return int(self.address)

    def signature(self) -> Any:
        """Return the function's type."""
        return VALUE.signature


pointer = functools.cache(ValuePointer)
FEW_PAGES = 500


def counts_at_unknown_age(index: CompiledIndex, signals: IntArray) -> FloatArray:
    """Return the total weight of signals of unknown age, (m,), by their numbers, (m,) or (S, m)."""
    numbers = np.atleast_2d(signals)
    if index.signal_weight is None:
        return np.asarray(numbers.sum(axis=0), np.float64)
    total = np.zeros(numbers.shape[1])
    for source, count in enumerate(numbers):
        page = np.flatnonzero(count)
        at = page, np.full(page.size, math.inf), np.full(page.size, source)
        total[page] += count[page] * _weights(index, *at)
    return total


def _weights(index: CompiledIndex, page: IntArray, age: FloatArray, source: IntArray) -> FloatArray:
    """Return the weight of each signal, (n,)."""
    if index.signal_weight is None:
        return np.ones(page.size)
    signals = page, age, source
    return np.asarray(ready(weighted_signals)(index.signal_weight, index.parameters, *signals))


class IndexPolicy(CrawlPolicy):
    """Crawls the alive page of the largest crawl value; ties go to the lowest index.

    The table of the pages' parameters is built once per episode and lane. Steps and
    :meth:`compile` use the same compiled value and table, so both choose the same pages.

    In the action form ``scores`` it crawls the ``batch`` pages of the largest values, in
    ``refresh`` the pages whose value reaches ``threshold``.

    Args:
        env, features, action_form, batch: as for :class:`policies.base.binding.ActingPolicy`.
        threshold: in the form ``refresh``, the value from which a page is crawled, in units of
            importance times time, importance as given; None for the single best page.
        believed: a function that maps the problem to the one that the policy assumes, for example
            with estimated parameters; None for the problem as revealed.

    Raises:
        ValueError: as for the base class; a threshold in another form; missing parameters, at
            construction from columns, else at the first decision.
    """

    reads_columns = True
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
        believed: Callable[[Problem], Problem] | None = None,
    ) -> None:
        super().__init__(env, features=features, action_form=action_form, batch=batch)
        if threshold is not None and (self.action_form != "refresh" or math.isnan(threshold)):
            raise ValueError(
                "threshold must be a number, in the action form 'refresh'; "
                f"got {threshold!r} in the form {self.action_form!r}"
            )
        self.threshold = threshold
        self.believed = believed
        self._tables: dict[int, tuple[NDArray[Any], CompiledIndex]] = {}
        if self.core is None:
            signals = ("signals",) if self.uses_signals else ()
            wanted = ("elapsed", *signals, *self.needs)
            missing = [name for name in wanted if not _sources(self.features, name)]
            if missing:
                raise ValueError(
                    f"{self.name} needs the columns {', '.join(missing)}, "
                    f"features has {', '.join(self.features)}"
                )

    @abstractmethod
    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        """Return the compiled value of type VALUE, and its table for ``problem``, (m, P).

        Further rows may hold what is common to all pages.
        """

    def _signal_weight(self, problem: Problem) -> Any:
        """Return the compiled weight, of type SIGNAL_WEIGHT, of a signal; None for weight 1."""
        return None

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledIndex:
        """Return the compiled value and its table; ``slots`` and ``rng`` are not used."""
        if self.believed is not None:
            problem = self.believed(problem)
        self._require(problem)
        value, table = self._index(problem)
        shape, pages = np.shape(table), len(problem.importance)
        if len(shape) != 2 or shape[0] < pages or np.isnan(table).any():
            raise ValueError(
                f"the table of {self.name} must have a row per page, at least ({pages}, P), and no "
                f"NaN, got {'NaN in ' * (len(shape) == 2 and shape[0] >= pages)}shape {shape}"
            )
        weight = self._signal_weight(problem) if self.uses_signals else ignore_signal
        weight = None if weight is None else ready(weight)
        return CompiledIndex(ready(value), table, self.delay_window, weight)

    def _start(self, tracker: Tracker) -> None:
        self.form = self.compile(tracker.problem, 0, np.random.default_rng(0))
        weighted = self.form.signal_weight is not None or self.delay_window > 0.0
        self.reads_log = self.uses_signals and weighted

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the weights of a log's signals, by the ages at which they arrived.

        A birth counts as a crawl. A page whose elapsed time began after its last crawl was born.
        """
        start = tracker.time - tracker.elapsed
        if self.first_log:
            if not is_complete(log, tracker):  # in mid-episode: earlier signals have no known age
                self.counted = counts_at_unknown_age(self.form, tracker.signals)
                self.last_crawl = start
                return
            self.counted, self.last_crawl = np.zeros((2, tracker.elapsed.size))
        np.maximum.at(self.last_crawl, log.page, log.time)
        born = tracker.alive & (start > self.last_crawl + ROUNDING * tracker.time)
        self.last_crawl[born] = start[born]
        self.counted[log.page] = 0.0
        self.counted[born | ~tracker.alive] = 0.0
        window = self.form.delay_window
        age = log.signal_time - self.last_crawl[log.signal_page]
        age = np.where(born[log.signal_page] & (abs(age) <= ROUNDING * tracker.time), 0.0, age)
        late = (age > window) | ((age == 0.0) & (window == 0.0))
        page, source = log.signal_page[late], log.signal_source[late]
        np.add.at(self.counted, page, _weights(self.form, page, age[late], source))

    def _choose(self, tracker: Tracker) -> IntArray:
        if not self.uses_signals:
            signals = np.zeros(tracker.elapsed.size)
        elif self.reads_log:
            signals = self.counted
        else:
            signals = counts_at_unknown_age(self.form, tracker.signals)
        return self._best(self.form, tracker.elapsed, signals, tracker.alive)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        column = {
            name: np.ascontiguousarray(rows[:, k], dtype=np.float64)
            for k, name in enumerate(self.features)
        }
        elapsed = column["elapsed"]
        alive = column.get("alive", np.ones(elapsed.size)) > 0.5
        index = self._tabulated(column, elapsed.size, lane)
        signals = np.zeros(elapsed.size)
        if self.uses_signals:
            counts = np.rint(_of_sources(column, "signals")).astype(np.int64)
            signals = counts_at_unknown_age(index, counts)
        return self._best(index, elapsed, signals, alive)

    def _tabulated(self, column: dict[str, FloatArray], num_pages: int, lane: int) -> CompiledIndex:
        """Return the table for these columns; the lane's last one if they have not changed."""
        names = (*self.needs, *(name for name in column if name == "complete"))
        known: dict[str, Any] = {name: _of_sources(column, name) for name in names}
        given = np.concatenate([np.atleast_2d(known[name]) for name in names] or [np.zeros(0)])
        if lane in self._tables:
            before, index = self._tables[lane]
            if np.array_equal(before, given) and index.parameters.shape[0] == num_pages:
                return index
        if "complete" in known:
            known["complete"] = known["complete"] > 0.5
        problem = Problem(num_pages, math.nan, **{"importance": np.ones(num_pages)} | known)
        index = self.compile(problem, 0, np.random.default_rng(0))
        if lane < REMEMBERED:
            self._tables[lane] = given, index
        return index

    def _best(
        self, index: CompiledIndex, elapsed: FloatArray, signals: FloatArray, alive: BoolArray
    ) -> IntArray:
        page_state = (elapsed, signals, alive)
        return best_pages(index, page_state, self.action_form, self.batch, self.threshold)


class SignalPolicy(IndexPolicy):
    """An index policy that counts signals, and can ignore those that come soon after a crawl.

    Args:
        env, **binding: as for :class:`IndexPolicy`.
        delay_window: signals that arrive within this time of a crawl of their page (or of time 0,
            when every page counts as crawled) are not counted (Busa-Fekete et al., Appendix C).
            It needs an environment, whose log it reads, and is exact when ``predict`` is called
            once per decision from the episode's start on.
    """

    uses_signals = True

    def __init__(self, env: Any = None, *, delay_window: float = 0.0, **binding: Any) -> None:
        super().__init__(env, **binding)
        self.delay_window = real("delay_window", delay_window, least=0.0)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        if self.delay_window > 0.0:
            raise ValueError(
                "delay_window must be 0 to predict without an environment, whose log it is read "
                f"from; got {self.delay_window!r}"
            )
        return super()._read(rows, lane)


def best_pages(
    index: CompiledIndex,
    page_state: tuple[FloatArray, FloatArray, BoolArray],
    form: str,
    batch: int,
    threshold: float | None = None,
) -> IntArray:
    """Return the pages that an index policy crawls, best first.

    Args:
        index: the value and its table.
        page_state: elapsed times, total weights of signals, and whether alive, (m,) each.
        form: the form of action.
        batch: crawls per decision in the form ``scores``.
        threshold: in the form ``refresh``, the value from which a page is crawled; None for the
            single best page.

    Raises:
        ValueError: the value of an alive page is NaN.
    """
    elapsed, signals, alive = page_state
    value = pointer(index.value) if elapsed.size < FEW_PAGES else index.value
    seen = (value, index.parameters, elapsed, signals, alive)
    several = form == "scores" and batch > 1
    threshold = threshold if form == "refresh" else None
    if not several and threshold is None:
        page = ready(best_page)(*seen)
        if page < 0:
            raise ValueError(UNDEFINED.format(-1 - page))
        return np.array([page])
    values = ready(page_values)(*seen)
    undefined = ready(first_undefined)(values)
    if undefined >= 0:
        raise ValueError(UNDEFINED.format(undefined))
    if several:
        return largest_pages(values, alive, batch)
    return np.flatnonzero(alive & (values >= threshold))


def _of_sources(column: dict[str, FloatArray], name: str) -> FloatArray:
    """Return a column by its name, (m,), or those of several sources of signals, (S, m)."""
    if name in column:
        return column[name]
    return np.stack([column[f"{name}_{source}"] for source in range(_sources(column, name))])


def _sources(columns: Iterable[str], name: str) -> int:
    """Return the number of columns ``name``, or ``name_0``, ``name_1``, ..."""
    return sum(name in (column, column.rpartition("_")[0]) for column in columns)


def largest_pages(values: FloatArray, alive: BoolArray, count: int) -> IntArray:
    """Return the ``count`` alive pages of the largest values, best first, ties to lower indices."""
    count = min(count, int(alive.sum()))
    if count == 0:
        return np.zeros(1, dtype=np.int64)
    bound = np.partition(values, values.size - count)[values.size - count]
    candidates = np.flatnonzero(alive & (values >= bound))
    return candidates[np.argsort(-values[candidates], kind="stable")[:count]]
