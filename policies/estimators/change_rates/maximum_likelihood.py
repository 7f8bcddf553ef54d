"""Online maximum likelihood."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from policies.estimators.change_rates.estimator import HistoryEstimator
from policies.estimators.change_rates.fitting import fit_histories
from policies.estimators.change_rates.page_histories import Histories, bounds, imaginary


class ChangeRateMLE(HistoryEstimator):
    """Maximum likelihood from whether each crawl detected a change (Kolobov et al., eq. 10).

    With ``smoothing``, one changed and one unchanged imaginary interval of that length are added
    to every page (Algorithm 4, line 11). The estimate is then always positive and finite; that of a
    page without crawls is ln(2) / smoothing, 1.386 per day for half a day. Without smoothing it is
    0 if no crawl detected a change, inf if all did, and ``initial`` without crawls.

    ``stderr_`` comes from the observed Fisher information, imaginary intervals included; nan if
    the estimate is 0, inf, or on a bound, where it is not normal.

    Args:
        num_pages: m.
        smoothing: length of the imaginary intervals, >= 0, in units of time.
        low: least rate, >= 0.
        high: greatest rate, > ``low``. The public code of the paper searches [0.0005, 7] per day.
        window: see :class:`HistoryEstimator`.
        last: see :class:`HistoryEstimator`.
        initial: see :class:`HistoryEstimator`; the paper's experiments start from 1 per day.
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
        fit = fit_histories(
            crawls, smoothing=self.smoothing, low=self.low, high=self.high, start=start
        )
        return fit.change_rate, fit.stderr
