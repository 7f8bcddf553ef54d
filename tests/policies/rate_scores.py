"""Check of the mean and spread of the estimates of many pages against theory."""

from __future__ import annotations

import numpy as np
import pytest


def check_scores(estimator, expected, error, bias=0.05, spread=0.04):
    """Check the errors of estimates, and their stated standard errors, against theory.

    Of thousands of pages, scores have a mean within .016 and a spread within .011 (standard
    errors); ``bias`` leaves room for terms of second order.
    """
    score = (estimator.estimate_ - expected) / error
    assert abs(score.mean()) < bias
    assert score.std() == pytest.approx(1.0, abs=spread)
    assert np.nanmean(estimator.stderr_ / error) == pytest.approx(1.0, abs=spread)
