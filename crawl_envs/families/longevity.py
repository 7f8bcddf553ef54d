"""``CrawlLongevity-v0``: pages made of fragments, some of which do not last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import FamilyVectorEnv, NativeVectorEnv
from crawl_envs.instances import traces
from crawl_envs.instances.longevity import LAWS, longevity_set
from crawl_envs.instances.traces.instance import recorded, window_of
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types.copies import Sketches, TrueDivergence
from crawl_envs.worlds.fragments.contents import Contents
from crawl_envs.worlds.fragments.lanes import FragmentLanes

PAGES, DAYS = 100, 60.0
"""Pages of a drawn set, and days of its episodes, where none are given: the paper has 60 days."""


FragmentObjective: TypeAlias = Literal["fragments", "holistic"]
PAID: dict[FragmentObjective, str] = {"fragments": "fragments", "holistic": "freshness"}
"""What is paid for each objective."""

OF_TRACES = {"window": None, "days_per_crawl": 30.0, "importance": "uniform", "parameters": None}
OF_DRAWN = {"num_pages": None, "bandwidth_steps": (), "horizon": None}
"""Arguments that only traces, or only drawn pages, take, with their defaults."""


def _refuse(given: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Raise ValueError where an argument differs from its default."""
    for name, value in given.items():
        if value != defaults[name]:
            raise ValueError(f"{name} must not be given for {where}, got {value!r}")


def _playing(
    instance: str | Path,
    signals: str | None,
    bandwidth: float | None,
    of_traces: dict[str, Any],
    of_drawn: dict[str, Any],
) -> tuple[Callable[..., FragmentLanes], int]:
    """Return what makes lanes of drawn or of recorded pages, and the number of pages.

    Args:
        instance: name of a law or a trace, or the folder of a trace.
        signals: kind of signals, None for the default.
        bandwidth: crawls per day, None for the default.
        of_traces: arguments for traces alone.
        of_drawn: arguments for drawn pages alone.

    Raises:
        ValueError: an unknown instance, or an argument that is not for it or out of its range.
    """
    if isinstance(instance, str) and instance in LAWS:
        _refuse(of_traces, OF_TRACES, f"instance {instance!r}")
        num_pages = PAGES if of_drawn["num_pages"] is None else of_drawn["num_pages"]
        horizon = DAYS if of_drawn["horizon"] is None else of_drawn["horizon"]
        law = longevity_set(instance, num_pages, bandwidth, of_drawn["bandwidth_steps"], signals)
        return partial(FragmentLanes, generator=law, horizon=horizon), law.num_pages
    shipped = traces.shipped()
    if not isinstance(instance, str | Path) or not (instance in shipped or Path(instance).is_dir()):
        raise ValueError(
            f"instance must be one of {(*LAWS, *shipped)} or the folder of a trace, got "
            f"{instance!r}"
        )
    of_drawn = {**of_drawn, "bandwidth_steps": tuple(of_drawn["bandwidth_steps"])}
    _refuse(of_drawn, OF_DRAWN, f"a trace, {instance!r}")
    given = {**of_traces, "window": window_of(of_traces["window"])}
    kind = "directory" if signals is None else signals
    site = recorded(str(instance), signals=kind, bandwidth=bandwidth, fragments=True, **given)
    lanes = partial(
        FragmentLanes,
        generator=site,
        horizon=site.duration,
        tape=site.tape,
        contents=site.contents,
    )
    return lanes, site.num_pages


class FragmentAccess:
    """What oracles and tests read of an environment of fragments, beside what all have.

    ``lanes`` is the batch.
    """

    lanes: Any

    def contents(self, lane: int = 0) -> Contents:
        """Return what the pages say, in all the episode: the truth."""
        contents: Contents = self.lanes.contents(lane)
        return contents

    def true_divergence(self, lane: int = 0) -> TrueDivergence:
        """Return how far the held copies are from the live pages now: the truth."""
        truth: TrueDivergence = self.lanes.true_divergence(lane)
        return truth

    def first_sketch(self, lane: int = 0) -> Sketches:
        """Return the sketches of the copies that were held when the episode began, of all pages.

        This is known to the tracker, which made those copies.
        """
        sketches: Sketches = self.lanes.first_sketch(lane)
        return sketches


