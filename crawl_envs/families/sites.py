"""``CrawlSites-v0``: windows of many recorded sites, for training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction, PageReveal, action_arguments, round_epoch
from crawl_envs.instances.traces.site_windows import DAYS_PER_CRAWL, site_generator
from crawl_envs.sim.divergence import Penalty
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective, penalty_and_reward
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.lanes import Lanes


class CrawlSites(CrawlEnv, SingleEnv):
    """Random windows and directories of recorded sites: to train on many, and to test on others.

    ## Description

    Each instance is a part of the record of a real site, replayed as in ``CrawlTrace-v0``, with the
    same rewards and the same end. The sites come with the package and are split by name: what is
    learned on the sites of ``train`` can be tested on those of ``test``.

    ## Instance

    Drawn from the seed at every seeded reset, and at every reset with ``resample``: a site of the
    split, a window in the second half of its record, and whole directories in random order until
    there are ``num_pages`` pages that exist at some time of the window; the last directory is cut.
    At least one of the pages changes in it. If a site has fewer pages, the others never exist. The
    number of steps depends on the instance.

    ## Action Space

    As in ``CrawlTrace-v0``, over ``num_pages`` pages.

    ## Observation Space

    As in ``CrawlTrace-v0``, for ``num_pages`` pages.

    ## Arguments

    - ``split`` ("train"): ``train``, ``dev`` or ``test``; or a site, or a list of sites, by name or
      path of the folder of a trace (``crawl_envs.instances.traces.sites()`` lists the names).
    - ``num_pages`` (100): number of pages.
    - ``days`` (None): length of a window; by default the shortest second half of the sites.
    - ``days_per_crawl`` (10.0): as in ``CrawlTrace-v0``; a pair (low, high) draws it for each
      instance, uniformly in the logarithm.
    - ``signals`` ("both"), ``importance`` ("uniform"), ``reward`` (None), ``action`` ("page"),
      ``batch`` (1), ``epoch`` (None), ``overspend`` (None), ``bucket`` (None), ``objective``
      ("binary"), ``crawl_cost`` (0.0), ``cost_spread`` (0.0), ``observation`` ("table"),
      ``reveal`` ("parameters"), ``reveal_cost`` (True), ``resample`` (False), ``start`` ("fresh"),
      ``render_mode`` (None): as in ``CrawlTrace-v0``.

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        split: str | Sequence[str] = "train",
        num_pages: int = 100,
        days: float | None = None,
        days_per_crawl: float | Sequence[float] = DAYS_PER_CRAWL,
        signals: Literal["directory", "mentions", "both", "none"] = "both",
        importance: Literal["uniform", "zipf"] = "uniform",
        action: PageAction = "page",
        objective: Penalty = "binary",
        reward: Literal["freshness", "penalty"] | None = None,
        batch: int = 1,
        epoch: float | None = None,
        overspend: Overspend | None = None,
        bucket: float | None = None,
        cost_spread: float = 0.0,
        crawl_cost: float = 0.0,
        observation: ObservationForm = "table",
        reveal: PageReveal = "parameters",
        reveal_cost: bool = True,
        resample: bool = False,
        start: Start = "fresh",
        render_mode: RenderMode | None = None,
    ) -> None:
        generator = site_generator(
            split,
            num_pages=num_pages,
            days=days,
            days_per_crawl=days_per_crawl,
            signals=signals,
            importance=importance,
            cost_spread=cost_spread,
            start=start,
            epoch=round_epoch(action, epoch),
        )
        penalty, term = penalty_and_reward(objective, reward, recorded=True)
        make_lanes = partial(
            Lanes,
            generator=generator,
            horizon=generator.duration,
            penalty=penalty,
            **action_arguments(action, generator, batch, epoch, overspend, bucket),
            observation=observation,
            reveal=reveal,
            reveal_cost=reveal_cost,
            resample=resample,
            start=start,
        )
        super().__init__(make_lanes, Objective(term, crawl_cost), render_mode=render_mode)


CrawlSitesVector = vectorized(CrawlSites)
