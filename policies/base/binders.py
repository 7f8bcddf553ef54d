"""What a policy is bound to: an environment, a description of pages, or columns of observations.

A binder knows the form of the actions, and reads observations into lanes. A policy that is bound to
an environment reads its trackers, and of an observation only whether it is a batch. So it would
answer an observation of another environment by what it knows of its own, if that were not refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import CrawlLog, Problem, Tracker
from policies.base.live import Description

PageForm: TypeAlias = Literal["page", "scores", "refresh"]
ActionForm: TypeAlias = Literal["page", "scores", "refresh", "rates", "shares"]
PAGE_FORMS: tuple[str, ...] = get_args(PageForm)
"""The forms of action that name pages."""
RATE_FORMS = ("rates", "shares")
"""The forms of action that are crawl rates of an epoch."""
NATIVE = (
    "of several: bind to gymnasium.make_vec(id, num_envs=N), for Stable-Baselines3 to "
    "agents.sb3.bridge.CrawlVecEnv of it, or to the only environment inside"
)
"""What a policy binds to in place of vector wrappers of single environments."""
HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Wrappers of ``gymnasium.make``, which pass observations on as they are."""
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")
"""Columns of an observation that are the same in a whole episode."""
REMEDY = "a policy plays the environment that it is bound to: make one for each, outermost wrapper"


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


class ToColumns:
    """Columns of observations by their names; without names, nothing: the policy is simulated."""

    core: CrawlCore | None = None

    def __init__(self, name: str, features: Sequence[str], action_form: str, batch: int) -> None:
        self.name, self.features = name, tuple(features)
        self.action_form, self.batch = action_form, batch

    def lanes(self, observation: Any) -> tuple[Sequence[Any], bool]:
        """Return the columns of each lane, and whether they were given as a batch."""
        if not self.features:
            raise ValueError(f"{self.name} has no env: it can be simulated, but cannot predict")
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

    def notice(self, observation: Any, lane: int, policy: Any) -> None:
        """Do nothing: whatever has these columns may be asked."""

    def note(self, tracker: Tracker, log: CrawlLog | None = None) -> None:
        """Do nothing: no tracker is kept."""


class ToEnvironment:
    """An environment: its trackers and logs are read, its observations compared.

    Args:
        name: name of the policy, for errors.
        env: the environment as it was given to the policy, wrapped or not.
    """

    def __init__(self, name: str, env: Any) -> None:
        core: Any = core_of(env)
        self.name, self.core, self.features = name, core, tuple(core.features)
        self.action_form, self.batch = core.action_form, int(core.batch)
        self.single = core.num_lanes == 1 and not hasattr(core, "num_envs")
        self._spaces = [_space_of(env), _space_of(core)]
        self._shown = getattr(core, "current_observation", None) if _is_bare(env, core) else None
        names = [name.rstrip("_0123456789") for name in core.features]  # without the source
        self._fixed = [column for column, name in enumerate(names) if name in PARAMETERS]
        self._shapes: dict[str, frozenset[tuple[int, ...]] | None] = {}
        self._taken: dict[tuple[int, ...], bool] = {}  # shapes of arrays, and whether batches
        self._last: dict[int, tuple[int, float, Any]] = {}

    def lanes(self, observation: Any) -> tuple[Sequence[Any], bool]:
        """Return the observation of each lane, and whether they were given as a batch.

        Raises:
            ValueError: None, or another shape than that of the environment's observations, which
                may be flattened and stacked, and whose tables may have other columns.
        """
        if type(observation) is np.ndarray and observation.shape in self._taken:
            batched = self._taken[observation.shape]
            rows: Any = observation if batched else [observation]
            return rows, batched
        parts = observation if isinstance(observation, Mapping) else {"observation": observation}
        name = "observation" if "observation" in parts else next(iter(parts), "observation")
        part: Any = parts.get(name)
        shape = np.shape(part)
        if name not in self._shapes:
            self._shapes[name] = self._allowed(name)
        allowed, count = self._shapes[name], self.core.num_lanes
        if self.single and part is not None and _fits(shape, allowed):
            if part is observation:
                self._taken[shape] = False
            return [observation], False
        if part is None or shape[:1] != (count,) or not _fits(shape[1:], allowed):
            raise ValueError(self._refusal(part, shape, allowed))
        if isinstance(observation, Mapping):
            return [{key: part[lane] for key, part in parts.items()} for lane in range(count)], True
        self._taken[shape] = True
        return observation, True

    def _allowed(self, name: str) -> frozenset[tuple[int, ...]] | None:
        """Return the shapes of a part of an observation of a lane; None if there is no saying."""
        table = (self._num_pages(), len(self.core.features))
        shapes: set[Any] = {table} if self._spaces[1] is None else set()
        for space in self._spaces:
            inner = getattr(space, "spaces", None)
            if space is not None and inner is None and space.shape is None:
                return None
            if isinstance(inner, Mapping) and name in inner:
                shapes |= {inner[name].shape, (_size(inner[name]),)}
            shapes |= set() if space is None else {space.shape or (_size(space),), (_size(space),)}
        return None if None in shapes else frozenset(shapes)

    def _num_pages(self) -> int:
        return int(self.core.tracker(0).elapsed.size)

    def _refusal(self, part: Any, shape: tuple[int, ...], allowed: Any) -> str:
        """Return what is wrong with an observation of this shape."""
        count, pages = self.core.num_lanes, self._num_pages()
        table = len(shape) in (2, 3) and shape[-1] == len(self.core.features)
        got = "None" if part is None else f"shape {shape}"
        wanted = f"the {count} lanes"
        if table and shape[-2] != pages > 1:
            wanted = f"the {pages} pages"
        elif self.single or shape[:1] == (count,):
            wanted = f"a shape {' or '.join(map(str, sorted(allowed or ())))}"
        return (
            f"observation must have {wanted} of the environment that {self.name} is bound to, got "
            f"{got}; {REMEDY}"
        )

    def note(self, tracker: Tracker, log: CrawlLog | None = None) -> None:
        """Do nothing: the environment has its trackers and logs."""

    def notice(self, observation: Any, lane: int, policy: Any) -> None:
        """Raise ValueError if a lane's observation is not of the decision that ``policy`` made.

        In an episode's first call the parameters in it are compared with the environment's, unless
        wrappers may have changed them. Later, other observations at one time show that another
        environment is played.
        """
        last, episode, time = self._last.get(lane), policy.episode, policy.decided
        if last is not None and last[0] == episode and last[1] != time:  # nearly always
            self._last[lane] = episode, time, observation
            return
        if last is None or last[0] != episode:
            table = _table_of(observation)
            wrong = self._shown is not None and self._of_other_pages(table, self._shown(lane))
        else:
            wrong = _differs(_table_of(observation), _table_of(last[2]))
        if wrong:
            raise ValueError(
                f"observation must be of the environment that {self.name} is bound to, which is at "
                f"time {time:g} in lane {lane}, got one of another environment, instance or time; "
                f"{REMEDY}"
            )
        self._last[lane] = episode, time, observation

    def _of_other_pages(self, table: Any, shown: Any) -> bool:
        """Return whether an observation has other parameters than that of the environment."""
        own = _table_of(shown)
        if table.shape != own.shape or table.dtype != own.dtype:
            return False
        width = len(self.core.features)
        return _differs(*(rows.reshape(-1, width)[:, self._fixed] for rows in (table, own)))


