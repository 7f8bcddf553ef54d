"""Bandits over strategies: at every decision one of several policies is drawn to act.

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

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import flag
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.arm_set import Arm, ArmSet, check_actions
from policies.bandits.default_arms import default_arms
from policies.bandits.rewards import Reward, RewardRule, RewardState
from policies.base.binding import PAGE_FORMS, ActingPolicy
from policies.offers.rates import RateSource


class ArmHistory(NamedTuple):
    """What a bandit did in an episode, decision by decision, n that have been paid for.

    Attributes:
        time: of the decision, (n,).
        arm: the number of the arm that acted, in the order of the labels, (n,) int64.
        reward: what it was paid, in [0, 1], (n,).
        probabilities: with which the arms were drawn, (n, K).
    """

    time: FloatArray
    arm: IntArray
    reward: FloatArray
    probabilities: FloatArray


@dataclass
class StrategyState:
    """One lane's episode: its bandit, and the decision whose reward is still to come."""

    episode: int
    bandit: Bandit
    rewards: RewardState
    rng: np.random.Generator
    heard: float = math.nan
    decided: float = math.nan
    paid: bool = True
    arm: int = 0
    action: Any = None
    chances: FloatArray = field(default_factory=lambda: np.zeros(0))
    rows: list[tuple[float, int, float, FloatArray]] = field(default_factory=list)


class StrategyBandit(ActingPolicy[StrategyState]):
    """Draws one of several policies at every decision, and learns from what its crawls found.

    Every lane has a bandit of its own, which starts anew with every episode. It learns from
    ``last_log`` at every ``predict``, or from ``observe``, once per decision. How the arms follow
    what others do is told at :class:`policies.bandits.arm_set.ArmSet`, and what bandits cannot promise
    here at :mod:`policies.bandits.rewards`.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        arms: for each label a policy bound to ``env``, or a function of ``env`` that returns one;
            None for :func:`policies.bandits.default_arms.default_arms`.
        reward: what an arm is paid for a step: ``gain``, the importance of its crawls that found a
            change over that of all pages, or ``literal``, eq. 2 of the paper, over that of its
            crawls.
        gain_bound: the share of all importance that is paid with 1, in (0, 1]; None for the
            largest that the crawls of a decision can hold, so that nothing is clipped, and for
            offers a tighter one (:class:`policies.bandits.rewards.RewardRule`).
        weights: a source whose clicks count as importance; None for what is revealed.
        record: whether to keep a history of every lane's episode.

    Raises:
        ValueError: as for :class:`policies.bandits.arm_set.ArmSet` and
            :class:`policies.bandits.rewards.RewardRule`; ``record`` is no truth value.
        TypeError: an unknown argument.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, "rates")

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
        if env is None:
            raise ValueError(f"{self.name} learns from crawls, so env must be an environment")
        super().__init__(env)
        assert self.core is not None
        check_actions(env)
        self._env = env
        self._rule = RewardRule(self.core, reward, gain_bound, weights)
        self.record = flag("record", record)
        self._arms = None if arms is None else ArmSet(env, arms)
        self._bandit(1)  # so that its arguments are checked before anything happens

    @abstractmethod
    def _bandit(self, num_arms: int) -> Bandit:
        """A fresh bandit."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the arms, in their order.

        Raises:
            ValueError: no arms were given, and nothing was decided yet.
        """
        if self._arms is None:
            raise ValueError(f"{self.name} takes its default arms at the first predict")
        return self._arms.labels

    def selection_probabilities(self, lane: int = 0) -> dict[str, float]:
        """With which probability each arm is drawn next, by label: q of Algorithm 1, line 3.

        Raises:
            ValueError: nothing was decided in this lane yet.
        """
        chances = self._known(lane).bandit.probabilities()
        return dict(zip(self.labels, chances.tolist(), strict=True))

    def clipped(self, lane: int = 0) -> int:
        """How many steps of a lane's episode gained more than the bound.

        Raises:
            ValueError: nothing was decided in this lane yet.
        """
        return self._known(lane).rewards.clipped

    def history(self, lane: int = 0) -> ArmHistory:
        """The decisions of a lane's episode so far.

        Raises:
            ValueError: it is not recorded, or nothing was decided in this lane yet.
        """
        if not self.record:
            raise ValueError("record must be True to have a history, got False")
        rows = self._known(lane).rows
        times, arms, rewards, chances = zip(*rows, strict=True) if rows else ((), (), (), ())
        return ArmHistory(
            np.array(times, np.float64),
            np.array(arms, np.int64),
            np.array(rewards, np.float64),
            np.array(chances, np.float64).reshape(len(rows), len(self.labels)),
        )

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from what the last step taught in a lane, as the next ``predict`` would do."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        self._learn(self._lane_state(tracker, lane), log, tracker, lane)

    def _known(self, lane: int) -> StrategyState:
        if lane not in self._lane_states:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._lane_states[lane]

    def _begin(self, tracker: Tracker, lane: int) -> StrategyState:
        assert self.core is not None
        if self._arms is None:
            self._arms = ArmSet(self._env, default_arms(self.action_form, tracker))
        # A stream of its own: arms may toss the same coins.
        rng = self.core.rng(lane).spawn(1)[0]
        bandit = self._bandit(len(self._arms))
        return StrategyState(tracker.episode, bandit, self._rule.begin(tracker), rng)

    def _learn(self, lane_state: StrategyState, log: CrawlLog, tracker: Tracker, lane: int) -> None:
        """Pay the arm that acted, and tell all of them, once per step."""
        if lane_state.heard == tracker.time:
            return
        lane_state.heard = tracker.time
        assert self._arms is not None
        self._arms.on_signal(log, lane)
        if lane_state.paid:
            return
        lane_state.paid = True
        reward = self._rule.pay(lane_state.rewards, log)
        lane_state.bandit.update(lane_state.arm, reward)
        if self.record:
            lane_state.rows.append((lane_state.decided, lane_state.arm, reward, lane_state.chances))

    def _follow(self, lane: int) -> None:
        """Learn, by the weights of the step that is over, and take in what is new with all arms."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        lane_state = self._lane_state(tracker, lane)
        self._learn(lane_state, self.core.last_log(lane), tracker, lane)
        self._rule.renew(lane_state.rewards, tracker)
        assert self._arms is not None
        self._arms.follow(lane)

    def _decide(self, rows: NDArray[Any], lane: int) -> Any:
        """The action of the arm that is drawn; asked again at one decision, the same."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        lane_state = self._lane_state(tracker, lane)
        if lane_state.decided == tracker.time:
            return lane_state.action
        self._follow(lane)
        assert self._arms is not None
        if self.record:
            lane_state.chances = lane_state.bandit.probabilities()
        lane_state.arm = lane_state.bandit.draw(lane_state.rng.random())
        lane_state.action = self._arms.act(lane_state.arm, rows, lane)
        lane_state.decided, lane_state.paid = tracker.time, False
        return lane_state.action

    def _encode(self, action: Any, num_pages: int) -> Any:
        """The arm has put its action into the environment's form."""
        return action

    def _choose(self, lane_state: StrategyState, tracker: Tracker, lane: int) -> NDArray[Any]:
        raise AssertionError(f"{self.name} leaves the choice to its arms")

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


