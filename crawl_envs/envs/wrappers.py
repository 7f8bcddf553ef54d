"""A wrapper that passes the log of every step of an environment to a policy."""

from __future__ import annotations

from typing import Any

import gymnasium


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
