"""Policies on pages of fragments, and their thresholds (Olston and Pandey 2008)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Contents
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
from scripts.present.verdicts import Trend
from scripts.study.settings import Measurement

QUICK_STEP = 5
"""With ``--quick`` every fifth knob of a policy is played."""


def sweep(candidate: Candidate, quick: bool, **arguments: Any) -> Any:
    """Return the function of a seed that plays all knobs of a policy."""
    return partial(
        knob_sweep,
        kind=candidate.kind,
        given=dict(candidate.given),
        knobs=candidate.knobs[:: QUICK_STEP if quick else 1],
        **{"reveal": candidate.reveal, "base_versions": candidate.base_versions, **arguments},
    )


def sweeps(candidates: Mapping[str, Candidate], name: str, quick: bool) -> Measurement:
    """Return all knobs of all policies on a set of pages, which names the setting."""
    measures = {label: sweep(candidate, quick) for label, candidate in candidates.items()}
    size = {"instance": name, "num_pages": QUICK_PAGES if quick else PAGES}
    return Measurement(name, measures, size, ID)


def settings_at(name: str, costs: Sequence[float] = COSTS) -> tuple[str, ...]:
    """Return the settings in which curves of a set are compared at equal costs."""
    return tuple(at_cost(name, cost) for cost in costs)


def staler(first: str, second: str, where: Sequence[str], source: str, metric: str = "") -> Trend:
    """Return the trend that the first is staler than the second."""
    return Trend(first, "above", second, tuple(where), source, metric=metric)


def within(
    first: str,
    second: str,
    where: Sequence[str],
    source: str,
    margin: float,
    metric: str = "",
) -> tuple[Trend, ...]:
    """Return the trend that the two differ by a margin at most."""
    return (Trend(first, "about", second, tuple(where), source, margin, metric),)


UNIFORM, UNIFORM_ALL = "Uniform", "Uniform, all pages"
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
    """Return ``count`` numbers in geometric progression, to 4 digits."""
    return tuple(float(f"{value:.4g}") for value in np.geomspace(low, high, count))


class Candidate(NamedTuple):
    """A policy and its arguments.

    Attributes:
        kind: of KINDS.
        knobs: thresholds in days, of the naive form in divergence; of uniform refreshing intervals
            in days.
        given: further arguments of the policy, plain values.
        reveal: what the environment reveals.
        base_versions: number of base versions that the environment compares copies with.
    """

    kind: str
    knobs: tuple[float, ...]
    given: Mapping[str, Any] = MappingProxyType({})
    reveal: str = "importance"
    base_versions: int = 0


def threshold_of(kind: Callable[..., Any], env: Any, knob: float, **arguments: Any) -> Any:
    """Return a policy with a threshold."""
    return kind(env, threshold=knob, **arguments)


def uniform(env: Any, knob: float) -> UniformRefresh:
    """Return uniform refreshing with an interval."""
    return UniformRefresh(env, interval=knob)


def fitting(env: Any, knob: float, learning: float | None = None, **arguments: Any) -> CurveFitting:
    """Return curve fitting with a learning parameter proportional to the threshold.

    Refresh cost is about proportional to the inverse root of the threshold, and the crawls for
    learning to that of l: with l proportional to T the investment in learning is proportional to
    the refresh cost, as the paper tunes it (section 5.1).
    """
    days = LEARNING_PER_THRESHOLD * knob if learning is None else learning
    return CurveFitting(env, threshold=knob, learning=days, **arguments)


def measured_fragments(env: Any, knob: float) -> FragmentStatic:
    """Return FS-S with the average divergences of the snapshots that are played (section 3.4)."""
    curves = TabulatedCurves.of_contents(env.unwrapped.contents(), TICK, TICK * TICKS)
    return FragmentStatic(env, threshold=knob, curves=curves)


def measured_holistic(env: Any, knob: float) -> HolisticStatic:
    """Return HS-S with the change frequencies of the snapshots that are played (section 3.4)."""
    times = TICK * np.arange(1.0, TICKS + 1.0, dtype=np.float64)
    changes = changed_snapshots(env.unwrapped.contents(), times).sum(axis=1)
    rates = changes / (times[-1] - times[0])
    return HolisticStatic(env, threshold=knob, curves=HolisticCurves(rates))


def changed_snapshots(contents: Contents, times: FloatArray) -> FloatArray:
    """Return which snapshots of each page differ from the one before, (m, V - 1) of 0 and 1.

    Args:
        contents: of m pages; fragments that reappear may count as a change.
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
"""Constructors of policies from an environment and a knob, by the name stored with rows."""


