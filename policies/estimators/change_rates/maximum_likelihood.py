"""The maximum of the likelihood, as crawls go on."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from policies.estimators.change_rates.estimator import HistoryEstimator
from policies.estimators.change_rates.fitting import fit_histories
from policies.estimators.change_rates.page_histories import Histories, bounds, imaginary


class ChangeRateMLE(HistoryEstimator):
    """Maximum likelihood from whether each crawl found a change (Kolobov et al., eq. 10).

    With ``smoothing``, one changed and one unchanged imaginary interval of that length are added
    to every page (Algorithm 4, line 11). The estimate is then positive and finite whatever crawls
    found; that of a page without crawls is ln(2) / smoothing, 1.386 a day for half a day. Without
    it the estimate is 0 where no crawl found a change, inf where all did, and ``initial`` where
    there were none.

    ``stderr_`` comes from the observed Fisher information, imaginary intervals included; nan where
    the estimate is 0, inf, or on a bound, and not normal there.

    Args:
        num_pages: m.
        smoothing: length of the imaginary intervals, >= 0, in units of time.
        low: least rate, >= 0.
        high: greatest rate, > ``low``. The public code of the paper searches [0.0005, 7] per day.
        window: see :class:`HistoryEstimator`, as the rest.
        last: see there.
        initial: see there; the paper's experiments start from 1 per day.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        smoothing: float = 0.5,
        low: float = 0.0,
        high: float = math.inf,
        window: float | None = None,
        last: int | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        super().__init__(num_pages, window=window, last=last, initial=initial)
        self.smoothing = imaginary(smoothing)
        self.low, self.high = bounds(low, high)

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = fit_histories(
            crawls, smoothing=self.smoothing, low=self.low, high=self.high, start=start
        )
        return found.change_rate, found.stderr
