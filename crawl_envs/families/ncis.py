"""``CrawlNCIS-v0``: noisy change-indicating signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction, PageReveal, action_arguments
from crawl_envs.instances import generator_of
from crawl_envs.sim.divergence import Penalty
from crawl_envs.sim.streams import PageSets
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective, penalty_and_reward
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.lanes import Lanes


class CrawlNCIS(CrawlEnv, SingleEnv):
    """Noisy change-indicating signals: the set-up of Busa-Fekete et al. (2025).

    ## Description

    A tracker holds copies of m pages. Page i is requested at rate mu_i and changes at rate
    Delta_i, both Poisson, independently of all crawls. A change emits a signal with probability
    ``recall``. False signals, without a change, arrive at rate nu_i. Signals may be delayed. There
    may be several sources of signals, each with its own recall and false-signal rate; at most one
    of them signals a given change. The tracker observes the signals and, at a crawl, whether the
    page had changed; it never observes the changes themselves. The budget is a hard constraint:
    crawl j happens at time j / R, and the action chooses its page.

    With ``cost_spread > 0`` crawls have costs c_i, and the bandwidth is the cost of crawls per unit
    of time: after a crawl of page i the next one is c_i / R later. The first is at time 1 / R, so
    the unit of costs should be that of a typical crawl.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise: importance mu and change rate
    Delta from U(0, 1); ``uniform`` has no signals; ``partial`` has recall from Beta(1/4, 1/4);
    ``noisy`` adds false signals at rates from U(0.1, 0.6); ``delayed`` adds a delay of Poisson(6)
    slots. ``sources`` has two sources of signals: a precise one of low recall, from U(1/6, 1/3),
    with false-signal rates from U(0.005, 0.03), and a noisy one of higher recall, from
    U(1/3, 2/3), with false-signal rates from U(0.1, 0.6).
    ``bing-like`` has change rates per day, importances and signals like the semi-synthetic set of
    section 6.7 (:mod:`crawl_envs.instances.urls.bing`).
    Seven more instances, with pages like those of ``noisy``, each violate one assumption of the
    formulas. Their revealed parameters are beliefs, and the events follow a hidden law
    (:mod:`crawl_envs.instances.misspecified`, with all constants):

    | instance | events | revealed parameters |
    |---|---|---|
    | late | exponential delays of signals, mean log-uniform in [0.05, 2] | no delay |
    | bursty | in a tenth of the time, 9.1 times as many changes; else a tenth | mean rates |
    | periodic | half: gamma gaps, shapes 20 to 50; half: only at hours of the day | mean rates |
    | deploys | all pages of a host signal at once; almost none or all have changed | mean rates |
    | shifting | rates redrawn once in 5 units; half of the hosts together | those at time 0 |
    | corrupted | as ``noisy`` | precision and recall, half noise |
    | cold | as ``noisy``, with log-normal rates over three decades | the truth |

    A day of ``periodic`` is one unit of time, and pages with office hours change in a fifth of it.
    ``deploys`` and ``shifting`` have hosts of about ten pages, known to all trackers as
    ``problem.group``. ``cold`` is meant for ``reveal="importance"``.
    :data:`crawl_envs.instances.STRESS` has settings with them.

    ``reset(options={"instance": instance})`` pins a given instance, with its bandwidth, until the
    next seeded reset. Its numbers of pages and sources must match, and it may have costs
    (``Instance(cost=...)``) only if the environment has.

    ## Action Space

    - ``action="page"``: ``Discrete(m)``, the page to crawl in this slot.
    - ``action="scores"``: ``Box(-1, 1, (m,))``; a decision every ``batch`` slots crawls the pages
      of the ``batch`` highest scores; ties go to the lowest index. With costs, each decision adds
      ``batch`` to a budget. Pages are crawled in order of their scores until the budget does not
      pay the next one; the next decision gets what remains.
    - ``action="refresh"``: ``MultiBinary(m)``, any set of pages in every slot; the number of crawls
      is in the ledger, and in the reward with ``crawl_cost``. There is no budget: a slot lasts
      1 / R whatever its crawls cost. ``action_masks()`` has two entries per page, (2 m,), as
      MaskablePPO expects it.
    - ``action="rates"``: ``Box(0, max(R, 1), (m,))`` float64, crawl rates for an epoch, on the same
      events, with the first decision at time 0; see ``CrawlHarmonic-v0``.
    - ``action="shares"``: ``Box(-1, 1, (m,))`` float32, the same in units of the bandwidth, for
      learners: action a is the share (a + 1) / 2, a crawl rate of that share of R. It is the
      probability itself where ``rates`` are probabilities.

    ## Observation Space

    ``Box(m, F)`` float32; a row per page with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | time since the last crawl, saturated; after a round m / R more |
    | signals | [0, 1000] | signals received since, saturated |
    | changed | -1, 0, 1 | whether the last crawl found a change; -1 before the first |
    | importance | [0, 1e6] | mu, saturated |
    | cost | [0, 1e6] | cost of a crawl; with ``cost_spread > 0`` |
    | change_rate | [0, 1e6] | Delta; with ``reveal="parameters"`` |
    | recall | [0, 1] | with ``reveal="parameters"`` |
    | false_signal_rate | [0, 1e6] | nu; with ``reveal="parameters"`` |

    With S >= 2 sources, ``signals``, ``recall`` and ``false_signal_rate`` are S columns each, named
    ``signals_0``, ``signals_1`` and so on.

    With ``observation="flat"`` the rows follow each other in a vector, (m F,). With ``"dict"`` and
    ``"flat_dict"`` the observation is a dictionary of ``observation``, (m, F) or (m F,), and
    ``action_mask``, int8: 1 for pages that exist, (m,).

    The box is for networks. ``env.unwrapped.tracker()`` has the exact values, and
    ``env.unwrapped.last_log()`` the crawls and signals of the last step.

    ## Rewards

    With ``reward="freshness"``: the importance-weighted share of fresh pages, averaged over the
    slot, in [0, 1]. Because requests are Poisson, its long-run mean is the papers' accuracy, the
    share of requests served fresh. With ``reward="requests"``: the number of requests served fresh
    in the slot. Each crawl costs ``crawl_cost``, times its cost c_i.

    With costs and ``action="page"``, freshness and penalty are multiplied by the length of the slot
    in units of 1 / R, the cost of its crawl. Their sum is their integral over time, times R,
    whatever is crawled. Learners that discount per step prefer large costs then; ``scores`` has
    steps of equal length. ``info`` has the terms of the reward,
    ``reward_freshness`` or ``reward_requests`` and ``reward_crawl_cost``, the number of requests of
    the slot, ``requests``, and of those served fresh, ``hits``. It has the same entries at a reset,
    where they are 0.

    ## Starting State

    At time 0 every page is fresh, with no signals. The first observation is at the first crawl,
    time 1 / R, and includes all events before it.

    With ``start="crawled"`` the agent takes over from another crawler. Copies are fresh at time 0
    too. Then all pages are crawled once, in order of their number: page k of m at time (k + 1) / R,
    with costs when the bandwidth has paid it. The first decision is at the next slot,
    (m + 1) / R. ``last_log()`` then has all crawls and signals of this round, and copies have their
    ages. The horizon, the budget, rewards and the ledger count from the end of the round, m / R;
    the tracker's time goes on from 0. With ``rates`` and ``shares`` the round is crawled at equal
    rates, R in total, for m / R, rounded up to epochs; a token bucket is full after it.

    ## Episode End

    Truncated at the end of the slot that follows the last crawl within the horizon; never
    terminated. With costs this is the end of a slot of cost 1, whatever the last crawl costs.
    ``env.spec.max_episode_steps`` is the number of steps at the bandwidth of the arguments, as
    Gymnasium's ``TimeAwareObservation`` needs it; with costs and ``action="page"``, the largest
    possible number. A pinned instance with another bandwidth has episodes of another length; a
    reset warns of longer ones. The argument
    ``max_episode_steps`` of ``gymnasium.make`` adds a ``TimeLimit``: a shorter one truncates
    episodes earlier, a longer one never acts.

    ## Arguments

    - ``num_pages`` (100): number of pages, m.
    - ``bandwidth`` (100.0): crawls per unit time, R; ``bandwidth_steps`` (()): later bandwidths,
      as (time, bandwidth) pairs.
    - ``horizon`` (10.0): length of an episode in units of time.
    - ``instance`` ("uniform"): ``uniform``, ``partial``, ``noisy``, ``delayed``, ``sources``,
      ``bing-like``, ``late``, ``bursty``, ``periodic``, ``deploys``, ``shifting``, ``corrupted`` or
      ``cold``; also those of ``CrawlHarmonic-v0``: ``mixed``, ``lambdacrawl`` and the path of an
      imported table of URLs, which ends in ``.parquet``; and ``quality`` and ``random`` of
      ``CrawlLongevity-v0``, with pages that are either fresh or stale.
    - ``action`` ("page"), ``batch`` (1): the action form, and crawls per decision of ``scores``.
      With ``rates`` and ``shares``: ``epoch`` (None), ``overspend`` (None) and ``bucket`` (None),
      as in ``CrawlHarmonic-v0``.
    - ``objective`` ("binary"): or ``harmonic``, or a table of penalties, as in
      ``CrawlHarmonic-v0``; ``reward`` (None): ``freshness``, ``requests`` or ``penalty``; by
      default ``freshness`` with the binary objective, else ``penalty``, which is negative;
      ``crawl_cost`` (0.0): cost of a crawl.
    - ``observation`` ("table"): form of observations, ``table``, ``flat``, ``dict`` or
      ``flat_dict``.
    - ``reveal`` ("parameters"): with ``"importance"`` the change model is hidden.
    - ``reveal_cost`` (True): False hides costs before crawls, as in ``problem.cost``. The column
      ``cost`` is then 1 until the first crawl of a page in an episode; ``last_log().cost`` has the
      costs of crawls. Only with ``page`` and ``refresh``.
    - ``delay`` (None): ``{"kind": "constant" | "exponential" | "poisson", "mean": ...,
      "unit": "time" | "slots"}``.
    - ``num_sources`` (None): with ``instance="sources"``, the number of sources, 2 to 15; by
      default 2. From the first to the last, recall increases by equal steps and the false-signal
      rate by equal factors.
    - ``cost_spread`` (0.0): standard deviation of the logarithms of costs, which are log-normal
      with mean 1; at most 3. 0 for no costs. The other parameters of a seed do not depend on it.
    - ``corruption`` (None): with ``instance="corrupted"``, the share of noise in the revealed
      precision and recall, in [0, 1]; by default 0.5.
    - ``resample`` (False): draw a new instance in every episode, not only at seeded resets. Without
      it the lanes of a vector environment keep their instances for ever: N lanes, N instances.
    - ``pages`` ("any"): ``train`` and ``test`` draw instances, events and random choices from two
      streams of seeds, which have no instance in common, whatever the seeds. Subsamples of an
      imported table may share URLs.
    - ``start`` ("fresh"): or ``crawled``, after a round of crawls; not with ``bandwidth_steps``.
    - ``render_mode`` (None): ``ansi``, ``rgb_array`` or ``human``, a window.

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        num_pages: int = 100,
        bandwidth: float = 100.0,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        horizon: float = 10.0,
        instance: str = "uniform",
        action: PageAction = "page",
        objective: Penalty = "binary",
        reward: Literal["freshness", "requests", "penalty"] | None = None,
        delay: Mapping[str, Any] | None = None,
        num_sources: int | None = None,
        cost_spread: float = 0.0,
        corruption: float | None = None,
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
        generator = generator_of(
            instance,
            num_pages=num_pages,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
            delay=delay,
            num_sources=num_sources,
            cost_spread=cost_spread,
            corruption=corruption,
        )
        penalty, term = penalty_and_reward(objective, reward)
        make_lanes = partial(
            Lanes,
            generator=generator,
            horizon=horizon,
            penalty=penalty,
            **action_arguments(action, generator, batch, epoch, overspend, bucket),
            observation=observation,
            reveal=reveal,
            reveal_cost=reveal_cost,
            resample=resample,
            pages=pages,
            start=start,
        )
        super().__init__(make_lanes, Objective(term, crawl_cost), render_mode=render_mode)


CrawlNCISVector = vectorized(CrawlNCIS)
