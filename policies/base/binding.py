"""Base classes of policies: they read an environment or observation columns, and return actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import CrawlLog, IntArray, Problem, Tracker
from crawl_envs.types.compiled_policies import Compiled
from policies.base.bandwidths import as_shares

PageForm: TypeAlias = Literal["page", "scores", "refresh"]
ActionForm: TypeAlias = Literal["page", "scores", "refresh", "rates", "shares"]
PAGE_FORMS: tuple[str, ...] = get_args(PageForm)
"""The forms of action that name pages."""
RATE_FORMS = ("rates", "shares")
"""The forms of action that are crawl rates of an epoch."""

EpisodeState = TypeVar("EpisodeState", bound="LaneState")


CORE_NAMES = (
    *("num_lanes", "action_form", "batch", "features"),
    *("tracker", "last_log", "rng", "num_slots"),
)
"""Attributes that an environment must have so that policies can be bound to it."""


class CrawlCore(Protocol):
    """The attributes of ``env.unwrapped`` that a policy may read.

    ``epoch`` and ``declare`` are for RATE_FORMS.
    """

    num_lanes: int
    action_form: str
    batch: int
    epoch: float
    features: tuple[str, ...]

    def tracker(self, lane: int = 0) -> Tracker:
        """Return the tracker of a lane: all public information."""

    def last_log(self, lane: int = 0) -> CrawlLog:
        """Return the crawls and signals of the last step."""

    def rng(self, lane: int = 0) -> np.random.Generator:
        """Return the generator for random choices of the current episode."""

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Declare the estimated change rates, for the budget of the next step."""

    def num_slots(self, lane: int = 0) -> int:
        """Return the number of crawls in an episode; of epochs in RATE_FORMS."""


class LaneState(Protocol):
    """A policy's state of one lane's episode."""

    episode: int


