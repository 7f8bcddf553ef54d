"""What a learner of change rates keeps of an episode, and how its plans become actions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.answers import answered_share
from policies.learning.even_slots import EvenSlots
from policies.learning.learned_rates import LearnedRates
from policies.solvers import Allocation

ROUNDING = 1e-12
"""By so much, relative to it, a time may miss the end of a step or epoch and count as there."""


@dataclass
class EpochSeat(ABC):
    """One lane's episode: what was learned, what follows from it, and the present action.

    Attributes:
        episode: its number.
        horizon: its end, as long as the bandwidth does not step.
        learned: what was learned of change rates.
        complete: pages whose signals are answered, (m,).
        believed: the change rates of the present plan, (m,).
        allocation: the present plan; None before the first.
        action: the present action; what it is depends on the form.
        time: of the latest decision that a log was taken in at; NaN before the first.
    """

    episode: int
    horizon: float
    learned: LearnedRates
    complete: BoolArray
    believed: FloatArray = field(init=False)
    allocation: Allocation | None = field(default=None, init=False)
    action: NDArray[Any] = field(init=False)
    time: float = field(default=math.nan, init=False)

    def __post_init__(self) -> None:
        self.believed = np.zeros(self.complete.size)

    @abstractmethod
    def over(self) -> bool:
        """Whether the present plan has ended."""

    @abstractmethod
    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan: crawl rates, 0 on complete pages, and chances, 0 elsewhere; (m,) each."""

    @abstractmethod
    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Settle the action, after signals of pages, (n,), in the order that they came."""

    def adopt(self, allocation: Allocation) -> None:
        """Take on the allocation that follows from ``believed``."""
        self.allocation = allocation
        self.follow(*played(allocation, self.complete, self.believed))


@dataclass
class RatesSeat(EpochSeat):
    """In the form ``rates``: every plan is the action of one epoch, (m,)."""

    def over(self) -> bool:
        """Always: every decision is an epoch's first."""
        return True

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan."""
        self.action = rates + chances

    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Nothing is left to settle."""


@dataclass
class SlotsSeat(EpochSeat):
    """In the form ``page``: plans hold for an ``epoch`` each, whose slots go out evenly.

    The action is the page of a slot, (1,).
    """

    epoch: float
    slots: EvenSlots = field(init=False)
    until: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slots = EvenSlots(self.complete.size)

    def over(self) -> bool:
        """Whether the epoch of the present plan has ended, or there is none."""
        return self.time >= self.until

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan, to the end of the epoch that holds the present time."""
        self.slots.plan(rates, chances)
        passed = math.floor(self.time / self.epoch * (1.0 + ROUNDING))
        self.until = (passed + 1) * self.epoch * (1.0 - ROUNDING)

    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Give the next slot to a page."""
        self.slots.hear(heard)
        self.action = np.array([self.slots.take(alive)])


def played(
    allocation: Allocation, complete: BoolArray, change_rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Crawl rates, 0 on complete pages, and crawl probabilities, 0 elsewhere; (m,) each.

    Where the solver knows of no signals, complete pages answer as many as their rates call for.
    """
    chances = allocation.probabilities
    if chances is None:
        chances = answered_share(allocation.rates, change_rate)
    return np.where(complete, 0.0, allocation.rates), np.where(complete, chances, 0.0)
