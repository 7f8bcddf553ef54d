"""Learn the utility of crawls of pages with fragments, from crawls of training pages.

The regions of training pages are known. An example has the results of a page's crawls at random
times, an age, and the true utility of a crawl at that age. The loss m - v ln m of a prediction m
for a value v is minimal at the mean of v, so the network learns the mean utility given the results.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from agents.catalog import CURVES, check_vacant
from agents.generalist.curves import AGES, MAX_CRAWLS, NUM_INPUTS, LearnedCurves, basis, inputs_of
from agents.generalist.learning import Scaling
from agents.index.arguments import check_numbers
from agents.index.fitting import Examples, Loss, fit, start_layers
from agents.runs import CONFIG, RunArguments, replace_text
from crawl_envs.instances import generator_of
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import one_of
from crawl_envs.types.contents import Regions
from policies.values.divergence.regions import RegionCurves

SNAPSHOTS, MAX_MEAN_CRAWLS = 4, 13
"""Examples of a page, of different numbers of crawls, and largest mean number of them."""
AGE_RANGE, GAP_RANGE = (0.03, 6.0), (0.02, 8.0)
"""Ranges of ages and of times between crawls, in units of m / R."""
PAGE_SPREAD, GAP_SPREAD, COUNT_SPREAD = 0.9, 0.7, 0.5
"""Standard deviations of the logarithms of gaps, between and within pages, and of counts."""
UNIT, FIRST_LOG_WEIGHT = 0.02, -5.0
"""Unit of utilities in the loss, and the logarithm of the weights before the fit."""
LEARNING_RATE, MINIBATCH, STEPS = 0.003, 512, 1000
FIRST_SEED = 2**44
POISSON = Loss(
    lambda mean, value: np.asarray(mean - value * np.log(mean)),
    lambda mean, value: np.asarray(1.0 - value / mean),
)


@dataclass(frozen=True, kw_only=True)
class CurveArguments(RunArguments):
    """Arguments of a training, plain values; ValueError for an unknown law or a bad number."""

    ALGORITHM: ClassVar[str] = "utility regression"
    algorithm: str = ALGORITHM
    family: str = "CrawlLongevity-v0"
    instance: Sequence[str] = ("quality", "random")
    """Laws of the page sets, in turn."""
    pages: str = "train"
    """Stream of the page sets, always ``train``."""
    num_pages: int = 50
    sets: int = 6000
    """Number of page sets, >= 1."""
    rounds: int = 40
    """Rounds of the fit, of STEPS steps, >= 1."""
    hidden: int = 64
    """Units of each hidden layer, >= 1."""
    seed: int = 0
    """Seed of all random numbers, in [0, 2**16)."""

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("algorithm", "family", "pages"):
            one_of(name, getattr(self, name), (getattr(CurveArguments, name),))
        object.__setattr__(self, "instance", tuple(self.instance))
        for law in self.instance:
            one_of("instance", law, CurveArguments.instance)


def lost_shares(regions: Regions, updates: FloatArray) -> FloatArray:
    """Return the shares that copies have lost, (m, n), after updates of regions, (m, G, n)."""
    items, size = regions.items[:, :, None], regions.size[:, :, None]
    lost = size * np.minimum(updates, items)
    return np.asarray(lost.sum(axis=1) / (items * size).sum(axis=1))


def drawn_crawls(regions: Regions, cycle: float, rng: np.random.Generator) -> FloatArray:
    """Return the rows of :func:`inputs_of` for random gaps between crawls; ``cycle`` is m / R."""
    normal = rng.standard_normal((regions.num_pages, MAX_CRAWLS + 1))
    gaps = np.exp(PAGE_SPREAD * normal[:, -1:] + GAP_SPREAD * normal[:, :-1])
    gaps = np.clip(gaps, *GAP_RANGE)
    updates = rng.poisson(regions.rate[:, :, None] * cycle * gaps[:, None]).astype(np.float64)
    before = np.pad(updates, ((0, 0), (0, 0), (0, 1)))[:, :, 1:]
    return np.stack([gaps, lost_shares(regions, updates), lost_shares(regions, updates + before)])


def examples_of(arguments: CurveArguments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return inputs (n, NUM_INPUTS), functions of age (n, K) and utilities (n,), by UNIT."""
    first, parts = FIRST_SEED + (arguments.seed << 20), []
    laws = [generator_of(name, num_pages=arguments.num_pages) for name in arguments.instance]
    for number in range(arguments.sets):
        root, law = roots(first + number, "train"), laws[number % len(laws)]
        regions = law(generator(root.instance, 0)).problem().regions
        rng, cycle, num_pages = generator(root.rng, 0), law.num_pages / law.bandwidth, law.num_pages
        assert regions is not None
        rows, curves = drawn_crawls(regions, cycle, rng), RegionCurves(regions)
        for mean in rng.integers(1, MAX_MEAN_CRAWLS + 1, SNAPSHOTS):
            factor = np.exp(COUNT_SPREAD * rng.standard_normal(num_pages))
            count = np.clip(rng.poisson(mean * factor), 1, MAX_CRAWLS)
            low, high = AGE_RANGE
            age = np.exp(rng.uniform(np.log(low), np.log(high), num_pages))
            utility = curves.utility(age * cycle) / cycle
            parts.append((inputs_of(rows, count), basis(age) / UNIT, utility / UNIT))
    inputs, functions, utilities = map(np.concatenate, zip(*parts, strict=True))
    return inputs, functions, utilities


def train_curves(arguments: CurveArguments, out: str | Path) -> LearnedCurves:
    """Learn a network, and write it with its arguments to a folder.

    Raises:
        ValueError: ``out`` holds an agent already.
        OSError: ``out`` cannot be written.
    """
    out = Path(out)
    check_vacant(out)
    inputs, functions, utilities = examples_of(arguments)
    rng, scaling = np.random.default_rng([arguments.seed, 2]), Scaling.learn(inputs)
    layers = start_layers(NUM_INPUTS, arguments.hidden, (FIRST_LOG_WEIGHT,) * AGES.size, rng)
    targets = functions.astype(np.float32), utilities.astype(np.float32)
    examples = Examples(scaling(inputs), np.arange(len(inputs)), *targets)
    options = {"rounds": arguments.rounds, "steps": STEPS, "minibatch": MINIBATCH}
    [*fit(layers, examples, None, POISSON, learning_rate=LEARNING_RATE, rng=rng, **options)]
    arrays = [np.vectorize(lambda x: float(f"{x:.6g}"))(array) for array in (*scaling, *layers)]
    values = {"made": json.loads(arguments.to_json()), "arrays": [it.tolist() for it in arrays]}
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / CONFIG, arguments.to_json())
    replace_text(out / CURVES, json.dumps(values) + "\n")
    return LearnedCurves(scaling=Scaling(*arrays[:2]), layers=arrays[2:])
