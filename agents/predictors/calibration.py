"""Calibration of probabilities of a model that was trained on a biased sample."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import expit, logit

from crawl_envs.types import BoolArray, FloatArray

RIDGE = 1e-9
"""Penalty on the squared slope, relative to the mean loss: finite where labels are separable."""


class Calibration(NamedTuple):
    """Maps a model's log-odds z to ``slope * z + shift``; the order of examples is kept."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        """Return probabilities, (n,)."""
        probabilities: FloatArray = expit(self.slope * log_odds + self.shift)
        return probabilities


def calibrate(log_odds: FloatArray, labels: BoolArray) -> Calibration:
    """Return the slope >= 0 and the shift of maximum likelihood, a logistic regression.

    A sample in which positives are k times as frequent, given everything else, multiplies the odds
    by k; a shift of -log k undoes that, the correction of the intercept of King and Zeng (2001,
    Logistic regression in rare events data). The shift is estimated here from an unbiased sample,
    not from the two shares of positives. So it is also right, near 0, for a sample that depends on
    the past where past data are features of the model; the shares would then be far off. The slope
    corrects a model that was stopped early or overfits, which AUC does not show (Platt 1999,
    Probabilistic outputs for support vector machines). At the maximum of the likelihood, the mean
    probability is the share of positives.

    Log-odds, (n,), are of the model, on examples sampled as those to predict; their labels, (n,)
    bool, have both classes.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    middle, spread = float(log_odds.mean()), log_odds.std() or 1.0
    exact = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
    regression = LogisticRegression(C=0.5 / (RIDGE * len(labels)), **exact)
    regression.fit(((log_odds - middle) / spread)[:, None], labels)
    slope = float(regression.coef_.item() / spread)
    if slope <= 0.0:
        return Calibration(0.0, float(logit(labels.mean())))
    return Calibration(slope, float(regression.intercept_.item()) - slope * middle)
