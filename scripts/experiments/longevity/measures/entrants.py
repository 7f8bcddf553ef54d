"""Define the policies that experiments compare, by label, with their thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scripts.experiments.longevity.measures.plays import HIDDEN, PARAMETERS, WARM_UP, Entrant

UNIFORM, UNIFORM_ALL = "Uniform", "Uniform, all pages"
FS_S, HS_S, FS_D, HS_D = "FS-S", "HS-S", "FS-D", "HS-D"
FS_S_MEASURED, HS_S_MEASURED = "FS-S, measured", "HS-S, measured"
NAIVE_STATIC, NAIVE_DYNAMIC = "U = D, static", "U = D, dynamic"
FITTING, BOUNDS, CGM = "Curve fitting", "Divergence bounds", "CGM"
CGM_LIKELIHOOD = "CGM, maximum likelihood"
OURS = "LearningLongevity (ours)"

HISTORIES, RISK = 5, 10.0
"""h and rho of section 5.1."""
COMPARED = HIDDEN | {"base_versions": HISTORIES}
"""Observations of our policy: as many base versions as other policies have profiles."""
WARM_UP_LEARNING = 2.0
"""l in days of the warm-up of curve fitting and CGM in section 5.3: 5 ticks of 30 days."""
INTERVAL = {"interval": 1.0}
PROPORTIONAL = {"threshold": 1.0, "learning": 30.0}
"""The learning parameter l of curve fitting is proportional to the threshold. Refresh cost is about
proportional to threshold^(-1/2), and the crawls for learning to l^(-1/2). So the investment in
learning is proportional to the refresh cost, as in the paper (section 5.1). Of the ratios 3, 10,
30, 100, 300 this one was the steadiest on two other seeds."""


def steps(low: float, high: float, count: int = 14) -> tuple[float, ...]:
    """Return ``count`` numbers from ``low`` to ``high`` in geometric progression, to 4 digits."""
    return tuple(float(f"{value:.4g}") for value in np.geomspace(low, high, count))


OFFLINE: dict[str, Entrant] = {
    UNIFORM: Entrant(
        "UniformRefresh",
        (2.0, 2.4, 3.0, 3.7, 4.8, 6.3, 8.4, 12.0, 18.0, 30.0, 55.0),
        sets=INTERVAL,
    ),
    FS_S: Entrant("FragmentStatic", steps(0.002, 2.5)),
    HS_S: Entrant("HolisticStatic", steps(0.02, 6.0)),
    FS_S_MEASURED: Entrant("FragmentStatic", steps(0.002, 2.5), curves="snapshots"),
    HS_S_MEASURED: Entrant("HolisticStatic", steps(0.02, 6.0), curves="changes of snapshots"),
    FS_D: Entrant("FragmentDynamic", steps(0.00002, 1.0, 18)),
    HS_D: Entrant("HolisticDynamic", steps(0.0005, 2.0, 18)),
    NAIVE_STATIC: Entrant("CurrentDivergence", steps(0.005, 0.6)),
    NAIVE_DYNAMIC: Entrant("CurrentDivergence", steps(0.002, 0.6), {"dynamic": True}),
}
OFFLINE = {label: replace(entrant, shown=PARAMETERS) for label, entrant in OFFLINE.items()}
"""Offline policies of section 3.4, with known parameters."""

ONLINE: dict[str, Entrant] = {
    UNIFORM_ALL: Entrant(
        "UniformRefresh",
        (3.0, 4.0, 5.0, 6.3, 8.4, 12.0, 18.0, 25.0, 38.0, 60.0, 100.0),
        sets=INTERVAL,
    ),
    FITTING: Entrant(
        "CurveFitting", steps(0.007, 2.0), {"histories": HISTORIES}, sets=PROPORTIONAL
    ),
    BOUNDS: Entrant("DivergenceBounds", steps(0.25, 20.0), {"histories": HISTORIES, "risk": RISK}),
    OURS: Entrant("LearningLongevity", steps(0.008, 1.5, 12), shown=COMPARED),
}
"""Policies of section 5.1, uniform refreshing that includes static pages, and ours."""

_WARM_UP = {"learning": WARM_UP_LEARNING, "warm_up": WARM_UP}
WARMED: dict[str, Entrant] = {
    FITTING: Entrant("CurveFitting", steps(0.004, 3.0), {"histories": HISTORIES, **_WARM_UP}),
    CGM: Entrant("ChoGarciaMolina", steps(0.02, 12.0), _WARM_UP),
    CGM_LIKELIHOOD: Entrant("ChoGarciaMolina", steps(0.02, 12.0), {**_WARM_UP, "estimator": "mle"}),
}
"""Policies of section 5.3, with one schedule for the warm-up."""

MEMORIES: dict[str, dict[str, int | None]] = {
    f"m={'all' if hashes is None else hashes}, h={histories}": {
        "sketch_size": hashes,
        "histories": histories,
    }
    for hashes, histories in ((None, 5), (8, 5), (None, 1), (8, 1))
}
"""Memories per page of section 5.2, the full one first: hashes of a base version (None: all) and
number of profiles."""


def remembering(kind: str, memory: str) -> Entrant:
    """Return the policy ``kind``, curve fitting or divergence bounds, with a named memory."""
    entrant = ONLINE[kind]
    return replace(entrant, given={**entrant.given, **MEMORIES[memory]})
