"""A policy in an environment: it reads trackers and logs, and predicts actions."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, Problem, Tracker
from crawl_envs.types.compiled_policies import Compiled
from policies.base.bandwidths import as_shares
from policies.base.choices import Action, page_action, rate_action
from policies.base.observations import Observations
from policies.base.policy import RATE_FORMS, CrawlPolicy, Policy

INT64 = np.dtype(np.int64)
NATIVE = (
    "of several: bind to gymnasium.make_vec(id, num_envs=N), for Stable-Baselines3 to "
    "agents.sb3.bridge.CrawlVecEnv of it, or to the only environment inside"
)
"""What a policy binds to instead of vector wrappers of single environments."""
READ_ATTRIBUTES = (
    *("num_lanes", "action_form", "batch", "features"),
    *("tracker", "last_log", "rng", "num_slots"),
)
"""The attributes of ``env.unwrapped`` that bound policies read."""


class LanePages:
    """The pages of one lane of an environment, as ``start`` of a policy reads them.

    Args:
        core: the environment.
        lane: number of the lane.
    """

    def __init__(self, core: Any, lane: int) -> None:
        self.show(core, lane)

    def show(self, core: Any, lane: int) -> None:
        """Show a lane from now on."""
        self._core, self._lane = core, lane

    def tracker(self) -> Tracker:
        """Return the lane's tracker."""
        tracker: Tracker = self._core.tracker(self._lane)
        return tracker

    def last_log(self) -> CrawlLog:
        """Return the crawls and signals of the last step or reset."""
        log: CrawlLog = self._core.last_log(self._lane)
        return log

    def rng(self) -> np.random.Generator:
        """Return a new generator for random choices of the lane's episode."""
        rng: np.random.Generator = self._core.rng(self._lane)
        return rng

    def num_slots(self, epoch: float | None = None) -> int:
        """Return the number of crawls in the lane's episode, or of epochs in rate forms."""
        return int(self._core.num_slots(self._lane))

    def first_sketch(self) -> Any:
        """Return the sketches of all pages at time 0."""
        return self._core.first_sketch(self._lane)

    def true_divergence(self) -> Any:
        """Return the true divergence of all pages, for oracles."""
        return self._core.true_divergence(self._lane)


@dataclass
class Decision:
    """The present decision of a lane: its policy, episode, time, and choice once it is made."""

    policy: Policy
    episode: int
    time: float
    choice: Any = None


