"""The experiment on tiny worlds: and what it derives."""

from __future__ import annotations

import pytest

from crawl_envs.evaluation import Row
from scripts.experiments.ncis import optimum as ncis_optimum


def test_losses_of_rows() -> None:
    playables = ncis_optimum.EXPERIMENT.playables(quick=True)
    setting = next(item for item in playables if item.name == "m=2 R=0.5m")
    rows = [row for label in setting.labels for seed in (0, 1) for row in setting.play(label, seed)]
    values = {(row.policy, row.seed): row.value for row in rows if row.metric == "freshness"}
    assert len(values) == 12
    assert all(row.value < 1e-6 for row in rows if row.metric == ncis_optimum.OPEN)
    for kind in ("", ", no signals"):
        for seed in (0, 1):
            chain = [
                values[label + kind, seed]
                for label in (ncis_optimum.GREEDY, ncis_optimum.DISCRETE, ncis_optimum.OPTIMUM)
            ]
            assert chain[0] <= chain[1] + 1e-8
            assert chain[1] < chain[2]
    derived = ncis_optimum.derive(rows)
    losses = [row.value for row in derived if row[2:3] + row[4:5] == ("GREEDY-NCIS", "loss")]
    assert losses == pytest.approx(
        [values["discrete optimum", seed] - values["GREEDY-NCIS", seed] for seed in (0, 1)]
    )
    assert Row("", "m=2 R=0.5m", "GREEDY-NCIS", 0, "largest loss", max(losses)) in derived
