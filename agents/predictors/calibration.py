"""Calibration of probabilities of a model that was trained on a biased sample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

FloatArray = NDArray[np.float64]
RIDGE = 1e-9


class Calibration(NamedTuple):
    """Maps a model's log-odds z to ``slope * z + shift``; the order of examples is kept."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        """Return probabilities, (n,)."""
        probabilities: FloatArray = expit(self.slope * log_odds + self.shift)
        return probabilities


def calibrate(log_odds: FloatArray, labels: NDArray[np.bool_]) -> Calibration:
    """Return the slope and shift of maximum likelihood for a model's probabilities.

    A sample in which positives are k times as frequent, given everything else, multiplies the odds
    by k; a shift of -log k undoes that, the correction of the intercept of King and Zeng (2001,
    Logistic regression in rare events data). The shift is estimated here from an unbiased sample,
    not from the two shares of positives. So it is also right, near 0, for a sample that depends on
    the past where past data are features of the model; the shares would then be far off. The slope
    corrects a model that was stopped early or overfits, which AUC does not show (Platt 1999,
    Probabilistic outputs for support vector machines). At the maximum of the likelihood, the mean
    probability is the share of positives.

    Args:
        log_odds: of the model, on examples sampled as those to predict, (n,).
        labels: of the same examples, (n,) bool, both classes present.

    Raises:
        ValueError: labels of one class.
    """
    share = float(labels.mean())
    if not 0.0 < share < 1.0:
        raise ValueError(f"labels must hold both classes, got {len(labels)} of one")
    middle, spread = float(log_odds.mean()), float(log_odds.std())
    if not spread > 0.0:
        return Calibration(1.0, float(np.log(share / (1.0 - share))) - middle)
    scaled = (log_odds - middle) / spread
    slope, shift = _likeliest(scaled, labels.astype(np.float64))
    return Calibration(slope / spread, shift - slope * middle / spread)


def _likeliest(values: FloatArray, labels: FloatArray) -> tuple[float, float]:
    """Return slope >= 0 and shift of the likeliest logistic curve."""
    share = float(labels.mean())

    def loss(point: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        odds = point[0] * values + point[1]
        wrong = expit(odds) - labels
        mean = (np.logaddexp(0.0, odds) - labels * odds).mean() + RIDGE * point[0] ** 2
        return mean, np.array([(wrong * values).mean() + 2.0 * RIDGE * point[0], wrong.mean()])

    start = np.array([0.0, np.log(share / (1.0 - share))])
    bounds = [(0.0, None), (None, None)]
    exact = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 1000}
    found: Any = minimize(
        loss,
        start,
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options=exact,  # type: ignore[call-overload]  # stubs lack a loss with its gradient
    )
    return float(found.x[0]), float(found.x[1])
