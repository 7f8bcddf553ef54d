"""Scaling of the columns of an observation for networks.

An observation holds times up to the horizon, counts up to a thousand and rates up to a million.
With T = m / R the time in which every page could be crawled once,

=====================  ============================================================
column                 scaled
=====================  ============================================================
``elapsed``            L(elapsed / T)
``change_rate``        L(change rate · T)
``false_signal_rate``  L(false-signal rate · T)
``importance``         L(importance / mean importance)
``signals``            log(1 + signals)
``recall``             artanh((2 recall - 1) / 1.02), half its log-odds, bounded
in [-1, 1]             as they are: ``changed``, ``alive``, ``probed``, ``complete``
any other              sign(x) log(1 + abs(x))
=====================  ============================================================

where L(x) = log(1 + 100 x) - 3 is a logarithm down to a hundredth, and finite at 0: crawl values
are products of powers, and rates spread over decades. No information is lost (only ratios of
importances matter to the best action), and the unit of time does not matter. Columns of several
sources (``recall_1``) are scaled like those of one. Other columns must be free of units themselves:
there is no running mean, so that a model is the same function at the start of training, at its end,
and on new environments.

With a column ``alive``, means are over pages that exist, and T is the time in which those could be
crawled once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DECADES = 100.0
"""Logarithms become linear below 1 / DECADES."""
MIDDLE = 3.0
"""Subtracted from logarithms, so that usual values are around 0."""
RECALL_BOUND = 1.02
"""Recalls 0 and 1 remain distinct from 0.01 and 0.99, not from 0.001 and 0.999."""
LEAST_WEIGHT = 1e-12
"""Lower bound of the mean importance as a divisor."""
PLAIN = ("changed", "alive", "probed", "complete", "recall")


@dataclass(frozen=True)
class ScaledColumns:
    """Scales of F columns.

    Attributes:
        gain: factor under the logarithm, 0 where there is none, (F,).
        shift: added to the logarithm, (F,).
        keep: factor of the unscaled column, (F,).
        cycle_power: power of T in the divisor of the column, 1, 0 or -1, (F,).
        importance, alive: number of the column, or None.
        recalls, others: numbers of the columns.
    """

    gain: tuple[float, ...]
    shift: tuple[float, ...]
    keep: tuple[float, ...]
    cycle_power: tuple[int, ...]
    importance: int | None
    alive: int | None
    recalls: tuple[int, ...]
    others: tuple[int, ...]


POWERS = {"elapsed": 1, "change_rate": -1, "false_signal_rate": -1, "importance": 0}


def base_name(feature: str) -> str:
    """Return the name of a column without the number of its source."""
    name, _, number = feature.rpartition("_")
    return name if number.isdigit() else feature


def scaled_columns(features: tuple[str, ...]) -> ScaledColumns:
    """Return the scales of columns by their names.

    Raises:
        ValueError: there are no columns.
    """
    if not features:
        raise ValueError("features must name at least one column, got none")
    names = [base_name(feature) for feature in features]
    logarithmic = [name in POWERS for name in names]
    others = [k for k, name in enumerate(names) if name not in (*POWERS, *PLAIN, "signals")]
    return ScaledColumns(
        gain=tuple(
            DECADES if deep else float(name == "signals")
            for name, deep in zip(names, logarithmic, strict=True)
        ),
        shift=tuple(-MIDDLE if deep else 0.0 for deep in logarithmic),
        keep=tuple(float(name in PLAIN) for name in names),
        cycle_power=tuple(POWERS.get(name, 0) for name in names),
        importance=names.index("importance") if "importance" in names else None,
        alive=names.index("alive") if "alive" in names else None,
        recalls=tuple(k for k, name in enumerate(names) if name == "recall"),
        others=tuple(others),
    )


def check_cycle(cycle: float) -> float:
    """Return the time T, or raise ValueError where it is not positive and finite."""
    if not 0.0 < cycle < math.inf:
        raise ValueError(f"cycle must be finite and > 0, got {cycle!r}")
    return float(cycle)