def make_policy(env: Any, knob: float, kind: str, given: Mapping[str, Any]) -> Any:
    """Return a policy of a kind, with further arguments."""
    return KINDS[kind](env, knob, **given)


def knob_sweep(
    seed: int, *, kind: str, given: Mapping[str, Any], knobs: Sequence[float], **arguments: Any
) -> Mapping[str, float]:
    """Return cost and staleness of a policy of a kind; see :func:`swept`."""
    return swept(seed, make=partial(make_policy, kind=kind, given=given), knobs=knobs, **arguments)


FINE = 14
"""Number of knobs of a policy."""
OFFLINE: dict[str, Candidate] = {
    UNIFORM: Candidate(
        "UniformRefresh", (2.0, 2.4, 3.0, 3.7, 4.8, 6.3, 8.4, 12.0, 18.0, 30.0, 55.0)
    ),
    FS_S: Candidate("FragmentStatic", _steps(0.002, 2.5, FINE)),
    HS_S: Candidate("HolisticStatic", _steps(0.02, 6.0, FINE)),
    FS_S_MEASURED: Candidate("FragmentStatic, measured", _steps(0.002, 2.5, FINE)),
    HS_S_MEASURED: Candidate("HolisticStatic, measured", _steps(0.02, 6.0, FINE)),
    FS_D: Candidate("FragmentDynamic", _steps(0.00002, 1.0, FINE + 4)),
    HS_D: Candidate("HolisticDynamic", _steps(0.0005, 2.0, FINE + 4)),
    NAIVE_STATIC: Candidate("CurrentDivergence", _steps(0.005, 0.6, FINE)),
    NAIVE_DYNAMIC: Candidate("CurrentDivergence", _steps(0.002, 0.6, FINE), {"dynamic": True}),
}
OFFLINE = {label: candidate._replace(reveal="parameters") for label, candidate in OFFLINE.items()}
"""Offline policies of section 3.4: the parameters are known."""

ONLINE: dict[str, Candidate] = {
    UNIFORM_ALL: Candidate(
        "UniformRefresh", (3.0, 4.0, 5.0, 6.3, 8.4, 12.0, 18.0, 25.0, 38.0, 60.0, 100.0)
    ),
    FITTING: Candidate("CurveFitting", _steps(0.007, 2.0, FINE), {"histories": HISTORIES}),
    BOUNDS: Candidate(
        "DivergenceBounds", _steps(0.25, 20.0, FINE), {"histories": HISTORIES, "risk": RISK}
    ),
    OURS: Candidate("LearningLongevity", _steps(0.008, 1.5, 12), base_versions=HISTORIES),
}
"""Section 5.1, uniform refreshing of static pages too, and ours."""

_WARM_UP = {"learning": WARM_UP_LEARNING, "warm_up": WARM_UP}
WARMED: dict[str, Candidate] = {
    FITTING: Candidate(
        "CurveFitting", _steps(0.004, 3.0, FINE), {"histories": HISTORIES, **_WARM_UP}
    ),
    CGM: Candidate("ChoGarciaMolina", _steps(0.02, 12.0, FINE), _WARM_UP),
    CGM_LIKELIHOOD: Candidate(
        "ChoGarciaMolina", _steps(0.02, 12.0, FINE), {**_WARM_UP, "estimator": "mle"}
    ),
}
"""Policies of section 5.3, with one schedule for the warm-up."""


class Memory(NamedTuple):
    """Memory per page: hashes of each base version, None for all, and number of profiles."""

    hashes: int | None
    histories: int


MEMORIES: dict[str, Memory] = {
    f"m={'all' if hashes is None else hashes}, h={histories}": Memory(hashes, histories)
    for hashes, histories in ((None, 5), (8, 5), (None, 1), (8, 1))
}
"""Memories of section 5.2, by name, the full one first."""


def remembering(kind: str, memory: str) -> Candidate:
    """Return curve fitting or divergence bounds with the memory of that name."""
    hashes, histories = MEMORIES[memory]
    kept = {"sketch_size": hashes, "histories": histories}
    candidate = ONLINE[kind]
    return candidate._replace(given={**candidate.given, **kept})
