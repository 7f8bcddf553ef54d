"""Policies that stand side by side, of which one acts at a time."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, Policy
from policies.base.binding import ActingPolicy, core_of

Arm: TypeAlias = Policy | Callable[[Any], Policy]
"""A policy, or a function of an environment that returns one for it."""


class ArmSet:
    """Policies for one environment, each with a label.

    All of them follow the episode, whichever acts: those that learn through ``observe`` are told
    of every step. In the forms that name pages some count signals, or follow a schedule, as they
    are asked; so there all are asked at every decision, and only the answer of the one that acts is
    used. In the form ``rates`` the one that acts is asked alone, but all begin with the episode and
    take in every book of offers, so that what they remember is of the same days.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        arms: for each label a policy bound to ``env``, or a function of ``env`` that returns one.
            What is no policy of the suite, such as a trained model, is asked for the action of one
            lane, and only where it acts.

    Raises:
        ValueError: no arms; one that is no policy, is bound to another environment, or has no
            actions; ``env`` is wrapped in what takes other actions.
    """

    def __init__(self, env: Any, arms: Mapping[str, Arm]) -> None:
        if not isinstance(arms, Mapping) or not arms:
            raise ValueError(f"arms must map one label or more to policies, got {arms!r}")
        self._core = core_of(env)
        check_actions(env)
        self.labels = tuple(arms)
        self.policies = tuple(self._bound(env, label, arm) for label, arm in arms.items())

    def __len__(self) -> int:
        return len(self.policies)

    def _bound(self, env: Any, label: str, arm: Any) -> Policy:
        made = arm if hasattr(arm, "predict") and not isinstance(arm, type) else None
        if made is None and callable(arm):
            made = arm(env)
        if not isinstance(made, Policy):
            raise ValueError(f"arm {label!r} must be a policy or a function that makes one")
        if isinstance(made, ActingPolicy):
            if made.core is not None and made.core is not self._core:
                raise ValueError(f"arm {label!r} must be bound to the same environment")
            if not made.acts:
                raise ValueError(f"arm {label!r} must have actions, got {made.name} without any")
        return made

    def on_signal(self, log: CrawlLog, lane: int = 0) -> None:
        """Tell the arms that learn what the last step, or reset, taught in a lane."""
        for policy in self.policies:
            observe = getattr(policy, "observe", None)
            if observe is None:
                continue
            if isinstance(policy, ActingPolicy):
                observe(log, lane)
            else:
                observe(log)

    def follow(self, lane: int = 0) -> None:
        """In the form ``rates``, let all arms take in what is new at a decision, before one acts.

        In the other forms they do when they are asked.
        """
        if self._core.action_form != "rates":
            return
        for policy in self.policies:
            if isinstance(policy, ActingPolicy) and policy.core is not None:
                policy._follow(lane)

    def act(self, arm: int, rows: NDArray[Any], lane: int = 0) -> Any:
        """The action of an arm in a lane, in the environment's form, after :meth:`follow`.

        Args:
            arm: its number, in the order of the labels.
            rows: the observation of the lane, (m, F).
            lane: the lane.

        Raises:
            ValueError: the arm returns no pair, or an action of another shape.
        """
        everyone = self._core.action_form != "rates"
        action: Any = None
        for number, policy in enumerate(self.policies):
            if isinstance(policy, ActingPolicy):
                if number == arm or (everyone and not hasattr(policy, "observe")):
                    said = policy._encode(policy._decide(rows, lane), rows.shape[0])
                    action = said if number == arm else action
            elif number == arm:
                action = self._asked(arm, rows)
        self._check(arm, action, () if self._core.action_form == "page" else rows.shape[:1])
        return action

    def _asked(self, arm: int, rows: NDArray[Any]) -> Any:
        """The action of an arm that is no policy of the suite."""
        said: Any = self.policies[arm].predict(rows)
        if not isinstance(said, tuple | list) or len(said) != 2:
            raise ValueError(
                f"arm {self.labels[arm]!r}: predict must return a pair, an action and a state, "
                f"got {type(said).__name__} {reprlib.repr(said)}"
            )
        return said[0]

    def _check(self, arm: int, action: Any, shape: tuple[int, ...]) -> None:
        """Raise ValueError where an arm's action has another shape than those of the form."""
        try:
            got = str(np.shape(action))
        except ValueError:
            got = "rows of different lengths"
        if got != str(shape):
            raise ValueError(f"arm {self.labels[arm]!r}: action must have shape {shape}, got {got}")


def check_actions(env: Any) -> None:
    """Raise ValueError where a wrapper takes other actions than the crawl environment inside."""
    core: Any = core_of(env)
    own = [getattr(core, name, None) for name in ("action_space", "single_action_space")]
    taken = getattr(env, "action_space", None)
    if taken is not None and taken not in own:
        raise ValueError(
            f"env must take the actions of the crawl environment inside, {own[0]}, got a "
            f"{type(env).__name__} that takes {taken}: put the arms inside that wrapper"
        )