class ActingPolicy(ABC, Generic[EpisodeState]):
    """A policy with Stable-Baselines3's ``predict``.

    A decision is the pages to crawl in the forms ``page``, ``scores`` and ``refresh``; in the form
    ``rates`` it is the action itself, (m,): the crawl rate of each page, or for a page with
    complete observation the probability of a crawl per signal. Where the environment takes
    ``shares``, the policy's own form is ``rates``, and :func:`.as_shares` converts its decisions.

    Bound to an environment it reads ``tracker`` (float64, unsaturated), and of an observation only
    whether it is a batch: any wrapper may change it, and a Stable-Baselines3 DummyVecEnv around the
    same environment may stack it.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        features: instead of ``env``, the names of the observation's columns
            (``env.unwrapped.features``).
        action_form: with ``features``, the form of the actions, one of ``acts``.
        batch: with ``features``, crawls per decision in the form ``scores``.

    Raises:
        ValueError: neither or both of ``env`` and ``features``; ``env`` is no crawl environment;
            an unknown form of action; a batch below 1.
    """

    acts: ClassVar[tuple[str, ...]] = PAGE_FORMS
    """The supported forms of action."""
    oracle: ClassVar[bool] = False
    """Whether the policy reads the true events, which the tracker does not contain."""
    for_fragments: ClassVar[bool] = False
    """Whether the policy is for pages made of fragments only."""

    def __init__(
        self,
        env: Any = None,
        *,
        features: Sequence[str] | None = None,
        action_form: ActionForm | None = None,
        batch: int | None = None,
    ) -> None:
        if (env is None) == (features is None):
            raise ValueError(f"{self.name} takes either env or features=, got both or neither")
        self.core: CrawlCore | None = None
        if env is not None:
            if action_form is not None or batch is not None:
                raise ValueError("action_form and batch are the environment's where env is given")
            self.core = core_of(env)
            features, action_form, batch = (
                self.core.features,
                self.core.action_form,  # type: ignore[assignment]  # checked below
                self.core.batch,
            )
        self.features = tuple(features or ())
        self.action_form = "page" if action_form is None else action_form
        self.batch = 1 if batch is None else int(batch)
        self._check_form()
        self._of_shares = self.action_form == "shares"
        if self._of_shares:
            self.action_form = "rates"
        if self.batch < 1:
            raise ValueError(f"batch must be >= 1, got {batch!r}")
        self._lane_states: dict[int, EpisodeState] = {}

    def _check_form(self) -> None:
        """Raise ValueError where the policy cannot act in its form of action."""
        if self.action_form not in self.acts:
            raise ValueError(
                f"action_form must be one of {self.acts} for {self.name}, got {self.action_form!r}"
            )

    @property
    def name(self) -> str:
        """The policy's name in :func:`policies.make`."""
        return type(self).__name__

    @property
    def _count(self) -> int:
        """Number of pages per decision."""
        return self.batch if self.action_form == "scores" else 1

    @abstractmethod
    def _begin(self, tracker: Tracker, lane: int) -> EpisodeState:
        """Return the state of an episode that the policy enters, maybe midway, at ``tracker``."""

    @abstractmethod
    def _choose(self, lane_state: EpisodeState, tracker: Tracker, lane: int) -> NDArray[Any]:
        """Return the pages to crawl at this decision of a bound policy, best first, distinct.

        In the form ``rates``: the action, (m,).
        """

    @abstractmethod
    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        """Return the pages to crawl, best first, from one lane's observation, (m, F)."""

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
                its environment's N, and takes observations of any form.
            state: returned unchanged; a bound policy keeps its own state per lane.
            episode_start: not used; a bound policy reads ``tracker.episode``.
            deterministic: not used; random policies draw from the environment's generator.

        Returns:
            Per lane, with a leading axis if ``observation`` has one: the page (int64), the scores
            (float32, shape (m,): the chosen pages from 1 downwards, all others -1), the set of
            pages (int8, shape (m,)), the rates (float64, shape (m,)), or the shares (float32).

        Raises:
            ValueError: the observation's shape fits neither the environment nor the features.
        """
        lanes, batched = self._lanes(observation)
        decided = [self._decide(rows, lane) for lane, rows in enumerate(lanes)]
        num_pages = len(lanes[0]) if self.core is None else self._num_pages
        actions = np.stack([self._encode(choice, num_pages) for choice in decided])
        return (actions if batched else actions[0]), state

    @cached_property
    def _num_pages(self) -> int:
        """Number of pages of the environment that the policy is bound to."""
        assert self.core is not None
        return int(self.core.tracker(0).elapsed.size)

    def _lanes(self, observation: Any) -> tuple[Sequence[Any], bool]:
        """Return the observation of each lane, and whether they were given as a batch."""
        if self.core is not None:
            return self._bound_lanes(observation, self.core.num_lanes)
        rows = np.asarray(observation)
        if rows.ndim not in (2, 3):
            raise ValueError(
                f"observation must have shape (m, F) or (lanes, m, F), got {rows.shape}"
            )
        if rows.shape[-1] != len(self.features):
            raise ValueError(
                f"observation must have the {len(self.features)} columns {self.features}, "
                f"got shape {rows.shape}"
            )
        return (list(rows), True) if rows.ndim == 3 else ([rows], False)

    def _bound_lanes(self, observation: Any, num_lanes: int) -> tuple[Sequence[Any], bool]:
        """Do the same for observations of any form, of the environment's number of lanes."""
        parts = observation if isinstance(observation, Mapping) else {"": observation}
        shape, pages = np.shape(next(iter(parts.values()))), self._num_pages
        rows_of_pages = len(shape) == 3 and shape[1] == pages
        stacked = rows_of_pages or (len(shape) > 1 and shape[0] == 1 < pages)
        if num_lanes == 1 and not stacked:
            return [observation], False
        if shape[:1] != (num_lanes,):
            raise ValueError(
                f"observation must have the {num_lanes} lanes of the environment that "
                f"{self.name} is bound to, got shape {shape}"
            )
        if isinstance(observation, Mapping):
            return [{k: part[lane] for k, part in parts.items()} for lane in range(num_lanes)], True
        return observation, True

    def _decide(self, rows: NDArray[Any], lane: int) -> NDArray[Any]:
        if self.core is None:
            return self._read(rows, lane)
        tracker = self.core.tracker(lane)
        choice = self._choose(self._lane_state(tracker, lane), tracker, lane)
        if self._of_shares:
            return as_shares(choice, tracker.problem, self.core.epoch, tracker.time)
        return choice

    def _lane_state(self, tracker: Tracker, lane: int) -> EpisodeState:
        """Return the state of a lane's episode, a new one if the episode is new."""
        lane_state = self._lane_states.get(lane)
        if lane_state is None or lane_state.episode != tracker.episode:
            lane_state = self._lane_states[lane] = self._begin(tracker, lane)
        return lane_state

    def _follow(self, lane: int) -> None:
        """Update the lane's state at a decision that another policy may make."""
        assert self.core is not None
        self._lane_state(self.core.tracker(lane), lane)

    def _encode(self, pages: NDArray[Any], num_pages: int) -> NDArray[Any]:
        if self.action_form == "rates":
            return np.asarray(pages, dtype=np.float32 if self._of_shares else np.float64)
        if self.action_form == "page":
            return np.asarray(pages[0], dtype=np.int64)
        if self.action_form == "refresh":
            refresh = np.zeros(num_pages, dtype=np.int8)
            refresh[pages] = 1
            return refresh
        scores = np.full(num_pages, -1.0, dtype=np.float32)
        scores[pages] = 1.0 - np.arange(len(pages)) / max(self.batch, len(pages))
        return scores


class CrawlPolicy(ActingPolicy[EpisodeState]):
    """A policy that compiled code can play: the problem determines its whole episode.

    Arguments and errors as for :class:`ActingPolicy`.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of :class:`crawl_envs.types.Problem` that the policy needs."""

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the compiled form for ``problem`` and ``slots`` crawls; ``rng`` decides at random.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """

    @abstractmethod
    def _start(self, compiled: Compiled, tracker: Tracker) -> EpisodeState:
        """Return the state of an episode that the policy enters, maybe midway, at ``tracker``."""

    def _begin(self, tracker: Tracker, lane: int) -> EpisodeState:
        assert self.core is not None
        slots, rng = self.core.num_slots(lane), self.core.rng(lane)
        return self._start(self.compile(tracker.problem, slots, rng), tracker)

    def _require(self, problem: Problem) -> None:
        missing = [name for name in self.needs if getattr(problem, name) is None]
        if missing:
            raise ValueError(
                f"{self.name} needs {', '.join(missing)}, which the environment does not reveal; "
                "make it with reveal='parameters'"
            )


def core_of(env: Any) -> CrawlCore:
    """Return the crawl environment inside ``env``; ValueError if there is none."""
    core = getattr(env, "unwrapped", env)
    of_rates = getattr(core, "action_form", None) in RATE_FORMS
    wanted = (*CORE_NAMES, *(("epoch", "declare") if of_rates else ()))
    lacking = [name for name in wanted if not hasattr(core, name)]
    if lacking:
        raise ValueError(
            f"env must be a crawl environment, got {type(core).__name__} without "
            f"{', '.join(lacking)}"
        )
    return core  # type: ignore[no-any-return]
