"""How good a correction is: against analytic policies, on the same events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

import crawl_envs  # noqa: F401  # registers the environments
from agents.evolution import stored
from agents.evolution.belief.policy import CorrectedBelief
from agents.evolution.score import SCORE
from agents.evolution.stored import StoredIndex
from crawl_envs.evaluation import PolicyFactory, mean_and_half_width, play


class Score(NamedTuple):
    """Means over episodes of a correction and a rival, both of which met the same events.

    ``seeds`` are a first one and the one after the last; ``freshness`` is the importance-weighted
    share of page time that was fresh, ``difference`` that of the correction minus the rival's, and
    ``half_width`` that of its 95% Student interval.
    """

    rival: str
    seeds: tuple[int, int]
    freshness: float
    rival_freshness: float
    difference: float
    half_width: float


def score_correction(
    index: StoredIndex,
    rivals: Mapping[str, PolicyFactory],
    seeds: range,
    setting: Mapping[str, Any],
) -> list[Score]:
    """Play a correction and its rivals on the same seeds, one score for each rival.

    Args:
        index: of base ``BeliefNCIS``.
        rivals: for each label, a function of an environment that returns a policy for it.
        seeds: at least two, below 2**40, so that none was trained on.
        setting: arguments of ``gym.make("CrawlNCIS-v0", ...)``.

    Raises:
        ValueError: seeds that a training may have played, or fewer than two; an index of another
            base; an argument outside its range.
    """
    if len(seeds) < 2 or min(seeds) < 0 or max(seeds) >= 2**40:
        raise ValueError(f"seeds must be at least two in [0, 2**40), got {seeds!r}")
    env = gymnasium.make("CrawlNCIS-v0", **setting)
    fresh: dict[str, list[float]] = {label: [] for label in rivals}
    own = []
    for seed in seeds:
        env.reset(seed=seed)
        own.append(play(env, CorrectedBelief(env, index=index), seed).freshness)
        for label, rival in rivals.items():
            fresh[label].append(play(env, rival(env), seed).freshness)
    env.close()
    mean = sum(own) / len(own)
    return [
        Score(
            label,
            (seeds.start, seeds.stop),
            mean,
            sum(theirs) / len(theirs),
            *mean_and_half_width([a - b for a, b in zip(own, theirs, strict=True)]),
        )
        for label, theirs in fresh.items()
    ]


def write_scores(folder: str | Path, made: Mapping[str, Any], scores: Sequence[Score]) -> None:
    """Write scores into a correction's folder, with how it was made, plain values as JSON has them.

    Raises:
        OSError: it cannot be written.
    """
    values = {"made": dict(made), "scores": [score._asdict() for score in scores]}
    stored.replace(Path(folder) / SCORE, json.dumps(values, indent=1) + "\n")
