"""One lane of a vector environment, with the interface of a single environment."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from crawl_envs.types import BoolArray, Instance, Problem

SHARED = ("features", "spec", "render_mode", "action_form", "batch", "epoch", "metadata")
"""Attributes of the vector environment that are the same for all its lanes."""


class Lane:
    """One lane of a vector environment with the interface of a single environment.

    It has the methods of the vector environment that take a lane, such as ``tracker`` and
    ``ledger``, without that argument. It cannot be stepped or reset, since lanes step together.

    Args:
        vector: the vector environment.
        number: number of the lane.
    """

    num_lanes = 1

    def __init__(self, vector: Any, number: int) -> None:
        self._vector, self._number = vector, number
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        attribute = getattr(self._vector, name, None)
        if name in SHARED:
            return attribute
        if callable(attribute) and "lane" in inspect.signature(attribute).parameters:
            return partial(attribute, lane=self._number)
        raise AttributeError(f"a lane of {type(self._vector).__name__} has no attribute {name!r}")

    def assign(self, name: str, value: Any) -> None:
        """Set a new attribute of the lane; AttributeError for one that the environment has."""
        if hasattr(type(self), name) or hasattr(self._vector, name):
            raise AttributeError(
                f"{name!r} of a lane cannot be set: it is the environment's, so give it to "
                "gymnasium.make_vec"
            )
        self._vector.check_attribute(name)
        setattr(self, name, value)

    @property
    def unwrapped(self) -> Lane:
        """The lane itself."""
        return self

    @property
    def instance(self) -> Instance:
        """The true parameters of the lane's pages, for oracles and tests."""
        instance: Instance = self._vector.lanes.instance(self._number)
        return instance

    @property
    def problem(self) -> Problem:
        """What policies may know of the lane's instance."""
        problem: Problem = self._vector.lanes.problem(self._number)
        return problem

    def action_masks(self) -> BoolArray:
        """Return a new mask of the choices that may be made, as a single environment returns it."""
        masks: BoolArray = self._vector.action_masks()[self._number]
        return masks

    def render(self) -> Any:
        """Return a rendering of the lane: a text, or a picture (H, W, 3) uint8."""
        return self._vector.frame(self._number)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return the attribute ``name``, as ``gymnasium.Env`` does for wrappers."""
        return getattr(self, name)
