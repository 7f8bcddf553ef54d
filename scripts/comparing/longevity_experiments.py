"""What the experiments on refreshing by thresholds share: measurements, rows and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scripts.comparing.longevity_curves import COSTS, at_cost
from scripts.comparing.longevity_policies import Contestant, contest
from scripts.comparing.longevity_runs import ID, PAGES, QUICK_PAGES
from scripts.comparing.settings import Measurement
from scripts.comparing.verdicts import Trend

QUICK_STEP = 5
"""Which of a policy's knobs are played where it shall be quick: every fifth."""


def sweep(found: Contestant, quick: bool, **arguments: Any) -> Any:
    """Return the function of a seed that plays all knobs of a policy."""
    return partial(
        contest,
        kind=found.kind,
        given=dict(found.given),
        knobs=found.knobs[:: QUICK_STEP if quick else 1],
        **{"reveal": found.reveal, "base_versions": found.base_versions, **arguments},
    )


def sweeps(contestants: Mapping[str, Contestant], name: str, quick: bool) -> Measurement:
    """All knobs of all policies on a set of pages, which names the setting."""
    measures = {label: sweep(found, quick) for label, found in contestants.items()}
    size = {"instance": name, "num_pages": QUICK_PAGES if quick else PAGES}
    return Measurement(name, measures, size, ID)


def settings_at(name: str, costs: Sequence[float] = COSTS) -> tuple[str, ...]:
    """The settings in which curves of a set are compared at equal costs."""
    return tuple(at_cost(name, cost) for cost in costs)


def staler(first: str, second: str, where: Sequence[str], source: str, metric: str = "") -> Trend:
    """The first is staler than the second."""
    return Trend(first, "above", second, tuple(where), source, metric=metric)


def within(
    first: str,
    second: str,
    where: Sequence[str],
    source: str,
    margin: float,
    metric: str = "",
) -> tuple[Trend, ...]:
    """The two differ by a margin at most, one way or the other."""
    return (Trend(first, "about", second, tuple(where), source, margin, metric),)
