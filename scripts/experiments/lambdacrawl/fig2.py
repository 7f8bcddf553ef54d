"""Kolobov et al., figure 2: the benefit of signals on pages with complete observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, draw_urls
from scripts.experiments.measures.costs import (
    AT_PAR,
    BLC,
    BLC_EPS,
    ENDLESS,
    INFINITE,
    J_B,
    J_H,
    LC,
    SAVED,
    Pages,
    cost_bars,
    formula_costs,
    saved,
)
from scripts.experiments.measures.derived import above, relative_to
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.specs import spec

TITLE = "Pages with complete observation alone (LambdaCrawl paper, figure 2)"
METRIC = J_H

CO, IO = "LC-CO", "LC-IO"
LABELS = {CO: (LC, True), IO: (LC, False), BLC: (BLC, False), BLC_EPS: (BLC_EPS, False)}
"""The policy and whether it uses signals, by the paper's label."""

SETTINGS = {f"of {size}": {"num_pages": size} for size in (18_532_314, 100_000)}
BOTH = tuple(SETTINGS)
PAPER = "section 7, figure 2"
BINARY_GAP = "LC-IO_above"


@lru_cache(maxsize=1)
def drawn(seed: int, num_pages: int) -> Pages:
    """Draw ``num_pages`` stand-in pages, and return those whose changes are all signalled."""
    urls = draw_urls(np.random.default_rng([seed, 1]), num_pages)
    there = urls.complete
    return Pages(urls.importance[there], urls.change_rate[there], there[there])


@spec("lambdacrawl-complete-pages-cost")
def measure(seed: int, *, label: str, num_pages: int) -> Mapping[str, float]:
    """Return the costs of a policy, with or without signals, on the pages of a seed."""
    pages, (policy, signals) = drawn(seed, num_pages), LABELS[label]
    visible = pages._replace(complete=pages.complete & signals)
    return formula_costs(policy, visible, CRAWLS_PER_PAGE * pages.importance.size)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of LC-CO's savings, and of the gap of LC-IO's binary cost to BLC and BLC-eps."""
    gaps = relative_to(rows, IO, {J_B: BINARY_GAP}, _gap, (BLC, BLC_EPS))
    return [*relative_to(rows, CO, SAVED, saved), *gaps]


def _gap(cost: float, base: float) -> float:
    return above(base, cost)


EXPERIMENT = Experiment(
    name="lambdacrawl-fig2",
    title=TITLE,
    claim=(
        "On the pages whose every change is signalled, using signals (LC-CO) at least halves both "
        "costs. Without signals, LC-IO is at par with BLC and BLC-eps in the binary cost (here: "
        "somewhat worse) and much better in the harmonic one."
    ),
    metric=METRIC,
    references=(CO,),
    repetitions=20,
    settings=measure_settings(
        SETTINGS,
        {label: partial(measure, label=label) for label in LABELS},
        limits=dict.fromkeys(BOTH[:1], 3),
        quick={"num_pages": 10_000},
        quick_settings=BOTH[1:],
    ),
    derive=derive,
    claims=(
        Claim(
            "Using signals makes both costs at least 50% lower",
            PAPER,
            tuple(
                Range(label, 0.5, 1.0, BOTH, PAPER, metric=SAVED[metric])
                for metric, labels in ((J_H, (IO, BLC_EPS)), (J_B, (IO, BLC, BLC_EPS)))
                for label in labels
            ),
            "the share by which LC-CO's cost is below that of the policy; BLC's J_h is infinite",
        ),
        Claim(
            "Without signals, LC-IO is at par with BLC and BLC-eps in the binary cost",
            PAPER,
            tuple(
                Range(label, -AT_PAR, AT_PAR, BOTH, "margin ours", metric=BINARY_GAP)
                for label in (BLC, BLC_EPS)
            ),
            "J_b of LC-IO over the policy's, minus 1; the margin is that of the other figures",
        ),
        Claim(
            "It is markedly better in the harmonic one",
            PAPER,
            (
                Trend(BLC_EPS, "above", IO, BOTH, PAPER),
                Range(BLC, 0.99, 1.0, BOTH, PAPER, metric=INFINITE),
            ),
        ),
    ),
    pictures={
        METRIC: cost_bars(
            f"{TITLE}, stand-in, R = 0.2 per page and day", BOTH, tuple(LABELS), {BLC: ENDLESS}
        )
    },
)
