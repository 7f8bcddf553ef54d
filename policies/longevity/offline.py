"""Policies with known divergence curves or change rates (Olston and Pandey 2008, section 3.4).

==========================  =====================================================================
:class:`UniformRefresh`     every page that is not static, equally often
:class:`FragmentStatic`     FS-S: known divergence curves
:class:`HolisticStatic`     HS-S: known change rates; Cho and Garcia-Molina's optimum
:class:`FragmentDynamic`    FS-D: the true divergence curve since the last refresh
:class:`HolisticDynamic`    HS-D: the time of the first change since the last refresh
:class:`CurrentDivergence`  U = D, the naive form of section 2.3
==========================  =====================================================================

FS-D, HS-D, and U = D with ``dynamic=True``, are oracles: they read the true divergence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, Problem, Tracker
from crawl_envs.types.arguments import flag, quantity
from crawl_envs.types.copies import TrueDivergence
from policies.base.policy import Pages
from policies.base.registry import registered
from policies.longevity.refreshing import ROUNDING, RefreshPolicy, Urgency
from policies.values.divergence.curves import DivergenceCurves, HolisticCurves
from policies.values.divergence.regions import RegionCurves


@registered(kind="baseline", paper="Longevity", family="fragments")
class UniformRefresh(RefreshPolicy):
    """Refreshes all pages that are not static equally often, and static pages never.

    In the form ``refresh`` each of the n pages is refreshed every ``interval``, at the first
    decision after its due time. Due times are spaced by one n-th of the interval, so that the cost
    is constant, and page k has its first refresh after (k + 1) / n of an interval. With
    ``stagger=False`` all pages are refreshed together. With a budget, the page with the longest
    time since its crawl is next, whatever its cost.

    Args:
        interval: time between refreshes of a page, > 0; needed in the form ``refresh``.
        static: mask of static pages, (m,) bool; None for pages with a revealed change rate of 0, or
            for no page if change rates are hidden.
        stagger: whether to stagger the refreshes of pages.
    """

    needs_threshold = False

    def __init__(
        self,
        *,
        interval: float | None = None,
        static: ArrayLike | None = None,
        stagger: bool = True,
    ) -> None:
        super().__init__()
        self.interval = None if interval is None else quantity("interval", interval, above=0.0)
        self.stagger = flag("stagger", stagger)
        self.static: BoolArray | None = None
        if static is not None:
            self.static = np.array(static)
            if self.static.dtype != np.bool_ or self.static.ndim != 1:
                raise ValueError(
                    f"static must be truth values of shape (m,), got {self.static.dtype} of shape "
                    f"{self.static.shape}"
                )

    def check(self) -> None:
        """Raise ValueError without an interval in the form ``refresh``."""
        super().check()
        if self.interval is None and self.form.action == "refresh":
            raise ValueError(
                f"interval must be a number > 0 for {self.name} in the form refresh, got None"
            )

    def start(self, pages: Pages) -> None:
        """Choose the pages to refresh, and compute their due times in the episode."""
        tracker = pages.tracker()
        num_pages = tracker.elapsed.size
        self.refreshed, self.lead = np.ones(num_pages, np.bool_), np.zeros(num_pages)
        if self.static is not None:
            if self.static.size != num_pages:
                raise ValueError(f"static must have shape ({num_pages},), got {self.static.shape}")
            self.refreshed = ~self.static
        elif tracker.problem.change_rate is not None:
            self.refreshed = tracker.problem.change_rate > 0.0
        count = np.count_nonzero(self.refreshed)
        if self.stagger and count:
            self.lead[self.refreshed] = 1.0 - np.arange(1, count + 1) / count

    def _urgency(self, tracker: Tracker) -> Urgency:
        if self.form.action != "refresh":
            return Urgency(np.where(self.refreshed, tracker.elapsed, -1.0))
        crawled = np.maximum(tracker.time - tracker.elapsed, 0.0)
        passed = self._moments(tracker.time) > self._moments(crawled)
        return Urgency(np.zeros(passed.size), (self.refreshed & passed).astype(np.float64))

    def _moments(self, time: Any) -> FloatArray:
        """Return how many due times of each page have come up to ``time``, (m,)."""
        assert self.interval is not None
        turns: FloatArray = np.floor(time / self.interval + self.lead + ROUNDING)
        return turns


def check_curves(curves: Any) -> DivergenceCurves | None:
    """Return ``curves``, which may be None; raise ValueError if they are no divergence curves."""
    wanted = ("num_pages", "ceiling", "divergence", "area", "utility", "period")
    if curves is not None and not all(hasattr(curves, name) for name in wanted):
        raise ValueError(
            "curves must be divergence curves, such as TabulatedCurves of "
            f"policies.values.divergence.tabulated, got {curves!r}"
        )
    return curves  # type: ignore[no-any-return]  # has all attributes of curves


class KnownCurves(RefreshPolicy):
    """Refreshes pages by known divergence curves, functions of the time since the last refresh.

    The curves are an argument, or follow from revealed parameters. Recorded pages have no regions:
    measure their curves
    (:meth:`policies.values.divergence.tabulated.TabulatedCurves.of_contents`).

    Args:
        threshold: as for :class:`policies.longevity.refreshing.RefreshPolicy`.
        curves: measured curves of all pages; None for curves from revealed parameters.

    Raises:
        ValueError: as for the base class; when an episode starts, no curves as argument or
            revealed.
    """

    of_regions = True
    """Whether revealed regions (True) or change rates (False) give the curves."""

    def __init__(
        self,
        *,
        threshold: float | None = None,
        curves: DivergenceCurves | None = None,
    ) -> None:
        super().__init__(threshold=threshold)
        self.curves = check_curves(curves)

    def _revealed(self, problem: Problem) -> DivergenceCurves | None:
        """Return divergence curves from revealed parameters; None if these are hidden."""
        if self.of_regions:
            return None if problem.regions is None else RegionCurves(problem.regions)
        return None if problem.change_rate is None else HolisticCurves(problem.change_rate)

    def _no_curves(self, revealed: bool) -> ValueError:
        """Return the error for missing curves; ``revealed``: whether parameters are revealed."""
        reason = "the environment reveals none: make it with reveal='parameters', or pass curves="
        if revealed and self.of_regions:
            reason = (
                "the pages have no regions: measure curves of recorded pages by "
                "policies.values.divergence.tabulated.TabulatedCurves.of_contents"
            )
        return ValueError(f"curves must be divergence curves for {self.name}, got None; {reason}")

    def start(self, pages: Pages) -> None:
        """Choose the divergence curves of the episode's pages: given ones, or revealed ones."""
        tracker = pages.tracker()
        curves = self._revealed(tracker.problem) if self.curves is None else self.curves
        if curves is None:
            raise self._no_curves(tracker.problem.change_rate is not None)
        if curves.num_pages != tracker.elapsed.size:
            raise ValueError(
                f"curves must be of {tracker.elapsed.size} pages, got {curves.num_pages}"
            )
        self.expected = curves

    def _urgency(self, tracker: Tracker) -> Urgency:
        return Urgency(tracker.problem.importance * self.expected.utility(tracker.elapsed))


