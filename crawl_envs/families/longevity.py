"""``CrawlLongevity-v0``: pages made of fragments, some of which do not last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gymnasium.vector import AutoresetMode

from crawl_envs.actions import action_form
from crawl_envs.arguments import check_known
from crawl_envs.contents import Contents
from crawl_envs.copies import Sketches, TrueDivergence
from crawl_envs.fragment_lanes import FragmentLanes
from crawl_envs.instances import traces
from crawl_envs.instances.longevity import LAWS, LongevitySet, longevity_set
from crawl_envs.instances.recorded import Recorded, recorded, window_of
from crawl_envs.objectives import Objective
from crawl_envs.single import CrawlEnv
from crawl_envs.types import Reveal
from crawl_envs.vector import CrawlVectorEnv

PAGES, DAYS = 100, 60.0
"""Pages of a drawn set, and days of its episodes, where none are given: the paper has 60 days."""


FragmentObjective: TypeAlias = Literal["fragments", "holistic"]
PAID: dict[FragmentObjective, str] = {"fragments": "fragments", "holistic": "freshness"}
"""What is paid for each objective."""


def _recorded(
    instance: str | Path,
    given: Mapping[str, Any],
    *,
    signals: str | None = None,
    bandwidth: float | None = None,
    window: Sequence[float] | None = None,
    days_per_crawl: float = 30.0,
    importance: str = "uniform",
    parameters: str | None = None,
) -> Recorded:
    """Return the recorded pages of a trace; ``given`` are arguments that only drawn pages take."""
    shipped = traces.shipped()
    if not isinstance(instance, str | Path) or not (instance in shipped or Path(instance).is_dir()):
        raise ValueError(
            f"instance must be one of {(*LAWS, *shipped)} or the folder of a trace, got "
            f"{instance!r}"
        )
    for name, value in given.items():
        if value not in (None, ()):
            raise ValueError(f"{name} must not be given for a trace, {instance!r}, got {value!r}")
    return recorded(
        str(instance),
        signals="directory" if signals is None else signals,
        window=window_of(window),
        bandwidth=bandwidth,
        days_per_crawl=days_per_crawl,
        importance=importance,
        parameters=parameters,
        fragments=True,
    )


def _wired(
    num_lanes: int,
    *,
    objective: FragmentObjective = "fragments",
    crawl_cost: float = 0.0,
    num_pages: int | None = None,
    bandwidth: float | None = None,
    bandwidth_steps: Sequence[Sequence[float]] = (),
    horizon: float | None = None,
    instance: str | Path = "quality",
    signals: str | None = None,
    action: str = "page",
    batch: int = 1,
    base_versions: int = 2,
    sketch_size: int | None = None,
    reveal: Reveal = "parameters",
    resample: bool = False,
    **of_trace: Any,
) -> tuple[FragmentLanes, Objective]:
    """Wire the family's lanes and what they are paid; arguments of :class:`CrawlLongevity`."""
    generator: LongevitySet | Recorded
    if objective not in PAID:
        raise ValueError(f"objective must be one of {tuple(PAID)}, got {objective!r}")
    shown: dict[str, Any] = {
        "base_versions": base_versions,
        "sketch_size": sketch_size,
        "reveal": reveal,
        "resample": resample,
    }
    if isinstance(instance, str) and instance in LAWS:
        if of_trace:
            name, value = next(iter(of_trace.items()))
            raise ValueError(f"{name} must not be given for instance {instance!r}, got {value!r}")
        pages = PAGES if num_pages is None else num_pages
        generator = longevity_set(instance, pages, bandwidth, bandwidth_steps, signals)
        length = DAYS if horizon is None else horizon
    else:
        given = {
            "num_pages": num_pages,
            "bandwidth_steps": tuple(bandwidth_steps),
            "horizon": horizon,
        }
        generator = _recorded(instance, given, signals=signals, bandwidth=bandwidth, **of_trace)
        length = generator.duration
        shown.update(tape=generator.tape, contents=generator.contents)
    form = action_form(action, generator.num_pages, batch)
    lanes = FragmentLanes(num_lanes, generator, form, horizon=length, **shown)
    return lanes, Objective(PAID[objective], crawl_cost)


class FragmentReader:
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


class CrawlLongevity(FragmentReader, CrawlEnv):
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
    - ``window``, ``days_per_crawl`` (30.0), ``importance`` ("uniform"), ``parameters``: of traces,
      as in ``CrawlTrace-v0``.
    - ``render_mode`` (None): ``ansi`` or ``rgb_array``; fresh stands for not updated.

    ## Version History

    - v0: first version.
    """

    def __init__(self, *, render_mode: str | None = None, **arguments: Any) -> None:
        check_known(arguments, _wired, _recorded, type(self).__init__)
        super().__init__(*_wired(1, **arguments), render_mode=render_mode)


class CrawlLongevityVector(FragmentReader, CrawlVectorEnv):
    """``num_envs`` lanes of :class:`CrawlLongevity` that step together, with the same arguments.

    Besides: ``autoreset_mode`` and ``copy``, as in :class:`CrawlVectorEnv`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **arguments: Any,
    ) -> None:
        check_known(arguments, _wired, _recorded, type(self).__init__)
        super().__init__(*_wired(num_envs, **arguments), autoreset_mode=autoreset_mode, copy=copy)
