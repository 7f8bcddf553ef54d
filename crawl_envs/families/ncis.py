"""``CrawlNCIS-v0``: noisy change-indicating signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import FamilyVectorEnv, NativeVectorEnv
from crawl_envs.instances import generator_of
from crawl_envs.sim.penalties import Penalty
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective, penalty_and_reward
from crawl_envs.worlds.pages.lanes import Lanes


class CrawlNCIS(CrawlEnv, SingleEnv):
    """Noisy change-indicating signals: the set-up of Busa-Fekete et al. (2025).

    ## Description

    A tracker holds copies of m pages. Page i is requested at rate mu_i and changes at rate
    Delta_i, both Poisson, whatever the tracker does. A change emits a signal with probability
    ``recall``; false signals, with no change behind them, come at rate nu_i; signals may be
    delayed. Signals may come from several sources, each with a recall and false signals of its
    own; a change is signalled by at most one of them. The tracker sees the signals and, at a
    crawl, whether the page had changed; it never sees the changes. The budget is hard: crawl j
    happens at time j / R, and the question at each is which page.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise: importance mu and change rate
    Delta from U(0, 1); ``uniform`` has no signals; ``partial`` has recall from Beta(1/4, 1/4);
    ``noisy`` adds false signals at rates from U(0.1, 0.6); ``delayed`` adds a delay of Poisson(6)
    slots. ``sources`` has signals from two sources: a precise one that tells of few changes, with
    recall from U(1/6, 1/3) and false signals at rates from U(0.005, 0.03), and a noisy one that
    tells of many, with recall from U(1/3, 2/3) and false signals at rates from U(0.1, 0.6).
    ``bing-like`` has change rates per day, importances and signals like the semi-synthetic set of
    section 6.7 (:mod:`crawl_envs.instances.urls.bing`).
    Seven more break an assumption of the formulas each, on pages like those of ``noisy``; what is
    told of them where parameters are revealed are beliefs, and the events follow a hidden law
    (:mod:`crawl_envs.instances.misspecified`, with all constants):

    | instance | what happens | what is told |
    |---|---|---|
    | late | signals travel exponential times, mean log-uniform in [0.05, 2] | no delay |
    | bursty | in a tenth of the time, 9.1 times as many changes; else a tenth | mean rates |
    | periodic | half: gamma gaps, shapes 20 to 50; half: only at hours of the day | mean rates |
    | deploys | a signal of all pages of a host at once; nearly none or all changed | mean rates |
    | shifting | rates redrawn once in 5 units, for half of the hosts in common | those at time 0 |
    | corrupted | as ``noisy`` | precision and recall, half noise |
    | cold | as ``noisy``, with log-normal rates over three decades | the truth |

    A day of ``periodic`` is one unit of time, and pages with hours change in a fifth of it.
    ``deploys`` and ``shifting`` have hosts of about ten pages, known to all trackers as
    ``problem.group``. ``cold`` is meant for ``reveal="importance"``.
    :data:`crawl_envs.instances.STRESS` has settings with them.

    ``reset(options={"instance": instance})`` pins an instance of one's own, of as many pages and
    sources, whose bandwidth then holds, until the next seeded reset.

    ## Action Space

    - ``action="page"``: ``Discrete(m)``, the page to crawl in this slot.
    - ``action="scores"``: ``Box(-1, 1, (m,))``; a decision every ``batch`` slots crawls the
      ``batch`` highest scores, ties by lowest index.
    - with ``probe=True``, ``page`` is ``Discrete(2 m)``: m + i probes page i. That takes the slot,
      finds out whether the page has changed since its last crawl, and refreshes nothing.
    - ``action="refresh"``: ``MultiBinary(m)``, any set of pages in every slot; what it costs is
      in the ledger, and in the reward with ``crawl_cost``.

    ## Observation Space

    ``Box(m, F)`` float32; a row per page with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | time since the last crawl, saturated at the horizon |
    | signals | [0, 1000] | signals received since, saturated |
    | changed | -1, 0, 1 | what the last crawl found; -1 before the first |
    | probed | -1, 0, 1 | what the last probe since then found; -1 none; with ``probe=True`` |
    | importance | [0, 1e6] | mu, saturated |
    | change_rate | [0, 1e6] | Delta; with ``reveal="parameters"`` |
    | recall | [0, 1] | with ``reveal="parameters"`` |
    | false_signal_rate | [0, 1e6] | nu; with ``reveal="parameters"`` |

    Of S >= 2 sources, ``signals``, ``recall`` and ``false_signal_rate`` are S columns each, named
    ``signals_0``, ``signals_1`` and so on.

    The box is for networks. Exact values are in ``env.unwrapped.tracker()``, and what the last
    step taught in ``env.unwrapped.last_log()``.

    ## Rewards

    With ``reward="freshness"`` the importance-weighted share of pages that is fresh, averaged
    over the slot, in [0, 1]; because requests are Poisson its long-run mean is the papers'
    accuracy, the share of requests served fresh. With ``reward="requests"`` the number of
    requests served fresh in the slot. ``crawl_cost`` is taken off per crawl. The parts are in
    ``info["reward_terms"]``, the slot's requests and those served fresh in ``info["requests"]``
    and ``info["hits"]``.

    ## Starting State

    At time 0 every page is fresh, with no signals. The first observation is at the first crawl,
    time 1 / R, and includes all events before it.

    ## Episode End

    Truncated after the last crawl within the horizon and the slot that follows it; never
    terminated. ``env.spec.max_episode_steps`` is the number of steps at the bandwidth of the
    arguments, so that Gymnasium's ``TimeAwareObservation`` works; a pinned instance with another
    bandwidth has episodes of another length. An environment made again from ``env.spec`` has a
    ``TimeLimit`` of that many steps.

    ## Arguments

    - ``num_pages`` (100): number of pages, m.
    - ``bandwidth`` (100.0): crawls per unit time, R; ``bandwidth_steps`` (()): later changes of
      it, as (time, bandwidth) pairs.
    - ``horizon`` (10.0): length of an episode in units of time.
    - ``instance`` ("uniform"): ``uniform``, ``partial``, ``noisy``, ``delayed``, ``sources``,
      ``bing-like``, ``late``, ``bursty``, ``periodic``, ``deploys``, ``shifting``, ``corrupted`` or
      ``cold``; those of ``CrawlHarmonic-v0`` serve too: ``mixed``, ``lambdacrawl``, and the
      path of an imported table of URLs, which ends in ``.parquet``; and ``quality`` and ``random``
      of ``CrawlLongevity-v0``, whose pages are fresh or stale here.
    - ``action`` ("page"), ``batch`` (1): the action form, and crawls per decision of ``scores``;
      ``probe`` (False): whether pages can be probed.
    - ``objective`` ("binary"): or ``harmonic``, or a table of penalties, as in
      ``CrawlHarmonic-v0``; ``reward`` (None): ``freshness``, ``requests`` or ``penalty``, by
      default freshness, or minus the penalty where the objective is not binary; ``crawl_cost``
      (0.0): the price of a crawl.
    - ``reveal`` ("parameters"): with ``"importance"`` the change model is hidden.
    - ``delay`` (None): ``{"kind": "constant" | "exponential" | "poisson", "mean": ...,
      "unit": "time" | "slots"}``.
    - ``num_sources`` (None): with ``instance="sources"``, how many, 2 to 15; by default 2. Between
      the first and the last, recall rises evenly and the rate of false signals by equal factors.
    - ``corruption`` (None): with ``instance="corrupted"``, the share of what is told of signals that
      is noise, in [0, 1]; by default 0.5.
    - ``resample`` (False): draw a new instance at every reset, not only at seeded ones.
    - ``render_mode`` (None): ``ansi`` or ``rgb_array``.

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
        action: Literal["page", "scores", "refresh"] = "page",
        batch: int = 1,
        probe: bool = False,
        objective: Penalty = "binary",
        reward: Literal["freshness", "requests", "penalty"] | None = None,
        crawl_cost: float = 0.0,
        reveal: Literal["parameters", "importance"] = "parameters",
        delay: Mapping[str, Any] | None = None,
        num_sources: int | None = None,
        corruption: float | None = None,
        resample: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        generator = generator_of(
            instance,
            num_pages=num_pages,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
            delay=delay,
            num_sources=num_sources,
            corruption=corruption,
        )
        penalty, paid = penalty_and_reward(objective, reward)
        self.make_lanes = partial(
            Lanes,
            generator=generator,
            form=action_form(action, num_pages, batch, probe),
            horizon=horizon,
            reveal=reveal,
            resample=resample,
            penalty=penalty,
        )
        super().__init__(self.make_lanes(1), Objective(paid, crawl_cost), render_mode=render_mode)


class CrawlNCISVector(FamilyVectorEnv, NativeVectorEnv):
    """``num_envs`` lanes of :class:`CrawlNCIS` that step together, with the same arguments.

    Besides: those of :class:`FamilyVectorEnv`.
    """

    single = CrawlNCIS
