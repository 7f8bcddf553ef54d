"""A wrapper that lets a policy learn from what every step of an environment teaches."""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium

from crawl_envs.types import CrawlLog


class Learning(Protocol):
    """A policy that learns while it crawls."""

    def observe(self, log: CrawlLog) -> None:
        """Learn from what the last step, or the reset, taught."""


class Observing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Calls ``policy.observe`` with the environment's last log after each reset and each step.

    For policies that are not bound to an environment, and so see observations only; one that is
    bound reads the log by itself, and is not harmed.

    Args:
        env: a single crawl environment, wrapped or not.
        policy: what has a method ``observe(log)``.

    Raises:
        ValueError: ``env`` is no single crawl environment, or ``policy`` does not learn.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], policy: Learning) -> None:
        core = getattr(env, "unwrapped", env)
        if not (isinstance(env, gymnasium.Env) and hasattr(core, "last_log")):
            raise ValueError(f"env must be a single crawl environment, got {type(core).__name__}")
        if not callable(getattr(policy, "observe", None)):
            raise ValueError(f"policy must have a method observe(log), got {type(policy).__name__}")
        super().__init__(env)
        self.policy = policy

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and let the policy know."""
        found = self.env.reset(**arguments)
        self._tell()
        return found

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and let the policy learn from it."""
        found = self.env.step(action)
        self._tell()
        return found

    def _tell(self) -> None:
        core: Any = self.env.unwrapped
        self.policy.observe(core.last_log())
