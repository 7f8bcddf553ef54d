"""Who plays on pages of fragments, and with which thresholds (Olston and Pandey 2008)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.worlds.fragments.contents import Contents
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    UniformRefresh,
)
from policies.values.divergence.curves import HolisticCurves
from policies.values.divergence.tabulated import TabulatedCurves
from scripts.experiments.longevity.setup.curves import COSTS, at_cost
from scripts.experiments.longevity.setup.runs import (
    ID,
    PAGES,
    QUICK_PAGES,
    TICK,
    TICKS,
    WARM_UP,
    swept,
)
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Trend

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


UNIFORM, UNTOLD = "Uniform", "Uniform, all pages"
FS_S, HS_S, FS_D, HS_D = "FS-S", "HS-S", "FS-D", "HS-D"
FS_S_MEASURED, HS_S_MEASURED = "FS-S, measured", "HS-S, measured"
NAIVE_STATIC, NAIVE_DYNAMIC = "U = D, static", "U = D, dynamic"
FITTING, BOUNDS, CGM = "Curve fitting", "Divergence bounds", "CGM"
CGM_LIKELIHOOD = "CGM, maximum likelihood"
OURS = "LearningLongevity (ours)"

HISTORIES, RISK = 5, 10.0
"""h and rho of section 5.1."""
LEARNING_PER_THRESHOLD = 30.0
"""l over T of curve fitting, see :func:`fitting`; the steadiest of 3, 10, 30, 100, 300 on two other
seeds."""
WARM_UP_LEARNING = 2.0
"""l of the warm-up that curve fitting and CGM share in section 5.3, in days: of 30 days 5 ticks."""


def _steps(low: float, high: float, count: int) -> tuple[float, ...]:
    """So many numbers in equal ratios, to 4 digits."""
    return tuple(float(f"{value:.4g}") for value in np.geomspace(low, high, count))


class Contestant(NamedTuple):
    """A policy and how it is played.

    Attributes:
        kind: of KINDS.
        knobs: thresholds in days, of the naive form in divergence; of uniform refreshing intervals
            in days.
        given: further arguments of the policy, plain values.
        reveal: what the environment tells.
        base_versions: which of them the environment compares copies with.
    """

    kind: str
    knobs: tuple[float, ...]
    given: Mapping[str, Any] = MappingProxyType({})
    reveal: str = "importance"
    base_versions: int = 0


def threshold_of(kind: Callable[..., Any], env: Any, knob: float, **arguments: Any) -> Any:
    """A policy with a threshold."""
    return kind(env, threshold=knob, **arguments)


def uniform(env: Any, knob: float) -> UniformRefresh:
    """Uniform refreshing with an interval."""
    return UniformRefresh(env, interval=knob)


def fitting(env: Any, knob: float, learning: float | None = None, **arguments: Any) -> CurveFitting:
    """Curve fitting; its learning parameter is proportional to the threshold.

    Refresh costs fall about as the inverse root of the threshold, and the crawls of the schedule
    for learning as the inverse root of l: with l proportional to T the investment in learning is
    proportional to the refresh cost, as the paper tunes it (section 5.1).
    """
    days = LEARNING_PER_THRESHOLD * knob if learning is None else learning
    return CurveFitting(env, threshold=knob, learning=days, **arguments)


def measured_fragments(env: Any, knob: float) -> FragmentStatic:
    """FS-S with the average divergences of the snapshots that are played (section 3.4)."""
    curves = TabulatedCurves.of_contents(env.unwrapped.contents(), TICK, TICK * TICKS)
    return FragmentStatic(env, threshold=knob, curves=curves)


def measured_holistic(env: Any, knob: float) -> HolisticStatic:
    """HS-S with the change frequencies of the snapshots that are played (section 3.4)."""
    times = TICK * np.arange(1.0, TICKS + 1.0, dtype=np.float64)
    changes = changed_snapshots(env.unwrapped.contents(), times).sum(axis=1)
    rates = changes / (times[-1] - times[0])
    return HolisticStatic(env, threshold=knob, curves=HolisticCurves(rates))


def changed_snapshots(contents: Contents, times: FloatArray) -> FloatArray:
    """Which snapshots of each page differ from the one before, (m, V - 1) of 0 and 1.

    Args:
        contents: what m pages say; fragments that come back may count as a change.
        times: of the snapshots, rising, (V,).
    """
    changed = np.zeros((contents.num_pages, times.size + 1))
    first = np.searchsorted(times, contents.birth)
    end = np.searchsorted(times, contents.death, side="right")
    seen = first < end
    changed[contents.page[seen], first[seen]] = 1.0
    changed[contents.page[seen], end[seen]] = 1.0
    return changed[:, 1:-1]


KINDS: dict[str, Callable[..., Any]] = {
    "UniformRefresh": uniform,
    "CurveFitting": fitting,
    "FragmentStatic, measured": measured_fragments,
    "HolisticStatic, measured": measured_holistic,
    **{
        kind.__name__: partial(threshold_of, kind)
        for kind in (
            FragmentStatic,
            HolisticStatic,
            FragmentDynamic,
            HolisticDynamic,
            CurrentDivergence,
            DivergenceBounds,
            ChoGarciaMolina,
            LearningLongevity,
        )
    },
}
"""What makes policies of an environment and a knob, by name: names stand beside kept rows."""


def made(env: Any, knob: float, kind: str, given: Mapping[str, Any]) -> Any:
    """A policy of a kind, with further arguments."""
    return KINDS[kind](env, knob, **given)


def contest(
    seed: int, *, kind: str, given: Mapping[str, Any], knobs: Sequence[float], **arguments: Any
) -> Mapping[str, float]:
    """Cost and staleness of a policy of a kind; see :func:`swept`."""
    return swept(seed, make=partial(made, kind=kind, given=given), knobs=knobs, **arguments)


FINE = 14
"""Knobs of a policy."""
OFFLINE: dict[str, Contestant] = {
    UNIFORM: Contestant(
        "UniformRefresh", (2.0, 2.4, 3.0, 3.7, 4.8, 6.3, 8.4, 12.0, 18.0, 30.0, 55.0)
    ),
    FS_S: Contestant("FragmentStatic", _steps(0.002, 2.5, FINE)),
    HS_S: Contestant("HolisticStatic", _steps(0.02, 6.0, FINE)),
    FS_S_MEASURED: Contestant("FragmentStatic, measured", _steps(0.002, 2.5, FINE)),
    HS_S_MEASURED: Contestant("HolisticStatic, measured", _steps(0.02, 6.0, FINE)),
    FS_D: Contestant("FragmentDynamic", _steps(0.00002, 1.0, FINE + 4)),
    HS_D: Contestant("HolisticDynamic", _steps(0.0005, 2.0, FINE + 4)),
    NAIVE_STATIC: Contestant("CurrentDivergence", _steps(0.005, 0.6, FINE)),
    NAIVE_DYNAMIC: Contestant("CurrentDivergence", _steps(0.002, 0.6, FINE), {"dynamic": True}),
}
OFFLINE = {label: found._replace(reveal="parameters") for label, found in OFFLINE.items()}
"""Section 3.4: they know what online policies have to learn."""

ONLINE: dict[str, Contestant] = {
    UNTOLD: Contestant(
        "UniformRefresh", (3.0, 4.0, 5.0, 6.3, 8.4, 12.0, 18.0, 25.0, 38.0, 60.0, 100.0)
    ),
    FITTING: Contestant("CurveFitting", _steps(0.007, 2.0, FINE), {"histories": HISTORIES}),
    BOUNDS: Contestant(
        "DivergenceBounds", _steps(0.25, 20.0, FINE), {"histories": HISTORIES, "risk": RISK}
    ),
    OURS: Contestant("LearningLongevity", _steps(0.008, 1.5, 12), base_versions=HISTORIES),
}
"""Section 5.1, uniform refreshing that is not told which pages are static, and ours."""

_WARM_UP = {"learning": WARM_UP_LEARNING, "warm_up": WARM_UP}
WARMED: dict[str, Contestant] = {
    FITTING: Contestant(
        "CurveFitting", _steps(0.004, 3.0, FINE), {"histories": HISTORIES, **_WARM_UP}
    ),
    CGM: Contestant("ChoGarciaMolina", _steps(0.02, 12.0, FINE), _WARM_UP),
    CGM_LIKELIHOOD: Contestant(
        "ChoGarciaMolina", _steps(0.02, 12.0, FINE), {**_WARM_UP, "estimator": "mle"}
    ),
}
"""Section 5.3: with one schedule for the warm-up."""


class Memory(NamedTuple):
    """What is kept of a page: hashes of each base version, None for all, and profiles."""

    hashes: int | None
    histories: int


MEMORIES: dict[str, Memory] = {
    f"m={'all' if hashes is None else hashes}, h={histories}": Memory(hashes, histories)
    for hashes, histories in ((None, 5), (8, 5), (None, 1), (8, 1))
}
"""Section 5.2, by name, the full one first."""


def remembering(kind: str, memory: str) -> Contestant:
    """Curve fitting or divergence bounds with the memory of that name."""
    hashes, histories = MEMORIES[memory]
    kept = {"sketch_size": hashes, "histories": histories}
    found = ONLINE[kind]
    return found._replace(given={**found.given, **kept})
