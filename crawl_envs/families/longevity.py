"""``CrawlLongevity-v0``: pages of fragments with different lifetimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction, PageReveal, action_arguments, round_epoch
from crawl_envs.instances import Generator, generator_of, traces
from crawl_envs.instances.longevity import LAWS
from crawl_envs.instances.traces.instance import recorded
from crawl_envs.sim.streams import PageSets
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types.arguments import one_of
from crawl_envs.types.contents import Contents
from crawl_envs.types.copies import Sketches, TrueDivergence
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.fragments.lanes import FragmentLanes

PAGES, DAYS = 100, 60.0
"""Default number of pages of a drawn set, and days of its episodes; the paper has 60 days."""


FragmentObjective: TypeAlias = Literal["fragments", "holistic"]
REWARD_TERMS: dict[FragmentObjective, str] = {"fragments": "fragments", "holistic": "freshness"}
"""Name of the term of the reward for each objective."""

OF_TRACES = {"window": None, "days_per_crawl": None, "importance": "uniform", "parameters": None}
OF_DRAWN = {"num_pages": None, "bandwidth_steps": (), "horizon": None, "pages": "any"}
"""Arguments of traces only, and of drawn pages only, with their defaults."""


def _refuse(arguments: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Raise ValueError if an argument that does not apply differs from its default."""
    for name, value in arguments.items():
        if value != defaults[name]:
            raise ValueError(f"{name} must not be given for {where}, got {value!r}")


def _generator(
    instance: str | Path,
    signals: str | None,
    bandwidth: float | None,
    cost_spread: float,
    of_traces: dict[str, Any],
    of_drawn: dict[str, Any],
    **round_arguments: Any,
) -> tuple[Generator, dict[str, Any]]:
    """Return the generator of instances, drawn or recorded, and further arguments of their lanes.

    Args:
        instance: name of a law or a trace, or the folder of a trace.
        signals: kind of signals, None for the default.
        bandwidth: crawls per day, None for the default.
        cost_spread: of :class:`crawl_envs.instances.laws.Generator`.
        of_traces: arguments of traces only.
        of_drawn: arguments of drawn pages only.
        **round_arguments: ``start`` and ``epoch`` of a recorded instance.

    Raises:
        ValueError: an unknown instance, or an argument that does not apply or is out of range.
    """
    if isinstance(instance, str) and instance in LAWS:
        _refuse(of_traces, OF_TRACES, f"instance {instance!r}")
        arguments = {name: value for name, value in of_drawn.items() if value is not None}
        del arguments["pages"]  # of the lanes
        horizon = arguments.pop("horizon", DAYS)
        arguments = {"num_pages": PAGES, **arguments, "bandwidth": bandwidth, "signals": signals}
        return generator_of(instance, cost_spread=cost_spread, **arguments), {"horizon": horizon}
    shipped = traces.shipped()
    if not isinstance(instance, str | Path) or not (instance in shipped or Path(instance).is_dir()):
        one_of("instance", instance, (*LAWS, *shipped), "the folder of a trace")
    of_drawn = {**of_drawn, "bandwidth_steps": tuple(of_drawn["bandwidth_steps"])}
    _refuse(of_drawn, OF_DRAWN, f"a trace, {instance!r}")
    kind = "directory" if signals is None else signals
    of_traces = {**of_traces, "bandwidth": bandwidth, "cost_spread": cost_spread}
    site = recorded(str(instance), signals=kind, fragments=True, **of_traces, **round_arguments)
    return site, {"horizon": site.duration, "tape": site.tape, "contents": site.contents}


class FragmentAccess:
    """More methods for oracles and tests, of environments whose pages consist of fragments.

    ``lanes`` is the batch of lanes that the methods read.
    """

    lanes: Any

    def contents(self, lane: int = 0) -> Contents:
        """Return the true contents of the pages over the whole episode."""
        contents: Contents = self.lanes.contents(lane)
        return contents

    def true_divergence(self, lane: int = 0) -> TrueDivergence:
        """Return the true divergence of the held copies from the live pages now."""
        truth: TrueDivergence = self.lanes.true_divergence(lane)
        return truth

    def first_sketch(self, lane: int = 0) -> Sketches:
        """Return the sketches of the copies held at the start of the episode, of all pages.

        The tracker knows them, since it made these copies.
        """
        sketches: Sketches = self.lanes.first_sketch(lane)
        return sketches


