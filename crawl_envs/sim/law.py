"""Instances that draw their own events, and limits on the number of events of an episode."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from crawl_envs.sim.tape import Tape, event_rates
from crawl_envs.types import BoolArray, Instance

MAX_EVENTS = 1e9
"""Most expected events of an episode: about a minute, at 6 to 60 ns per event if the pages of a
lane fit into caches; four minutes, at 220 ns, with 10^6 pages."""

MAX_STORED_EVENTS = 2e7
"""Most expected events of an episode drawn at its start: about ten seconds and 3 GB; no single
NumPy operation, which cannot be interrupted, takes more than two seconds."""


class CustomEvents(Instance):
    """An instance whose events are drawn by its own law instead of independent Poisson processes.

    Its change rate, recall and false-signal rate are the parameters that policies see. They are
    beliefs and may differ from the law; the documentation of each law describes them.

    Attributes:
        mortal: whether pages are born and die.
    """

    mortal: ClassVar[bool] = False

    @property
    def alive_at_start(self) -> BoolArray:
        """Mask of the pages that exist at time 0, (m,) bool."""
        return np.ones(self.num_pages, np.bool_)

    @abstractmethod
    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode; equal arguments and instances give equal events.

        Args:
            rng: generator of the lane, independent of actions.
            horizon: the tape covers (0, horizon], > 0.

        Returns:
            Changes, signals and requests of all pages; births and deaths if ``mortal``.
        """

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return the approximate expected number of events in (0, horizon]."""
        return float(event_rates(self, requests).sum()) * horizon


def has_mortal_pages(instance: Instance) -> bool:
    """Return whether the events of an instance have births and deaths of pages."""
    return isinstance(instance, CustomEvents) and instance.mortal


def check_expected(what: str, expected: float, max_events: float = MAX_EVENTS) -> None:
    """Raise ValueError if an episode has too many expected events; ``what`` names the arguments."""
    if not expected <= max_events:
        raise ValueError(
            f"{what} must give at most {max_events:g} events in an episode, got {expected:g}"
        )


def check_events(
    instance: Instance, horizon: float, requests: bool = True, tape: Tape | None = None
) -> None:
    """Raise ValueError if an episode of an instance up to ``horizon`` would have too many events.

    Every change and signal is an event, and with ``requests`` every request. Importance is the rate
    of requests, which can be scaled, since policies use only its proportions. If a recorded
    ``tape`` is given, its events are counted instead.
    """
    if tape is not None:
        count = np.searchsorted(tape.time, horizon, side="right")
        check_expected(f"tape and the horizon {horizon:g}", float(count))
        return
    what = (
        "importance (the rate of requests; it may be scaled down), change_rate, "
        f"false_signal_rate and the horizon {horizon:g}"
    )
    if isinstance(instance, CustomEvents):
        check_expected(what, instance.expected_events(horizon, requests), MAX_STORED_EVENTS)
        return
    check_expected(what, float(event_rates(instance, requests).sum()) * horizon)
    under_way = float(instance.signal_rate.sum()) * instance.delay.mean
    check_expected(
        f"delay mean {instance.delay.mean:g}, change_rate, recall and false_signal_rate",
        under_way,
        MAX_STORED_EVENTS,
    )
