"""Cost of fragments: timed pages, counts of bytes, the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawl_envs.sim.state import BASE
from scripts.timing import longevity_scale
from scripts.timing.longevity_scale import NCIS, PLAIN, READ_LOG, VARIANTS, Variant
from tests.scripts.commands import done, run


def test_pages_are_updated_and_crawled_as_often() -> None:
    few, many = (longevity_scale.pages_of(2000, number) for number in (50, 500))
    assert 8.0 < np.median(many.regions.fragments) / np.median(few.regions.fragments) < 12.0
    env, beside = (longevity_scale.make_env(2000, 1, one) for one in (PLAIN, None))
    assert np.array_equal(beside.instance.change_rate, env.instance.change_rate)
    assert beside.instance.bandwidth == env.instance.bandwidth == 200.0


def test_bytes_are_those_of_all_arrays() -> None:
    env = longevity_scale.make_env(30, 1, Variant(base_versions=3))
    paths = dict(longevity_scale.array_bytes(env.get_state(), ()))
    totals = {cost.what: 30.0 * cost.median for cost in longevity_scale._bytes(30, 1, "", env)}
    assert sum(totals.values()) == pytest.approx(sum(paths.values()))
    updates = np.isfinite(env.contents().death).sum()
    assert totals["spells and events"] > (16 + 4 + 8) * updates
    assert totals["base versions"] == pytest.approx(30 * 3 * BASE.itemsize)
    nested: dict[str, Any] = {"a": [np.zeros(2), {"b": np.zeros(3, np.int8)}], "c": 4}
    sizes = dict(longevity_scale.array_bytes(nested, ()))
    assert sizes == {("a", "0"): 16, ("a", "1", "b"): 3}


def test_stepping_goes_on_with_the_next_episode() -> None:
    env = longevity_scale.make_env(5, 1, PLAIN)
    task = longevity_scale.stepping(env, 5, 1, log=True)
    task(env.num_slots() + 3)
    assert 0.0 < env.tracker(0).time < longevity_scale.DAYS


def test_everything_is_measured_written_and_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(longevity_scale, "QUICK_CELLS", ((20, 1), (20, 2)))
    monkeypatch.setattr(longevity_scale, "QUICK_SPELL", 1e-4)
    monkeypatch.setattr("scripts.timing.commands.pin", lambda: None)
    done(run(longevity_scale.app, "--quick", out=tmp_path))
    rows = list(csv.DictReader((tmp_path / "longevity.csv").read_text("utf-8").splitlines()))
    names = {variant.name for variant in VARIANTS}
    for lanes in "12":
        cell = [row for row in rows if row["lanes"] == lanes]
        speeds = {row["variant"]: float(row["median"]) for row in cell if row["what"] == "speed"}
        assert speeds.keys() - {name + READ_LOG for name in names} == {NCIS, *names}
        assert min(speeds.values()) > 0.0
    made = json.loads((tmp_path / "provenance.json").read_text())["longevity"]
    assert "scripts.timing.longevity_scale" in made["command"]
    assert (tmp_path / "longevity.png").stat().st_size > 10_000
