"""Policies for one environment, one of which acts at a time: an action, or a bandit, selects it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, Policy, Tracker
from crawl_envs.types.offer_features import OfferFeatures
from policies.base.binders import RATE_FORMS, core_of
from policies.base.binding import ActingPolicy

Arm: TypeAlias = Policy | Callable[[Any], Policy]
"""A policy, or a function of an environment that returns one for it."""


class ArmSet:
    """Labelled policies for one environment.

    All policies follow the episode, also those that do not act. In the forms that name pages some
    advance a schedule when they choose; so all choose at every decision, and only the choice of the
    acting one is used. In the form ``rates`` only the acting policy chooses, but all start with the
    episode and read the offer features of every day, so that they remember the same days.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        arms: by label. For an object that is not a policy of the suite, such as a trained model,
            ``predict`` is called with the rows of one lane, and only when it acts.

    Raises:
        ValueError: no arms; an arm that is not a policy, is bound to another environment, or has no
            actions; a wrapper of ``env`` takes other actions.
    """

    def __init__(self, env: Any, arms: Mapping[str, Arm]) -> None:
        if not isinstance(arms, Mapping) or not arms:
            raise ValueError(f"arms must map one label or more to policies, got {arms!r}")
        self._core = core_of(env)
        check_actions(env)
        self.labels = tuple(arms)
        self.policies = tuple(self._bound(env, label, arm) for label, arm in arms.items())
        self._seen: dict[int, tuple[int, OfferFeatures | None]] = {}

    def __len__(self) -> int:
        return len(self.policies)

    def _bound(self, env: Any, label: str, arm: Any) -> Policy:
        policy = arm if hasattr(arm, "predict") and not isinstance(arm, type) else None
        if policy is None and callable(arm):
            policy = arm(env)
        if not isinstance(policy, Policy):
            raise ValueError(f"arm {label!r} must be a policy or a function that makes one")
        if isinstance(policy, ActingPolicy):
            if policy.core is not None and policy.core is not self._core:
                raise ValueError(f"arm {label!r} must be bound to the same environment")
            if not policy.acts:
                raise ValueError(f"arm {label!r} must have actions, got {policy.name} without any")
        return policy

    def start(self, stream: tuple[int, ...], lane: int = 0) -> None:
        """Give the arms of a lane random streams of their own, spawned from ``stream``."""
        for number, policy in enumerate(self.policies):
            if isinstance(policy, ActingPolicy):
                policy.of_lane(lane).stream = (*stream, number)

    def observe(self, log: CrawlLog, tracker: Tracker, lane: int = 0) -> None:
        """Pass the log of the last step, or reset, of a lane to the arms that learn."""
        for policy in self.policies:
            if isinstance(policy, ActingPolicy) and policy.core is not None:
                policy.of_lane(lane).update(log, tracker)
            elif hasattr(policy, "observe"):
                policy.observe(log)

    def follow(self, tracker: Tracker, lane: int = 0) -> None:
        """Begin a decision at rates: update all arms. In the other forms :meth:`act` does."""
        if self._core.action_form not in RATE_FORMS:
            return
        seen = self._seen.get(lane)
        new = seen is None or seen[0] != tracker.episode or seen[1] is not tracker.offers
        self._seen[lane] = tracker.episode, tracker.offers
        for policy in self.policies:
            if not isinstance(policy, ActingPolicy) or policy.core is None:
                continue
            if new or policy.reads_log:
                policy._follow(lane, tracker)

    def act(self, arm: int, rows: Any, tracker: Tracker, lane: int = 0) -> Any:
        """Return the action of an arm in a lane at its observation, after :meth:`follow`.

        Raises:
            ValueError: the arm does not return a pair, or its action has another shape.
        """
        ask_all = self._core.action_form not in RATE_FORMS
        action: Any = None
        for number, policy in enumerate(self.policies):
            if isinstance(policy, ActingPolicy):
                if number == arm or (ask_all and not hasattr(policy, "observe")):
                    chosen = policy._decide(rows, lane, tracker)
                    action = chosen if number == arm else action
            elif number == arm:
                action = self._predict(arm, rows)
        shape = () if self._core.action_form == "page" else tracker.elapsed.shape
        try:
            got = str(np.shape(action))
        except ValueError:
            got = "rows of different lengths"
        if got != str(shape):
            raise ValueError(f"arm {self.labels[arm]!r}: action must have shape {shape}, got {got}")
        return action

    def _predict(self, arm: int, rows: NDArray[Any]) -> Any:
        """Return the action of an arm that is not a policy of the suite."""
        prediction: Any = self.policies[arm].predict(rows)
        if not isinstance(prediction, tuple | list) or len(prediction) != 2:
            raise ValueError(
                f"arm {self.labels[arm]!r}: predict must return a pair, an action and a state, "
                f"got {type(prediction).__name__} {reprlib.repr(prediction)}"
            )
        return prediction[0]


def check_actions(env: Any) -> None:
    """Raise ValueError if a wrapper takes other actions than the crawl environment inside."""
    core: Any = core_of(env)
    own = [getattr(core, name, None) for name in ("action_space", "single_action_space")]
    taken = getattr(env, "action_space", None)
    if taken is not None and taken not in own:
        raise ValueError(
            f"env must take the actions of the crawl environment inside, {own[0]}, got a "
            f"{type(env).__name__} that takes {taken}: put the arms inside that wrapper"
        )
