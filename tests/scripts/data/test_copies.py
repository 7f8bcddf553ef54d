"""Days in which the newest copy of a page is fresh, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.data.copies import fresh_days


@pytest.mark.parametrize(
    ("copies", "fresh"),
    [
        ([], 0.0),
        ([0.0], 1.0),
        ([0.0, 3.0], 1.0 + 1.0),
        ([2.0, 4.0], 2.0 + 1.0),  # a change at the time of a copy is in it
        ([4.5], 0.5),
    ],
)
def test_a_copy_is_fresh_until_the_next_change(copies: list[float], fresh: float) -> None:
    assert fresh_days(copies, np.array([1.0, 4.0]), 0.0, 5.0) == fresh


def test_a_page_that_is_deleted_is_not_fresh_any_more() -> None:
    assert fresh_days([2.5], np.array([1.0, 4.0]), 0.0, 3.0) == 0.5
