"""``CrawlHarmonic-v0``: harmonic staleness, with complete observation of some pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction, PageReveal, action_arguments
from crawl_envs.instances import generator_of
from crawl_envs.sim.divergence import Penalty
from crawl_envs.sim.streams import PageSets
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types.arguments import one_of
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.lanes import Lanes

HarmonicReward: TypeAlias = Literal["penalty", "freshness"]
REWARDS: tuple[HarmonicReward, ...] = get_args(HarmonicReward)


class CrawlHarmonic(CrawlEnv, SingleEnv):
    """Harmonic staleness under mixed observability: the set-up of Kolobov et al. (2019).

    ## Description

    A tracker holds copies of m sources, its pages. Page i has importance mu_i and changes at the
    Poisson rate Delta_i, independently of all crawls. Most pages are *unobserved*: only a crawl
    reveals whether they have changed, and not how often. The others have *complete observation*:
    each of their changes sends a signal at once. A page with n changes since its last crawl costs
    mu_i C(n) per unit of time, by default with C(n) = H(n) = 1 + 1/2 + ... + 1/n: the first change
    costs most, and every further one costs something, so that no page is ever abandoned. Crawls
    are limited to R per unit of time.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise: ``mixed`` has importance and
    change rate from U(0, 1) and complete observation of half of the pages, chosen at random;
    ``lambdacrawl`` is a stand-in for the set of the paper's experiments, per day. The instances of
    ``CrawlNCIS-v0`` work too: pages of recall 1 and false-signal rate 0 have complete observation;
    all others count as unobserved, although their signals are visible.
    ``reset(options={"instance": instance})`` pins a given instance.

    ## Action Space

    - ``action="rates"``: ``Box(0, max(R, 1), (m,))`` float64, a decision for an epoch. An
      unobserved page is crawled at the instants of a Poisson process of the given rate (eq. 3), a
      page with complete observation at each of its signals with the given probability (eq. 6).
      The budget limits the declared spending: the sum of rates, and of probabilities times change
      rates. Above the bandwidth R, an action is scaled down (``overspend="scale"``, which accepts
      any rates, also outside the box, and clips probabilities to 1) or an error (``"error"``,
      unsuitable for agents that explore). The box is that of the bandwidth at construction.
      For hidden change rates, the budget uses those given to ``env.unwrapped.declare``, else
      (N + 1/2) / (t + 1/2), with N signals received up to time t. The actual spending is in
      ``info``, and ``bucket`` can cap it.
    - ``action="shares"``: ``Box(-1, 1, (m,))`` float32, the same with rates in units of the current
      bandwidth; action a is the share or probability (a + 1) / 2.
    - ``action="page"``, ``"scores"`` or ``"refresh"``: one crawl per slot of 1 / R, on the same
      events, as in ``CrawlNCIS-v0``.

    ## Observation Space

    As in ``CrawlNCIS-v0``, with a column ``complete`` after ``importance``: 1 for complete
    observation (recall 1, no false signals), else 0.
    ``env.unwrapped.tracker()`` has the exact values, and ``env.unwrapped.last_log()`` every crawl
    (page, time, changed or not) and every signal of the last epoch. Policies that learn may use
    nothing else.

    ## Rewards

    Minus the importance-weighted mean of C(n), averaged over the step, <= 0; with
    ``reward="freshness"`` the importance-weighted share of fresh pages. The paper's J, a sum over
    pages, is ``env.unwrapped.ledger().cost``. Each crawl costs ``crawl_cost``.
    ``info`` has the terms of the reward, ``reward_penalty`` or ``reward_freshness`` and
    ``reward_crawl_cost``, and ``crawls``, the actual number of crawls of the step. With ``rates``
    and ``shares`` there are also ``declared``, the expected crawls per unit of time, and
    ``denied``, the number of crawls denied by an empty bucket. No
    requests are simulated: importance is a weight.

    ## Starting State

    At time 0 every page is fresh, with no signals. With ``rates`` the first decision is at time 0,
    else at the first crawl, time 1 / R. ``start="crawled"`` is as in ``CrawlNCIS-v0``; pages with
    complete observation are crawled like all others in its round.

    ## Episode End

    Truncated after the last epoch that ends within the horizon, or the last slot that begins
    within it; never terminated.

    ## Arguments

    - ``num_pages`` (100), ``bandwidth_steps`` (()), ``horizon`` (30.0), ``delay`` (None),
      ``num_sources`` (None), ``cost_spread`` (0.0), ``observation`` ("table"), ``resample``
      (False), ``pages`` ("any"), ``start`` ("fresh"), ``render_mode`` (None): as in
      ``CrawlNCIS-v0``.
    - ``bandwidth`` (None): crawls per unit of time, R; by default 0.2 per page, as in the paper's
      experiments, and 100 with the instances of ``CrawlNCIS-v0``.
    - ``instance`` ("mixed"): one of ``crawl_envs.instances.names()``, or the path of an imported
      table of URLs, which ends in ``.parquet``.
    - ``action`` ("rates"): the action form. With ``rates`` and ``shares``: ``epoch`` (None), the
      length of an epoch, by default 1; ``overspend`` (None), by default ``scale``; ``bucket``
      (None), the size in crawls of a token bucket, which starts full and is refilled at the
      bandwidth, by default no limit. With others: ``batch`` (1).
    - ``objective`` ("harmonic"): or ``binary``, C(n) = 1 for n > 0, or a concave table C(0), C(1),
      ..., C(K) that starts at 0.
    - ``reward`` (None): ``penalty`` or ``freshness``; ``crawl_cost`` (0.0).
    - ``reveal`` ("parameters"): with ``"importance"`` change rates are hidden; ``reveal_cost``
      (True).

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        num_pages: int = 100,
        bandwidth: float | None = None,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        horizon: float = 30.0,
        instance: str = "mixed",
        action: PageAction = "rates",
        objective: Penalty = "harmonic",
        reward: HarmonicReward | None = None,
        delay: Mapping[str, Any] | None = None,
        num_sources: int | None = None,
        cost_spread: float = 0.0,
        batch: int = 1,
        epoch: float | None = None,
        overspend: Overspend | None = None,
        bucket: float | None = None,
        crawl_cost: float = 0.0,
        observation: ObservationForm = "table",
        reveal: PageReveal = "parameters",
        reveal_cost: bool = True,
        resample: bool = False,
        pages: PageSets = "any",
        start: Start = "fresh",
        render_mode: RenderMode | None = None,
    ) -> None:
        if reward is not None:
            one_of("reward", reward, REWARDS, "None")
        generator = generator_of(
            instance,
            num_pages=num_pages,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
            delay=delay,
            num_sources=num_sources,
            cost_spread=cost_spread,
        )
        make_lanes = partial(
            Lanes,
            generator=generator,
            horizon=horizon,
            penalty=objective,
            requests=False,
            show_complete=True,
            **action_arguments(action, generator, batch, epoch, overspend, bucket),
            observation=observation,
            reveal=reveal,
            reveal_cost=reveal_cost,
            resample=resample,
            pages=pages,
            start=start,
        )
        super().__init__(
            make_lanes, Objective(reward or "penalty", crawl_cost), render_mode=render_mode
        )


CrawlHarmonicVector = vectorized(CrawlHarmonic)
