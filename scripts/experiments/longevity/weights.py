"""Olston and Pandey, section 2.1.1: fragments with weights, for content that matters more."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs.types.contents import Regions
from crawl_envs.worlds.fragments.regions import RegionPages
from scripts.experiments.longevity.measures import curves, pictures, plays
from scripts.experiments.longevity.measures.entrants import FITTING, FS_S, OFFLINE, ONLINE, UNIFORM
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Trend
from scripts.study.settings import Measurement, spec

TITLE = "Weights of fragments"
PAGES, QUICK_PAGES = 500, 60


class Weights(NamedTuple):
    """Weight of a fragment in each kind of region, integers >= 1."""

    static: int
    churn: int
    scroll: int


ALIKE = Weights(1, 1, 1)
KINDS_OF_WEIGHT = {
    "scroll counts 16-fold": Weights(1, 1, 16),
    "churn counts 16-fold": Weights(1, 16, 1),
}
"""Weights of our choice: lists count more, or advertisements and the like."""
ENTRANTS = {
    UNIFORM: OFFLINE[UNIFORM],
    FS_S: OFFLINE[FS_S].every(2),
    FITTING: ONLINE[FITTING].every(2),
}
AWARE = {label: f"{label}, weights known" for label in (FS_S, FITTING)}
"""Labels of the same policies with known weights."""
LABELS = (UNIFORM, FS_S, AWARE[FS_S], FITTING, AWARE[FITTING])
COSTS = (0.1, 0.2)
ALL = tuple(name for kind in KINDS_OF_WEIGHT for name in curves.at_costs(kind, COSTS))

CLAIMS = (
    Claim(
        "The techniques are not tied to uniform weights: each fragment may have a numeric weight.",
        "section 2.1.1, footnote 1",
        tuple(Trend(label, "above", aware, ALL, "footnote 1") for label, aware in AWARE.items()),
        "The paper tests no weights; these are ours. The same policies on the same pages and "
        "changes. Staleness is the weighted Jaccard "
        "distance, 1 less the weight of the common fragments over the weight of all.",
    ),
)


def weighted(pages: RegionPages, weights: Weights) -> RegionPages:
    """Return pages with weighted fragments: weight w becomes w fragments of the same lifetime.

    The Jaccard distance of the result is the weighted one of ``pages``; updates occur at the same
    times. The regions must be static, churn and scroll, as laws draw them.
    """
    regions = pages.regions
    size = regions.size * np.array(weights, np.int64)
    return RegionPages(
        pages.importance,
        Regions(regions.items, size, regions.rate),
        pages.recall,
        pages.false_signal_rate,
        bandwidth=pages.bandwidth,
    )


class Weighted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Run the same pages twice: with the weights that a policy observes, and with the true ones.

    Args:
        env: the environment of the policy.
        judged: the same environment, for the true weights.
        observed: weights in the divergences or regions that the policy observes.
        true: weights by which its copies are judged.
    """

    def __init__(self, env: Any, judged: Any, observed: Weights, true: Weights) -> None:
        super().__init__(env)
        self.judged, self.observed, self.true = judged, observed, true

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Draw the pages of a seed for both weights."""
        self.env.reset(seed=seed)
        core: Any = self.unwrapped
        drawn = core.instance
        self.judged.reset(seed=seed, options={"instance": weighted(drawn, self.true)})
        return self.env.reset(seed=seed, options={"instance": weighted(drawn, self.observed)})

    def step(self, action: Any) -> Any:
        """Crawl the same pages in the policy's environment and in the judged one."""
        self.judged.step(action)
        return self.env.step(action)

    def ledger(self, core: Any) -> Any:
        """Return the ledger of the environment with the true weights."""
        return self.judged.unwrapped.ledger()


@spec("longevity-weighted-sweep")
def swept(
    seed: int, *, entrant: plays.Entrant, num_pages: int, seen: Weights, true: list[int]
) -> dict[str, float]:
    """Return cost and staleness by true weights in both stretches of time, for each knob."""
    acting, judged = (plays.ticking("quality", num_pages, **entrant.shown) for _ in range(2))
    env = Weighted(acting, judged, seen, Weights(*true))
    stretches = partial(plays.in_stretches, num_pages=num_pages)
    return plays.sweep(env, entrant, seed, stretches, env.ledger)


def measurements(quick: bool) -> list[Measurement]:
    """Return measurements of policies that know or ignore weights, for both choices of weights."""
    settings = []
    for name, true in KINDS_OF_WEIGHT.items():
        measures = {}
        for label, entrant in ENTRANTS.items():
            play = partial(swept, entrant=entrant.every(3 if quick else 1))
            measures[label] = partial(play, seen=ALIKE)
            if label in AWARE:
                measures[AWARE[label]] = partial(play, seen=true)
        size = {"true": tuple(true), "num_pages": QUICK_PAGES if quick else PAGES}
        settings.append(Measurement(name, measures, size, plays.ID))
    return settings


EXPERIMENT = Experiment(
    name="longevity-weights",
    title=TITLE,
    claim=(
        "If fragments differ in weight, policies that know the weights leave copies less stale, "
        "by weight, than the same policies with equal weights."
    ),
    metric="staleness",
    references=(UNIFORM,),
    repetitions=5,
    settings=measurements,
    derive=partial(curves.compared, stretch=curves.EPISODE),
    claims=CLAIMS,
    pictures={
        "staleness": partial(
            pictures.curves_by_cost,
            stretch=curves.EPISODE,
            title=f"{TITLE}: quality set, 60 days",
            labels=LABELS,
            black=(UNIFORM,),
            measures={"staleness": "staleness: mean weighted divergence"},
        )
    },
)
