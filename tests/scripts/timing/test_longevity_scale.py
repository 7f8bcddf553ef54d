"""Cost of fragments: timed pages, counts of bytes, the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from crawl_envs.sim.state import BASE
from scripts.timing import fragment_costs, longevity_scale
from scripts.timing.fragment_costs import NCIS, PLAIN, VARIANTS, Cost, Variant
from scripts.timing.turns import Spread


def test_pages_are_updated_and_crawled_as_often() -> None:
    few, many = (fragment_costs.pages_of(2000, number) for number in (50, 500))
    assert 8.0 < np.median(many.regions.fragments) / np.median(few.regions.fragments) < 12.0
    beside = fragment_costs.without_fragments(few)
    assert np.array_equal(beside.change_rate, few.change_rate)
    assert beside.bandwidth == few.bandwidth == 200.0


def test_bytes_are_those_of_all_arrays() -> None:
    env = fragment_costs.make_env(30, 1, Variant(base_versions=3))
    paths = dict(fragment_costs.array_bytes(env.get_state(), ()))
    totals = {
        cost.what: 30.0 * cost.spread.median for cost in fragment_costs._bytes(30, 1, "", env)
    }
    assert sum(totals.values()) == pytest.approx(sum(paths.values()))
    updates = np.isfinite(env.contents().death).sum()
    assert totals["spells and events"] > (16 + 4 + 8) * updates
    assert totals["base versions"] == pytest.approx(30 * 3 * BASE.itemsize)
    nested: dict[str, Any] = {"a": [np.zeros(2), {"b": np.zeros(3, np.int8)}], "c": 4}
    sizes = dict(fragment_costs.array_bytes(nested, ()))
    assert sizes == {("a", "0"): 16, ("a", "1", "b"): 3}


def test_stepping_goes_on_with_the_next_episode() -> None:
    env = fragment_costs.make_env(5, 1, PLAIN)
    task = fragment_costs.stepping(env, 5, 1, log=True)
    task(env.num_slots() + 3)
    assert 0.0 < env.tracker(0).time < fragment_costs.DAYS


def test_all_variants_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_costs, "QUICK_CELLS", ((20, 1), (20, 2)))
    single, double = fragment_costs.costs(True, 2, 1e-4)
    names = {variant.name for variant in VARIANTS}
    for cell, lanes in ((single, 1), (double, 2)):
        assert {cost.lanes for cost in cell} == {lanes}
        speeds = {cost.variant for cost in cell if cost.what == "speed"}
        assert speeds - {name + fragment_costs.READ_LOG for name in names} == {NCIS, *names}
        assert all(cost.spread.median > 0.0 for cost in cell if cost.what == "speed")


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    three = Spread(2.0, 1.0, 3.0)
    costs = [
        Cost(100, 1, name, what, unit, three)
        for name in (NCIS, PLAIN.name)
        for what, unit in (("speed", "env-steps/s"), ("copies", "bytes per page"))
    ]
    monkeypatch.setattr(longevity_scale, "measure", lambda quick: (costs if quick else [], 0))
    done = CliRunner().invoke(longevity_scale.app, ["--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "cost.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 4
    assert (rows[0]["variant"], rows[0]["median"], rows[0]["high"]) == (NCIS, "2.0", "3.0")
    assert (
        "scripts.timing.longevity_scale"
        in json.loads((tmp_path / "provenance.json").read_text())["command"]
    )
    assert (tmp_path / "cost.png").stat().st_size > 10_000
