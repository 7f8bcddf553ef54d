from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure

import policies as crawl_policies
from crawl_envs.evaluation import Row, play
from crawl_envs.instances import STRESS
from scripts.experiments.agents import stress
from scripts.present.verdicts import Range, Trend
from scripts.study import intervals

SMALL = {"num_pages": 20, "bandwidth": 20.0, "horizon": 0.5}
FRESH = {"RoundRobin": 0.80, "GreedyNCIS": 0.86, "GreedyNCISDelayed": 0.86, "Greedy": 0.82}
EDGE = {"LearningGreedyNCIS": 0.85, stress.AGENT: 0.88, stress.BELIEF: 0.84}


def rows_of(setting: str, fresh: dict[str, float], seeds: int = 4) -> list[Row]:
    return [
        Row(stress.ID, setting, label, seed, metric, value)
        for label, mean in fresh.items()
        for seed in range(seeds)
        for metric, value in (
            # Seeds differ by far more than policies, and each policy by a little of its own.
            ("freshness", mean + 0.1 * (seed - 1.5) + 1e-3 * mean * (-1) ** seed),
            ("crawl_rate", 100.0),
        )
    ]


def all_rows() -> list[Row]:
    return [row for name in STRESS for row in rows_of(name, {**FRESH, **EDGE})]


@pytest.mark.parametrize("setting", ["cold start", "deploys"])
def test_policies_that_raise_an_error_are_left_out(setting: str) -> None:
    env = gymnasium.make(stress.ID, **{**STRESS[setting], **SMALL})
    env.reset(seed=0)
    raised = {}
    for label, (policy, arguments) in stress._variants(setting).items():
        try:
            ledger = play(env, stress.analytic(env, policy=policy, **arguments), 0)
        except ValueError as error:
            raised[label] = str(error)
            continue
        assert ledger.crawls > 0
    assert tuple(raised) == stress.left_out(setting)
    assert all("does not reveal" in message for message in raised.values())
    assert {*stress.acting(setting)} == {*stress._variants(setting)} - {*raised}
    assert ("GreedyNCIS" in raised) == (setting == "cold start")


def test_every_analytic_policy_is_a_rival_somewhere() -> None:
    played = {label for name in STRESS for label in stress.acting(name)}
    names = {*crawl_policies.names("page"), "ThresholdNCIS"} - {stress.BELIEF_POLICY, *stress.LATER}
    assert names <= played
    assert not played & {*stress.OURS}


def test_ours_are_expected_to_be_best_everywhere() -> None:
    ranges = [item.policy for item in stress.EXPERIMENT.expected if isinstance(item, Range)]
    assert ranges == [*stress.ours()] == [*stress.OURS]
    above = {
        item.second: item.settings
        for item in stress.EXPERIMENT.expected
        if isinstance(item, Trend) and item.first == stress.AGENT
    }
    played = {label for name in STRESS for label in stress.acting(name)}
    assert {*above} == {*played, stress.BELIEF}
    assert above["RoundRobin"] == above[stress.BELIEF] == tuple(STRESS)
    assert "cold start" not in above["GreedyNCIS"]


@pytest.mark.parametrize("setting", ["cold start", "deploys"])
def test_agent_and_belief_act(setting: str) -> None:
    env = gymnasium.make(stress.ID, **{**STRESS[setting], **SMALL})
    env.reset(seed=0)
    assert all(play(env, build(env), 0).crawls == 10 for build in stress.ours().values())


def test_a_rival_keeps_the_bandwidth_and_has_all_seeds() -> None:
    rows = rows_of("bursty", {**FRESH, **EDGE})
    assert stress.ranked(rows, "bursty")[:2] == ["GreedyNCIS", "GreedyNCISDelayed"]
    more = rows_of("bursty", {"ThresholdNCIS": 0.9})
    for spent, first in ((102.0, "GreedyNCIS"), (100.5, "ThresholdNCIS")):
        given = [row._replace(value=spent) if row.metric == "crawl_rate" else row for row in more]
        assert stress.ranked([*rows, *given], "bursty")[0] == first
    rarely = rows_of("bursty", {"GreedyCIS": 0.9}, seeds=3)
    assert stress.ranked([*rows, *rarely], "bursty")[0] == "GreedyNCIS"
    assert not {*stress.ranked(rows, "bursty")} & {*stress.OURS}


