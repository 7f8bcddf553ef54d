"""A policy that reads the columns of observations, without an environment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, FloatArray, Problem, Tracker
from policies.base.choices import page_action
from policies.base.live import LivePages, empty_log


class ColumnPages(LivePages):
    """The pages of a single observation, as the start of a policy reads them."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def tracker(self) -> Tracker:
        """Return the tracker made from the observation."""
        return self._tracker

    def last_log(self) -> CrawlLog:
        """Return an empty log, because an observation shows no events."""
        return empty_log(self._tracker.problem.num_sources)


class FromColumns:
    """A policy that acts by the columns of observations, for any number of lanes and pages.

    The parameters of pages are read from columns too, and a lane whose parameters change starts
    again. A policy that learns needs its logs by :meth:`observe`; it goes on where costs of crawls
    change, since they may be shown by crawls only.

    Args:
        policy: the policy, in its form of action.
        features: names of the columns (``env.unwrapped.features``).

    Raises:
        ValueError: the policy does not act by columns, or a column is missing.
    """

    def __init__(self, policy: Any, features: Sequence[str]) -> None:
        self.policy, self.features = policy, tuple(features)
        if not policy.reads_columns:
            raise ValueError(
                f"features must be None for {policy.name} with these settings: it needs an "
                "environment, or its logs"
            )
        required = ("elapsed", *(("signals",) if policy.uses_signals else ()), *policy.needs)
        missing = [name for name in required if not _num_sources(self.features, name)]
        if missing:
            raise ValueError(
                f"{policy.name} needs the columns {', '.join(missing)}, "
                f"features has {', '.join(self.features)}"
            )
        revealed = {"importance", "complete", "cost"} & {*self.features} - {*policy.needs}
        self._parameters = (*policy.needs, *sorted(revealed))
        self._lanes: dict[int, tuple[Any, FloatArray | None]] = {}
        self._logs: dict[int, list[CrawlLog]] = {}
        self._ends: dict[int, float] = {}  # time of the last event of each lane's last log

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, (m, F), or several, (lanes, m, F), and ``state``.

        :meth:`policies.base.bound.Bound.predict` documents the other arguments and the actions.

        Raises:
            ValueError: another shape, or invalid parameters.
        """
        table = np.asarray(observation)
        if table.ndim not in (2, 3):
            raise ValueError(
                f"observation must have shape (m, F) or (lanes, m, F), got {table.shape}"
            )
        if table.shape[-1] != len(self.features):
            raise ValueError(
                f"observation must have the {len(self.features)} columns {self.features}, "
                f"got shape {table.shape}"
            )
        lanes = table if table.ndim == 3 else table[None]
        actions = [self._act(rows, lane) for lane, rows in enumerate(lanes)]
        return (np.stack(actions) if table.ndim == 3 else np.array(actions[0])[()]), state

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Pass the log of a lane's last step, or reset, to the policy at the next ``predict``.

        A log without crawls, as after a reset, begins an episode, and so does one that begins
        before the last one ends.
        """
        times = np.concatenate([log.time, log.signal_time])
        if log.page.size == 0 or times.min() < self._ends.get(lane, -math.inf):
            self._logs[lane] = []
            if lane in self._lanes:
                self._lanes[lane] = self._lanes[lane][0], None
        self._logs.setdefault(lane, []).append(log)
        self._ends[lane] = float(times.max(initial=-math.inf))

    def of_lane(self, lane: int = 0) -> Any:
        """Return the policy of a lane; ValueError before its first ``predict``."""
        if lane not in self._lanes:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._lanes[lane][0]

    def _act(self, rows: NDArray[Any], lane: int) -> NDArray[Any]:
        """Return the action of a lane's policy for the observation of this lane."""
        column = {
            name: np.ascontiguousarray(rows[:, k], dtype=np.float64)
            for k, name in enumerate(self.features)
        }
        fixed = [name for name in self._parameters if not (self.policy.learns and name == "cost")]
        values = [np.atleast_2d(_of_sources(column, name)) for name in fixed]
        parameters = np.concatenate([*values, np.zeros((0, len(rows)))])
        tracker = self._tracker(column)
        policy, previous = self._lanes.get(lane, (None, None))
        if previous is None or not np.array_equal(previous, parameters):
            policy = copy(self.policy) if policy is None else policy
            policy.start(ColumnPages(tracker))
            self._lanes[lane] = policy, parameters
        for log in self._logs.pop(lane, ()):
            policy.update(log, tracker)
        policy.follow(tracker)
        form = policy.form
        choice = policy.choose(tracker)
        return page_action(policy.name, choice, form.action, len(rows), batch=form.batch)

    def _tracker(self, column: dict[str, FloatArray]) -> Tracker:
        """Return the tracker that an observation of one lane shows."""
        elapsed = column["elapsed"]
        values: dict[str, Any] = {name: _of_sources(column, name) for name in self._parameters}
        if "complete" in values:
            values["complete"] = values["complete"] > 0.5
        values = {"importance": np.ones(elapsed.size)} | values
        counts = np.zeros(elapsed.size, np.int64)
        if _num_sources(self.features, "signals"):
            counts = np.rint(_of_sources(column, "signals")).astype(np.int64)
        return Tracker(
            problem=Problem(elapsed.size, math.nan, **values),
            episode=0,
            time=math.nan,
            elapsed=elapsed,
            signals=counts,
            changed=np.full(elapsed.size, -1, np.int8),
            alive=column.get("alive", np.ones(elapsed.size)) > 0.5,
        )


def _of_sources(column: dict[str, FloatArray], name: str) -> FloatArray:
    """Return the column ``name``, (m,), or ``name_0``, ``name_1``, ... of sources, (S, m)."""
    if name in column:
        return column[name]
    return np.stack([column[f"{name}_{source}"] for source in range(_num_sources(column, name))])


def _num_sources(columns: Iterable[str], name: str) -> int:
    """Return how many columns are ``name``, or ``name_0``, ``name_1``, ... of several sources."""
    return sum(name in (column, column.rpartition("_")[0]) for column in columns)