class ToDescription(ToEnvironment):
    """A description of pages: the caller passes trackers and logs, which the description keeps."""

    core: Description

    def note(self, tracker: Tracker, log: CrawlLog | None = None) -> None:
        """Keep a tracker and log; ValueError if they are of other pages."""
        self.core.note(tracker, log, self.name)


Binder: TypeAlias = ToColumns | ToEnvironment


def bind(
    name: str,
    acts: Sequence[str],
    env: Any,
    features: Sequence[str] | None,
    action_form: str | None,
    batch: int | None,
) -> Binder:
    """Return the binder of a policy that has these forms; the rest as for its constructor."""
    if (env is None) == (features is None):
        raise ValueError(f"{name} takes either env or features=, got both or neither")
    size = 1 if batch is None else batch
    if features is not None:
        return ToColumns(name, features, action_form or "page", int(size))
    if isinstance(env, Problem):
        form = action_form or (*acts, "page")[0]
        env = Description(env, action_form=form, batch=size)
    elif action_form is not None or batch is not None:
        raise ValueError("action_form and batch are the environment's where env is given")
    return (ToDescription if isinstance(env, Description) else ToEnvironment)(name, env)


def core_of(env: Any) -> CrawlCore:
    """Return the crawl environment inside ``env``; ValueError if there is none."""
    core = getattr(env, "unwrapped", env)
    of_rates = getattr(core, "action_form", None) in RATE_FORMS
    named = [name for name in (*CrawlCore.__annotations__, *vars(CrawlCore)) if name[0] != "_"]
    wanted = [name for name in named if of_rates or name not in ("epoch", "declare")]
    lacking = [name for name in wanted if not hasattr(core, name)]
    if lacking:
        several = hasattr(core, "num_envs")
        raise ValueError(
            f"env must be a crawl environment, got {type(core).__name__} "
            + (NATIVE if several else f"without {', '.join(lacking)}")
        )
    return core  # type: ignore[no-any-return]  # has what is read of it


def _fits(shape: tuple[int, ...], allowed: frozenset[tuple[int, ...]] | None) -> bool:
    """Return whether a shape is allowed, or that of a table of as many pages."""
    if allowed is None or shape in allowed:
        return True
    return len(shape) == 2 and any(len(one) == 2 and one[0] == shape[0] for one in allowed)


def _table_of(observation: Any) -> Any:
    """Return the part of an observation that is compared, an array."""
    if isinstance(observation, Mapping):
        observation = observation.get("observation", next(iter(observation.values())))
    return np.asarray(observation)


def _differs(one: Any, other: Any) -> bool:
    """Return whether observations of the same form have other numbers."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return not np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _space_of(env: Any) -> Any:
    """Return the space of the observations of a lane; None if the environment has none."""
    single = getattr(env, "single_observation_space", None)
    return getattr(env, "observation_space", None) if single is None else single


def _size(space: Any) -> int:
    """Return the length of a flattened observation."""
    inner = getattr(space, "spaces", None)
    if inner is None:
        return math.prod(space.shape)
    return sum(map(_size, inner.values() if isinstance(inner, Mapping) else inner))


def _is_bare(env: Any, core: Any) -> bool:
    """Return whether no wrapper can have changed the environment's observations."""
    while env is not core and type(env).__name__ in HARMLESS:
        env = env.env
    return env is core