def test_differences_to_the_best_are_paired_by_seed() -> None:
    rows = all_rows()
    result = stress.derive(rows)
    best = [row for row in result if row.policy == stress.BEST and row.setting == "bursty"]
    expected_rows = {row[3:] for row in rows if row[1:3] == ("bursty", "GreedyNCIS")}
    assert {row[3:] for row in best} == expected_rows
    paired = {
        row.seed: row.value
        for row in result
        if row[1:3] == ("bursty", stress.AGENT) and row.metric == stress.OVER_BEST
    }
    expected = {seed: 0.02 + 2e-5 * (-1) ** seed for seed in range(4)}
    assert paired == pytest.approx(expected, abs=1e-12)
    value = {(*row[1:3], row.metric): row.value for row in result}
    scores = np.array(list(paired.values()))[:, None]
    for name, estimate in (("mean", intervals.mean), ("IQM", intervals.interquartile_mean)):
        own = f"{stress.OVER_BEST}, {name}"
        spelled = [value["bursty", stress.AGENT, own + end] for end in ("", ", low", ", high")]
        assert spelled == list(estimate(scores))
    assert value["cold start", "GreedyNCIS", stress.LEFT_OUT] == 1.0
    assert ("bursty", "GreedyNCIS", stress.LEFT_OUT) not in value


def test_normalised_freshness_is_0_for_round_robin_and_1_for_the_best() -> None:
    rows = [row for row in all_rows() if row[1:3] != ("cold start", stress.BELIEF)]
    value = {
        (row.policy, row.metric): row.value
        for row in stress.derive(rows)
        if row.setting == stress.TOGETHER
    }
    gaps = 0.06  # of the means; what alternates between seeds cancels
    assert value["RoundRobin", stress.NORMALISED] == 0.0
    assert value[stress.BEST, stress.NORMALISED] == pytest.approx(1.0, abs=1e-9)
    assert value[stress.AGENT, stress.NORMALISED] == pytest.approx(0.08 / gaps, abs=1e-9)
    assert value["Greedy", stress.NORMALISED] == pytest.approx(0.02 / gaps, abs=1e-9)
    assert value[stress.AGENT, stress.SETTINGS_PLAYED] == len(STRESS)
    assert value[stress.BELIEF, stress.SETTINGS_PLAYED] == len(STRESS) - 1
    assert value[stress.AGENT, stress.SHARE_IMPROVED] == 1.0
    assert value[stress.BELIEF, stress.SHARE_IMPROVED] == 0.0
    # The agent's seed s is above the rival's seeds 0 .. s: 10 of 16 pairs.
    assert value[stress.AGENT, stress.IMPROVEMENT] == pytest.approx(10 / 16)
    assert ("Greedy", stress.IMPROVEMENT) not in value


def test_the_best_policy_in_slots_is_also_a_reference() -> None:
    rows = rows_of("deploys", {**FRESH, stress.AT_INSTANTS: 0.9})
    value = {row[2:5]: row.value for row in stress.derive(rows)}
    kept = {row[2:5]: row.value for row in rows}
    references = {stress.BEST: stress.AT_INSTANTS, stress.BEST_IN_SLOTS: "GreedyNCIS"}
    for seed in range(4):
        for name, label in references.items():
            assert value[name, seed, "freshness"] == kept[label, seed, "freshness"]


def test_a_bandit_chooses_among_delays() -> None:
    env = gymnasium.make(stress.ID, **{**STRESS["unknown delay"], **SMALL})
    env.reset(seed=0)
    bandit: Any = stress.acting("unknown delay")["Exp3, delays"](env)
    assert play(env, bandit, 0).crawls == 10
    assert bandit.of_lane().labels == ("mean 0.05", "mean 0.15", "mean 0.5", "mean 1.5")


def test_settings_without_rows_are_left_out() -> None:
    rows = rows_of("bursty", {**FRESH, **EDGE}) + rows_of("periodic", {"Greedy": 0.9})
    result = stress.derive(rows)
    assert {row.setting for row in result} == {"bursty", stress.TOGETHER}


def labels_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def test_pictures_compare_agent_and_belief_with_the_best(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    rows = [*all_rows(), *stress.derive(all_rows())]
    for name, draw in stress.EXPERIMENT.pictures.items():
        draw(rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    settings, together = drawn
    assert labels_of(settings.axes[0]) == list(STRESS)
    for axes in settings.axes:
        agent, *_ = axes.containers
        assert agent.get_label() == stress.AGENT
        assert agent.lines[0].get_xdata() == pytest.approx(np.full(len(STRESS), 0.02), abs=1e-3)
    close, every = (
        {each.get_label() for each in axes.containers if len(each.lines[0].get_xdata())}
        for axes in settings.axes
    )
    assert every - close == {stress.REFERENCE}  # which is far behind
    [axes] = together.axes
    assert labels_of(axes)[0] == stress.AGENT
    assert labels_of(axes)[-1] == "RoundRobin"
