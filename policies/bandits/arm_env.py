"""An environment whose actions are policies; it needs Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from crawl_envs.types import BoolArray
from policies.bandits.arms import Arm, ArmSet
from policies.bandits.rewards import Reward, StepReward
from policies.base.binders import core_of


class ArmEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A crawl environment whose actions are policies.

    The action, ``Discrete(K)``, is the index of the policy that acts in the step, in the order of
    the labels; observations are those of the environment. All policies follow the episode, also
    those that do not act (:class:`.ArmSet`). ``info["arm"]`` is the index of the one that acted;
    ``info["action_mask"]``, if the environment has one, allows all policies.

    Args:
        env: a single crawl environment of any family and form of action, wrapped or not.
        policies: for each label a policy bound to ``env``, or a function of ``env`` that returns
            one.
        reward: None for the environment's own, or ``gain`` or ``literal`` for the reward of a
            bandit over the same policies (:class:`policies.bandits.rewards.StepReward`).
        gain_bound: for the reward ``gain``.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        policies: Mapping[str, Arm],
        reward: Reward | None = None,
        *,
        gain_bound: float | None = None,
    ) -> None:
        self._core = core_of(env)
        if not isinstance(env, gymnasium.Env):
            raise ValueError(f"env must be a single environment, got {type(env).__name__}")
        if reward is None and gain_bound is not None:
            raise ValueError(f"gain_bound must be None without a reward, got {gain_bound!r}")
        # Lets Gymnasium create a copy; policies that are already bound would not fit it.
        given = {"policies": policies, "reward": reward, "gain_bound": gain_bound}
        RecordConstructorArgs.__init__(self, **given, _disable_deepcopy=True)
        gymnasium.Wrapper.__init__(self, env)
        self._reward = None if reward is None else StepReward(self._core, reward, gain_bound)
        self._arms = ArmSet(env, policies)
        self.action_space = Discrete(len(self._arms))
        self._rows: Any = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the policies, in the order of the actions."""
        return self._arms.labels

    def action_masks(self) -> BoolArray:
        """Return the mask of policies that may act, (K,) bool: all true."""
        return np.ones(len(self._arms), np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode of the environment."""
        self._rows, info = self.env.reset(seed=seed, options=options)
        self._arms.start(())
        self._arms.observe(self._core.last_log(), self._core.tracker())
        return self._rows, self._masked(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let a policy act.

        Raises:
            ValueError: ``action`` is not the index of a policy.
            gymnasium.error.ResetNeeded: before the first reset, or after the end of an episode.
        """
        if np.ndim(action) or not self.action_space.contains(np.asarray(action)[()]):
            raise ValueError(f"action must be an integer in [0, {len(self._arms)}), got {action!r}")
        if self._rows is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        arm = int(action)
        tracker = self._core.tracker()
        if self._reward is not None:
            self._reward.begin(tracker)
        self._arms.follow(tracker)
        chosen = self._arms.act(arm, self._rows, tracker)
        self._rows, reward, terminated, truncated, info = self.env.step(chosen)
        log = self._core.last_log()
        self._arms.observe(log, self._core.tracker())
        own = float(reward) if self._reward is None else self._reward.of(log)
        return self._rows, own, terminated, truncated, {**self._masked(info), "arm": arm}

    def _masked(self, info: dict[str, Any]) -> dict[str, Any]:
        """Return the info with a mask of policies in place of the mask of pages."""
        if "action_mask" in info:
            info = {**info, "action_mask": self.action_masks().astype(np.int8)}
        return info
