"""How many events an episode is expected to have, and how many may be asked for."""

from __future__ import annotations

import numpy as np

from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.tape import Tape, event_rates
from crawl_envs.types import Instance

MOST_EVENTS = 1e9
"""Expected events of an episode: about a minute, at the 6 to 60 ns that an event takes where the
pages of a lane fit into caches; four minutes, at 220 ns, with 10^6 pages."""

MOST_HELD = 2e7
"""Expected events of an episode that is drawn whole before it begins: about ten seconds and 3 GB,
with no single operation of NumPy, which no interrupt ends, above two seconds."""


def check_expected(what: str, expected: float, most: float = MOST_EVENTS) -> None:
    """Raise ValueError where an episode is expected to have too many events.

    Args:
        what: names of the arguments that decide their number.
        expected: their number.
        most: the bound.
    """
    if not expected <= most:
        raise ValueError(
            f"{what} must give at most {most:g} events in an episode, got {expected:g}"
        )


def check_events(
    instance: Instance, horizon: float, requests: bool = True, tape: Tape | None = None
) -> None:
    """Raise ValueError where an episode would hold more events than can be played.

    Every change, signal and, if ``requests``, request is an event, whatever is rewarded; importance
    is the rate of requests. It can be scaled, since only its proportions matter to policies.

    Args:
        instance: the truth.
        horizon: the end of the episode, > 0.
        requests: whether requests are played.
        tape: recorded events that are played in place of those of the instance.
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
        check_expected(what, instance.expected_events(horizon, requests), MOST_HELD)
        return
    check_expected(what, float(event_rates(instance, requests).sum()) * horizon)
    under_way = float(instance.signal_rate.sum()) * instance.delay.mean
    check_expected(
        f"delay mean {instance.delay.mean:g}, change_rate, recall and false_signal_rate",
        under_way,
        MOST_HELD,
    )
