"""Every experiment, as quick as can be: it gives what it expects, and is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import experiments
from scripts.present.experiment import expected_of, judged, pictures_of, settings_of, with_derived
from scripts.present.verdicts import Trend

NAMES = [name for name in experiments.names() if name.startswith("longevity_")]


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_gives_what_it_expects(name: str, tmp_path: Path) -> None:
    experiment = experiments.find(name)
    rows = [
        row
        for setting in settings_of(experiment, quick=True)
        for label in setting.labels
        for seed in setting.seeds(1)
        for row in setting.play(label, seed)
    ]
    rows = with_derived(experiment, rows)
    there = {(row.policy, row.metric) for row in rows}
    for test in expected_of(experiment):
        labels = (test.first, test.second) if isinstance(test, Trend) else (test.policy,)
        for label in labels:
            assert (label, test.metric or experiment.METRIC) in there, test
    assert judged(experiment, rows, expected_of(experiment), quick=True)
    for picture, draw in pictures_of(experiment).items():
        draw(rows, tmp_path / f"{picture}.png")
        assert (tmp_path / f"{picture}.png").stat().st_size > 10_000
