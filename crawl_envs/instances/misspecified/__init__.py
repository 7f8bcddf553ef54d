"""Laws that violate the assumptions of the formulas, and settings to compare policies on them.

Importance and, except in ``deploys`` and ``cold``, change rates and signals are those of ``noisy``
on the same seed. Hidden laws are functions of true parameters, a random generator and the horizon,
which draw all changes and sent signals; ``more`` are bandwidth, bandwidth_steps and delay of
:class:`crawl_envs.Instance`. Requests are Poisson.

Public modules: change_laws, occurrences, signal_laws.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from crawl_envs.instances.laws import DELAY, Law
from crawl_envs.instances.misspecified.change_laws import draw_bursty, draw_periodic, draw_shifting
from crawl_envs.instances.misspecified.signal_laws import (
    corrupted_quality,
    draw_corrupted,
    draw_deploys,
    draw_late,
)
from crawl_envs.instances.synthetic import draw_cold
from crawl_envs.types.arguments import share

__all__ = ["LAWS", "STRESS", "corrupted_quality"]

LAWS = {
    "late": Law(draw_late, "Signals have an unknown delay."),
    "bursty": Law(draw_bursty, "Changes come in bursts.", arguments=DELAY),
    "periodic": Law(draw_periodic, "Changes are regular, or at certain hours.", arguments=DELAY),
    "deploys": Law(draw_deploys, "Hosts signal all their pages at once.", arguments=DELAY),
    "shifting": Law(draw_shifting, "Change rates are redrawn at random times.", arguments=DELAY),
    "corrupted": Law(
        draw_corrupted,
        "The revealed quality of signals is wrong.",
        arguments={**DELAY, "corruption": lambda value, _: share("corruption", value)},
    ),
    "cold": Law(draw_cold, "Change rates over three decades, to be learned.", arguments=DELAY),
}
"""Laws by name."""


def _setting(instance: str, reveal: str = "parameters") -> Mapping[str, Any]:
    """Return a setting with a crawl per page and unit of time, long enough for four shifts."""
    sizes = {"num_pages": 100, "bandwidth": 100.0, "horizon": 20.0}
    return {"instance": instance, "reveal": reveal, **sizes}


STRESS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # No assumption is violated; parameters are hidden.
        "cold start": _setting("cold", "importance"),
        # Revealed parameters are true except the delay.
        "unknown delay": _setting("late"),
        # Revealed means are true; changes are not Poisson.
        "bursty": _setting("bursty"),
        "periodic": _setting("periodic"),
        # Revealed parameters are the fit of a model of independent signals.
        "deploys": _setting("deploys"),
        # Revealed change rates are true initially.
        "shifting habits": _setting("shifting"),
        "wrong signal quality": _setting("corrupted"),
    }
)
"""Settings to compare policies in: names, and arguments of ``gym.make("CrawlNCIS-v0", ...)``."""