class CrawlLongevity(FragmentAccess, CrawlEnv, SingleEnv):
    """Pages made of fragments: the set-up of Olston and Pandey (2008).

    ## Description

    A tracker holds copies of m pages. A page is a set of fragments. The *divergence* of a copy is
    the Jaccard distance between its fragments and those of the live page (eq. 3), 0 right after a
    crawl. The value of a crawl depends on the lifetime of the content that it retrieves. A page
    consists of regions (section 3.3): *static* ones stay; an update of a *churn* region replaces
    all its fragments, like an advertisement; an update of a *scroll* region appends an item and
    evicts the one appended K updates before, like a list of news. The updates of a region are
    Poisson, independently of all crawls, and not observed. A crawl retrieves the page, or a sketch
    of it, which gives its divergence from each of the earlier copies. An update may send a signal.
    Time is in days.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise. ``quality`` and ``random`` stand
    for the paper's two sets of 10,000 URLs, which are not public. ``quality`` reproduces the
    published statistics: half of the pages and 90% of all fragments are static; of the others, at
    any time, 67% are in churn regions and 33% in scroll regions (of the fragments that come and go
    within 60 days far more are churn; the paper does not say which it counts); 3% of all change too
    fast for any crawl to follow; over pages, the correlation of change frequency and longevity, as
    measured in section 3.2, is about -0.66; the paper has 0.67 without a sign.
    ``random`` has more dynamic content, as the paper says; by how much is our judgement
    (:mod:`crawl_envs.instances.longevity`, with all constants). Importance is 1 for all pages.

    Or a trace, the name of a shipped one or the path of a folder, as in ``CrawlTrace-v0``: pages
    with recorded fragments replay their recorded contents. Pages are born and die; the tracker has
    a copy of a page at its birth. Fragments are recorded only for pages that changed a few times in
    the whole record. They are a sample, one in ``fragment_modulus`` (``meta.json``), and so is the
    divergence. Revealed change rates and signal parameters were fitted to earlier days; with
    ``signals="both"`` the names of columns of signals end in the number of their source.

    ``reset(options={"instance": instance})`` pins a
    :class:`crawl_envs.instances.longevity.RegionPages` of as many pages. A reset draws the events
    of the whole episode, about 1.7 kB per page for 60 days of ``quality``; reading contents or
    sketches draws the fragments, as much again.

    ## Policies

    ``policies.names(family="fragments")`` lists the policies that use fragments. All others act
    here too, on pages that are either fresh or stale.

    ## Action Space

    ``page``, ``scores``, ``refresh``, ``rates`` or ``shares``, as in ``CrawlNCIS-v0``. With
    ``refresh``, any set of pages at every tick of length 1 / R, the paper's own form, a policy
    refreshes all pages whose utility reaches a threshold. The resulting refresh cost is in
    ``info["crawls"]`` and the ledger. The paper's snapshots every two days are ``bandwidth=0.5``.

    ## Observation Space

    ``Box(m, F)`` float32; a row per page with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | days since the last crawl |
    | signals | [0, 1000] | signals received since, saturated |
    | changed | -1, 0, 1 | whether the last crawl found an update; -1 before the first |
    | alive | 0, 1 | whether the page exists; of traces |
    | importance | [0, 1e6] | W of eq. 1 |
    | change_rate | [0, 1e6] | updates per day of all its regions; with ``reveal="parameters"`` |
    | recall | [0, 1] | share of signalled updates; with ``reveal="parameters"`` |
    | false_signal_rate | [0, 1e6] | false signals per day; with ``reveal="parameters"`` |
    | size | [0, 1e6] | fragments in the held copy |
    | divergence_0, .. | [0, 1], -1 | of the held copy from the one before it, and so on |
    | age_0, .. | [0, horizon], -1 | age difference of that copy and the held one |

    There are ``base_versions`` columns of each of the last two, -1 where there is no such copy.
    ``env.unwrapped.tracker().copies`` has them in float64, with NaN. With ``reveal="parameters"``,
    ``env.unwrapped.problem.regions`` has the regions of drawn pages. ``env.unwrapped.last_log()``
    has the crawls of the last step, with the sketches of the new copies, and
    ``env.unwrapped.first_sketch()`` the sketches of the copies at the start.

    ## Rewards

    With ``objective="fragments"`` one minus the importance-weighted mean divergence over pages and
    the slot, in [0, 1] (eqs. 1 and 2); with ``"holistic"`` the importance-weighted share of pages
    without an update since their last crawl, averaged over the slot. Each crawl costs
    ``crawl_cost``. ``info`` has the terms ``reward_fragments`` or ``reward_freshness``, and
    ``reward_crawl_cost``, and both measures of the slot, ``divergence`` and ``holistic_freshness``;
    ``ledger().divergence`` and ``ledger().freshness`` those of the episode.

    ## Starting State

    At time 0 every copy is current. The first observation is at the first crawl, time 1 / R; with
    ``rates`` at time 0. With ``start="crawled"`` a round of crawls comes first, as in
    ``CrawlNCIS-v0``, and for traces as in ``CrawlTrace-v0``; its copies are base versions.

    ## Episode End

    Truncated at the end of the slot that follows the last crawl within the horizon, or with
    ``rates`` after the last epoch within it; never terminated.

    ## Arguments

    - ``num_pages`` (100): number of pages, m; not for traces.
    - ``bandwidth`` (None): crawls per day, R; by default 0.1 per page, for traces the mean number
      of pages alive divided by ``days_per_crawl``; ``bandwidth_steps`` (()): later bandwidths, as
      (time, bandwidth) pairs; not for traces.
    - ``horizon`` (60.0): days of an episode; for traces the length of the window.
    - ``instance`` ("quality"): ``quality``, ``random``, or a trace.
    - ``signals`` (None): ``none`` (the default), ``partial`` or ``noisy``, as in ``CrawlNCIS-v0``,
      on the same pages; for traces ``directory`` (the default), ``mentions``, ``both`` or ``none``.
    - ``action`` ("page"), ``batch`` (1): the action form, and crawls per decision of ``scores``.
      With ``rates``: ``epoch`` (None), ``overspend`` (None) and ``bucket`` (None), as in
      ``CrawlHarmonic-v0``.
    - ``objective`` ("fragments"), ``crawl_cost`` (0.0): see above.
    - ``base_versions`` (2): number of earlier copies that a new one is compared with, h.
    - ``sketch_size`` (None): number of fragments in a sketch, those with the smallest hashes; None
      for all. With a size, divergences from base versions are estimates (section 5.2).
    - ``observation`` ("table"): form of observations, as in ``CrawlNCIS-v0``.
    - ``reveal`` ("parameters"): with ``"importance"`` the change model is hidden.
    - ``cost_spread`` (0.0), ``reveal_cost`` (True): costs of crawls, as in ``CrawlNCIS-v0``. With
      ``page``, both measures of a slot are multiplied by its length, like the reward.
    - ``resample`` (False), ``pages`` ("any"): as in ``CrawlNCIS-v0``; ``pages`` not for traces.
    - ``start`` ("fresh"): or ``crawled``, after a round of crawls; not with ``bandwidth_steps``,
      and for traces not with ``cost_spread``.
    - ``window`` (None), ``days_per_crawl`` (None), ``importance`` ("uniform"), ``parameters``
      (None): for traces, as in ``CrawlTrace-v0``.
    - ``render_mode`` (None): ``ansi``, ``rgb_array`` or ``human``, a window; "fresh" means not
      updated.

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        num_pages: int | None = None,
        bandwidth: float | None = None,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        horizon: float | None = None,
        instance: str | Path = "quality",
        signals: Literal["none", "partial", "noisy", "directory", "mentions", "both"] | None = None,
        window: Sequence[float] | None = None,
        days_per_crawl: float | None = None,
        importance: Literal["uniform", "zipf"] = "uniform",
        parameters: str | None = None,
        action: PageAction = "page",
        objective: FragmentObjective = "fragments",
        base_versions: int = 2,
        sketch_size: int | None = None,
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
        pages: PageSets = "any",
        start: Start = "fresh",
        render_mode: RenderMode | None = None,
    ) -> None:
        one_of("objective", objective, REWARD_TERMS)
        of_traces = {
            "window": window,
            "days_per_crawl": days_per_crawl,
            "importance": importance,
            "parameters": parameters,
        }
        sizes = {"num_pages": num_pages, "bandwidth_steps": bandwidth_steps, "horizon": horizon}
        of_drawn = {**sizes, "pages": pages}
        arguments = (instance, signals, bandwidth, cost_spread, of_traces, of_drawn)
        generator, playing = _generator(*arguments, start=start, epoch=round_epoch(action, epoch))
        playing |= {"base_versions": base_versions, "sketch_size": sketch_size}
        make_lanes = partial(
            FragmentLanes,
            generator=generator,
            **playing,
            **action_arguments(action, generator, batch, epoch, overspend, bucket),
            observation=observation,
            reveal=reveal,
            reveal_cost=reveal_cost,
            resample=resample,
            pages=pages,
            start=start,
        )
        super().__init__(
            make_lanes, Objective(REWARD_TERMS[objective], crawl_cost), render_mode=render_mode
        )


CrawlLongevityVector = vectorized(CrawlLongevity)
