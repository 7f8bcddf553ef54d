"""The single environment: a batch of one lane with Gymnasium's conventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Env, logger
from gymnasium.error import ResetNeeded

from crawl_envs.envs.lane_access import LaneAccess
from crawl_envs.envs.rendering import RENDERING, PictureArray
from crawl_envs.envs.window import Window
from crawl_envs.sim.state import NUM_OUTCOMES
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import BoolArray, FloatArray, Instance, Problem
from crawl_envs.worlds.lanes import Lanes

SingleEnv: TypeAlias = Env[Any, Any]
"""Gymnasium's class; also a direct base of families, since some libraries check direct bases."""


class CrawlEnv(LaneAccess, SingleEnv):
    """One crawling environment.

    Args:
        make_lanes: factory of batches of any number of such lanes, ``make_lanes(num_lanes)``.
        objective: the reward.
        render_mode: None, ``ansi`` (a text), ``rgb_array`` (a picture) or ``human`` (a window that
            every reset and step draws, as Gymnasium's own environments do).

    Raises:
        ValueError: an unknown render mode.
    """

    # Gymnasium declares it as a plain attribute, so it cannot be a ClassVar here.
    metadata: dict[str, Any] = {**RENDERING}  # noqa: RUF012  # as Gymnasium has it

    def __init__(
        self,
        make_lanes: Callable[..., Lanes],
        objective: Objective,
        *,
        render_mode: str | None = None,
    ) -> None:
        self.make_lanes: Callable[..., Lanes] = make_lanes
        lanes = make_lanes(1)
        super().__init__(lanes, objective, render_mode)
        self._window = Window()
        self.action_space = lanes.form.space()
        self.observation_space = lanes.observation_space()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        A seed draws a new instance. ``options["instance"]`` pins an instance until the next
        seeded reset. A first reset without a seed uses a random one.

        Raises:
            ValueError: a negative seed, an unknown option, an instance that does not fit.
        """
        lane_mask, seeds, instances = self._reset_arguments(seed, options)
        super().reset(seed=seeds[0])
        self.lanes.begin(lane_mask, seeds, instances, self.np_random)
        if self._spec is not None and instances[0] is not None:
            self._check_length()
        if self.render_mode == "human":
            self.render()
        return self.lanes.observation(0), self._info([np.zeros(1)] * NUM_OUTCOMES)

    def _check_length(self) -> None:
        """Warn if a pinned instance has longer episodes than the number of steps in ``spec``."""
        steps, expected = self.lanes.steps_of(self.instance), self.lanes.steps_per_episode()
        if expected is not None and steps > expected:
            logger.warn(
                f"the instance has {steps} steps, env.spec {expected}: TimeLimit truncates it, and "
                "TimeAwareObservation leaves its space; make the environment with bandwidth="
                f"{self.instance.bandwidth:g}"
            )

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Crawl the pages that an action chooses, and play to the next decision.

        Raises:
            ValueError: an action outside its space; nothing is changed in this case.
            gymnasium.error.ResetNeeded: before the first reset, or past the end of an episode.
        """
        lanes = self.lanes
        if lanes.any_ended:
            raise ResetNeeded("call reset: the episode has ended")
        info = self._info(lanes.play(lanes.form.decode_one(action)))
        truncated = lanes.newly_ended() is not None
        reward = float(self.objective.total(info))
        if self.render_mode == "human":
            self.render()
        return lanes.observation(0), reward, False, truncated, info

    def _info(self, outcomes: Sequence[FloatArray]) -> dict[str, Any]:
        """Return the info of a step, with the mask of existing pages if they are born and die.

        The info of a reset has the same entries, all zero. Values are NumPy scalars, since some
        libraries read their dtype.
        """
        info = self.objective.terms(outcomes, 0)
        for name, row in self.lanes.reported:
            info[name] = outcomes[row][0]
        if self.lanes.mortal:
            info["action_mask"] = self.lanes.action_masks()[0].astype(np.int8)
        return info

    def render(self) -> str | PictureArray | None:
        """Return a rendering of the environment; see :meth:`LaneAccess.frame`.

        With the render mode ``human`` show it and return None.

        Raises:
            gymnasium.error.DependencyNotInstalled: Pillow, or for a window pygame, is missing.
        """
        frame = self.frame()
        if self.render_mode != "human" or not isinstance(frame, np.ndarray):
            return frame
        self._window.show(frame, self.metadata["render_fps"])
        return None

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute, as wrappers do; AttributeError for an argument of the environment."""
        self.check_attribute(name)
        return super().set_wrapper_attr(name, value, force=force)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    # Read by policies, oracles and tests

    @property
    def instance(self) -> Instance:
        """The true parameters of the current episode's pages, for oracles and tests."""
        return self.lanes.instance(0)

    @property
    def problem(self) -> Problem:
        """What policies may know of the current instance."""
        return self.lanes.problem(0)

    def action_masks(self) -> BoolArray:
        """Return a new mask of the choices that may be made, in the form of sb3-contrib.

        Of the pages that exist, (m,) bool; with ``action="refresh"`` for each page that it is left,
        which is always allowed, and that it is crawled, (2 m,).
        """
        masks: BoolArray = self.lanes.choice_masks()[0]
        return masks