class Bound:
    """A policy that plays an environment.

    It reads trackers and logs of the environment (float64, unsaturated). Of an observation it reads
    only whether it is a batch: wrappers may change columns, and a Stable-Baselines3 DummyVecEnv may
    stack them. Each lane has a copy of the policy.

    Args:
        policy: the policy, which is not changed.
        env: a crawl environment, single or vector, wrapped or not.

    Attributes:
        policy: the policy in the environment's form of action.
        core: the crawl environment inside ``env``.

    Raises:
        ValueError: ``env`` is no crawl environment, takes other actions than the one inside, or
            does not have what the policy needs.
    """

    def __init__(self, policy: Policy, env: Any) -> None:
        self.core = core = core_of(env)
        check_actions(env, core)
        for method in policy.methods:
            if not hasattr(core, method):
                raise ValueError(
                    f"env must be an environment of pages with fragments for {policy.name}, got "
                    f"{type(core).__name__}"
                )
        self.action_form = core.action_form
        epoch = core.epoch if core.action_form in RATE_FORMS else None
        self.policy = policy.in_form(core.action_form, int(core.batch), epoch)
        self._observations = Observations(policy.name, env, core)
        self._lanes: dict[int, Decision] = {}

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.policy.name

    def of_lane(self, lane: int = 0) -> Any:
        """Return the policy of a lane at its last decision; ValueError before the first one."""
        if lane not in self._lanes:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._lanes[lane].policy

    def update(self, lane: int = 0) -> Any:
        """Update the policy of a lane to its present decision, and return it."""
        return self._decision(lane, self.core.tracker(lane)).policy

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, in the environment's form, and ``state``.

        Args:
            observation: that of one lane, or of N lanes; in any form of observation. In a single
                environment an array whose first axis has length 1 is a batch, unless it has the
                shape of the observations of ``env``.
            state: returned unchanged; the state is kept per lane.
            episode_start: not used; the tracker has the episode.
            deterministic: not used; random policies draw from the environment's generator.

        Returns:
            Per lane, with a leading axis if ``observation`` has one: the page (int64), the scores
            (float32, shape (m,): the chosen pages from 1 downwards, all others -1), the set of
            pages (int8, shape (m,)), the rates (float64, shape (m,)), or the shares (float32).

        Raises:
            ValueError: the observation does not fit the environment, or is of another environment,
                instance or time; or the policy chose what is no action.
        """
        lanes, batched = self._observations.lanes(observation)
        actions = [self._act(rows, lane) for lane, rows in enumerate(lanes)]
        return (np.stack(actions) if batched else np.array(actions[0])[()]), state

    def _act(self, rows: Any, lane: int) -> NDArray[Any]:
        """Return the action that the policy of a lane takes at an observation ``rows``."""
        tracker = self.core.tracker(lane)
        decision = self._decision(lane, tracker)
        policy = decision.policy
        if decision.choice is None:
            policy.observation = rows if policy.reads_observation else None
            decision.choice = policy.choose(tracker)
        if policy.declared is not None and policy.form.action == "rates":
            # each time: other policies may have declared in between
            self.core.declare(policy.declared, lane)
        action = self._encode(decision.choice, tracker)
        self._observations.notice(rows, lane, decision.episode, decision.time)
        return action

    def _decision(self, lane: int, tracker: Tracker) -> Decision:
        """Return a lane's present decision, after the policy's ``start`` or ``update``."""
        decision = self._lanes.get(lane)
        if decision is None or decision.episode != tracker.episode:
            policy = copy(self.policy) if decision is None else decision.policy
            if not isinstance(policy, CrawlPolicy):  # its compile does, for the problem it believes
                policy.require(tracker.problem)
            self._start(policy, lane)
            decision = Decision(policy, tracker.episode, tracker.time)
            self._lanes[lane] = decision
        elif decision.time != tracker.time:
            if decision.policy.reads_log:  # reading the log is slow
                decision.policy.update(self.core.last_log(lane), tracker)
            decision.time, decision.choice = tracker.time, None
        return decision

    def _start(self, policy: Policy, lane: int) -> None:
        """Start an episode of a policy; it reads crawls before the episode one by one, in order."""
        pages, replay = LanePages(self.core, lane), None
        if policy.reads_log and hasattr(self.core, "replay"):
            replay = self.core.replay(lane)
        if replay is None:
            policy.start(pages)
            return
        replay.next()
        pages.show(replay.lanes, 0)
        policy.start(pages)
        while policy.reads_log and replay.next():
            policy.update(replay.lanes.last_log(0), replay.lanes.tracker(0))
        pages.show(self.core, lane)

    def _encode(self, choice: Any, tracker: Tracker) -> NDArray[Any]:
        """Return a policy's choice as an action of the environment; ValueError if it is none."""
        form, num_pages = self.action_form, tracker.elapsed.size
        if isinstance(choice, Action):
            return np.asarray(choice.values)
        if form == "page" and type(choice) is np.ndarray and choice.shape == (1,):
            page = int(choice[0]) if choice.dtype is INT64 else -1
            if 0 <= page < num_pages:
                return np.asarray(page, dtype=np.int64)  # what most policies choose, at once
        if form in RATE_FORMS:
            rates = rate_action(self.name, choice, num_pages)
            if form == "rates":
                return rates
            return as_shares(rates, tracker.problem, self.core.epoch, tracker.time)
        return page_action(self.name, choice, form, num_pages, batch=self.core.batch)


class BoundCompiled(Bound):
    """A policy in an environment that compiled code can play as well."""

    policy: CrawlPolicy

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the policy compiled for the environment's form of action."""
        return self.policy.compile(problem, slots, rng)


def bind(policy: Policy, env: Any) -> Bound:
    """Return the policy bound to an environment; arguments and errors as for :class:`Bound`."""
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be a policies.Policy that is not bound, got {policy!r}")
    return (BoundCompiled if isinstance(policy, CrawlPolicy) else Bound)(policy, env)


def core_of(env: Any) -> Any:
    """Return the crawl environment inside ``env``; ValueError if there is none."""
    core = getattr(env, "unwrapped", env)
    names: tuple[str, ...] = READ_ATTRIBUTES
    if getattr(core, "action_form", None) in RATE_FORMS:
        names = (*names, "epoch", "declare")
    missing = [name for name in names if not hasattr(core, name)]
    if missing:
        several = hasattr(core, "num_envs")
        raise ValueError(
            f"env must be a crawl environment, got {type(core).__name__} "
            + (NATIVE if several else f"without {', '.join(missing)}")
        )
    return core


def check_actions(env: Any, core: Any) -> None:
    """Raise ValueError if a wrapper takes other actions than the crawl environment inside."""
    spaces = [getattr(core, name, None) for name in ("action_space", "single_action_space")]
    space = getattr(env, "action_space", None)
    if space is not None and space not in spaces:
        raise ValueError(
            f"env must take the actions of the crawl environment inside, {spaces[0]}, got a "
            f"{type(env).__name__} that takes {space}; bind inside that wrapper"
        )
