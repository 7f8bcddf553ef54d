"""Crawls of a site of one's own: what the site tells, and that all ways of crawling agree."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.policies.live.adapters.own_site import (
    BEGIN,
    COLUMNS,
    CRAWLS,
    Crawl,
    OwnSite,
    app,
    measure,
)
from tests.scripts.commands import done, records, refused, run


def test_a_site_changes_at_its_rates_and_tells_of_changes() -> None:
    crawl = Crawl(recall=0.9, lies=1.0, units=40.0)
    site = OwnSite(crawl, seed=0)
    counts = np.bincount(site.trace.change_page, minlength=200)
    assert site.rates.mean() == pytest.approx(1.0)
    assert 1.2 < np.log(site.rates).std() < 1.8
    assert np.all(np.abs(counts - 40.0 * site.rates) <= 5.0 * np.sqrt(40.0 * site.rates) + 3.0)
    true = np.isin(site.entries[:, 0], site.trace.change_time)
    assert true.sum() / counts.sum() == pytest.approx(0.9, abs=0.02)
    assert true.mean() == pytest.approx(0.8, abs=0.03)
    dates = [
        site.answer("", "/sitemap.xml", {}, BEGIN + t).body.count(b"<lastmod>") for t in (0, 6)
    ]
    assert dates[0] == 0
    assert 200.0 * (1.0 - np.exp(-1.0)) == pytest.approx(dates[1], abs=25.0)  # after a unit
    silent = OwnSite(crawl._replace(lies=0.0), seed=0).answer("", "/sitemap.xml", {}, BEGIN + 99.0)
    assert (silent.body.count(b"<loc>"), silent.body.count(b"<lastmod>")) == (200, 0)


def test_crawls_offline_are_near_the_simulator_and_polls_cost_freshness() -> None:
    """RoundRobin of equal pages at one fetch per unit: fresh for (1 - exp(-rate)) / rate."""
    short = {"units": 12.0, "warm_up": 2.0, "pages": 20, "seconds": 60.0}
    stale = {}
    for name in ("RoundRobin", "feed of recall .9"):
        for column in ("offline", "simulator"):
            blocks = list(measure(CRAWLS[name]._replace(**short), column, seed=3))
            assert sum(fetches for *_, fetches in blocks) == pytest.approx(200, abs=3)
            stale[name, column] = np.mean([share for _, share, _ in blocks])
    rates = OwnSite(Crawl(pages=20), seed=3).rates
    expected = 1.0 - np.mean(-np.expm1(-rates) / rates)
    assert stale["RoundRobin", "offline"] == pytest.approx(expected, abs=0.03)
    assert stale["RoundRobin", "simulator"] == pytest.approx(expected, abs=0.03)
    assert stale["feed of recall .9", "simulator"] < stale["feed of recall .9", "offline"]
    assert stale["feed of recall .9", "offline"] < stale["RoundRobin", "offline"]


def test_the_command_writes_rows_table_and_provenance(tmp_path: Path) -> None:
    done(run(app, "--quick", "--seeds", 1, "--case", "HTTP", out=tmp_path))
    rows = records(tmp_path / "rows.csv")
    assert [row["column"] for row in rows] == np.repeat([*COLUMNS], 10).tolist()
    for column in COLUMNS:
        fetches = sum(float(row["fetches"]) for row in rows if row["column"] == column)
        assert 0.0 < fetches <= 42.0, column  # 20 per unit, fewer on a busy machine
    text = (tmp_path / "README.md").read_text("utf-8")
    assert re.search(r"\| feed of recall \.9, over HTTP \| 0\.\d{3} \[", text)
    assert (tmp_path / "provenance.json").exists()
    refused(run(app, "--case", "ftp", out=tmp_path), "case must be of RoundRobin; ")