@registered(paper="Longevity", family="fragments")
class FragmentStatic(KnownCurves):
    """FS-S: the optimal policy for fragment staleness by known divergence curves (section 2.2).

    Revealed regions give the curves.
    """


@registered(paper="Longevity", family="fragments")
class HolisticStatic(KnownCurves):
    """HS-S: the optimal policy for holistic staleness by known change rates (appendix A).

    It is the policy of Cho and Garcia-Molina, "Effective page refresh policies for web crawlers".
    Revealed change rates give the curves.
    """

    of_regions = False


def truth_of(name: str, pages: Any) -> Callable[[], TrueDivergence]:
    """Return the function that gives the true divergence; ValueError if pages have none."""
    source: Callable[[], TrueDivergence] | None = getattr(pages, "true_divergence", None)
    if source is None:
        raise ValueError(
            f"pages must be a lane of an environment with fragments for {name}, which reads the "
            f"true divergence, got {type(pages).__name__}"
        )
    return source


class TruePolicy(RefreshPolicy):
    """An oracle that reads the true divergence since the last refreshes.

    Arguments as for :class:`policies.longevity.refreshing.RefreshPolicy`; pages have fragments.
    """

    oracle = True
    methods = ("true_divergence",)

    def start(self, pages: Pages) -> None:
        """Keep the function that gives the true divergence of the episode's pages."""
        self.truth = truth_of(self.name, pages)

    @abstractmethod
    def _utility(self, truth: TrueDivergence, elapsed: FloatArray) -> FloatArray:
        """Return the utility of a refresh of each page now, by the true divergence, (m,)."""

    def _urgency(self, tracker: Tracker) -> Urgency:
        utility = self._utility(self.truth(), tracker.elapsed)
        return Urgency(tracker.problem.importance * utility)


@registered(paper="Longevity", family="fragments")
class FragmentDynamic(TruePolicy):
    """FS-D: eq. 4 with the true divergence curve since the last refresh.

    Its utility is negative at times, when fragments have returned.
    """

    def _utility(self, truth: TrueDivergence, elapsed: FloatArray) -> FloatArray:
        return elapsed * truth.divergence - truth.area


@registered(paper="Longevity", family="fragments")
class HolisticDynamic(TruePolicy):
    """HS-D: eq. 4 for the true holistic staleness, which jumps from 0 to 1 at the first change.

    So the utility is the time from the refresh to the first change, and constant afterwards. A
    page that changed within T / importance of its refresh is never refreshed again: eq. 4 assumes
    that the next cycle equals this one.
    """

    def _utility(self, truth: TrueDivergence, elapsed: FloatArray) -> FloatArray:
        return np.where(truth.changed, truth.first_change, 0.0)


@registered(paper="Longevity", family="fragments")
class CurrentDivergence(KnownCurves):
    """The naive form U = D: refreshes the pages with the largest divergence (section 2.3).

    The paper finds it worse than uniform refreshing. Its threshold is in units of importance times
    divergence, without time, and not comparable to those of other policies.

    Args:
        curves: as for :class:`KnownCurves`.
        threshold: importance times divergence at which a page is refreshed, > 0; required in the
            form ``refresh``, ignored in other forms.
        dynamic: whether to use the true divergence instead of the expected one: an oracle, for
            pages with fragments, without ``curves``.
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        curves: DivergenceCurves | None = None,
        dynamic: bool = False,
    ) -> None:
        self.oracle = flag("dynamic", dynamic)
        super().__init__(threshold=threshold, curves=curves)
        if self.oracle and curves is not None:
            raise ValueError(f"curves must be None with dynamic=True, got {curves!r}")
        self.methods = ("true_divergence",) if self.oracle else ()

    def start(self, pages: Pages) -> None:
        """Choose the curves of the episode's pages, or keep the source of true divergence."""
        if self.oracle:
            self.truth = truth_of(self.name, pages)
        else:
            super().start(pages)

    def _urgency(self, tracker: Tracker) -> Urgency:
        if self.oracle:
            divergence = self.truth().divergence
        else:
            divergence = self.expected.divergence(tracker.elapsed)
        return Urgency(tracker.problem.importance * divergence)
