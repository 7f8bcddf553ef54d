"""Weights of fragments (section 2.1.1): content that matters more than the rest of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Regions
from crawl_envs.types.ledgers import FragmentLedger
from crawl_envs.worlds.fragments.regions import RegionPages
from scripts.experiments.longevity.setup.curves import WHOLE, points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    FITTING,
    FS_S,
    OFFLINE,
    ONLINE,
    UNIFORM,
    Candidate,
    make_policy,
    settings_at,
)
from scripts.experiments.longevity.setup.runs import ID, by_knob, in_stretches, ticking
from scripts.present.verdicts import Claim, Trend
from scripts.study.settings import Measurement

TITLE = "Weights of fragments"
CLAIM = (
    "Where fragments differ in weight, policies that are told the weights leave copies less stale, "
    "by weight, than the same policies that count all fragments alike."
)
METRIC = "staleness"
REFERENCE = UNIFORM
REPETITIONS, QUICK_REPETITIONS = 5, 2
PAGES, QUICK_PAGES = 500, 60


Ledgers = list[FragmentLedger]


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
"""The content of lists matters more, or that of advertisements and the like: our choice."""
TOLD = ", weights known"
CANDIDATES: dict[str, Candidate] = {
    UNIFORM: OFFLINE[UNIFORM],
    FS_S: OFFLINE[FS_S]._replace(knobs=OFFLINE[FS_S].knobs[::2]),
    FITTING: ONLINE[FITTING]._replace(knobs=ONLINE[FITTING].knobs[::2]),
}
LABELS = (UNIFORM, FS_S, FS_S + TOLD, FITTING, FITTING + TOLD)
COSTS = (0.1, 0.2)
AT = tuple(name for kind in KINDS_OF_WEIGHT for name in settings_at(kind, COSTS))

CLAIMS = (
    Claim(
        "The techniques are not tied to uniform weights: each fragment may have a numeric weight.",
        "section 2.1.1, footnote 1",
        tuple(Trend(label, "above", label + TOLD, AT, "footnote 1") for label in (FS_S, FITTING)),
        "The paper tests no weights; these are ours. The same policies on the same pages and "
        "changes. Staleness is the weighted Jaccard "
        "distance, 1 less the weight of the common fragments over the weight of all.",
    ),
)
EXPECTED = ()


def weighted(pages: RegionPages, weights: Weights) -> RegionPages:
    """Return pages whose fragments have weights: one of weight w is w fragments of one spell.

    The Jaccard distance of the result is the weighted one of ``pages``, and its updates occur at
    the same times. The regions are static, churn and scroll, as laws draw them.
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


def played(env: Any, judged: Any, make: Any, seed: int, seen: Weights, true: Weights) -> Ledgers:
    """Return ledgers of weights ``true`` at every decision and the end.

    The policy acts on the same pages with weights ``seen``: it observes divergences, or regions,
    of these.

    Args:
        env: the environment that the policy acts in.
        judged: the same one, for the true weights.
        make: constructor of the policy from an environment.
        seed: of pages and events.
        seen: weights that the policy is told.
        true: weights that its copies are judged by.
    """
    env.reset(seed=seed)
    drawn = env.unwrapped.instance
    observation, _ = env.reset(seed=seed, options={"instance": weighted(drawn, seen)})
    judged.reset(seed=seed, options={"instance": weighted(drawn, true)})
    policy, records, over = make(env), [judged.unwrapped.ledger()], False
    state, start = None, np.ones(1, np.bool_)
    while not over:
        policy.observe(env.unwrapped.last_log())
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, _, _, over, _ = env.step(action)
        judged.step(action)
        start = np.zeros(1, np.bool_)
        records.append(judged.unwrapped.ledger())
    return records


def swept(
    seed: int,
    *,
    num_pages: int,
    kind: str,
    given: Mapping[str, Any],
    knobs: Sequence[float],
    seen: Sequence[int],
    true: Sequence[int],
    **arguments: Any,
) -> Mapping[str, float]:
    """Return cost and weighted staleness in both stretches, for each knob."""
    env, judged = (ticking("quality", num_pages, **arguments) for _ in range(2))

    def play(knob: float) -> Mapping[str, float]:
        make = partial(make_policy, knob=knob, kind=kind, given=given)
        return in_stretches(
            played(env, judged, make, seed, Weights(*seen), Weights(*true)), num_pages
        )

    return by_knob(knobs, play)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all policies, told the weights or not, for both choices of weights."""
    size = {"num_pages": QUICK_PAGES if quick else PAGES}
    settings = []
    for name, true in KINDS_OF_WEIGHT.items():
        measures = {}
        for label in LABELS:
            candidate = CANDIDATES[label.removesuffix(TOLD)]
            measures[label] = partial(
                swept,
                kind=candidate.kind,
                given=dict(candidate.given),
                knobs=candidate.knobs[:: 3 if quick else 1],
                seen=tuple(true if label.endswith(TOLD) else ALIKE),
                reveal=candidate.reveal,
                base_versions=0,
            )
        settings.append(Measurement(name, measures, {"true": tuple(true), **size}, ID))
    return settings


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost."""
    return list(stalenesses(points_of(rows, WHOLE)))


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw weighted staleness against cost, a panel per choice of weights."""
    from scripts.experiments.longevity.setup.charts import curves_by_cost

    curves_by_cost(
        points_of(rows, WHOLE),
        path,
        title=f"{TITLE}: quality set, 60 days",
        labels=LABELS,
        black=(UNIFORM,),
        y_label="staleness: mean weighted divergence",
    )


PICTURES = {"staleness": _picture}
