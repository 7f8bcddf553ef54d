from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import policies
from crawl_envs.evaluation import Row
from scripts.experiments.agents import transfer


def rows_of() -> list[Row]:
    fresh = {
        (transfer.FIXED, transfer.RANDOM): 0.5,
        (transfer.FIXED, transfer.FORMULA): 0.9,
        (transfer.FIXED, transfer.BELIEF): 0.88,
        ("noisy", transfer.PPO): 0.86,
        ("noisy", transfer.INDEX): 0.9,
        ("without bursty", transfer.GENERALIST): 0.84,
    }
    return [
        Row("", *key, seed, f"fresh[{k}]", value - 0.02 * k * (key[1] == transfer.PPO))
        for key, value in fresh.items()
        for seed in range(2)
        for k in range(len(transfer.WORLDS))
    ]


def test_scores_and_losses() -> None:
    rows = transfer.derive(rows_of())
    value = {row[1:5]: row.value for row in rows}
    assert value["noisy", transfer.PPO, 0, "score, noisy"] == pytest.approx(0.9)
    assert value["noisy", transfer.PPO, 1, "least score"] == pytest.approx(0.9 - 0.18 / 0.4)
    loss = value["without bursty", transfer.GENERALIST, 0, transfer.LOSS]
    assert loss == pytest.approx(-0.04 / 0.4)
    assert transfer.LOSS not in {row.metric for row in rows if row.setting == "noisy"}


def test_table_and_picture(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = rows_of()
    rows = [*rows, *transfer.derive(rows)]
    lines = transfer.scores_table(rows).splitlines()
    assert lines[3].startswith("| ppo | noisy | .90 | .85 |")
    transfer.draw(rows, tmp_path / "transfer.png")
    assert (tmp_path / "transfer.png").exists()
    assert any(axes.has_data() for axes in drawn[0].axes)


def test_lanes_and_single_episodes_have_the_same_events() -> None:
    factory = partial(policies.make, "RoundRobin")
    alone, lanes = (play(factory, "noisy", 1) for play in (transfer.compiled, transfer.in_lanes))
    assert alone == pytest.approx(lanes, abs=2e-3)
    assert alone != pytest.approx(transfer.compiled(factory, "noisy", 2), abs=1e-6)


def test_ppo_is_trained_and_evaluated() -> None:
    fresh = transfer.trained(0, home="noisy", kind="ppo", steps=256, worlds=("noisy",))
    assert 0.0 < fresh["fresh[0]"] < 1.0


def test_a_generalist_is_trained_without_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(transfer, "train_generalist", lambda given, out: asked.append(given))
    for law in ("bursty", "noisy"):
        transfer.without(3, law=law, episodes=1, worlds=())
    for law, given in zip(("bursty", "noisy"), asked, strict=True):
        assert {*transfer.REVEALED} - {*given.instance} == {law}
        assert {*transfer.HIDDEN} - {*given.hidden_laws} == {law} & {*transfer.HIDDEN}
        assert given.seed == 3
