"""Index policies: crawl the page whose crawl value is largest (Busa-Fekete et al., Algorithm 1).

Where crawls have costs, it is the value per unit of cost.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.base.live import is_complete
from policies.base.policy import CrawlPolicy, Pages
from policies.base.promising import PromisingPolicy
from policies.values.ranking import best_pages, counts_at_unknown_age, ignore_signal, signal_weights

ROUNDING = 1e-12
"""Relative error of a time computed as now minus elapsed."""


class IndexPolicy(PromisingPolicy, CrawlPolicy):
    """Crawls the alive page of the largest crawl value; ties go to the lowest index.

    Where crawls have costs, the value is divided by the page's cost. A value is proportional to
    importance, so the table is made of importance per unit of cost; a value that ignores importance
    ignores costs.

    The table of the pages' parameters is built once per episode. Steps and :meth:`compile` use the
    same compiled value and table, so both choose the same pages.

    In the action form ``scores`` it crawls the ``batch`` pages of the largest values, in
    ``refresh`` the pages whose value reaches ``threshold``.

    Args:
        threshold: in the form ``refresh``, the value from which a page is crawled, in units of
            importance times time, importance as given: the price of a crawl, per unit of its cost
            if crawls have costs; None for the single best page.
        believed: a function that maps the problem to the one that the policy assumes, for example
            with estimated parameters; None for the problem as revealed.
        most_interval: of :class:`policies.base.promising.PromisingPolicy`.
        most_rounds: of the same class.

    Raises:
        ValueError: as for this class; a threshold that is not a number, or in another form; when an
            episode starts, missing parameters.
    """

    reads_columns = True
    delay_window: float = 0.0
    believed: Callable[[Problem], Problem] | None = None

    def __init__(
        self,
        *,
        threshold: float | None = None,
        believed: Callable[[Problem], Problem] | None = None,
        most_interval: ArrayLike | None = None,
        most_rounds: ArrayLike | None = None,
    ) -> None:
        super().__init__(most_interval=most_interval, most_rounds=most_rounds)
        self.threshold = None if threshold is None else real("threshold", threshold)
        self.believed = believed

    @abstractmethod
    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        """Return the compiled value of type VALUE, and its table for ``problem``, (m, P).

        The problem has no costs, but importance per unit of cost. Further rows may hold what is
        common to all pages.
        """

    def _signal_weight(self, problem: Problem) -> Any:
        """Return the compiled weight, of type SIGNAL_WEIGHT, of a signal; None for weight 1."""
        return None

    def check(self) -> None:
        """Raise ValueError for a form in which the policy or its threshold has no meaning."""
        super().check()
        if self.threshold is not None and self.form.action != "refresh":
            raise ValueError(
                "threshold must be None except in the action form 'refresh', "
                f"got {self.threshold!r} in the form {self.form.action!r}"
            )

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledIndex:
        """Return the compiled value and its table; ``slots`` and ``rng`` are not used."""
        pages, promises = problem.num_pages, self.promises(problem)
        if self.believed is not None:
            problem = self.believed(problem)
        self.require(problem)
        problem = problem.per_cost()
        value, table = self._index(problem)
        if not hasattr(value, "signature"):
            raise ValueError(
                f"the index of {self.name} must be compiled by crawl_envs.compiled.compiling."
                f"compiled(VALUE.signature), got {value!r}"
            )
        table = np.require(table, np.float64, ["C", "W"])
        shape = np.shape(table)
        if len(shape) != 2 or shape[0] < pages or np.isnan(table).any():
            raise ValueError(
                f"the table of {self.name} must have a row per page, at least ({pages}, P), and no "
                f"NaN, got {'NaN in ' * (len(shape) == 2 and shape[0] >= pages)}shape {shape}"
            )
        weight = self._signal_weight(problem) if self.uses_signals else ignore_signal
        weight = None if weight is None else ready(weight)
        return CompiledIndex(ready(value), table, self.delay_window, weight, promises)

    def start(self, pages: Pages) -> None:
        """Compute the table of an episode's pages, and the weights of the signals so far."""
        self.check()
        tracker = pages.tracker()
        self.index = self.compile(tracker.problem, 0, np.random.default_rng(0))
        weighted = self.index.signal_weight is not None or self.delay_window > 0.0
        self.reads_log = self.uses_signals and weighted
        self.last_crawl = tracker.time - tracker.elapsed
        if self.reads_log and is_complete(log := pages.last_log(), tracker):
            self.counts, self.last_crawl = np.zeros((2, tracker.elapsed.size))
            self.update(log, tracker)
        else:
            self.follow(tracker)

    def follow(self, tracker: Tracker) -> None:
        """Set each page's weight of signals since its last crawl, as signals of unknown age."""
        if self.uses_signals:
            self.counts = counts_at_unknown_age(self.index, tracker.signals)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the weights of a log's signals, by the ages at which they arrived.

        A birth counts as a crawl. A page was born if its elapsed time began after its last crawl.
        """
        if not self.reads_log:
            return
        start = tracker.time - tracker.elapsed
        np.maximum.at(self.last_crawl, log.page, log.time)
        born = tracker.alive & (start > self.last_crawl + ROUNDING * tracker.time)
        self.last_crawl[born] = start[born]
        self.counts[log.page] = 0.0
        self.counts[born | ~tracker.alive] = 0.0
        window = self.index.delay_window
        age = log.signal_time - self.last_crawl[log.signal_page]
        age = np.where(born[log.signal_page] & (abs(age) <= ROUNDING * tracker.time), 0.0, age)
        late = (age > window) | ((age == 0.0) & (window == 0.0))
        page, source = log.signal_page[late], log.signal_source[late]
        np.add.at(self.counts, page, signal_weights(self.index, page, age[late], source))

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages with the largest crawl values, or all that reach the threshold."""
        self.check_pages(tracker, self.last_crawl.size)
        if not self.uses_signals:
            signals = np.zeros(tracker.elapsed.size)
        elif self.reads_log:
            signals = self.counts
        else:
            signals = counts_at_unknown_age(self.index, tracker.signals)
        page_state = (tracker.elapsed, signals, tracker.alive)
        count = self.num_chosen(tracker)
        return best_pages(self.index, page_state, self.form.action, count, self.threshold)


class SignalPolicy(IndexPolicy):
    """An index policy that counts signals, and can ignore those that come soon after a crawl.

    Args:
        delay_window: signals that arrive within this time of a crawl of their page (or of time 0,
            when every page counts as crawled) are not counted (Busa-Fekete et al., Appendix C).
            It needs logs, and is exact from the episode's start on.
        **settings: as for :class:`IndexPolicy`.
    """

    uses_signals = True

    def __init__(self, *, delay_window: float = 0.0, **settings: Any) -> None:
        super().__init__(**settings)
        self.delay_window = real("delay_window", delay_window, least=0.0)
        if self.delay_window > 0.0:  # the ages of signals come from logs
            self.reads_columns = False
