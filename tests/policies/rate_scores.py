"""How estimates of many pages spread about what theory expects."""

from __future__ import annotations

import numpy as np
import pytest


def check_scores(estimator, expected, error, bias=0.05, spread=0.04):
    """Estimates spread about what is expected as theory has it, and so do the stated errors.

    Of thousands of pages, scores have a mean within .016 and a spread within .011 (standard
    errors); ``bias`` leaves room for terms of second order.
    """
    score = (estimator.estimate_ - expected) / error
    assert abs(score.mean()) < bias
    assert score.std() == pytest.approx(1.0, abs=spread)
    assert np.nanmean(estimator.stderr_ / error) == pytest.approx(1.0, abs=spread)
