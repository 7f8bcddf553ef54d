"""What a crawler of one's own needs works with NumPy, SciPy and numba alone."""

from __future__ import annotations

import subprocess
import sys

LIVE = """
import sys

MISSING = {"gymnasium", "torch", "stable_baselines3", "sklearn", "pyarrow", "matplotlib"}


class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in MISSING else self.finder.find_spec(name, *rest)


sys.meta_path[:] = map(Without, sys.meta_path)

import numpy as np
import crawl_envs, agents, policies
from agents.catalog import SHIPPED
from agents.index import load_index
from crawl_envs.types import Problem
from policies import estimators, solvers
from policies.base.live import empty_log
from policies.live.scheduler import CrawlScheduler

rates = {"change_rate": np.array([0.1, 1.0]), "recall": 0.5, "false_signal_rate": 0.2}
scheduler = CrawlScheduler("GreedyNCIS", bandwidth=2.0)
scheduler.add([7, 8], last_crawl=0.0, **rates)
assert scheduler.next(1.0).id == 8

assert estimators.match_moments(np.ones(2), np.array([True, False])).change_rate > 0.0
assert solvers.binary_periodic([1.0, 1.0], rates["change_rate"], 2.0).converged
columns = {name: np.broadcast_to(column, 2) for name, column in rates.items()}
problem = Problem(2, 2.0, importance=np.ones(2), **columns)
for agent in (load_index(SHIPPED / "noisy-index"), agents.load("generalist")):
    pages = policies.LivePages(problem)
    agent.start(pages)
    pages.advance(empty_log(), 1.0)
    agent.update(pages.last_log(), pages.tracker())
    assert agent.choose(pages.tracker()).tolist() in ([0], [1])
assert not MISSING & set(sys.modules)
"""


def test_a_live_crawler_needs_no_gymnasium():
    done = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
