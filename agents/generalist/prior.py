"""A belief that starts from what changes and signals meant on other recorded sites.

Its result has 12 numbers: the initial scale of each kind of numbers of a page
(:mod:`policies.ncis.belief.layout`), per day, and how fast the belief forgets the pace of
broadcasts. The training reads the scales from the first halves of recorded sites, and chooses the
pace by the freshness in their second halves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import policies
from agents.catalog import PRIOR, check_vacant
from agents.generalist.policy import check_learned
from agents.generalist.worlds import World, past_of_site
from agents.index.arguments import check_numbers
from agents.runs import CONFIG, RunArguments, read_object, replace_text
from crawl_envs.instances import traces
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import Memory
from crawl_envs.worlds.rollouts import ONE_LANE, roll
from policies.ncis.belief import BeliefNCIS, History, kernels
from policies.ncis.belief.layout import PACE_MEMORY
from policies.ncis.belief.policy import places_of

PACES = (1.0, 0.5, 0.25, 0.1)
"""Factors of the time in which the pace of broadcasts is forgotten, among which one is chosen."""
SCALE_RANGE = (1e-5, 50.0)
"""Range to which the scales of a site are clipped."""
FIRST_SEED = 2**43
"""First seed of the windows."""


class SiteBelief(BeliefNCIS):
    """BELIEF-NCIS with initial ``scales``, (D,), per day, and a ``pace`` learned on recorded sites.

    Scales are used without a history, where parameters are hidden. The pace, > 0, is a factor of
    the time in which the pace of broadcasts is forgotten.
    """

    def __init__(self, *, scales: FloatArray, pace: float, **belief: Any) -> None:
        super().__init__(**belief)
        self.scales, self.pace = scales, pace

    def _shared(self, problem: Problem) -> FloatArray:
        shared = super()._shared(problem)
        shared[PACE_MEMORY] *= self.pace
        return shared

    def _blank(self, problem: Problem) -> Memory:
        memory, columns = super()._blank(problem), places_of(problem)
        if columns.kinds != self.scales.size:
            raise ValueError(
                "env must have pages in groups and two sources of signals, as in the training, "
                f"got {problem.num_sources} sources; use signals='both'"
            )
        if self.history is None and problem.change_rate is None:
            memory.pages[:, columns.scale : columns.scale + columns.kinds] = self.scales
            kernels.renew(memory.pages, memory.groups, memory.shared, memory.group)
        return memory


@dataclass(frozen=True, kw_only=True)
class PriorArguments(RunArguments):
    """Arguments of a training, plain values; ValueError for an unknown site or a bad number."""

    ALGORITHM: ClassVar[str] = "prior of recorded sites"
    algorithm: str = ALGORITHM
    sites: Sequence[str] = ()
    """Names of the sites; none for those of the split train."""
    windows: int = 16
    """Windows of each site, on which scales are read and the pace is chosen, >= 1."""
    seed: int = 0
    """Seed of the windows, in [0, 2**16)."""

    def __post_init__(self) -> None:
        check_numbers(self)
        one_of("algorithm", self.algorithm, (self.ALGORITHM,))
        object.__setattr__(self, "sites", tuple(self.sites) or traces.sites("train"))
        for site in self.sites:
            one_of("sites", site, (*traces.sites("train"), *traces.sites("dev")))


def window_of(world: World, seed: int) -> Any:
    """Return a lane that begins a window of a site, taken over by the crawler."""
    lanes = world.lanes(np.random.default_rng([seed, 3]), "train", "crawled")
    lanes.begin(ONE_LANE, [seed], [None], play=False)
    return lanes


def scales_of(site: str, seed: int) -> FloatArray:
    """Return the mean believed numbers of the pages of a window after the site's history, (D,)."""
    instance = window_of(World("parameters", site=site), seed).instance(0)
    problem = instance.problem("parameters")
    memory = BeliefNCIS(history=past_of_site(instance)).first_memory(problem)
    columns = places_of(problem)
    believed = memory.pages[: instance.pages.size, columns.believed :][:, : columns.kinds]
    return np.asarray(np.clip(believed.mean(axis=0), *SCALE_RANGE))


def freshness_at(pace: float, scales: FloatArray, site: str, seed: int) -> float:
    """Return the freshness of a belief, without a history, in a window of a site."""
    lanes = window_of(World("importance", site=site), seed)
    problem, rng = lanes.instance(0).problem("importance"), np.random.default_rng(0)
    form = SiteBelief(scales=scales, pace=pace).compile(problem, lanes.num_slots(0), rng)
    return roll(lanes, form).freshness


def train_prior(arguments: PriorArguments, out: str | Path) -> SiteBelief:
    """Learn a prior, and write it to a folder with its arguments; ValueError for one with an agent.

    The scales are geometric means over the windows. The pace is that of the largest mean freshness.
    """
    out, sites = Path(out), arguments.sites
    check_vacant(out)
    first = FIRST_SEED + (arguments.seed << 20)
    windows = [(site, first + k) for k, site in enumerate([*sites] * arguments.windows)]
    scales = np.exp(np.mean([np.log(scales_of(*it)) for it in windows], axis=0))
    means = {p: float(np.mean([freshness_at(p, scales, *it) for it in windows])) for p in PACES}
    pace = max(PACES, key=lambda factor: means[factor])
    rounded = [float(f"{scale:.6g}") for scale in scales]
    by_pace = {str(factor): mean for factor, mean in means.items()}
    values = {"scales": rounded, "pace": pace, "freshness_by_pace": by_pace}
    values["made"] = json.loads(arguments.to_json())
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / CONFIG, arguments.to_json())
    replace_text(out / PRIOR, json.dumps(values, indent=1) + "\n")
    return SiteBelief(scales=np.array(rounded), pace=pace)


def load_prior(folder: str | Path, env: Any = None, history: History | None = None) -> Any:
    """Return the agent of a prior in a folder, bound to ``env``, of recorded pages, if it is named.

    Raises ValueError for a missing or damaged file, or another environment.
    """
    path = Path(folder) / PRIOR
    values = read_object(path)
    try:
        scales, pace = np.array(values["scales"], np.float64), float(values["pace"])
        if scales.ndim != 1 or not (np.all(scales > 0.0) and np.all(scales < np.inf) and pace > 0):
            raise ValueError("scales and pace must be numbers > 0")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    agent = SiteBelief(scales=scales, pace=pace, history=history)
    if env is None:
        return agent
    check_learned(env, {"sites": True, "instance": False})
    return policies.bind(agent, env)
