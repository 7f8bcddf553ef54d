"""The worlds of a training: laws of pages, and windows of recorded sites."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.generalist.history import with_history
from agents.generalist.recording import Record, recorded, recording
from crawl_envs import instances
from crawl_envs.instances import traces
from crawl_envs.instances.traces import TraceWindow
from crawl_envs.instances.traces.site_windows import SitePages, site_generator
from crawl_envs.sim.streams import PageSets
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL
from crawl_envs.spaces.actions import PageChoice
from crawl_envs.types import Reveal
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.lanes import Lanes
from crawl_envs.worlds.rollouts import ONE_LANE, roll
from policies.ncis.belief import BeliefNCIS, History, warm_start

NUM_PAGES = 100
CYCLES = {"parameters": 20, "importance": 40}
"""Crawls per page of an episode of a law, by the revealed columns."""
BANDWIDTH_SPREAD = 4.0
"""Crawls per page and unit of time of a law are log-uniform in [1 / spread, spread]."""
SITE_PAGES = 100
"""Largest number of pages of a window of a site."""
SITE_DAYS_PER_CRAWL = (8.0, 100.0)
"""Range of the days per crawl of a window of a site, log-uniform."""


class World(NamedTuple):
    """A law, or a recorded site, by name, with the revealed columns.

    With the columns ``parameters``, a window of a site comes with the history before it.
    """

    reveal: Reveal
    law: str = ""
    site: str = ""

    def lanes(self, rng: np.random.Generator, pages: PageSets, start: Start) -> Lanes:
        """Return a lane for an episode; ``rng`` draws the bandwidth of a law."""
        unseen = {"observed": False, "requests": False}
        common: dict[str, Any] = {"reveal": self.reveal, "start": start, **unseen}
        if self.site:
            count = min(traces.load(traces.find(self.site)).num_pages, SITE_PAGES)
            size: dict[str, Any] = {"num_pages": count, "days_per_crawl": SITE_DAYS_PER_CRAWL}
            site = site_generator(self.site, start=start, **size)
            return Lanes(1, site, PageChoice(count), horizon=site.duration, **common)
        bandwidth = NUM_PAGES * BANDWIDTH_SPREAD ** rng.uniform(-1.0, 1.0)
        law = instances.generator_of(self.law, num_pages=NUM_PAGES, bandwidth=bandwidth)
        horizon = CYCLES[self.reveal] * NUM_PAGES / bandwidth
        return Lanes(1, law, PageChoice(NUM_PAGES), horizon=horizon, pages=pages, **common)


def past_of(window: TraceWindow) -> History:
    """Return the events of a window of a record as a history."""
    page, code = window.code // CODE_STRIDE, window.code % CODE_STRIDE
    kind = warm_start.SIGNAL + (code - SIGNAL) // 2
    for name, recorded_as in (("BIRTH", BIRTH), ("DEATH", DEATH), ("CHANGE", CHANGE)):
        kind[code == recorded_as] = getattr(warm_start, name)
    return History(window.time, page, kind, window.alive, window.duration)


def past_of_site(instance: SitePages) -> History:
    """Return the events of the pages of a site before the crawls that precede an episode."""
    trace = traces.load(traces.find(instance.site)).of_pages(instance.pages)
    window = trace.window(0.0, instance.day - instance.before, "both")
    return past_of(window.with_missing(instance.num_pages - instance.pages.size))


def explored(world: World, seed: int, pages: PageSets = "any", start: Start = "fresh") -> Record:
    """Run an exploring learner in the episode of a seed, and return its record."""
    rng = np.random.default_rng([seed, 3])
    lanes = world.lanes(rng, pages, start)
    lanes.begin(ONE_LANE, [seed], [None], play=False)
    instance: Any = lanes.instance(0)
    problem = instance.problem(world.reveal)
    with_past = bool(world.site) and world.reveal == "parameters"
    belief = BeliefNCIS(history=past_of_site(instance) if with_past else None)
    memory = with_history(belief.first_memory(problem), problem, np.zeros(0))
    slots = CYCLES[world.reveal] * NUM_PAGES if world.law else lanes.num_slots(0)
    form = recording(memory, slots, rng)
    roll(lanes, form)
    return recorded(form.memory)
