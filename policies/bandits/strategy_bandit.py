"""Bandits over strategies: at every decision one of several policies is sampled to act.

The K-armed adversarial bandits of Han et al. (2020), section 3.2, over any policies, in any family
and form of action.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import flag
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.arm_set import Arm, ArmSet, check_actions
from policies.bandits.default_arms import default_arms
from policies.bandits.rewards import Reward, RewardRule, RewardState
from policies.base.binding import PAGE_FORMS, RATE_FORMS, LearningPolicy
from policies.base.registry import registered
from policies.offers.rates import RateSource


class ArmHistory(NamedTuple):
    """The n rewarded decisions of a bandit in an episode.

    Attributes:
        time: time of the decision, (n,).
        arm: index of the arm that acted, in the order of the labels, (n,) int64.
        reward: its reward, in [0, 1], (n,).
        probabilities: probabilities of the arms, (n, K).
    """

    time: FloatArray
    arm: IntArray
    reward: FloatArray
    probabilities: FloatArray


@dataclass
class StrategyState:
    """A lane's episode state: its bandit, and the decision whose reward is pending."""

    bandit: Bandit
    rewards: RewardState
    rng: np.random.Generator
    decided: float = math.nan
    rewarded: bool = True
    arm: int = 0
    chances: FloatArray = field(default_factory=lambda: np.zeros(0))
    rows: list[tuple[float, int, float, FloatArray]] = field(default_factory=list)


class StrategyBandit(LearningPolicy):
    """Samples one of several policies at every decision, and learns from the results of its crawls.

    Every lane has a bandit of its own, which is reset in every episode. It learns from
    ``last_log`` at every ``predict``, or from ``observe``, once per decision. :class:`.ArmSet`
    describes how the arms follow the episode, and :mod:`policies.bandits.rewards` the limits of
    bandits here.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        arms: for each label a policy bound to ``env``, or a function of ``env`` that returns one;
            None for :func:`policies.bandits.default_arms.default_arms`.
        reward: reward of a step: the importance of its crawls that found a change, divided by that
            of all pages (``gain``), or by that of its crawls (``literal``, eq. 2 of the paper).
        gain_bound: the share of all importance with reward 1, in (0, 1]; None for the largest
            share that the crawls of a decision can have, so that nothing is clipped, and for
            offers a tighter one (:class:`policies.bandits.rewards.RewardRule`).
        weights: a source whose clicks count as importance; None for the revealed importance.
        record: whether to record a history of every lane's episode.

    Raises:
        ValueError: as for :class:`policies.bandits.arm_set.ArmSet` and
            :class:`policies.bandits.rewards.RewardRule`; ``record`` is not a bool.
        TypeError: an unknown argument.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)

    def __init__(
        self,
        env: Any,
        *,
        arms: Mapping[str, Arm] | None = None,
        reward: Reward = "gain",
        gain_bound: float | None = None,
        weights: RateSource | None = None,
        record: bool = False,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise TypeError(f"{self.name}.__init__() got an unexpected keyword argument {name!r}")
        super().__init__(env)
        assert self.core is not None
        self._of_shares = False  # its arms convert their own actions
        self._env = self.core if isinstance(env, Problem) else env
        check_actions(self._env)
        self._rule = RewardRule(self.core, reward, gain_bound, weights)
        self.record = flag("record", record)
        self._arms = None if arms is None else ArmSet(self._env, arms)
        self._rows: Any = None
        self._bandit(1)  # checks its arguments

    @abstractmethod
    def _bandit(self, num_arms: int) -> Bandit:
        """Return a new bandit."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the arms, in their order.

        Raises:
            ValueError: no arms were given, and ``predict`` was not called yet.
        """
        if self._arms is None:
            raise ValueError(f"{self.name} chooses its default arms at the first predict")
        return self._arms.labels

    def selection_probabilities(self, lane: int = 0) -> dict[str, float]:
        """Return the probability of each arm at the next decision, by label: q of Algorithm 1.

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        chances = self._state_of(lane).bandit.probabilities()
        return dict(zip(self.labels, chances.tolist(), strict=True))

    def clipped(self, lane: int = 0) -> int:
        """Return the number of steps of a lane's episode whose gain exceeded the bound.

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        return self._state_of(lane).rewards.clipped

    def history(self, lane: int = 0) -> ArmHistory:
        """Return the decisions of a lane's episode so far.

        Raises:
            ValueError: it is not recorded, or ``predict`` was not called for this lane yet.
        """
        if not self.record:
            raise ValueError("record must be True to have a history, got False")
        rows = self._state_of(lane).rows
        times, arms, rewards, chances = zip(*rows, strict=True) if rows else ((), (), (), ())
        return ArmHistory(
            np.array(times, np.float64),
            np.array(arms, np.int64),
            np.array(rewards, np.float64),
            np.array(chances, np.float64).reshape(len(rows), len(self.labels)),
        )

    def _state_of(self, lane: int) -> StrategyState:
        return self._known(lane).state

    def _start(self, tracker: Tracker) -> None:
        assert self.core is not None
        if self._arms is None:
            self._arms = ArmSet(self._env, default_arms(self.action_form, tracker))
        # A separate stream: the arms may use the lane's own.
        rng = self.core.rng(self.lane).spawn(1)[0]
        bandit = self._bandit(len(self._arms))
        self.state = StrategyState(bandit, self._rule.begin(tracker), rng)

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Reward the arm that acted with the weights of the step, and pass the log to all arms."""
        assert self._arms is not None
        self._arms.observe(log, self.lane)
        state = self.state
        if not state.rewarded:
            state.rewarded = True
            reward = self._rule.step_reward(state.rewards, log)
            state.bandit.update(state.arm, reward)
            if self.record:
                state.rows.append((state.decided, state.arm, reward, state.chances))

    def _follow(self, lane: int) -> Tracker:
        """Learn with the weights of the past step, then update the weights and all arms."""
        tracker = super()._follow(lane)
        self.of_lane(lane)._follow_arms(tracker)
        return tracker

    def _follow_arms(self, tracker: Tracker) -> None:
        assert self._arms is not None
        self._rule.renew(self.state.rewards, tracker)
        self._arms.follow(self.lane)

    def _decide(self, rows: NDArray[Any], lane: int) -> Any:
        self.of_lane(lane)._rows = rows
        tracker = super()._follow(lane)
        return self.of_lane(lane)._decision(tracker)

    def _choose(self, tracker: Tracker) -> Any:
        """Return the action of a sampled arm, encoded."""
        assert self._arms is not None
        self._follow_arms(tracker)
        state = self.state
        if self.record:
            state.chances = state.bandit.probabilities()
        state.arm = state.bandit.draw(state.rng.random())
        state.decided, state.rewarded = tracker.time, False
        return self._arms.act(state.arm, self._rows, self.lane)

    def _encode(self, action: Any, num_pages: int) -> Any:
        """Return the action, which the arm has encoded already."""
        return action