class CrawlLongevity(FragmentAccess, CrawlEnv, SingleEnv):
    """Pages made of fragments: the set-up of Olston and Pandey (2008).

    ## Description

    A tracker holds copies of m pages. A page is a set of fragments, and a copy is right in part:
    its *divergence* is the Jaccard distance of the fragments that it has and those that the live
    page has (eq. 3), 0 right after a crawl. What a crawl is worth depends on how long what it finds
    will last. The page consists of regions (section 3.3): *static* ones stay; an update of a
    *churn* region replaces all its fragments, like an advertisement; an update of a *scroll* region
    appends an item and evicts the one that was appended K updates before, like a list of news.
    Updates of each region are Poisson, whatever the tracker does. The tracker never sees updates.
    A crawl shows it the page as it is, or a sketch of it, and so how far it has come from each of
    the copies made before. An update may send a signal. Time is in days.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise. ``quality`` and ``random`` stand
    for the paper's two sets of 10,000 URLs, which are not public. ``quality`` is made to have its
    published statistics: half of the pages are static, so are 90% of all fragments; of the others,
    at any time, 67% are in churn regions and 33% in scroll regions (of those that come and go in 60
    days, far more are churn; the paper does not say which it counts); 3% of all change too fast for
    any crawl to follow; over pages, the correlation of change frequency and longevity is about
    -0.66 as measured in section 3.2, where the paper has 0.67 without its sign.
    ``random`` has more content that moves, as the paper says, by how much is judgement
    (:mod:`crawl_envs.instances.longevity`, with all constants). Importance is 1 for all.

    Or a trace, by the name of a shipped one or the path of a folder, as in ``CrawlTrace-v0``: its
    pages with recorded fragments say what they said, whatever the model. Pages are born and die;
    a born page is known with a copy at once. Fragments are recorded of pages that changed a few
    times in all of the record, and are a sample, one in ``fragment_modulus`` (``meta.json``), so
    that divergence is that of the sample. What is told of change rates and signals was fitted to
    earlier days; with ``signals="both"`` columns of signals end in the number of their source.

    ``reset(options={"instance": instance})`` pins a
    :class:`crawl_envs.instances.longevity.RegionPages` of as many pages. Episodes are drawn whole,
    at a reset: about 6 kB per page for 60 days of ``quality``.

    ## Policies

    :func:`policies.fragment_names` lists those that know of fragments; all others act here too, and
    take a page for fresh or stale.

    ## Action Space

    - ``action="page"``: ``Discrete(m)``, the page to crawl in this slot; crawl j happens at j / R.
    - ``action="scores"``: ``Box(-1, 1, (m,))``; a decision every ``batch`` slots crawls the
      ``batch`` highest scores, ties by lowest index.
    - ``action="refresh"``: ``MultiBinary(m)``, any set of pages at every tick of length 1 / R: the
      paper's own form, where a policy refreshes all pages whose utility reaches a threshold and the
      refresh cost is what comes out, in ``info["crawls"]`` and the ledger. The paper's snapshots
      every two days are ``bandwidth=0.5``.

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
    | recall | [0, 1] | share of updates that are signalled; likewise |
    | false_signal_rate | [0, 1e6] | signals per day with no update behind them; likewise |
    | size | [0, 1e6] | fragments in the held copy |
    | divergence_0, .. | [0, 1], -1 | of the held copy from the one before it, and so on |
    | age_0, .. | [0, horizon], -1 | how much older than the held copy that one is |

    There are ``base_versions`` columns of each of the last two, -1 where there is no such copy. In
    float64, with NaN, they are in ``env.unwrapped.tracker().copies``; where parameters are
    revealed, ``env.unwrapped.problem.regions`` has the regions of drawn pages. What the last step
    crawled and found, with the sketches of the new copies, is in ``env.unwrapped.last_log()``;
    those of the copies at the start are in ``env.unwrapped.first_sketch()``.

    ## Rewards

    With ``objective="fragments"`` one minus the importance-weighted mean divergence over pages and
    the slot, in [0, 1] (eqs. 1 and 2); with ``"holistic"`` the importance-weighted share of pages
    that were not updated since their crawl, averaged over the slot. ``crawl_cost`` is taken off per
    crawl. In ``info["reward_terms"]`` the parts are ``fragments`` or ``freshness``, and
    ``crawl_cost``; ``info["divergence"]`` and ``info["holistic_freshness"]`` tell both measures, as
    ``ledger().divergence`` and ``ledger().freshness`` do of the episode.

    ## Starting State

    At time 0 every page is held as it is. The first observation is at the first crawl, time 1 / R.

    ## Episode End

    Truncated after the last crawl within the horizon and the slot that follows it; never
    terminated.

    ## Arguments

    - ``num_pages`` (100): number of pages, m; not of traces.
    - ``bandwidth`` (None): crawls per day, R; by default 0.1 per page, of traces the mean number of
      pages alive divided by ``days_per_crawl``; ``bandwidth_steps`` (()): later changes of it, as
      (time, bandwidth) pairs; not of traces.
    - ``horizon`` (60.0): days of an episode; of traces the length of the window.
    - ``instance`` ("quality"): ``quality``, ``random``, or a trace.
    - ``signals`` (None): ``none`` (the default), ``partial`` or ``noisy``, as in ``CrawlNCIS-v0``,
      on the same pages; of traces ``directory`` (the default), ``mentions``, ``both`` or ``none``.
    - ``action`` ("page"), ``batch`` (1): the action form, and crawls per decision of ``scores``.
    - ``objective`` ("fragments"), ``crawl_cost`` (0.0): see above.
    - ``base_versions`` (2): copies before the held one that new ones are compared with, h.
    - ``sketch_size`` (None): fragments of a copy that its sketch keeps, those with the smallest
      hashes, in place of all; divergences from base versions are then estimates (section 5.2).
    - ``reveal`` ("parameters"): with ``"importance"`` the change model is hidden.
    - ``resample`` (False): draw a new instance at every reset, not only at seeded ones.
    - ``window`` (None), ``days_per_crawl`` (30.0), ``importance`` ("uniform"), ``parameters``
      (None): of traces, as in ``CrawlTrace-v0``.
    - ``render_mode`` (None): ``ansi`` or ``rgb_array``; fresh stands for not updated.

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
        days_per_crawl: float = 30.0,
        importance: Literal["uniform", "zipf"] = "uniform",
        parameters: str | None = None,
        action: Literal["page", "scores", "refresh"] = "page",
        batch: int = 1,
        objective: FragmentObjective = "fragments",
        crawl_cost: float = 0.0,
        base_versions: int = 2,
        sketch_size: int | None = None,
        reveal: Literal["parameters", "importance"] = "parameters",
        resample: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        if objective not in PAID:
            raise ValueError(f"objective must be one of {tuple(PAID)}, got {objective!r}")
        of_traces = {
            "window": window,
            "days_per_crawl": days_per_crawl,
            "importance": importance,
            "parameters": parameters,
        }
        of_drawn = {"num_pages": num_pages, "bandwidth_steps": bandwidth_steps, "horizon": horizon}
        make, num_pages = _playing(instance, signals, bandwidth, of_traces, of_drawn)
        self.make_lanes = partial(
            make,
            form=action_form(action, num_pages, batch),
            base_versions=base_versions,
            sketch_size=sketch_size,
            reveal=reveal,
            resample=resample,
        )
        paid = Objective(PAID[objective], crawl_cost)
        super().__init__(self.make_lanes(1), paid, render_mode=render_mode)


class CrawlLongevityVector(FragmentAccess, FamilyVectorEnv, NativeVectorEnv):
    """``num_envs`` lanes of :class:`CrawlLongevity` that step together, with the same arguments.

    Besides: those of :class:`FamilyVectorEnv`.
    """

    single = CrawlLongevity
