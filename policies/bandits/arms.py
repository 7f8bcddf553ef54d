"""The arms of a bandit of policies: one policy acts at a time, and all follow the episode."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from crawl_envs.types import CrawlLog, Tracker
from policies.base.bound import Bound
from policies.base.choices import Action
from policies.base.columns import FromColumns
from policies.base.index import IndexPolicy
from policies.base.policy import PAGE_FORMS, RATE_FORMS, Form, Pages, Policy

Arm: TypeAlias = Policy | Any
"""A policy, or a trained model with ``predict``."""


class ModelPolicy(Policy):
    """A trained model as a policy: it predicts from the observation of a lane.

    Args:
        label: name of the model in errors.
        model: an object with ``predict``, such as a model of Stable-Baselines3; if it has
            ``observe``, it gets every log, of all lanes.
    """

    acts = (*PAGE_FORMS, *RATE_FORMS)
    reads_observation = True
    learns = True  # it predicts only when it acts

    def __init__(self, label: str, model: Any) -> None:
        self.label, self.model = label, model

    def start(self, pages: Pages) -> None:
        """Pass the first log of the episode to a model that learns."""
        self.update(pages.last_log(), pages.tracker())

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Pass the log to the model if it has ``observe``."""
        if hasattr(self.model, "observe"):
            self.model.observe(log)

    def choose(self, tracker: Tracker) -> Action:
        """Return the model's action; ValueError if it has another form."""
        prediction: Any = self.model.predict(self.observation)
        if not isinstance(prediction, tuple | list) or len(prediction) != 2:
            raise ValueError(
                f"arm {self.label!r}: predict must return a pair, an action and a state, "
                f"got {type(prediction).__name__} {reprlib.repr(prediction)}"
            )
        shape = () if self.form.action == "page" else tracker.elapsed.shape
        try:
            actual = str(np.shape(prediction[0]))
        except ValueError:
            actual = "rows of different lengths"
        if actual != str(shape):
            raise ValueError(f"arm {self.label!r}: action must have shape {shape}, got {actual}")
        return Action(prediction[0])


def as_policies(arms: Mapping[str, Arm]) -> dict[str, Policy]:
    """Return the arms of a bandit as policies by label; trained models become policies.

    Raises:
        ValueError: no arms; an arm that is no policy or model, or has no actions.
    """
    if not isinstance(arms, Mapping) or not arms:
        raise ValueError(f"arms must map one label or more to policies, got {arms!r}")
    policies: dict[str, Policy] = {}
    for label, arm in arms.items():
        if isinstance(arm, type) or not (isinstance(arm, Policy) or hasattr(arm, "predict")):
            raise ValueError(f"arm {label!r} must be a policy or a model with predict, got {arm!r}")
        if isinstance(arm, Bound | FromColumns):
            raise ValueError(
                f"arm {label!r} must be the policy {arm.policy.name} itself, got a "
                f"{type(arm).__name__}; make it without env and features"
            )
        if isinstance(arm, Policy) and not arm.acts:
            raise ValueError(f"arm {label!r} must have actions, got {arm.name} without any")
        policies[label] = arm if isinstance(arm, Policy) else ModelPolicy(label, arm)
    return policies


class ArmSet:
    """The policies between which a bandit chooses, in an episode.

    All policies start with the episode and follow it, even if they do not act. In the forms that
    name pages some policies advance a schedule when they choose. So all policies that do not learn,
    except those of an index, choose at every decision there, and only the choice of the acting
    policy is used.

    Args:
        arms: policies by label.
        form: the form of action.
        stream: the random stream of the bandit; arm k has the k-th stream that it spawns.
        pages: the pages of the episode.
    """

    def __init__(
        self, arms: Mapping[str, Policy], form: Form, stream: tuple[int, ...], pages: Pages
    ) -> None:
        self.labels = tuple(arms)
        self.policies = [policy.in_form(*form) for policy in arms.values()]
        self._all_choose = form.action not in RATE_FORMS
        for number, policy in enumerate(self.policies):
            policy.stream = (*stream, number)
            policy.start(pages)

    def __len__(self) -> int:
        return len(self.policies)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Pass the log since the last decision to all policies that read it."""
        for policy in self.policies:
            if policy.reads_log:
                policy.update(log, tracker)
            else:
                policy.follow(tracker)

    def choose(self, acting: int, tracker: Tracker, observation: Any) -> tuple[Any, Any]:
        """Return the choice of the acting policy, and its declared change rates or None."""
        choice: Any = None
        for number, policy in enumerate(self.policies):
            if number == acting:
                policy.observation = observation
                choice = policy.choose(tracker)
            elif self._all_choose and not (policy.learns or isinstance(policy, IndexPolicy)):
                policy.choose(tracker)
        return choice, self.policies[acting].declared
