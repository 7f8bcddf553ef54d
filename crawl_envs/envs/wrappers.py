"""Wrappers: observations on a scale of logarithms, and logs of steps for unbound policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformObservation


class ScaledObservation(TransformObservation[Any, Any, Any]):
    """Wrapper that scales the columns of observations to [-1, 1], by logarithms.

    With L(x) = sign(x) log(1 + 100 abs(x)), a column of largest value h > 1 becomes L(x) / L(h).
    Others stay. Rates far below their bound of 1e6 remain distinct in float32. For N lanes in the
    mode ``NextStep``: ``VectorizeTransformObservation(lanes, ScaledObservation)`` of Gymnasium.

    Raises:
        ValueError: observations have none of the four forms.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        space: Any = env.observation_space
        box: Any = space["observation"] if isinstance(space, Dict) else space
        if not isinstance(box, Box) or not box.is_bounded():
            raise ValueError(f"env must have observations of table or flat form, got {space}")
        wide, masked = box.high > 1.0, box is not space
        highest = np.where(wide, np.log1p(100.0 * box.high), 1.0).astype(np.float32)

        def scaled(observation: Any) -> Any:
            if isinstance(observation, Mapping):
                return {**observation, "observation": scaled(observation["observation"])}
            logs = np.copysign(np.log1p(100.0 * np.abs(observation)), observation)
            return np.where(wide, logs / highest, observation).astype(np.float32)

        target: Any = Box(scaled(box.low), scaled(box.high))
        RecordConstructorArgs.__init__(self)
        super().__init__(env, scaled, Dict({**space, "observation": target}) if masked else target)


class Observing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrapper that calls ``policy.observe`` with the last log after each reset and each step.

    For policies of observation columns (``policies.FromColumns``) and others that only receive
    observations. Policies that are bound to the environment read its logs themselves.

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
