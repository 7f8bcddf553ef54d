"""With what a bound policy is asked: observations of its own environment, and no others.

A bound policy reads the trackers of its environment, and of an observation only whether it is a
batch. So it would answer an observation of another environment by what it knows of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Wrappers of ``gymnasium.make``, which pass observations on as they are."""
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")
"""Columns of an observation that are the same in a whole episode."""
REMEDY = "a policy plays the environment that it is bound to: make one for each, outermost wrapper"


class Questions:
    """The observations that a policy is asked with.

    Args:
        name: name of the policy, for errors.
        env: the environment as it was given to the policy, wrapped or not.
        core: the crawl environment inside.
    """

    def __init__(self, name: str, env: Any, core: Any) -> None:
        self.name, self.core = name, core
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

    def notice(self, observation: Any, lane: int, episode: int, time: float) -> None:
        """Raise ValueError if the observation of a lane is not of its present decision.

        In an episode's first call the parameters in it are compared with the environment's, unless
        wrappers may have changed them. Later, other observations at one time show that another
        environment is played.
        """
        last = self._last.get(lane)
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
