"""Access by lane to an environment, single or vector, for policies, oracles and tests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from gymnasium import logger
from gymnasium.envs.registration import EnvSpec
from numpy.typing import ArrayLike

from crawl_envs.envs.pictures import SIZE, picture
from crawl_envs.envs.rendering import History, PictureArray, Scene, text
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import BoolArray, CrawlLog, Instance, Ledger, Tracker
from crawl_envs.types.arguments import one_of, plain, whole
from crawl_envs.worlds.first_round import FirstRound
from crawl_envs.worlds.lanes import Lanes


def check_limit(limit: int | None, lanes: Lanes) -> int | None:
    """Return a limit on an episode's steps after checking it; None if it has no effect.

    Args:
        limit: None and -1 for no limit, as for ``gymnasium.make``.
        lanes: the batch.

    Raises:
        ValueError: not an integer >= 1, or more steps than an episode has.
    """
    steps = lanes.steps_per_episode()
    if limit is None or steps is None or limit == -1:
        return None
    if whole("max_episode_steps", limit, 1) > steps:
        raise ValueError(
            f"max_episode_steps must be at most {steps}, the steps of an episode of horizon "
            f"{lanes.horizon:g}, got {limit}; a larger horizon makes longer episodes"
        )
    return int(limit) if limit < steps else None


class LaneAccess:
    """Access to the lanes of an environment.

    Policies bound to an environment use nothing else of it.

    Args:
        lanes: the batch.
        objective: the reward.
        render_mode: None, or a mode of ``metadata``: ``ansi`` (a text) or ``rgb_array`` (a picture)
            of each lane, and of a single environment ``human`` (a window).

    Raises:
        ValueError: an unknown render mode.
    """

    metadata: dict[str, Any]
    np_random: np.random.Generator
    _np_random: np.random.Generator | None
    render_mode: str | None
    make_lanes: Callable[..., Lanes] | None = None
    _spec: EnvSpec | None = None
    _copy: Lanes | None = None

    def __init__(self, lanes: Lanes, objective: Objective, render_mode: str | None) -> None:
        if render_mode is not None:
            one_of("render_mode", render_mode, self.metadata["render_modes"], "None")
        self.lanes, self.objective, self.render_mode = lanes, objective, render_mode
        self._histories: defaultdict[int, History] = defaultdict(History)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; AttributeError for an argument after the environment is made."""
        if self._spec is not None or self._np_random is not None:
            self.check_attribute(name)
        super().__setattr__(name, value)

    def check_attribute(self, name: str) -> None:
        """Raise AttributeError for a name that is an argument, which only the constructor reads."""
        if name.startswith("_") or name in vars(self):
            return
        classes = (*type(self).__mro__, *getattr(type(self), "single", object).__mro__)
        kinds = (kind for kind in classes if issubclass(kind, LaneAccess))
        if any(name in signature(kind).parameters for kind in kinds):
            raise AttributeError(
                f"{name!r} cannot be set: it is an argument of the environment, so give it to "
                "gymnasium.make or gymnasium.make_vec"
            )

    @property
    def spec(self) -> EnvSpec | None:
        """The Gymnasium specification of the environment, or None.

        Its ``max_episode_steps`` is the number of steps of an episode at the bandwidth of the
        arguments. A pinned instance with another bandwidth has episodes of another length.
        """
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            limit = spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
            steps = check_limit(limit, self.lanes) or self.lanes.steps_per_episode()
            spec = replace(spec, max_episode_steps=steps, kwargs=plain(spec.kwargs))
        self._spec = spec

    @property
    def num_lanes(self) -> int:
        """Number of lanes, N."""
        return self.lanes.num_lanes

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of an observation."""
        return self.lanes.features

    @property
    def action_form(self) -> str:
        """Name of the action form."""
        return self.lanes.form.name

    @property
    def batch(self) -> int:
        """Slots per decision."""
        return self.lanes.form.batch

    @property
    def epoch(self) -> float:
        """Length of an epoch where actions are rates, else NaN."""
        return math.nan if self.lanes.epoch is None else self.lanes.epoch

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Declare the tracker's estimated change rates, (m,), for the budget of the next step.

        Raises:
            ValueError: actions are not rates, not one finite number >= 0 per page, no such lane.
        """
        self.lanes.declare(change_rate, lane)

    def _check_lane(self, lane: int) -> None:
        """Raise ValueError for a lane that does not exist, ResetNeeded before its first reset."""
        if type(lane) is not int or not 0 <= lane < self.lanes.num_lanes:
            self.lanes.instance(lane)

    def tracker(self, lane: int = 0) -> Tracker:
        """Return what the tracker of a lane knows now, in new arrays."""
        return self.lanes.tracker(lane)

    def last_log(self, lane: int = 0) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""
        self._check_lane(lane)
        return self.lanes.last_log(lane)

    def replay(self, lane: int = 0) -> FirstRound | None:
        """Return a copy of a lane at time 0, which repeats the crawls before its episode in order.

        It is None if there were none, or after the first decision.

        Raises:
            ValueError: the environment was not made by an id or the class of a family.
        """
        record = self.lanes.world.state.lanes[lane]
        if self.lanes.start == "fresh" or record["slot"] > record["first_slot"]:
            return None
        if self.make_lanes is None:
            raise ValueError("make_lanes must be a factory of lanes for a replay, got None")
        if self._copy is None:
            self._copy = self.make_lanes(1, observed=False)
        self._copy.begin_as(self.lanes, lane)
        return FirstRound(self._copy)

    def ledger(self, lane: int = 0, finished: bool = False) -> Ledger:
        """Return the true totals of a lane since the start of its episode.

        With ``finished``, return those of its last episode that ended: with
        ``autoreset_mode="SameStep"``, and in Stable-Baselines3, the step that ends an episode
        starts the next one.

        Raises:
            ValueError: there is no such lane.
            gymnasium.error.ResetNeeded: before the first reset, or the first end of an episode.
        """
        return self.lanes.ledger(lane, finished)

    def current_observation(self, lane: int = 0) -> Any:
        """Return the current observation of a lane, as new arrays, without wrappers."""
        self._check_lane(lane)
        return self.lanes.observation(lane)

    def rng(self, lane: int = 0) -> np.random.Generator:
        """Return a new generator for the random choices of a lane's current episode."""
        return self.lanes.rng(lane)

    def num_slots(self, lane: int = 0) -> int:
        """Return the number of crawls in the budget of a lane's episode."""
        self.lanes.instance(lane)
        return self.lanes.num_slots(lane)

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the environment's complete state, for :meth:`set_state`."""
        return {**self.lanes.get_state(), "np_random": self.np_random.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state returned by :meth:`get_state` of an equal environment.

        Policies see a new episode. Those that learn restart, since their memory belongs to another
        history.

        Raises:
            ValueError: not a state of an equal environment; nothing is changed in this case.
        """
        if not isinstance(state, Mapping) or "np_random" not in state:
            raise ValueError(f"state must come from get_state, got {type(state).__name__}")
        state = dict(state)
        random = state.pop("np_random")
        if not isinstance(random, Mapping) or {*random} != {*self.np_random.bit_generator.state}:
            raise ValueError(f"np_random must be the state of a bit generator, got {random!r}")
        self.lanes.set_state(state)
        self.np_random.bit_generator.state = random

    # Arguments of reset

    def _reset_arguments(
        self, seed: Any, options: Any
    ) -> tuple[BoolArray, list[int | None], list[Instance | None]]:
        """Check the arguments of a reset; return the mask of lanes, their seeds and instances."""
        if not isinstance(options, Mapping | None):
            raise ValueError(f"options must be None or a mapping, got {options!r}")
        count, remaining = self.num_lanes, dict(options or {})
        several = hasattr(self, "num_envs")
        mask = remaining.pop("reset_mask", None) if several else None
        pinned = remaining.pop("instance", None)
        if remaining:
            names = "among 'instance' and 'reset_mask'" if several else "'instance'"
            raise ValueError(f"options must be {names}, got {tuple(remaining)}")
        lane_mask = np.ones(count, np.bool_) if mask is None else mask
        array = isinstance(lane_mask, np.ndarray) and lane_mask.shape == (count,)
        if not (array and lane_mask.dtype == np.bool_ and lane_mask.any()):
            raise ValueError(
                f"options['reset_mask'] must be a bool array of shape ({count},) and not all "
                f"False, got {mask!r}"
            )
        instances = list(pinned) if isinstance(pinned, Sequence) else [pinned] * count
        if len(instances) != count or not all(isinstance(i, Instance | None) for i in instances):
            raise ValueError(
                f"options['instance'] must be an Instance"
                f"{f' or {count} of them' if several else ''}, got {pinned!r}"
            )
        return lane_mask, self._lane_seeds(seed), instances

    def _lane_seeds(self, seed: Any) -> list[int | None]:
        """Return a seed for each lane; a lane with seed None continues its random streams."""
        count = self.num_lanes
        if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            if len(seed) != count:
                raise ValueError(f"seed must be one or {count} of them, got {seed!r}")
            return [None if one is None else whole("seed", one, 0) for one in seed]
        first = None if seed is None else whole("seed", seed, 0)
        return [None if first is None else first + lane for lane in range(count)]

    # Rendering

    def frame(self, lane: int = 0, size: tuple[int, int] = SIZE) -> str | PictureArray | None:
        """Return a rendering of a lane: a text, or a picture of ``size``, (H, W, 3) uint8.

        Both show the truth. The picture's curve of freshness has a point per call. Without a render
        mode, warn and return None.

        Raises:
            ValueError: a size that is too small.
            gymnasium.error.ResetNeeded: before the first reset.
            gymnasium.error.DependencyNotInstalled: Pillow is missing, for a picture.
        """
        if self.render_mode is None:
            modes = ", ".join(map(repr, self.metadata["render_modes"]))
            logger.warn(f"render needs a render_mode: pass one of {modes} to gymnasium.make")
            return None
        scene = self.scene(lane)
        if self.render_mode == "ansi":
            return text(scene)
        history = self._histories[lane]
        history.record(scene.tracker.episode, scene.ledger)
        return picture(scene, history, size)

    def scene(self, lane: int = 0) -> Scene:
        """Return the data that a rendering of a lane shows at this moment.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        lanes = self.lanes
        return Scene(
            tracker=lanes.tracker(lane),
            instance=lanes.instance(lane),
            ledger=lanes.ledger(lane),
            log=lanes.last_log(lane),
            fresh=lanes.fresh(lane),
            similarity=lanes.similarity(lane),
            horizon=lanes.horizon,
            budget=lanes.crawls_allowed(lane),
        )
