"""Calibrate the probabilities of a model that was trained on a biased sample."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import expit, logit

from crawl_envs.types import BoolArray, FloatArray

RIDGE = 1e-9
"""Penalty on the squared slope, relative to the mean loss: finite where labels are separable."""


class Calibration(NamedTuple):
    """Map a model's log-odds z to ``slope * z + shift``; the order of examples stays."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        """Return probabilities, (n,)."""
        probabilities: FloatArray = expit(self.slope * log_odds + self.shift)
        return probabilities


def calibrate(log_odds: FloatArray, labels: BoolArray) -> Calibration:
    """Return the slope >= 0 and the shift of maximum likelihood, a logistic regression.

    With positives k times as frequent in a sample, all else equal, odds are k times as large. A
    shift of -log k corrects that: the intercept of King and Zeng (2001, Logistic regression in rare
    events data). The shift is estimated here from an unbiased sample instead of the two shares of
    positives. So it is also right, near 0, for a sample that depends on past data which the model
    reads; the shares would then be far off. The slope corrects a model that stopped early or
    overfits, which AUC does not show (Platt 1999, Probabilistic outputs for support vector
    machines). At the maximum of the likelihood, the mean probability is the share of positives.

    Args:
        log_odds: the model's log-odds, (n,), on examples sampled like those to predict.
        labels: labels of these examples, (n,) bool, of both classes.
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
