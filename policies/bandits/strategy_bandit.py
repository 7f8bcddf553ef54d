"""Bandits over policies: at every decision one of several policies is sampled to act.

The K-armed adversarial bandits of Han et al. (2020), section 3.2, with any policies as arms, in any
family and form of action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import flag
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.arms import Arm, ArmSet, as_policies
from policies.bandits.rewards import Reward, StepReward
from policies.base.allocated import complete_pages
from policies.base.policy import PAGE_FORMS, RATE_FORMS, Pages, Policy
from policies.base.registry import POLICIES, registered
from policies.offers.rates import RateSource

KAB5 = (
    "UniformCrawl",
    "ChangeWeightedCrawl",
    "ClickWeightedCrawl",
    "ImpressionWeightedCrawl",
    "DiscreteLambdaCrawl",
)
"""The five arms of Han et al. (2020), section 5.4."""


class ArmHistory(NamedTuple):
    """The n rewarded decisions of a bandit in an episode.

    Attributes:
        arm: index of the acting arm, in the order of the labels, (n,) int64.
        reward: reward of that arm, in [0, 1], (n,).
        probabilities: probabilities of the arms, (n, K).
    """

    arm: IntArray
    reward: FloatArray
    probabilities: FloatArray


class StrategyBandit(Policy):
    """Samples one of several policies at every decision, and learns from the results of its crawls.

    The bandit starts again in every episode. :class:`.ArmSet` describes how the arms follow the
    episode, :mod:`policies.bandits.rewards` the limits of bandits here.

    Args:
        bandit: a function of a number of arms that returns a new bandit.
        arms: policies or trained models by label; None for :func:`default_arms`.
        reward, gain_bound, weights: as for :class:`policies.bandits.rewards.StepReward`. The reward
            is the importance of the crawls that found a change, divided by the importance of all
            pages (``gain``), or of all crawls (``literal``, eq. 2 of the paper).
        record: whether to record a history of the episode.
        seed: seed of NumPy for the draws of an episode; None for the episode's stream.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)
    learns = True

    def __init__(
        self,
        bandit: Callable[[int], Bandit],
        *,
        arms: Mapping[str, Arm] | None = None,
        reward: Reward = "gain",
        gain_bound: float | None = None,
        weights: RateSource | None = None,
        record: bool = False,
        seed: int | Sequence[int] | None = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise TypeError(f"{self.name}.__init__() got an unexpected keyword argument {name!r}")
        self._make_bandit, self.seed = bandit, seed
        self._reward = StepReward(reward, gain_bound, weights)
        self.record = flag("record", record)
        self._arms = None if arms is None else as_policies(arms)
        policies = () if self._arms is None else self._arms.values()
        self.reads_observation = any(policy.reads_observation for policy in policies)
        bandit(1)  # checks its arguments

    def check(self) -> None:
        """Raise ValueError where an arm does not act in the form of action."""
        super().check()
        for policy in (self._arms or {}).values():
            policy.in_form(*self.form)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the arms, in their order, once an episode has started."""
        return self.arms.labels

    def selection_probabilities(self) -> dict[str, float]:
        """Return the probabilities of the arms at the next decision by label, q of Algorithm 1."""
        return dict(zip(self.labels, self.bandit.probabilities().tolist(), strict=True))

    def history(self) -> ArmHistory:
        """Return the decisions of the episode so far; ValueError if they are not recorded."""
        if not self.record:
            raise ValueError("record must be True to have a history, got False")
        arms, rewards, chances = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        table = np.array(chances).reshape(-1, len(self.labels))
        return ArmHistory(np.array(arms, np.int64), np.array(rewards), table)

    def start(self, pages: Pages) -> None:
        """Begin with a new bandit, and start all arms."""
        tracker = pages.tracker()
        arms = self._arms
        if arms is None:
            arms = default_arms(self.form.action, tracker)
        self.arms = ArmSet(arms, self.form, self.stream, pages)
        self.step_reward = copy(self._reward)
        rng = self.own_rng(pages) if self.seed is None else np.random.default_rng(self.seed)
        self.bandit, self.rng = self._make_bandit(len(self.arms)), rng
        self.arm: int | None = None  # the last arm, until it is rewarded
        self.chances = np.zeros(0)
        self.rows: list[tuple[int, float, FloatArray]] = []
        self.step_reward.begin(tracker, self.form)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Pass the log to all arms, and give the bandit the reward of the arm that acted."""
        self.arms.update(log, tracker)
        if self.arm is not None:
            reward = self.step_reward.reward_of(log)
            self.bandit.update(self.arm, reward)
            if self.record:
                self.rows.append((self.arm, reward, self.chances))
            self.arm = None
        self.step_reward.begin(tracker, self.form)

    def choose(self, tracker: Tracker) -> Any:
        """Sample an arm by the bandit's probabilities, and return its choice."""
        if self.record:
            self.chances = self.bandit.probabilities()
        self.arm = self.bandit.draw(self.rng.random())
        choice, self.declared = self.arms.choose(self.arm, tracker, self.observation)
        return choice


def default_arms(action_form: str, tracker: Tracker) -> dict[str, Policy]:
    """Return the policies that fit an action form and the revealed parameters, by name.

    In the form ``rates``: KAB5 for offers; otherwise even, proportional and optimal rates, or
    policies that learn change rates if these are hidden. In the forms that name pages: round robin,
    random pages, and the crawl values whose parameters are revealed.
    """
    problem = tracker.problem
    names: tuple[str, ...] = KAB5
    hidden = problem.change_rate is None
    if action_form not in RATE_FORMS:
        formulas = ("Greedy",) if problem.recall is None else ("Greedy", "GreedyNCIS")
        names = "RoundRobin", "RandomCrawl", *(("LearningGreedyNCIS",) if hidden else formulas)
    elif tracker.offers is None and not hidden:
        names = "UniformCrawl", "ChangeRateCrawl", "BinaryLambdaCrawl", "LambdaCrawl"
    elif tracker.offers is None:
        uniform = () if complete_pages(problem).any() else ("UniformCrawl",)
        names = *uniform, "LambdaLearnAndCrawl", "LambdaLearnAndCrawlBinary"
    return {name: POLICIES[name]() for name in names}


@registered(kind="bandit", paper="Offers")
class Exp3(StrategyBandit):
    """Samples policies by EXP3: the policy of Han et al. (2020), Algorithm 1.

    With a fixed ``gamma`` it never stops exploring: see :class:`policies.bandits.Exp3Bandit`.

    Args:
        gamma: share of exploration, in (0, 1]; None for a share that falls with time.
        **settings: all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, *, gamma: float | None = 0.1, **settings: Any) -> None:
        super().__init__(partial(Exp3Bandit, gamma=gamma), **settings)


@registered(kind="bandit", paper="EXP3-IX")
class Exp3IX(StrategyBandit):
    """Samples policies by EXP3-IX.

    Args:
        learning_rate: a fixed eta, > 0; None for one that falls with time
            (:class:`policies.bandits.Exp3IXBandit`).
        **settings: all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, *, learning_rate: float | None = None, **settings: Any) -> None:
        super().__init__(partial(Exp3IXBandit, learning_rate=learning_rate), **settings)


@registered(kind="bandit", paper="EXP3++")
class Exp3PlusPlus(StrategyBandit):
    """Samples policies by EXP3++.

    Args:
        alpha: of the confidence intervals, > 0 (:class:`policies.bandits.Exp3PlusPlusBandit`).
        beta: of the exploration, > 0.
        **settings: all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, *, alpha: float = 3.0, beta: float = 256.0, **settings: Any) -> None:
        super().__init__(partial(Exp3PlusPlusBandit, alpha=alpha, beta=beta), **settings)
