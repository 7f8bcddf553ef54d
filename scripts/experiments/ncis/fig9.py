"""Busa-Fekete et al., figure 9 (appendix A): the crawl value and its first terms."""

from __future__ import annotations

from functools import partial

import numpy as np

from policies import values
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Level
from scripts.study.rows import indexed
from scripts.study.specs import spec

TITLE = "The crawl value and its first terms (NCIS paper, figure 9)"
METRIC = "limit"
POINTS = 401
PAGES: dict[str, dict[str, float]] = {
    "nu=0.35": {"change_rate": 0.5, "recall": 0.5, "false_signal_rate": 0.35, "end": 20.0},
    "nu=0.05": {"change_rate": 0.5, "recall": 0.5, "false_signal_rate": 0.05, "end": 40.0},
}
"""A page in the middle of figure 6's range (beta 2.16), and one with few false signals (7.17)."""
TERMS = {"V": 0, "1 term": 1, "2 terms": 2, "3 terms": 3}
EVERYWHERE = tuple(PAGES)
SOURCE = "appendix A, figure 9"
ERROR, EARLY = "largest error", "largest error up to J beta"


def _levels(label: str, value: float, tolerance: float, metric: str) -> tuple[Level, ...]:
    return tuple(Level(name, label, value, tolerance, SOURCE, metric) for name in EVERYWHERE)


CLAIMS = (
    Claim("For long times V tends to mu/Delta.", SOURCE, _levels("V", 1.0, 1e-9, METRIC)),
    Claim(
        "So do its approximations: the red line is the asymptote of all functions.",
        SOURCE,
        tuple(
            level
            for label in ("1 term", "2 terms", "3 terms")
            for level in _levels(label, 1.0, 0.01, METRIC)
        ),
        note="Limits are shares of mu/Delta. The first J terms tend to 1 - (nu/(Delta+nu))^J of "
        "it, which is 1 only where false signals are few; and where values are needed near the "
        "limit, as with many pages, the approximations choose wrongly (figure 6).",
    ),
    Claim(
        "A small number of terms, such as 3, approximates V very well.",
        SOURCE,
        _levels("3 terms", 0.0, 0.01, ERROR),
        note="The largest error over all times, as a share of mu/Delta.",
    ),
)


@spec("ncis-crawl-value")
def measure(seed: int, *, terms: int, end: float, **shape: float) -> dict[str, float]:
    """Return a crawl value at evenly spaced effective times, in units of mu/Delta; not random."""
    page = {"importance": shape["change_rate"], **shape}
    times = np.linspace(0.0, end, POINTS)
    exact = values.greedy_ncis(times, **page)
    curve, limit = exact, values.greedy_ncis(np.inf, **page)
    if terms:
        curve = values.greedy_ncis_approx(times, terms=terms, **page)
        limit = values.greedy_ncis_approx(np.inf, terms=terms, **page)
    metrics = {METRIC: float(limit), **indexed("value", curve)}
    if terms:
        off = np.abs(curve - exact)
        early = times < terms * beta(**shape)
        metrics |= {
            ERROR: max(float(off.max()), 1.0 - float(limit)),
            EARLY: float(off[early].max()),
        }
    return metrics


def beta(change_rate: float, recall: float, false_signal_rate: float) -> float:
    """Return beta = ln(gamma / nu) / alpha, the effective elapsed time per signal (section 3)."""
    signal_rate = recall * change_rate + false_signal_rate
    return float(np.log(signal_rate / false_signal_rate) / ((1.0 - recall) * change_rate))


SHAPES = {name: {k: x for k, x in page.items() if k != "end"} for name, page in PAGES.items()}
TITLES = {
    name: ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in shape.items())
    for name, shape in SHAPES.items()
}

EXPERIMENT = Experiment(
    name="ncis-fig9",
    title=TITLE,
    claim=(
        "The value V of GREEDY-NCIS grows with the effective elapsed time towards mu/Delta. Its "
        "first 1, 2 or 3 terms agree with it up to 1, 2 or 3 beta and approximate it very well."
    ),
    metric=METRIC,
    repetitions=1,
    settings=measure_settings(
        PAGES,
        {label: partial(measure, terms=terms) for label, terms in TERMS.items()},
        limits=dict.fromkeys(PAGES, 1),
    ),
    claims=CLAIMS,
    expected=tuple(
        level
        for label in ("1 term", "2 terms", "3 terms")
        for level in _levels(label, 0.0, 1e-9, EARLY)
    ),
    pictures={
        METRIC: figures.lines(
            [Series("value", TITLES)],
            Frame(
                TITLE,
                {
                    TITLES[name]: Axis(
                        "effective elapsed time (dotted: multiples of beta)",
                        limits=(0.0, page["end"]),
                    )
                    for name, page in PAGES.items()
                },
                Axis("crawl value, in units of mu/Delta", limits=(0.0, 1.05)),
                shared="y",
                across=[Rule(1.0, "mu/Delta", "-")],
                upright=[
                    Rule(float(time), None, ":", TITLES[name])
                    for name, shape in SHAPES.items()
                    for time in np.arange(beta(**shape), PAGES[name]["end"], beta(**shape))
                ],
            ),
            along={name: np.linspace(0.0, page["end"], POINTS) for name, page in PAGES.items()},
            bands=True,
            looks={"V": {"linewidth": 3.0, "alpha": 0.5}},
        )
    },
)
