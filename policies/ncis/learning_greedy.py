"""GREEDY-NCIS that knows only importance: it learns the change model while it crawls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from policies.base.binding import ActionForm, LearningPolicy
from policies.base.index import best_pages
from policies.base.registry import registered
from policies.ncis.page_learner import Learner

MEMORY = (math.inf, 30.0)
"""Crawls of a page until data decay to 1 / e: never, or fast enough for changing change rates."""


@registered()
class LearningGreedyNCIS(LearningPolicy):
    """GREEDY-NCIS on learned parameters; only the importance of pages is known.

    No paper has this policy. For every page it has Gamma beliefs about the rate of unsignalled
    changes, the evidence of a signal of each source, and the rates of signals
    (:mod:`policies.ncis.priors`), and after every crawl updates those of the crawled page, in
    constant time. The distributions that pages share, which serve as priors of new and rarely
    crawled pages, are updated every m crawls for m crawled pages. Values are those of
    :class:`policies.GreedyNCIS` at exp(E ln theta) of the beliefs: with few data the estimated
    change rate is low and the value after a long wait high, so that a page is crawled until it is
    known to change too fast. There is no other exploration: a share of crawls by round robin cost
    more than it gained.

    With several sources, signals have different weights; the value is that of one source with the
    same rates of true signals and of evidence (:func:`policies.ncis.page_learner.one_source`).

    It ignores revealed parameters. Without an environment it can work from observation columns, for
    any batch of lanes, and then learns only from ``observe``, which
    :class:`crawl_envs.envs.wrappers.Observing` calls.

    Every episode starts with no data unless ``keep`` is True. Lanes learn independently.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        features: instead of ``env``, the observation's columns; ``elapsed``, ``signals`` (or
            ``signals_0``, ...) and ``importance`` must be among them.
        action_form: with ``features``, as for :class:`policies.base.binding.CrawlPolicy`; in the
            form ``refresh`` it crawls one page per decision.
        batch: with ``features``, crawls per decision in the form ``scores``.
        memory: crawls of a page until data decay to 1 / e, > 1, inf for never; or several such
            numbers, to use the one with the best recent predictions of crawls.
        groups: the group of each page (a directory, a host), (m,) whole numbers 0 .. G - 1: pages
            are shrunk towards their group, and groups towards the whole set. None for one group.
        pooled: False for fixed prior distributions.
        keep: True continues with the beliefs of a lane's earlier episodes, for episodes of the
            same pages.

    Raises:
        ValueError: as for the base class; an argument out of its range; at the first ``predict``,
            groups of another number of pages.
    """

    reads_columns = True

    def __init__(
        self,
        env: Any = None,
        *,
        features: Sequence[str] | None = None,
        action_form: ActionForm | None = None,
        batch: int | None = None,
        memory: float | Sequence[float] = MEMORY,
        groups: ArrayLike | None = None,
        pooled: bool = True,
        keep: bool = False,
    ) -> None:
        super().__init__(env, features=features, action_form=action_form, batch=batch)
        self.memories = _memories(memory)
        self.groups = None if groups is None else _groups(groups)
        self.pooled, self.keep = bool(pooled), bool(keep)
        self.learner: Learner | None = None
        self.last_crawl = -math.inf
        self._sources = tuple(
            k for k, name in enumerate(self.features) if name.rpartition("_")[0] == "signals"
        ) or tuple(k for k, name in enumerate(self.features) if name == "signals")
        if self.core is None:
            missing = [name for name in ("elapsed", "importance") if name not in self.features]
            missing += [] if self._sources else ["signals"]
            if missing:
                raise ValueError(
                    f"{self.name} needs the columns {', '.join(missing)}, "
                    f"features has {', '.join(self.features)}"
                )

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from a lane's log of the last step or reset.

        A bound policy learns now instead of at the next ``predict``. For an unbound policy, every
        log must come once, and a log without crawls, as after a reset, or with crawls no later
        than those before, begins an episode. Logs before the lane's first ``predict`` are ignored,
        since the pages are not known yet.
        """
        if self.core is not None:
            super().observe(log, lane)
            return
        policy = self.by_lane.get(lane)
        if policy is None or policy.learner is None:
            return
        if log.page.size == 0 or log.time[0] <= policy.last_crawl:
            policy.last_crawl = -math.inf
            if not self.keep:
                before = policy.learner
                policy.learner = self._learner(
                    before.importance, before.num_sources, before.interval
                )
        policy.learner.learn(log)
        policy.last_crawl = float(log.time[-1]) if log.page.size else policy.last_crawl

    def estimates(self, lane: int = 0) -> dict[str, FloatArray]:
        """Return the present estimates of the parameters of a lane's pages, by name.

        ``unsignalled_rate`` (alpha), (m,); ``evidence`` (b) and ``signal_rate`` (gamma), (S, m).

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        learner = self._known(lane).learner
        assert learner is not None
        typical = learner.beliefs[learner.best].typical(slice(None)).T
        s = learner.num_sources
        return {
            "unsignalled_rate": typical[0],
            "evidence": typical[1 : 1 + s],
            "signal_rate": typical[1 + s :],
        }

    def _start(self, tracker: Tracker) -> None:
        problem = tracker.problem
        if self.keep and self.learner is not None:
            self.learner.weigh(problem.importance)
            return
        interval = max(int(tracker.alive.sum()), 1) / problem.bandwidth
        self.learner = self._learner(problem.importance, problem.num_sources, interval)

    def _learner(self, importance: FloatArray, num_sources: int, interval: float) -> Learner:
        num_pages = importance.size
        group = np.zeros(num_pages, np.int64) if self.groups is None else self.groups
        if group.size != num_pages:
            raise ValueError(f"groups must be of {num_pages} pages, got {group.size}")
        return Learner(importance, num_sources, interval, group, self.memories, self.pooled)

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        assert self.learner is not None
        self.learner.learn(log)

    def _choose(self, tracker: Tracker) -> IntArray:
        assert self.learner is not None
        page_state = (tracker.elapsed, self.learner.counted(tracker.signals), tracker.alive)
        return best_pages(self.learner.index, page_state, self.action_form, self.batch)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        def column(name: str) -> FloatArray:
            return np.ascontiguousarray(rows[:, self.features.index(name)], dtype=np.float64)

        elapsed, importance = column("elapsed"), column("importance")
        alive = np.ones(elapsed.size, dtype=np.bool_)
        if "alive" in self.features:
            alive = column("alive") > 0.5
        policy = self.of_lane(lane)
        if policy.learner is None or policy.learner.importance.size != elapsed.size:
            passed = elapsed[alive & (elapsed > 0.0)]
            slots = (passed.min() if passed.size else 1.0) / self.batch
            policy.learner = self._learner(importance, len(self._sources), alive.sum() * slots)
            policy.episode, policy.last_crawl = 0, -math.inf
        policy.learner.weigh(importance)
        signals = np.rint(rows[:, self._sources].T).astype(np.int64)
        page_state = (elapsed, policy.learner.counted(signals), alive)
        return best_pages(policy.learner.index, page_state, self.action_form, self.batch)


def _memories(memory: float | Sequence[float]) -> tuple[float, ...]:
    memories = tuple(float(each) for each in np.atleast_1d(memory))
    if not memories or not all(each > 1.0 for each in memories):
        raise ValueError(f"memory must be > 1 crawl, or several such numbers, got {memory!r}")
    return memories


def _groups(groups: ArrayLike) -> IntArray:
    group = np.asarray(groups)
    if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu" or group.min() < 0:
        raise ValueError(
            "groups must be a whole number >= 0 for each page, "
            f"got dtype {group.dtype}, shape {group.shape}"
        )
    return group.astype(np.int64)
