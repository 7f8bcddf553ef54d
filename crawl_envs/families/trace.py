"""``CrawlTrace-v0``: a recorded change history of a real site."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction, PageReveal, action_arguments, round_epoch
from crawl_envs.instances.traces.instance import recorded
from crawl_envs.sim.divergence import Penalty
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective, penalty_and_reward
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.lanes import Lanes

DEFAULT_TRACE = "garden-handbook"


class CrawlTrace(CrawlEnv, SingleEnv):
    """A recorded history of a real site, replayed: changes, signals, births and deaths of pages.

    ## Description

    The events are recorded: every change of every page of a site, the signals, births and deaths.
    Nothing is drawn, so the events are the same for all seeds. The tracker starts with a fresh copy
    of every existing page. It knows of births and deaths at once, and has a fresh copy of a page at
    its birth. Time is in days. Rates drift, commits change many pages at once, and signals name a
    directory and not a page: the environment tests policies on real data.

    ## Instance

    Change rate, recall and false-signal rate of each page were fitted by
    ``python -m scripts.data.fit_trace`` on an earlier window and stored with the trace. Pages
    born later have the means of pages born in that window, or pooled values in the shipped trace.
    These parameters are beliefs, not the truth.

    ## Action Space

    As in ``CrawlNCIS-v0``: ``page``, ``scores``, ``refresh``, ``rates`` or ``shares``, over all
    pages that ever existed. A crawl of a page that does not exist is wasted and counted
    (``ledger().wasted``); ``info["action_mask"]`` (int8) and ``action_masks()`` are the masks of
    existing pages, (m,).

    ## Observation Space

    As in ``CrawlNCIS-v0``, with a column ``alive`` after ``changed``: 1 for pages that exist, else
    0. ``elapsed`` is in days since the last crawl, or the birth. With ``signals="both"`` source 0
    (``signals_0``) is the directory, and source 1 mentions.

    ## Rewards

    The importance-weighted share of existing pages that are fresh, averaged over the slot, in
    [0, 1]. ``info`` has the terms of the reward, ``reward_freshness`` and so on. A trace records no
    requests.

    ## Starting State

    Day 0 of the window: all existing pages fresh. The first observation is at the first crawl.

    With ``start="crawled"`` the window is what is played. In the days before it all pages are
    crawled once, as in ``CrawlNCIS-v0``: the tape starts with all existing pages fresh, so many
    days earlier that each can be crawled. A crawl of a page that has died since is wasted. The
    record must have these days.

    ## Episode End

    Truncated when the crawl budget of the window is spent; never terminated.

    ## Arguments

    - ``trace`` ("garden-handbook"): name of a shipped trace, or path of a folder
      (``python -m scripts.data.trace_from_git`` makes one from any git repository).
    - ``signals`` ("directory"): ``directory`` (each is for all pages of its directory),
      ``mentions`` (the commit's subject names the page), ``both`` or ``none``. ``both`` has two
      sources: source 0 is the directory, source 1 mentions.
    - ``window`` (None): first and last day; by default the second half of the trace.
    - ``bandwidth`` (None): crawls per day; by default the mean number of pages alive divided by
      ``days_per_crawl``.
    - ``days_per_crawl`` (None): mean days between crawls of a page, instead of ``bandwidth``; by
      default 30.
    - ``importance`` ("uniform"): ``uniform`` or ``zipf`` (1 / rank, in an order drawn from the
      seed).
    - ``parameters`` (None): path of the fitted parameters; by default stored with the trace.
    - ``reward`` (None): ``freshness`` or ``penalty``.
    - ``action`` ("page"), ``batch`` (1), ``epoch`` (None), ``overspend`` (None), ``bucket`` (None),
      ``objective`` ("binary"), ``crawl_cost`` (0.0), ``cost_spread`` (0.0), ``observation``
      ("table"), ``reveal`` ("parameters"), ``reveal_cost`` (True), ``resample`` (False),
      ``render_mode`` (None): as in ``CrawlNCIS-v0``. Costs are drawn, since traces record none.
    - ``start`` ("fresh"): or ``crawled``, after a round of crawls; not with ``cost_spread``.

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        trace: str = DEFAULT_TRACE,
        signals: Literal["directory", "mentions", "both", "none"] = "directory",
        window: Sequence[float] | None = None,
        bandwidth: float | None = None,
        days_per_crawl: float | None = None,
        importance: Literal["uniform", "zipf"] = "uniform",
        parameters: str | None = None,
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
        generator = recorded(
            trace,
            signals=signals,
            window=window,
            bandwidth=bandwidth,
            days_per_crawl=days_per_crawl,
            importance=importance,
            parameters=parameters,
            cost_spread=cost_spread,
            start=start,
            epoch=round_epoch(action, epoch),
        )
        penalty, term = penalty_and_reward(objective, reward, recorded=True)
        make_lanes = partial(
            Lanes,
            generator=generator,
            horizon=generator.duration,
            tape=generator.tape,
            penalty=penalty,
            **action_arguments(action, generator, batch, epoch, overspend, bucket),
            observation=observation,
            reveal=reveal,
            reveal_cost=reveal_cost,
            resample=resample,
            start=start,
        )
        super().__init__(make_lanes, Objective(term, crawl_cost), render_mode=render_mode)


CrawlTraceVector = vectorized(CrawlTrace)
