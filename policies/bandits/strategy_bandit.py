"""Bandits over policies: at every decision one of several policies is sampled to act.

The K-armed adversarial bandits of Han et al. (2020), section 3.2, over any policies, in any family
and form of action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import flag
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.arms import Arm, ArmSet, check_actions
from policies.bandits.rewards import Reward, StepReward
from policies.base.allocated import complete_pages
from policies.base.binders import PAGE_FORMS, RATE_FORMS
from policies.base.binding import ActingPolicy, LearningPolicy
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
        arm: index of the arm that acted, in the order of the labels, (n,) int64.
        reward: its reward, in [0, 1], (n,).
        probabilities: probabilities of the arms, (n, K).
    """

    arm: IntArray
    reward: FloatArray
    probabilities: FloatArray


class StrategyBandit(LearningPolicy):
    """Samples one of several policies at every decision, and learns from the results of its crawls.

    Every lane has a bandit of its own, which is reset in every episode. :class:`.ArmSet` describes
    how the arms follow the episode, :mod:`policies.bandits.rewards` the limits of bandits here.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        bandit: a function of a number of arms that returns a new bandit.
        arms: for each label a policy bound to ``env``, or a function of ``env`` that returns one;
            None for :func:`default_arms`.
        reward, gain_bound, weights: of :class:`policies.bandits.rewards.StepReward`. The reward
            is the importance of the crawls that found a change, divided by that of all pages
            (``gain``), or by that of all crawls (``literal``, eq. 2 of the paper).
        record: whether to record a history of every lane's episode.
        seed: seed of NumPy for the draws of each lane's episode; None for the environment's stream.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)

    def __init__(
        self,
        env: Any,
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
        super().__init__(env)
        assert self.core is not None
        self._of_shares = False  # its arms convert their own actions
        self._env: Any = self.core if isinstance(env, Problem) else env
        check_actions(self._env)
        self._make_bandit, self.seed = bandit, seed
        self._reward = StepReward(self.core, reward, gain_bound, weights)
        self.record = flag("record", record)
        self._arms = None if arms is None else ArmSet(self._env, arms)
        bandit(1)  # checks its arguments

    @property
    def arms(self) -> ArmSet:
        """The arms; ValueError if none were given and ``predict`` was not called yet."""
        if self._arms is None:
            raise ValueError(f"{self.name} chooses its default arms at the first predict")
        return self._arms

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the arms, in their order; ValueError as for ``arms``."""
        return self.arms.labels

    def selection_probabilities(self, lane: int = 0) -> dict[str, float]:
        """Return the probability of each arm at the next decision, by label: q of Algorithm 1."""
        chances = self._known(lane).bandit.probabilities()
        return dict(zip(self.labels, chances.tolist(), strict=True))

    def history(self, lane: int = 0) -> ArmHistory:
        """Return the decisions of a lane's episode so far; ValueError if they are not recorded."""
        if not self.record:
            raise ValueError("record must be True to have a history, got False")
        rows = self._known(lane).rows
        arms, rewards, chances = zip(*rows, strict=True) if rows else ((), (), ())
        table = np.array(chances).reshape(-1, len(self.labels))
        return ArmHistory(np.array(arms, np.int64), np.array(rewards), table)

    def _start(self, tracker: Tracker) -> None:
        if self._arms is None:
            self._arms = ArmSet(self._env, default_arms(self.action_form, tracker))
        self._arms.start(self.stream, self.lane)
        self.step_reward = copy(self._reward)  # of this lane
        rng = self._rng() if self.seed is None else np.random.default_rng(self.seed)
        self.bandit, self.rng = self._make_bandit(len(self._arms)), rng
        self.arm: int | None = None  # the last arm, until it is rewarded
        self.chances = np.zeros(0)
        self.rows: list[tuple[int, float, FloatArray]] = []

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Pass the log to all arms, and reward the arm that acted with the weights of the step."""
        self.arms.observe(log, tracker, self.lane)
        if self.arm is None:
            return
        reward = self.step_reward.of(log)
        self.bandit.update(self.arm, reward)
        if self.record:
            self.rows.append((self.arm, reward, self.chances))
        self.arm = None

    def _follow(self, lane: int, tracker: Tracker | None = None) -> Tracker:
        tracker = super()._follow(lane, tracker)
        self.of_lane(lane)._begin(tracker)
        return tracker

    def _begin(self, tracker: Tracker) -> None:
        """Set what the reward of the next step needs, and let the arms follow."""
        self.step_reward.begin(tracker)
        self.arms.follow(tracker, self.lane)

    def _choose(self, tracker: Tracker) -> Any:
        """Return the action of a sampled arm, encoded."""
        self._begin(tracker)
        if self.record:
            self.chances = self.bandit.probabilities()
        self.arm = self.bandit.draw(self.rng.random())
        return self.arms.act(self.arm, self._rows, tracker, self.lane)

    def _encode(self, action: Any, num_pages: int) -> Any:
        """Return the action, which the arm has encoded already."""
        return action


def default_arms(action_form: str, tracker: Tracker) -> dict[str, type[ActingPolicy]]:
    """Return the policies that fit an action form and the revealed parameters, by name.

    In the form ``rates``: KAB5 for offers; elsewhere even, proportional and optimal rates, or
    policies that learn change rates if these are hidden. In the forms that name pages: round robin,
    random pages, and the crawl values for which enough is revealed.
    """
    problem = tracker.problem
    names: tuple[str, ...] = KAB5
    hidden = problem.change_rate is None
    if action_form not in RATE_FORMS:
        known = ("Greedy",) if problem.recall is None else ("Greedy", "GreedyNCIS")
        names = "RoundRobin", "RandomCrawl", *(("LearningGreedyNCIS",) if hidden else known)
    elif tracker.offers is None and not hidden:
        names = "UniformCrawl", "ChangeRateCrawl", "BinaryLambdaCrawl", "LambdaCrawl"
    elif tracker.offers is None:
        uniform = () if complete_pages(problem).any() else ("UniformCrawl",)
        names = *uniform, "LambdaLearnAndCrawl", "LambdaLearnAndCrawlBinary"
    return {name: POLICIES[name] for name in names}


@registered(kind="bandit", paper="Offers")
class Exp3(StrategyBandit):
    """Samples policies by EXP3: the policy of Han et al. (2020), Algorithm 1.

    With a fixed ``gamma`` it never stops exploring: see :class:`policies.bandits.Exp3Bandit`.

    Args:
        gamma: share of exploration, in (0, 1]; None for one that falls with time.
        **given: ``env`` and all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, env: Any, *, gamma: float | None = 0.1, **given: Any) -> None:
        super().__init__(env, partial(Exp3Bandit, gamma=gamma), **given)


@registered(kind="bandit", paper="EXP3-IX")
class Exp3IX(StrategyBandit):
    """Samples policies by EXP3-IX.

    Args:
        learning_rate: a fixed eta, > 0; None for one that falls with time
            (:class:`policies.bandits.Exp3IXBandit`).
        **given: ``env`` and all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, env: Any, *, learning_rate: float | None = None, **given: Any) -> None:
        super().__init__(env, partial(Exp3IXBandit, learning_rate=learning_rate), **given)


@registered(kind="bandit", paper="EXP3++")
class Exp3PlusPlus(StrategyBandit):
    """Samples policies by EXP3++.

    Args:
        alpha: of the confidence intervals, > 0 (:class:`policies.bandits.Exp3PlusPlusBandit`).
        beta: of the exploration, > 0.
        **given: ``env`` and all but ``bandit`` as for :class:`StrategyBandit`.
    """

    def __init__(self, env: Any, *, alpha: float = 3.0, beta: float = 256.0, **given: Any) -> None:
        super().__init__(env, partial(Exp3PlusPlusBandit, alpha=alpha, beta=beta), **given)
