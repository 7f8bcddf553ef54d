"""Figures of sharded schedulers, in small."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from policies import solvers
from policies.scheduler import CrawlScheduler
from scripts.timing import shards
from tests.scripts import commands
from tests.scripts.commands import done


def test_freshness_is_near_the_optimum_of_evenly_spaced_crawls() -> None:
    """GREEDY is close to the continuous optimum; equal shares of unequal shards are not."""
    bandwidth, important = shards.FEW / 10.0, 100.0
    rng = np.random.default_rng(0)
    importance = rng.random(shards.FEW)
    importance *= np.where(np.arange(shards.FEW) % shards.SHARDS == 0, important, 1.0)
    best = solvers.binary_periodic(importance, rng.random(shards.FEW), bandwidth).objective
    one = CrawlScheduler("Greedy", bandwidth, burst=shards.TURN)
    assert shards.freshness(one, important, 60.0) == pytest.approx(best, abs=0.005)
    with shards.sharded("Greedy", bandwidth, shards.TURN, shards.SHARDS, balance=math.inf) as equal:
        assert shards.freshness(equal, important, 60.0) < best - 0.05


def test_figures_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUICK_PAGES": 400, "BATCH": 100, "ROUNDS": 1, "TURNS": 2}.items():
        monkeypatch.setattr(shards, name, value)
    done(commands.run(shards.app, "--quick", out=tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"provenance.json", "shards.csv"}
    with (tmp_path / "shards.csv").open() as file:
        rows = list(csv.DictReader(file))
    parts = {row["part"] for row in rows}
    assert {"freshness", "crawls per second", "seconds of a batch"} <= parts
    values = {(row["part"], row["case"], row["scheduler"]): float(row["value"]) for row in rows}
    for (part, case, _), value in values.items():
        if part == "freshness":
            assert value <= values[part, case, "one scheduler"] + 0.002
        elif part == "batches that differ":
            assert value == 0.0  # a shard that was killed goes on as if it had not been
        else:
            assert value > 0.0