@registered(paper="Offers")
class Exp3(StrategyBandit):
    """Samples strategies by EXP3: the policy of Han et al. (2020), Algorithm 1.

    With a fixed ``gamma`` it never stops exploring: see :class:`policies.bandits.Exp3Bandit`.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        gamma: share of exploration, in (0, 1]; None for one that falls with time.
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; ``gamma`` lies outside (0, 1].
    """

    def __init__(self, env: Any, *, gamma: float | None = 0.1, **strategies: Any) -> None:
        self.gamma = gamma
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3Bandit(num_arms, gamma=self.gamma)


@registered()
class Exp3IX(StrategyBandit):
    """Samples strategies by EXP3-IX.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        learning_rate: a fixed eta, > 0; None for one that falls with time
            (:class:`policies.bandits.Exp3IXBandit`).
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; the learning rate is not > 0.
    """

    def __init__(self, env: Any, *, learning_rate: float | None = None, **strategies: Any) -> None:
        self.learning_rate = learning_rate
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3IXBandit(num_arms, learning_rate=self.learning_rate)


@registered()
class Exp3PlusPlus(StrategyBandit):
    """Samples strategies by EXP3++.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        alpha: of the confidence intervals, > 0 (:class:`policies.bandits.Exp3PlusPlusBandit`).
        beta: of the exploration, > 0.
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; ``alpha`` or ``beta`` is not > 0.
    """

    def __init__(
        self, env: Any, *, alpha: float = 3.0, beta: float = 256.0, **strategies: Any
    ) -> None:
        self.alpha, self.beta = alpha, beta
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3PlusPlusBandit(num_arms, alpha=self.alpha, beta=self.beta)
