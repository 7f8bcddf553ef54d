"""Wrappers: observations on a scale of logarithms, and logs of steps for unbound policies."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformObservation

DECADES = 100.0
"""The scale is linear below 1 / DECADES."""


class ScaledObservation(TransformObservation[Any, Any, Any]):
    """Wrapper that scales the columns of observations to [-1, 1], by logarithms.

    With L(x) = sign(x) log(1 + 100 |x|), a column of largest value h > 1 becomes L(x) / L(h). The
    columns in [-1, 1] stay. Rates far below their bound of 1e6 remain distinct in float32.
    For N lanes in the mode ``NextStep``: ``gymnasium.wrappers.vector.VectorizeTransformObservation(
    lanes, ScaledObservation)``.

    Args:
        env: an environment whose observations are of any of the four forms.

    Raises:
        ValueError: observations have other spaces.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        space: Any = env.observation_space
        box: Any = space["observation"] if isinstance(space, Dict) else space
        if not isinstance(box, Box) or not box.is_bounded():
            raise ValueError(f"env must have observations of table or flat form, got {space}")
        wide = box.high > 1.0
        highest = np.where(wide, np.log1p(DECADES * box.high), 1.0).astype(np.float32)

        def scaled(values: Any) -> Any:
            logs = np.copysign(np.log1p(DECADES * np.abs(values)), values)
            return np.where(wide, logs / highest, values).astype(np.float32)

        def with_mask(shown: Any) -> Any:
            return {**shown, "observation": scaled(shown["observation"])}

        target = Box(scaled(box.low), scaled(box.high))
        RecordConstructorArgs.__init__(self)
        if isinstance(space, Dict):
            super().__init__(env, with_mask, Dict({**space, "observation": target}))
        else:
            super().__init__(env, scaled, target)


class Observing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrapper that calls ``policy.observe`` with the last log after each reset and each step.

    For policies not bound to an environment, which only receive observations. Bound policies read
    the log themselves; for them it has no effect.

    Args:
        env: a single crawl environment, wrapped or not.
        policy: an object with a method ``observe(log)``.

    Raises:
        ValueError: ``env`` is not a single crawl environment, or ``policy`` has no such method.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], policy: Any) -> None:
        core = getattr(env, "unwrapped", env)
        if not (isinstance(env, gymnasium.Env) and hasattr(core, "last_log")):
            raise ValueError(f"env must be a single crawl environment, got {type(core).__name__}")
        if not callable(getattr(policy, "observe", None)):
            raise ValueError(f"policy must have a method observe(log), got {type(policy).__name__}")
        super().__init__(env)
        self.policy = policy

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and pass its log to the policy."""
        result = self.env.reset(**arguments)
        self._notify()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and pass its log to the policy."""
        result = self.env.step(action)
        self._notify()
        return result

    def _notify(self) -> None:
        core: Any = self.env.unwrapped
        self.policy.observe(core.last_log())
