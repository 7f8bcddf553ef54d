"""The protocol of policies: start, update and choose, for an environment's lanes or live use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, IntArray, Problem, Tracker
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import Compiled
from policies.base.bandwidths import as_shares
from policies.base.binders import PAGE_FORMS, ActionForm, CrawlCore, bind
from policies.base.choices import page_action, rate_action
from policies.base.live import empty_log

INT64 = np.dtype(np.int64)


class ActingPolicy(ABC):
    """A policy: ``start`` an episode, ``update`` on a log, ``choose`` an action.

    Subclasses implement ``_start``, ``_update`` and ``_choose``, and keep the state of an episode
    in attributes. The base class calls ``_start`` once per episode, and the others once per
    decision. An environment of several lanes has a copy of the policy for each (:meth:`of_lane`).

    A policy is built in one of three ways.

    * For an environment: :meth:`predict` then reads its trackers and logs (float64, unsaturated),
      and of an observation only whether it is a batch. Wrappers may change its columns, and a
      Stable-Baselines3 DummyVecEnv may stack it.
    * From a description of the pages: the caller passes trackers and logs.
    * For some policies, from the names of observation columns: ``predict`` reads nothing else.

    Args:
        env: a crawl environment, single or vector, wrapped or not; or a description of the pages, a
            ``Problem`` or :class:`policies.base.live.Description`.
        features: instead of ``env``, the names of the observation's columns
            (``env.unwrapped.features``).
        action_form: without an environment, the form of the actions, one of ``acts``.
        batch: without an environment, crawls per decision in the form ``scores``.

    Raises:
        ValueError: neither or both of ``env`` and ``features``; ``env`` is no crawl environment;
            an unknown form of action; a batch below 1.
    """

    acts: ClassVar[tuple[str, ...]] = PAGE_FORMS
    """The supported forms of action."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of :class:`crawl_envs.types.Problem` that must be revealed."""
    oracle: bool = False
    """Whether the policy reads the true events, which the tracker does not contain."""
    learns: ClassVar[bool] = False
    """Whether the policy learns from the results of its crawls."""
    reads_columns: ClassVar[bool] = False
    """Whether the policy can be built from the names of observation columns."""
    reads_log: bool = True
    """Whether ``_update`` reads the log; if not, it is not called."""
    stream: tuple[int, ...] = (0,)
    """Which of the random streams spawned from the lane's is the policy's own."""

    def __init__(
        self,
        env: Any = None,
        *,
        features: Sequence[str] | None = None,
        action_form: ActionForm | None = None,
        batch: int | None = None,
    ) -> None:
        if env is None and features is None and not self.reads_columns:
            raise ValueError(
                f"env must be an environment or a description of pages for {self.name}, got None"
            )
        self._binder = bind(self.name, self.acts, env, features, action_form, batch)
        self.core: CrawlCore | None = self._binder.core
        self.features, self.batch = self._binder.features, self._binder.batch
        self.action_form: str = self._binder.action_form
        self._check_form()
        self._of_shares = self.action_form == "shares"
        if self._of_shares:  # its own form is rates, which as_shares converts
            self.action_form = "rates"
        if self.batch < 1:
            raise ValueError(f"batch must be >= 1, got {batch!r}")
        self.lane = 0
        self.by_lane: dict[int, Self] = {}
        self.episode: int | None = None
        self.updated = self.decided = math.nan
        self._first: Tracker | None = None
        self._choice: Any = None
        self._rows: Any = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise ValueError, not AttributeError, where ``__init__`` was not called."""
            if "core" in vars(self) or name.startswith("__"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise ValueError(
                f"{type(self).__name__}.__init__ must call super().__init__(env), which sets "
                f"{name!r}, before it is used"
            )

    def _check_form(self) -> None:
        """Raise ValueError where the policy cannot act in its form of action."""
        one_of(f"action_form of {self.name}", self.action_form, self.acts)

    @property
    def name(self) -> str:
        """The policy's name in :func:`policies.make`."""
        return type(self).__name__

    @property
    def _count(self) -> int:
        """Number of pages per decision."""
        return self.batch if self.action_form == "scores" else 1

    @property
    def first_log(self) -> bool:
        """Whether the episode has had no log yet."""
        return self._first is not None

    def start(self, tracker: Tracker) -> None:
        """Begin an episode, maybe midway, without what was learned in earlier ones.

        ``update`` and ``choose`` do so at the first tracker of another episode.

        Raises:
            ValueError: the tracker is of another number of pages than the policy, or lacks
                parameters that the policy needs.
        """
        self._binder.note(tracker)
        self._start(tracker)
        self.episode = tracker.episode
        self.updated = self.decided = math.nan
        self._first = tracker if self.reads_log else None

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Take in the crawls and signals since the last call, up to ``tracker``; once per time."""
        self._enter(tracker)
        if not self.reads_log or self.updated == tracker.time:
            return
        if self._first is not None and self._first.time < tracker.time:
            self._take(empty_log(tracker.problem.num_sources), self._first)
        self._take(log, tracker)

    def choose(self, tracker: Tracker) -> Any:
        """Return the action of the decision at ``tracker``, in the form that ``predict`` returns.

        Repeated calls at one time return the same.
        """
        self._enter(tracker)
        if self._first is not None:
            self._take(empty_log(tracker.problem.num_sources), self._first)
        self._binder.note(tracker)
        return self._encode(self._decision(tracker), tracker.elapsed.size)

    def _start(self, tracker: Tracker) -> None:  # noqa: B027  (optional)
        """Set the state of an episode that begins, maybe midway, at ``tracker``."""

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:  # noqa: B027  (optional)
        """Take in a log. The first one, maybe empty, ends at the tracker of ``_start``."""

    @abstractmethod
    def _choose(self, tracker: Tracker) -> Any:
        """Return the pages to crawl, best first, distinct; in the form ``rates``, the action."""

    def _take(self, log: CrawlLog, tracker: Tracker) -> None:
        self._binder.note(tracker, log)
        self._update(log, tracker)
        self.updated, self._first = tracker.time, None

    def _enter(self, tracker: Tracker) -> None:
        if self.episode != tracker.episode:
            self.start(tracker)

    def _decision(self, tracker: Tracker) -> NDArray[Any]:
        """Return the decision at ``tracker``, made once."""
        if self.decided != tracker.time:
            self._choice = self._choose(tracker)
            if self._of_shares and self.core is not None:
                when = self.core.epoch, tracker.time
                self._choice = as_shares(self._choice, tracker.problem, *when)
            self.decided = tracker.time
        return self._choice  # type: ignore[no-any-return]  # of _choose

    def _require(self, problem: Problem) -> None:
        missing = [name for name in self.needs if getattr(problem, name) is None]
        if missing:
            raise ValueError(
                f"{self.name} needs {', '.join(missing)}, which the environment does not reveal; "
                "make it with reveal='parameters'"
            )

    def _rng(self) -> np.random.Generator:
        """Return a new generator of the episode's own stream, apart from the lane's."""
        assert self.core is not None
        rng = self.core.rng(self.lane)
        for number in self.stream:
            rng = rng.spawn(number + 1)[number]
        return rng

    def of_lane(self, lane: int) -> Self:
        """Return the policy with the state of a lane: this object for lane 0, else a copy."""
        if not self.by_lane:
            self._unused = unused = copy(self)
            unused.episode, unused._unused = None, unused
            self.by_lane[0] = self
        if lane not in self.by_lane:
            self.by_lane[lane] = new = copy(self._unused)
            new.lane = lane
        return self.by_lane[lane]

    def _known(self, lane: int) -> Self:
        """Return the policy with the state of a lane; ValueError before its first decision."""
        policy = self if lane == 0 else self.by_lane.get(lane)
        if policy is None or policy.episode is None:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return policy

    def _follow(self, lane: int, tracker: Tracker | None = None) -> Tracker:
        """Update the policy of a lane to its present decision, which another policy may make.

        Returns the lane's tracker, which is read from the environment if it is not given.
        """
        assert self.core is not None
        policy = self.of_lane(lane)
        tracker = self.core.tracker(lane) if tracker is None else tracker
        policy._enter(tracker)
        if policy.reads_log and policy.updated != tracker.time:  # reading the log is slow
            policy.update(self.core.last_log(lane), tracker)
        return tracker

    def _decide(self, rows: Any, lane: int, tracker: Tracker | None = None) -> NDArray[Any]:
        """Return the action of a lane at its observation, and at its tracker as for `_follow`."""
        if self.core is None:
            return self._encode(self._read(rows, lane), len(rows))
        policy = self.of_lane(lane)
        policy._rows, tracker = rows, self._follow(lane, tracker)
        return policy._encode(policy._decision(tracker), tracker.elapsed.size)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        """Return the pages to crawl, best first, from one lane's observation, (m, F)."""
        raise NotImplementedError

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, in the environment's form, and ``state``.

        Args:
            observation: shape (m, F) of one lane or (N, m, F) of N lanes; a bound policy requires
                its environment's N, and takes observations of any form. In a single environment
                an array whose first axis has length 1 is a batch, unless it has the shape of the
                observations of ``env``.
            state: returned unchanged; a bound policy keeps its own state per lane.
            episode_start: not used; a bound policy reads ``tracker.episode``.
            deterministic: not used; random policies draw from the environment's generator.

        Returns:
            Per lane, with a leading axis if ``observation`` has one: the page (int64), the scores
            (float32, shape (m,): the chosen pages from 1 downwards, all others -1), the set of
            pages (int8, shape (m,)), the rates (float64, shape (m,)), or the shares (float32).

        Raises:
            ValueError: the observation's shape fits neither the environment nor the features; a
                bound policy is asked about another environment, or an instance or time that its
                own is not at.
        """
        lanes, batched = self._binder.lanes(observation)
        chosen = []
        for lane, rows in enumerate(lanes):
            chosen.append(self._decide(rows, lane))
            self._binder.notice(rows, lane, self.by_lane.get(lane, self))
        return (np.stack(chosen) if batched else np.array(chosen[0])[()]), state

    def _encode(self, choice: Any, num_pages: int) -> NDArray[Any]:
        """Return a choice in the form of actions; ValueError if it is none of that form."""
        if self.action_form == "rates":
            return rate_action(self.name, choice, num_pages, shares=self._of_shares)
        if self.action_form == "page" and type(choice) is np.ndarray and choice.shape == (1,):
            page = int(choice[0]) if choice.dtype is INT64 else -1
            if 0 <= page < num_pages:
                return np.asarray(page, dtype=np.int64)  # what most policies choose, at once
        return page_action(self.name, choice, self.action_form, num_pages, batch=self.batch)


class LearningPolicy(ActingPolicy):
    """A policy that learns from logs, and can be told of one before the next ``predict``."""

    learns = True

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from the log of a lane's last step, as the next ``predict`` would do."""
        assert self.core is not None
        self.of_lane(lane).update(log, self.core.tracker(lane))


class CrawlPolicy(ActingPolicy):
    """A policy that compiled code can play: the problem determines its whole episode."""

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the compiled form for ``problem`` and ``slots`` crawls; ``rng`` decides at random.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
