"""A live scheduler: which page to fetch next, among any number of pages."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types.arguments import LARGEST, flag, quantity, share, whole
from policies.base.registry import POLICIES
from policies.live.scheduler.asking import Asking
from policies.live.scheduler.audits import Audits
from policies.live.scheduler.events import Events
from policies.live.scheduler.files import Record
from policies.live.scheduler.members import Members
from policies.live.scheduler.pacing import Pace
from policies.live.scheduler.page_costs import begin_costs
from policies.live.scheduler.page_learning import forget, mean_interval
from policies.live.scheduler.page_promises import renew_promises
from policies.live.scheduler.pages import OPTIONAL_ARRAYS, PageTables
from policies.live.scheduler.price import Price
from policies.live.scheduler.reading import amounts, as_ids
from policies.live.scheduler.spending import capped
from policies.live.scheduler.warming import warm

BURST = 0.01
"""Default ``burst``, as a fraction of the timeout."""
LONGEST_RETRY = 1024.0
"""Default ``most_retry``, as a multiple of ``retry``."""


class CrawlScheduler(Members, Events, Asking):
    """Chooses the next page to fetch by a crawl value, with a limited bandwidth.

    Manage pages with :meth:`add`, :meth:`update`, :meth:`move` and :meth:`remove`; report signals
    (:meth:`signal`) and fetches (:meth:`report`); :meth:`next` and :meth:`next_batch` return the
    next pages. Times are numbers in any unit, which is that of all rates. Ids are all
    strings, of 65,536 bytes in UTF-8 at most, or all integers. All arguments for pages are arrays;
    there is no Python object per page.
    Threads may share a scheduler: calls wait for each other.

    The page of the largest crawl value is found exactly, up to rounding with several sources of
    signals, without evaluating all pages (:mod:`crawl_envs.compiled.lazy_argmax`), and ties go to
    the page added first where ids are not removed. Pages that are handed out are not handed out
    again until they are reported, or until ``timeout`` has passed. Pages without a copy come first,
    by importance within one call of :meth:`add`; they take ``new_share`` of the fetches while other
    pages are ready.

    The clock is the largest time of the calls of :meth:`next`, :meth:`next_batch` and
    :meth:`configure`; an earlier time counts as that one. A copy or a signal that is ahead of the
    clock at the next choice counts as of then.

    A host may be limited in its rate and in its concurrent fetches (:meth:`limit_hosts`). Pages of
    closed hosts are skipped; the best of the rest is chosen.

    Args:
        policy: an index policy (``GreedyNCIS``) or one that allocates rates (``LambdaCrawl``),
            by name, ``module:Class``, class or instance. Of the latter it crawls the page that is
            overdue by most intervals.
        bandwidth: fetches per unit of time, > 0; where fetches have costs, their cost per unit of
            time. After a fetch the next one is its cost / bandwidth later.
        start: time of the first call, at least.
        timeout: time after which a page that was handed out is ready again: its fetch is lost.
        new_share: share of the fetches for pages without a copy, in (0, 1].
        burst: time for which unused bandwidth is saved, >= 0: up to 1 + burst * bandwidth fetches;
            with costs, a cost of burst * bandwidth, and the next fetch. A loop whose timers are
            late needs that much at least. None for a hundredth of the timeout. A batch of n pages
            may use n, or n of the mean cost.
        num_sources: sources of signals, S; ``recall`` and ``false_signal_rate`` then have shape
            (S, n).
        learn: whether change rates and signal quality are learned from what fetches find
            (``changed`` of :meth:`report`), for index policies. Columns that are given are where a
            page starts from.
        retry: wait after a failed fetch, > 0, which doubles with each further failure in a row;
            None for the timeout. A lost fetch counts as failed, except the first since the copy if
            nothing failed before it.
        most_retry: the longest such wait; None for 1024 times ``retry``.
        skew: difference between the clocks of sources and of this crawler, >= 0.
        resolution: the unit to which times of signals are rounded down, >= 0, one number or (S,).
            A signal of time t may be of a change up to t + resolution + skew.
        keep_gone: time for which what was learned of a page that is gone is kept.
        cap: largest total cost of the fetches that are handed out in each period, which is never
            exceeded: each reserves ``max_cost`` until its report has a cost. While less than that
            is left no page is handed out. None for no cap.
        cap_period: length of the periods [k, k + 1) * cap_period, > 0.
        max_cost: largest cost of a fetch, > 0. If a report has a larger one, it counts in full, and
            as ``overcharged`` in :meth:`overview`.
        most_interval: longest time from a copy to the next fetch, > 0, of pages added without one;
            None for none. When it is kept: :mod:`policies.values.promises`. Failures, limits of
            hosts, ``least_interval``, a lower bandwidth, the cap and late calls make fetches late.
        audit_share: share of the fetches, in [0, 1), that are audits (:mod:`.audits`): fetches of
            pages drawn at random by importance, from which :meth:`freshness` is measured.
        seed: seed of these draws, in [0, 2**53]; None for one that ``start`` determines.

    Raises:
        ValueError: an argument is out of its range or of another type.
    """

    def __init__(
        self,
        policy: Any,
        bandwidth: float,
        *,
        start: float = 0.0,
        timeout: float = 1.0,
        new_share: float = 0.5,
        burst: float | None = None,
        num_sources: int = 1,
        learn: bool = False,
        retry: float | None = None,
        most_retry: float | None = None,
        skew: float = 0.0,
        resolution: ArrayLike = 0.0,
        keep_gone: float = 0.0,
        cap: float | None = None,
        cap_period: float | None = None,
        max_cost: float | None = None,
        most_interval: float | None = None,
        audit_share: float = 0.0,
        seed: int | None = None,
    ) -> None:
        spending = capped(cap, cap_period, max_cost)
        timeout = quantity("timeout", timeout, above=0.0)
        super().__init__(Pace(bandwidth, start, BURST * timeout if burst is None else burst))
        self.num_sources = whole("num_sources", num_sources, 1)
        self.learns = flag("learn", learn)
        self.pages = PageTables(policy, self.num_sources, self.pace, learn)
        lines = self.pages.choices.lines
        retry = timeout if retry is None else quantity("retry", retry, above=0.0)
        lines["timeout"], lines["retry"] = timeout, retry
        most_retry = min(LONGEST_RETRY * retry, LARGEST) if most_retry is None else most_retry
        lines["most_retry"] = quantity("most_retry", most_retry, least=retry)
        lines["new_share"] = share("new_share", new_share, above=True)
        lines["skew"], lines["keep_gone"] = quantity("skew", skew), quantity("keep_gone", keep_gone)
        self.pages.choices.slack[:] = amounts("resolution", resolution, self.num_sources) + skew
        if most_interval is not None:
            self.pages.most_interval = quantity("most_interval", most_interval, above=0.0)
        self.price = Price(self.pace, new_share)
        self.seed = None if seed is None else whole("seed", seed, 0, 2**53)
        self._audit_from(self.time, share("audit_share", audit_share, below=True))
        if spending is not None:
            begin_costs(self.pages, spending)

    def __contains__(self, page_id: Any) -> bool:
        """Return whether a page is there, and not gone."""
        with self.lock:
            return bool(self.pages.known(as_ids(page_id), gone=False)[0][0])

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        return len(self.pages)

    def configure(
        self,
        time: float,
        *,
        bandwidth: float | None = None,
        burst: float | None = None,
        timeout: float | None = None,
        retry: float | None = None,
        cap: float | None = None,
        audit_share: float | None = None,
    ) -> None:
        """Change settings from a time on; the audits before are kept."""
        if audit_share is not None:
            audit_share = share("audit_share", audit_share, below=True)
        settings = {"timeout": timeout, "retry": retry}
        changes = {k: quantity(k, x, above=0.0) for k, x in settings.items() if x is not None}
        self.pace.change(time, bandwidth, burst, cap)
        self.pages.allocated &= bandwidth is None
        lines = self.pages.choices.lines
        if "timeout" in changes:
            self.pages.set_timeout(changes["timeout"])
        if "retry" in changes:
            lines["retry"] = changes["retry"]
        lines["most_retry"] = np.maximum(lines["most_retry"], lines["retry"])
        if audit_share is not None:
            self._audit_from(time, audit_share)
        renew_promises(self.pages)

    def _audit_from(self, time: float, share: float) -> None:
        """Let a share of the fetches be audits; without a seed, the time of the first is one."""
        if self.audits is None and share > 0.0:
            seed = crc32(np.float64(time).tobytes()) if self.seed is None else self.seed
            self.audits = self.pages.audits = Audits(self.pages, share, seed)
        elif self.audits is not None:
            self.audits.share = share

    def reset_clock(self, time: float) -> None:
        """Set a wrong clock back to a time; ValueError if the time is not before the clock.

        Copies and signals of the future count as of the new time. Waits keep their remaining
        length; waits that are over stay over, and forgotten pages stay forgotten. If the clock
        goes back by more than a mean interval, learned and given rates of the pages fetched since
        the new time are forgotten, as the intervals between their fetches were wrong. A cap counts
        as used up until the next period if the clock goes back to an earlier one, and fetches under
        way keep their reserve.
        """
        by = self.pace.turn_back(time)
        if by > mean_interval(self.pages):
            forget(self.pages, time)
        self.price.turn_back(by)
        self.pages.turn_back(by)
        renew_promises(self.pages)

    def warm(self) -> None:
        """Compile the code that calls need and evaluate all pages, so that later calls are fast."""
        warm(self.pages)

    def state(self) -> Record:
        """Return the state as a record for :meth:`from_state`; its arrays are no copies."""
        values, arrays = self.pages.state()
        values |= {"num_sources": self.num_sources, "learns": self.learns}
        values |= {} if self.seed is None else {"seed": self.seed}
        return Record(values | self.pace.state() | {"price": self.price.state()}, arrays)

    @classmethod
    def from_state(cls, state: Record, policy: Any = None) -> CrawlScheduler:
        """Return a scheduler that gives the same answers as the one whose state is given.

        ``policy`` is needed if the state's policy has no name in the registry, since a state
        never names code to import.

        Raises:
            ValueError: the state has other names than this version's, or needs a ``policy``.
        """
        values, arrays = state
        settings: Any = {"num_sources": values.get("num_sources"), "learn": values.get("learns")}
        settings["most_interval"] = values.get("most_interval")
        settings["seed"] = values.get("seed")
        settings["audit_share"] = 0.5 * ("audits.numbers" in arrays)  # its share is restored
        name = values.get("policy")
        if policy is None and name not in POLICIES:
            raise ValueError(f"policy must be given where that of the state is {name!r}")
        if isinstance(policy, str) and name not in (None, policy):
            raise ValueError(f"policy must be {name!r} as in the state, got {policy!r}")
        policy = name if policy is None else policy
        scheduler = cls(policy, values.get("bandwidth", 0.0), **settings)
        optional = OPTIONAL_ARRAYS | {"spending", "groups"}
        if wrong := (state.named.keys() ^ scheduler.state().named.keys()) - optional:
            raise ValueError(f"state must be of this version, which differs in {sorted(wrong)}")
        scheduler.pace.restore(values)
        scheduler.price.restore(values["price"])
        scheduler.pages.restore(values, arrays)
        renew_promises(scheduler.pages)
        return scheduler
