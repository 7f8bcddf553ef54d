"""The precision and recall of drawn signals, against counted signals and chosen histograms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from crawl_envs.instances.urls.bing import PRECISION_SHARES, RECALL_SHARES
from scripts.experiments.ncis import fig1 as ncis_fig1


def test_a_histogram_is_weighted_and_includes_both_ends() -> None:
    values, weights = np.array([0.0, 0.05, 0.31, 0.999, 1.0]), np.array([1.0, 2.0, 3.0, 1.5, 0.5])
    expected = np.histogram(values, np.linspace(0.0, 1.0, 11), weights=weights)[0] / 8.0
    assert ncis_fig1.histogram(values, weights) == pytest.approx(expected)


def test_the_share_of_good_signals_of_the_paper_s_law_is_its_integral() -> None:
    """P(recall > 0.8 and recall Delta / (recall Delta + nu) > 0.8), Delta and nu uniform."""

    def chance(recall: float) -> float:
        least, most = 0.1, 0.6  # nu < recall Delta / 4
        part, _ = integrate.quad(
            lambda rate: np.clip((0.25 * recall * rate - least) / (most - least), 0.0, 1.0),
            *(0.0, 1.0),
            points=[0.4 / recall],
        )
        return part * float(stats.beta.pdf(recall, 0.25, 0.25))

    expected, _ = integrate.quad(chance, 0.8, 1.0)
    result = ncis_fig1.measured(0, law=ncis_fig1.NOISY, num_pages=200_000)
    assert result[ncis_fig1.METRIC] == pytest.approx(expected, abs=4.0 * np.sqrt(expected / 1e5))


def test_pages_of_the_bing_like_law_have_its_histograms() -> None:
    """Pages that declare signals have the upper tail; by number they are 4% and not its 5%."""
    count = 20_000
    result = ncis_fig1.measured(1, law=ncis_fig1.BING, num_pages=count)
    for name in ncis_fig1.MEASURED:
        shares = [result[f"{name}[{place}]"] for place in range(ncis_fig1.BINS)]
        assert sum(shares) == pytest.approx(1.0)
        tail = sum(shares[7:]) if name == "precision" else sum(shares[6:])
        assert tail == pytest.approx(result[ncis_fig1.WEIGHT], abs=1e-9)
    assert sum(PRECISION_SHARES[7:]) == pytest.approx(sum(RECALL_SHARES[6:])) == 0.05
    assert result[ncis_fig1.DECLARED] == pytest.approx(0.04, abs=0.01)
