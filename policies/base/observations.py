"""Observations of an environment: split into lanes, and compared with the environment's own.

A bound policy acts by the trackers of its environment. An observation of another environment would
get the same answer as one of its own, so it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

HARMLESS_WRAPPERS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Wrappers of ``gymnasium.make``, which pass observations on as they are."""
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")
"""Columns of an observation that are the same in a whole episode."""
REMEDY = "make one policy per environment, from the outermost wrapper"


class Observations:
    """Checks that the observations given to a bound policy come from its own environment.

    Args:
        name: name of the policy, for errors.
        env: the environment, wrapped or not.
        core: the crawl environment inside it.
    """

    def __init__(self, name: str, env: Any, core: Any) -> None:
        self.name, self.core = name, core
        self._single = core.num_lanes == 1 and not hasattr(core, "num_envs")
        self._spaces = [space for space in map(_lane_space, (env, core)) if space is not None]
        self._current = getattr(core, "current_observation", None) if _is_bare(env, core) else None
        names = [name.rstrip("_0123456789") for name in core.features]  # without the source
        self._constant = [column for column, name in enumerate(names) if name in PARAMETERS]
        self._batched: dict[tuple[int, ...], bool] = {}  # by the shapes of tables
        self._last: dict[int, tuple[int, float, Any]] = {}

    def lanes(self, observation: Any) -> tuple[Sequence[Any], bool]:
        """Return the observation of each lane, and whether it was a batch.

        Raises:
            ValueError: None, or another shape than that of the environment's observations, which
                may be flattened and stacked, and whose tables may have other columns.
        """
        shape = np.shape(_part(observation))
        if shape not in self._batched:
            self._batched[shape] = self._is_batch(shape, observation is None)
        if not self._batched[shape]:
            return [observation], False
        if isinstance(observation, Mapping):
            count = self.core.num_lanes
            lanes = ({key: part[k] for key, part in observation.items()} for k in range(count))
            return list(lanes), True
        return observation, True

    def _is_batch(self, shape: tuple[int, ...], missing: bool) -> bool:
        """Return whether a shape is that of a batch; ValueError if it fits no observation."""
        count, pages, columns = self.core.num_lanes, self._num_pages(), len(self.core.features)
        shapes = {size for space in self._spaces for size in _shapes(space)} or {(pages, columns)}

        def fits(shape: tuple[int, ...]) -> bool:
            """A table of as many pages may have the columns of a wrapper."""
            tables = [size for size in shapes if size is None or len(size) == len(shape) == 2]
            return shape in shapes or any(size is None or size[0] == shape[0] for size in tables)

        if not missing and self._single and fits(shape):
            return False
        if not missing and shape[:1] == (count,) and fits(shape[1:]):
            return True
        expected = f"the {count} lanes"
        if len(shape) in (2, 3) and shape[-1] == columns and shape[-2] != pages > 1:
            expected = f"the {pages} pages"
        elif self._single or shape[:1] == (count,):
            expected = f"a shape {' or '.join(map(str, sorted(shapes, key=str)))}"
        raise ValueError(
            f"observation must have {expected} of the environment that {self.name} is bound to, "
            f"got {'None' if missing else f'shape {shape}'}; {REMEDY}"
        )

    def _num_pages(self) -> int:
        return int(self.core.tracker(0).elapsed.size)

    def notice(self, observation: Any, lane: int, episode: int, time: float) -> None:
        """Raise ValueError if an observation is not of the lane's decision at this time.

        In an episode's first call its parameters are compared with the environment's, unless
        wrappers may have changed them. Later, a second observation at one time shows that another
        environment is played.
        """
        last = self._last.get(lane)
        if last is not None and last[0] == episode and last[1] != time:  # nearly always
            self._last[lane] = episode, time, observation
            return
        if last is None or last[0] != episode:
            rows = None if self._current is None else self._current(lane)
            wrong = rows is not None and self._of_other_pages(_array(observation), rows)
        else:
            wrong = _differs(_array(observation), _array(last[2]))
        if wrong:
            raise ValueError(
                f"observation must be of the environment that {self.name} is bound to, which is at "
                f"time {time:g} in lane {lane}, got one of another environment, instance or time; "
                f"{REMEDY}"
            )
        self._last[lane] = episode, time, observation

    def _of_other_pages(self, table: Any, current: Any) -> bool:
        """Return whether an observation has other parameters than that of the environment."""
        true = _array(current)
        if table.shape != true.shape or table.dtype != true.dtype:
            return False
        width = len(self.core.features)
        return _differs(*(rows.reshape(-1, width)[:, self._constant] for rows in (table, true)))


def _part(observation: Any) -> Any:
    """Return the table of numbers in an observation, or the space of this table."""
    if isinstance(observation, Mapping):
        return observation.get("observation", next(iter(observation.values()), None))
    return observation


def _shapes(space: Any) -> set[Any]:
    """Return the possible shapes of an observation's table, also flattened; {None} if any."""
    part = _part(getattr(space, "spaces", space))
    return {part.shape, (_size(part),), (_size(space),)} if part.shape is not None else {None}


def _array(observation: Any) -> Any:
    return np.asarray(_part(observation))


def _differs(one: Any, two: Any) -> bool:
    """Return whether two observations have the same shape and type and different numbers."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return not np.array_equal(one, two, equal_nan=one.dtype.kind == "f")


def _lane_space(env: Any) -> Any:
    """Return the space of a lane's observations; None if the environment has none."""
    single = getattr(env, "single_observation_space", None)
    return getattr(env, "observation_space", None) if single is None else single


def _size(space: Any) -> int:
    """Return the length of a flattened observation."""
    parts = getattr(space, "spaces", None)
    if parts is None:
        return math.prod(space.shape)
    return sum(map(_size, parts.values() if isinstance(parts, Mapping) else parts))


def _is_bare(env: Any, core: Any) -> bool:
    """Return whether no wrapper around ``core`` can have changed the observations."""
    while env is not core and type(env).__name__ in HARMLESS_WRAPPERS:
        env = env.env
    return env is core
