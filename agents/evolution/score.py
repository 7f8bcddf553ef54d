"""How good a learned index is: against an analytic policy, on the same events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.evolution import stored
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.fitness import Candidate, candidate_policy
from agents.evolution.stored import StoredIndex
from crawl_envs.evaluation import mean_and_half_width, simulate

SCORE = "score.json"


class Score(NamedTuple):
    """Means over episodes of an index and of its rival, both of which met the same events.

    ``accuracy`` is the share of requests served fresh, ``freshness`` the importance-weighted share
    of page time that was fresh, ``difference`` the index's freshness minus the rival's with the
    half-width of its 95% Student interval, ``accuracy_difference`` likewise for accuracy.
    """

    rival: str
    num_pages: int
    bandwidth: float
    horizon: float
    seeds: tuple[int, int]
    accuracy: float
    rival_accuracy: float
    accuracy_difference: float
    accuracy_half_width: float
    freshness: float
    rival_freshness: float
    difference: float
    half_width: float


def score_index(
    index: StoredIndex,
    rival: str = "GreedyNCIS",
    *,
    instance: str = "noisy",
    num_pages: int,
    bandwidth: float,
    horizon: float,
    seeds: range,
) -> Score:
    """Play an index and an analytic policy on the same seeds.

    Args:
        index: what was learned, on pages of any number.
        rival: one of :func:`policies.names` that has a compiled form.
        instance: one of :func:`crawl_envs.instances.names`.
        num_pages: pages.
        bandwidth: crawls per unit of time.
        horizon: length of an episode.
        seeds: below 2**40, so that none was trained on.

    Raises:
        ValueError: an argument outside its range.
    """
    setting = EvolutionArguments(
        instance=instance, num_pages=num_pages, bandwidth=bandwidth, horizon=horizon
    )
    rivals: tuple[Candidate, Candidate] = (index, rival)
    measured = []
    for seed in seeds:
        truth = setting.draw(seed)
        for each in rivals:
            rollout = simulate(truth, candidate_policy(each), horizon, seed)
            measured.append((rollout.accuracy, rollout.freshness))
    table = np.array(measured).reshape(len(seeds), 2, 2)
    (accuracy, freshness), (rival_accuracy, rival_freshness) = table.mean(axis=0)
    gaps: Any = table[:, 0] - table[:, 1]
    accuracy_gap, gap = (mean_and_half_width(list(gaps[:, column])) for column in (0, 1))
    return Score(
        rival,
        num_pages,
        float(bandwidth),
        float(horizon),
        (seeds.start, seeds.stop),
        float(accuracy),
        float(rival_accuracy),
        *accuracy_gap,
        float(freshness),
        float(rival_freshness),
        *gap,
    )


def write_scores(folder: str | Path, made: dict[str, Any], scores: Sequence[Score]) -> None:
    """Write scores into an index's folder, with how it was made, plain values as JSON has them.

    Raises:
        OSError: it cannot be written.
    """
    values = {"made": made, "scores": [score._asdict() for score in scores]}
    stored.replace(Path(folder) / SCORE, json.dumps(values, indent=1) + "\n")
