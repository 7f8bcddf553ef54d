"""A policy for pages with fragments whose network learned the utility of crawls.

The mean divergence of a copy is concave in its age (section 3.3 of Olston and Pandey 2008): it is a
sum of w_k min(t, b_k) / b_k with weights w_k >= 0. So the utility of a crawl (eq. 4) is the sum of
w_k min(t, b_k)^2 / (2 b_k). The network computes the weights from the results of a page's crawls.
The unit of time is m / R, the mean time between crawls of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import policies
from agents.catalog import CURVES
from agents.generalist.learning import Scaling
from agents.index.inputs import forward, shapes_of
from agents.runs import read_object
from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from policies.base.policy import Pages
from policies.longevity.refreshing import RefreshPolicy, Urgency

AGES: FloatArray = np.exp2(np.arange(-6.0, 6.0))
"""Ages b_k at which a part of the divergence stops growing, (K,)."""
MAX_CRAWLS, NUM_RECENT, NUM_INPUTS = 24, 3, 23
"""Stored crawls of a page, crawls that are inputs by themselves, and number of inputs."""
OFFSET, SMALL_SHARE, LONG = 0.01, 1e-3, 20.0
"""Added to times and to shares before their logarithm; gap to a change if there is none."""


def basis(age: FloatArray) -> FloatArray:
    """Return min(t, b_k)^2 / (2 b_k), (n, K), for ages t >= 0, (n,)."""
    return np.asarray(np.minimum(age[:, None], AGES) ** 2 / (2.0 * AGES))


def inputs_of(rows: FloatArray, count: IntArray) -> FloatArray:
    """Return the inputs of the network for the pages of a site, (m, NUM_INPUTS).

    Equal lost shares are a sign of churn; sums of shares that grow with age, of a scroll region.

    Args:
        rows: time between crawls, and shares lost of the last copy and of the one before, for the
            crawls of each page, latest first; (3, m, n).
        count: number of crawls of each page, (m,), <= n.
    """
    elapsed, lost, older = np.where(np.arange(rows.shape[2]) < count[:, None], rows, 0.0)
    changed, unchanged = lost > 0.0, np.where(lost > 0.0, 0.0, elapsed)
    changes, total, high = changed.sum(axis=1), elapsed.sum(axis=1), lost.max(axis=1)
    low = np.where(changed, lost, high[:, None]).min(axis=1)
    before = np.pad(lost, ((0, 0), (0, 1)))[:, 1:]
    pairs = changed & (before > 0.0)
    ratio = np.where(pairs, older / np.maximum(lost + before, 1e-9), 0.0).sum(axis=1)
    equal = (changed & (lost - low[:, None] < 1e-9)).sum(axis=1)
    mean, rate = lost.sum(axis=1) / np.maximum(changes, 1), lost.sum(axis=1) / (OFFSET + total)
    first, last = np.where(changed, elapsed, LONG).min(1), np.where(changed, elapsed, 0.0).max(1)
    times = np.stack([total, unchanged.sum(axis=1), unchanged.max(axis=1), first, last], axis=1)
    results = np.stack(
        [
            *(high, equal / np.maximum(changes, 1), (ratio + 0.75) / (pairs.sum(axis=1) + 1.0)),
            *(np.log(SMALL_SHARE + share) for share in (high, low, mean, rate)),
            *(np.log1p(number) for number in (count, changes, equal)),
        ],
        axis=1,
    )
    site = np.tile([high.mean(), (changes > 0).mean()], (count.size, 1))
    recent = lost[:, :NUM_RECENT] / np.maximum(high, 1e-9)[:, None]
    times = np.log(OFFSET + np.concatenate([times, elapsed[:, :NUM_RECENT]], axis=1))
    return np.concatenate([results, times, recent, site], axis=1)


class LearnedCurves(RefreshPolicy):
    """Refreshes the page of the largest utility by a network; it does not use signals.

    Args:
        scaling: means and scales of the inputs.
        layers: the network from inputs to the logarithms of the weights.
    """

    learns = reads_log = True

    def __init__(self, *, scaling: Scaling, layers: Sequence[FloatArray]) -> None:
        super().__init__()
        self.scaling, self.layers = scaling, layers

    def start(self, pages: Pages) -> None:
        """Begin without crawls, and read the first log; ValueError with one base version."""
        tracker = pages.tracker()
        if tracker.copies is None or len(tracker.copies.age) < 2:
            raise ValueError("env must have base_versions >= 2, as in the training, got fewer")
        num_pages = tracker.elapsed.size
        self.cycle = num_pages / tracker.problem.per_cost().bandwidth
        self.rows: FloatArray = np.zeros((3, num_pages, MAX_CRAWLS))
        self.count: IntArray = np.zeros(num_pages, np.int64)
        self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the crawls of a log, and compute the weights of all pages."""
        for n, page in enumerate(log.page):
            assert log.divergence is not None
            divergence = np.nan_to_num(log.divergence[n, :2])
            self.rows[:, page, 1:] = self.rows[:, page, :-1].copy()
            self.rows[0, page, 0] = log.elapsed[n] / self.cycle
            self.rows[1:, page, 0] = divergence / (2.0 - divergence)
            self.count[page] = min(self.count[page] + 1, MAX_CRAWLS)
        inputs = self.scaling(inputs_of(self.rows, self.count))
        self.weights = np.exp(forward(self.layers, inputs)[2])

    def _urgency(self, tracker: Tracker) -> Urgency:
        utility = (self.weights * basis(tracker.elapsed / self.cycle)).sum(axis=1)
        return Urgency(tracker.problem.importance * self.cycle * utility)


def load_curves(folder: str | Path, env: Any = None) -> Any:
    """Return the agent in a folder, bound to an environment if one is named.

    Raises:
        ValueError: the file is missing or damaged, or ``env`` is like none of the training.
    """
    path = Path(folder) / CURVES
    values = read_object(path)
    try:
        arrays = [np.array(array, np.float64) for array in values["arrays"]]
        shapes = [*((NUM_INPUTS,),) * 2, *shapes_of(NUM_INPUTS, len(arrays[3]), AGES.size)]
        if [array.shape for array in arrays] != shapes or not np.isfinite(sum(map(np.sum, arrays))):
            raise ValueError(f"arrays must be finite numbers of shapes {shapes}")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    agent = LearnedCurves(scaling=Scaling(*arrays[:2]), layers=arrays[2:])
    if env is None:
        return agent
    core = getattr(env, "unwrapped", env)
    reward, form = core.objective.reward, core.action_form
    if reward != "fragments" or form not in ("page", "scores") or "change_rate" in core.features:
        raise ValueError(
            "env must be CrawlLongevity-v0 with rewards of fragments, actions that are pages or "
            "scores, and reveal='importance', as in the training, got reward "
            f"{reward!r}, action {form!r} and features {', '.join(core.features)}"
        )
    return policies.bind(agent, env)
