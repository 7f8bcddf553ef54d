"""Choosing a strategy per step, as an environment: what learns to act can learn to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from crawl_envs.types import BoolArray
from policies.bandits.arm_set import Arm, ArmSet
from policies.bandits.rewards import Reward, RewardRule, RewardState
from policies.base.binding import core_of


class ArmEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A crawl environment whose actions are strategies.

    The action, ``Discrete(K)``, is the number of the policy that acts in the step, in the order of
    the labels; observations are those of the environment. All policies follow the episode, whoever
    acts (:class:`policies.bandits.arm_set.ArmSet`). ``info["arm"]`` is the number of the one that acted in
    the step, and ``info["action_mask"]``, where the environment has one, allows all of them.

    Args:
        env: a single crawl environment of any family and form of action, wrapped or not.
        policies: for each label a policy bound to ``env``, or a function of ``env`` that returns
            one.
        reward: None for the environment's own, or ``gain`` or ``literal`` for what a
            bandit over the same strategies is paid (:mod:`policies.bandits.rewards`).
        gain_bound: for the reward ``gain``, as for :class:`policies.bandits.rewards.RewardRule`.

    Raises:
        ValueError: ``env`` is no single crawl environment; as for
            :class:`policies.bandits.arm_set.ArmSet` and :class:`policies.bandits.rewards.RewardRule`.
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
        # So that Gymnasium can make another one; policies that are bound already would not fit it.
        RecordConstructorArgs.__init__(
            self,
            policies=policies,
            reward=reward,
            gain_bound=gain_bound,
            _disable_deepcopy=True,
        )
        gymnasium.Wrapper.__init__(self, env)
        self._arms = ArmSet(env, policies)
        self._rule = None if reward is None else RewardRule(self._core, reward, gain_bound)
        self.action_space = Discrete(len(self._arms))
        self._rows: Any = None
        self._paid: RewardState | None = None
        self._episode = -1

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the policies, in the order of the actions."""
        return self._arms.labels

    def action_masks(self) -> BoolArray:
        """Which policies may act, (K,) bool: all of them."""
        return np.ones(len(self._arms), np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, as the environment does."""
        self._rows, info = self.env.reset(seed=seed, options=options)
        self._arms.on_signal(self._core.last_log())
        self._paid = None
        self._enter()
        return self._rows, self._masked(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let a policy act.

        Raises:
            ValueError: no such policy.
            gymnasium.error.ResetNeeded: before the first reset, or past the end of an episode.
        """
        if np.ndim(action) or not self.action_space.contains(np.asarray(action)[()]):
            raise ValueError(f"action must be an integer in [0, {len(self._arms)}), got {action!r}")
        if self._rows is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        arm = int(action)
        self._enter()
        self._arms.follow()
        rows, reward, terminated, truncated, info = self.env.step(self._arms.act(arm, self._rows))
        self._rows = rows
        log = self._core.last_log()
        self._arms.on_signal(log)
        if self._rule is not None and self._paid is not None:
            reward = self._rule.pay(self._paid, log)
        return rows, float(reward), terminated, truncated, {**self._masked(info), "arm": arm}

    def _enter(self) -> None:
        """Take what the step that follows is paid by; anew in an episode that begins, or is set."""
        if self._rule is None:
            return
        tracker = self._core.tracker()
        if self._paid is None or tracker.episode != self._episode:
            self._paid, self._episode = self._rule.begin(tracker), tracker.episode
        else:
            self._rule.renew(self._paid, tracker)

    def _masked(self, info: dict[str, Any]) -> dict[str, Any]:
        """The info, with a mask of policies in the place of one of pages."""
        if "action_mask" in info:
            info = {**info, "action_mask": self.action_masks().astype(np.int8)}
        return info