class Exp3(StrategyBandit):
    """Draws strategies by EXP3: the policy of Han et al. (2020), Algorithm 1.

    With a fixed ``gamma`` it never stops exploring: see :class:`policies.bandits.Exp3Bandit`.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        gamma: share of exploration, in (0, 1]; None for one that falls with time.
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; a gamma outside (0, 1].
    """

    def __init__(self, env: Any, *, gamma: float | None = 0.1, **strategies: Any) -> None:
        self.gamma = gamma
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3Bandit(num_arms, gamma=self.gamma)


class Exp3IX(StrategyBandit):
    """Draws strategies by EXP3-IX.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        learning_rate: a fixed eta, > 0; None for one that falls with time
            (:class:`policies.bandits.Exp3IXBandit`).
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; a learning rate that is not > 0.
    """

    def __init__(self, env: Any, *, learning_rate: float | None = None, **strategies: Any) -> None:
        self.learning_rate = learning_rate
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3IXBandit(num_arms, learning_rate=self.learning_rate)


class Exp3PlusPlus(StrategyBandit):
    """Draws strategies by EXP3++.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        alpha: of the confidence intervals, > 0 (:class:`policies.bandits.Exp3PlusPlusBandit`).
        beta: of the exploration, > 0.
        **strategies: ``arms``, ``reward``, ``gain_bound``, ``weights`` and ``record``, as for
            :class:`StrategyBandit`.

    Raises:
        ValueError: as for :class:`StrategyBandit`; ``alpha`` or ``beta`` that is not > 0.
    """

    def __init__(
        self, env: Any, *, alpha: float = 3.0, beta: float = 256.0, **strategies: Any
    ) -> None:
        self.alpha, self.beta = alpha, beta
        super().__init__(env, **strategies)

    def _bandit(self, num_arms: int) -> Bandit:
        return Exp3PlusPlusBandit(num_arms, alpha=self.alpha, beta=self.beta)
