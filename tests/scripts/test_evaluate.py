"""The command that evaluates: agents and policies on the same events, rows, table and picture."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from agents.catalog import SHIPPED
from agents.index import StoredIndex
from agents.index.inputs import number_of_weights
from agents.sb3.arguments import TrainArguments
from agents.sb3.training import train
from crawl_envs.evaluation import evaluate, mean_and_half_width
from crawl_envs.system.worker_processes import pool
from policies import make
from scripts import benchmark
from scripts.evaluate import FIRST_SEED, app, evaluation_of
from scripts.study import runner, workers
from scripts.study.entrants import candidate_of
from scripts.study.rows import read_rows
from tests.scripts import commands
from tests.scripts.commands import SMALL, done, files_in, records, refused

ARGS = {"num_pages": 4, "bandwidth": 4, "horizon": 5, "instance": "noisy"}
FEW = ["--episodes", "3", "--workers", "1"]
SAME = ("rows.parquet", "rows.csv", "ranking.csv", "ranking.png")


def run(*arguments, out):
    return commands.run(app, *arguments, out=out)


def ranking_in(folder):
    return {row["policy"]: row for row in records(folder / "ranking.csv")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "mine"
    train(TrainArguments(env_args=ARGS, steps=200, lanes=4, rollout=10), path)
    return path


def test_an_agent_is_evaluated_where_it_was_trained(folder, tmp_path):
    result = done(run(folder, "CrawlNCIS-v0", *FEW, out=tmp_path))
    assert "mine" in result.stdout
    assert "num_pages=4" in result.stdout
    assert set(SAME) | {"provenance.json"} == files_in(tmp_path)
    assert (tmp_path / "ranking.png").read_bytes().startswith(b"\x89PNG")
    table = ranking_in(tmp_path)
    assert {"mine", "RandomCrawl", "RoundRobin", "GreedyNCIS", "LearningGreedyNCIS"} <= set(table)
    seeds = range(FIRST_SEED, FIRST_SEED + 3)
    own = {"GreedyNCIS": lambda env: make("GreedyNCIS", env), "mine": candidate_of(folder).factory}
    values = {}
    for row in evaluate("CrawlNCIS-v0", own, seeds, **ARGS):
        if row.metric == "freshness":
            values.setdefault(row.policy, []).append(row.value)
    mean, half = mean_and_half_width(values["mine"])
    assert float(table["mine"]["mean"]) == pytest.approx(mean)
    assert float(table["mine"]["half_width_95"]) == pytest.approx(half)
    pairs = zip(values["mine"], values["GreedyNCIS"], strict=True)
    mean, half = mean_and_half_width([mine - other for mine, other in pairs])
    assert float(table["GreedyNCIS"]["behind_agent"]) == pytest.approx(mean)
    assert float(table["GreedyNCIS"]["behind_agent_half_width_95"]) == pytest.approx(half)


def test_an_agent_is_evaluated_on_other_sizes(folder, tmp_path):
    sizes = ["--env-arg", "num_pages=9", "--env-arg", "bandwidth=3.0"]
    options = [*sizes, *FEW, "--policies", "GreedyNCIS"]
    result = done(run(folder, "CrawlNCIS-v0", *options, out=tmp_path))
    assert "num_pages=9" in result.stdout
    rows, _ = read_rows(tmp_path / "rows.parquet")
    rates = [row.value for row in rows if row.metric == "crawl_rate"]
    assert rates == pytest.approx([3.0] * len(rates), rel=0.1)


def test_a_scorer_is_evaluated_where_the_file_beside_it_says(tmp_path):
    shutil.copy(SHIPPED / "noisy-pages" / "scorer.npz", tmp_path)
    config = tmp_path / "config.json"
    assert candidate_of(tmp_path).env_id == ""
    run_of = {"env_id": "CrawlNCIS-v0", "env_args": ARGS}
    early = {"env_id": "CrawlNCIS-v0", "env_args": {"num_pages": 9}}
    for args in (run_of, {"stages": [early, run_of]}):
        config.write_text(json.dumps(args))
        table = evaluation_of(
            candidate_of(tmp_path), "CrawlNCIS-v0", {"horizon": 3}, ["RoundRobin"]
        )
        assert table.arguments == {**ARGS, "horizon": 3}
    for args in ({"stages": []}, {"stages": [3]}, {"env_id": 3, "env_args": {}}, {"env_args": {}}):
        config.write_text(json.dumps(args))
        assert (candidate_of(tmp_path).env_id, candidate_of(tmp_path).env_args) == ("", {})
    config.write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        candidate_of(tmp_path)


def test_an_index_is_evaluated_where_it_was_trained(tmp_path):
    args = {"instance": "noisy", "num_pages": 4, "bandwidth": 4.0, "horizon": 5.0}
    weights = np.zeros(number_of_weights(1))
    StoredIndex(weights, {**args, "crawls": 10}).save(tmp_path)
    table = evaluation_of(candidate_of(tmp_path), "CrawlNCIS-v0", {}, ["RoundRobin"])
    assert table.arguments == args


def test_agents_are_compared_as_policies_are(tmp_path):
    weights = np.zeros(number_of_weights(1))
    for folder, crawls in (("a/same", 10), ("b/same", 20), ("b/other", 20)):
        (tmp_path / folder).mkdir(parents=True)
        StoredIndex(weights, {"crawls": crawls}).save(tmp_path / folder)
    own, same, other = (str(tmp_path / folder) for folder in ("a/same", "b/same", "b/other"))
    table = evaluation_of(candidate_of(own), "CrawlNCIS-v0", ARGS, ["Greedy", other, own])
    assert table.labels == ("same", "Greedy", "other")
    assert table.learned == ("same", "other")
    for names in ([same], [other, other + "/../other", "Greedy"]):
        with pytest.raises(ValueError, match="entrants must have different names"):
            evaluation_of(candidate_of(own), "CrawlNCIS-v0", ARGS, names)


def test_rows_are_kept_and_gone_on_with(tmp_path):
    base = ["GreedyNCIS", "CrawlNCIS-v0", *SMALL, "--policies", "RandomCrawl,Greedy"]
    done(run(*base, "--seeds", 4, "--workers", 1, out=tmp_path / "whole"))
    done(run(*base, "--episodes", 2, "--workers", 1, out=tmp_path / "parts"))
    done(run(*base, "--seeds", 4, "--workers", 1, out=tmp_path / "parts"))
    for name in SAME[1:]:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    result = run(*base, "--env-arg", "horizon=6", out=tmp_path / "parts")
    refused(result, "the same arguments")


def test_another_agent_in_the_folder_is_played_anew(folder, tmp_path):
    own = tmp_path / "agent"
    train(TrainArguments(env_args=ARGS, steps=40, lanes=4, rollout=10), own)
    options = ["CrawlNCIS-v0", "--policies", "Greedy", *FEW]
    done(run(own, *options, out=tmp_path / "out"))
    before = ranking_in(tmp_path / "out")
    (own / "model.zip").write_bytes((folder / "model.zip").read_bytes())
    output = done(run(own, *options, out=tmp_path / "out")).output
    assert "agent has changed: its rows are simulated again" in output
    done(run(own, *options, out=tmp_path / "fresh"))
    after = ranking_in(tmp_path / "out")
    assert after == ranking_in(tmp_path / "fresh") != before


def test_workers_change_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "pool", lambda count: pool(1))  # as importing torch takes long
    options = ["CrawlNCIS-v0", "--policies", "RandomCrawl", "--episodes", 2]
    done(run(folder, *options, "--workers", 1, out=tmp_path / "one"))
    done(run(folder, *options, "--workers", 2, out=tmp_path / "two"))
    for name in SAME[1:]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_penalties_are_better_when_less(tmp_path):
    options = ["--env-arg", "action=page", *SMALL, *FEW, "--policies", "RandomCrawl,RoundRobin"]
    done(run("GreedyHarmonic", "CrawlHarmonic-v0", *options, out=tmp_path))
    means = [float(row["mean"]) for row in ranking_in(tmp_path).values()]
    assert means == sorted(means)
    assert min(means) > 0.0


FRAGMENTS = ["CrawlLongevity-v0", "--env-arg", "num_pages=12", "--env-arg", "horizon=20"]


def test_pages_with_fragments_are_judged_by_divergence(tmp_path):
    named = "RoundRobin,FragmentStatic,FragmentDynamic,RandomCrawl"
    options = [*FRAGMENTS, *FEW, "--env-arg", "crawl_cost=.01", "--policies", named]
    result = done(run("CurveFitting", *options, out=tmp_path))
    table = ranking_in(tmp_path)
    means = {name: float(row["mean"]) for name, row in table.items()}
    assert list(means.values()) == sorted(means.values())
    factories = {name: lambda env, name=name: make(name, env) for name in means}
    values = {}
    given = {"num_pages": 12, "horizon": 20}
    for row in evaluate("CrawlLongevity-v0", factories, range(FIRST_SEED, FIRST_SEED + 3), **given):
        if row.metric == "divergence":
            values.setdefault(row.policy, []).append(row.value)
    assert means == {name: pytest.approx(sum(of) / 3) for name, of in values.items()}
    assert "crawl_cost=0.01" in result.stdout
    assert "FragmentDynamic (oracle)" in result.stdout
    assert float(table["FragmentStatic"]["normalised_score"]) == pytest.approx(1.0)


def test_policies_of_fragments_are_among_those_that_can_act():
    arguments = {"num_pages": 12, "horizon": 20}
    usual = evaluation_of(candidate_of("CurveFitting"), "CrawlLongevity-v0", arguments, [])
    assert {"RoundRobin", "GreedyNCIS", "FragmentStatic", "LearningLongevity"} <= {*usual.labels}
    whole = evaluation_of(candidate_of("RoundRobin"), "CrawlLongevity-v0", arguments, ["all"])
    assert {*usual.labels, "CurrentDivergence", "Exp3"} <= {*whole.labels}
    assert not {"FragmentDynamic", "HolisticDynamic"} & {*whole.labels}
    ticks = {**arguments, "action": "refresh", "bandwidth": 1.0}
    table = evaluation_of(candidate_of("CurveFitting:threshold=.2"), "CrawlLongevity-v0", ticks, [])
    assert not {"CurveFitting", "FragmentStatic", "UniformRefresh"} & {*table.labels}
    elsewhere = evaluation_of(candidate_of("RoundRobin"), "CrawlNCIS-v0", ARGS, ["all"])
    assert not {"UniformRefresh", "HolisticStatic"} & {*elsewhere.labels}


def test_all_means_all_that_can_act():
    agent = candidate_of("GreedyNCIS")
    table = evaluation_of(agent, "CrawlNCIS-v0", ARGS, ["all"])
    assert {"Exp3", "ThresholdNCIS", "Greedy", "RoundRobin"} <= set(table.labels)
    assert list(table.labels).count("GreedyNCIS") == 1


def test_only_policies_that_can_act_are_taken():
    hidden = {**ARGS, "reveal": "importance"}
    table = evaluation_of(candidate_of("RoundRobin"), "CrawlNCIS-v0", hidden, ["all"])
    assert {"LearningGreedyNCIS", "RandomCrawl"} <= set(table.labels)
    assert not {"GreedyNCIS", "ThresholdNCIS", "Greedy"} & set(table.labels)
    scores = evaluation_of(candidate_of("Greedy"), "CrawlNCIS-v0", {"action": "scores"}, ["all"])
    assert "ThresholdNCIS" not in scores.labels


def test_an_agent_that_does_not_fit(folder, tmp_path):
    options = ["--env-arg", "reveal=importance", *FEW]
    refused(run(folder, "CrawlNCIS-v0", *options, out=tmp_path / "out"), "change_rate")


def test_a_metric_that_is_not_measured(tmp_path):
    options = [*SMALL, *FEW, "--policies", "RandomCrawl", "--metric", "penalty"]
    refused(run("Greedy", "CrawlNCIS-v0", *options, out=tmp_path), "metric", "'penalty'")


def test_a_damaged_agent(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"something else")
    refused(run(tmp_path, "CrawlNCIS-v0", out=tmp_path / "out"), "is not an agent of this suite")


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", interrupt)
    result = run("Greedy", "CrawlNCIS-v0", *SMALL, *FEW, out=tmp_path)
    assert result.exit_code == 130
    assert "the same command resumes" in result.stderr
    assert "Traceback" not in result.output


POLICIES = """
import helper_of_mine

class Both:
    def __init__(self, env):
        self.pages = env.observation_space.shape[0]

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        action = [0] * self.pages
        action[:2] = 1, 1
        return action, state

class Bare(Both):
    def predict(self, *_, **__):
        return 1

class Outside(Both):
    def predict(self, *_, **__):
        return self.pages, None

class Missing(Both):
    def __init__(self, env):
        helper_of_mine.look(env)

class Late(Both):
    steps = 0

    def predict(self, *_, **__):
        Late.steps += 1
        if Late.steps > 3:
            raise KeyError("late")
        return 0, None
"""
HELPER = """
def look(env):
    return env.unwrapped.nothing
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "policies_of_mine.py").write_text(POLICIES)
    (tmp_path / "helper_of_mine.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "policies_of_mine"
    for name in ("policies_of_mine", "helper_of_mine"):
        sys.modules.pop(name, None)


def test_who_crawls_beyond_the_budget_is_marked_and_has_no_score(mine, tmp_path):
    options = ["--env-arg", "action=refresh", "--policies", "GreedyNCIS,RandomCrawl"]
    noisy = ["--env-arg", "instance=noisy", *SMALL, *FEW]
    result = done(run(f"{mine}:Both", "CrawlNCIS-v0", *noisy, *options, out=tmp_path / "out"))
    assert "200.0 %, over budget" in result.stdout
    table = ranking_in(tmp_path / "out")
    assert list(table)[-1] == f"{mine}:Both"
    assert [row["over_budget"] for row in table.values()] == ["False", "False", "True"]
    assert [float(row["budget_share"]) for row in table.values()] == [1.0, 1.0, 2.0]
    assert float(table["GreedyNCIS"]["normalised_score"]) == 1.0
    assert table[f"{mine}:Both"]["normalised_score"] == "nan"


@pytest.mark.parametrize(
    ("name", "form", "words"),
    [
        ("Both", "page", ("an action in Discrete(4), got [1, 1, 0, 0]", "line 8)")),
        ("Bare", "page", ("predict must return an action and a state, got 1", "line 14)")),
        ("Outside", "page", ("an action in Discrete(4), got 4: ", "line 18)")),
        ("Outside", "scores", ("an action in Box(-1.0, 1.0, (4,), float32), got 4", "line 18)")),
        ("Missing", "page", ("AttributeError", "'nothing'", "(helper_of_mine.py, line 3)")),
    ],
)
def test_the_first_action_of_an_own_policy_is_tried(mine, name, form, words, tmp_path):
    options = ["--env-arg", f"action={form}", *SMALL, *FEW, "--policies", "RandomCrawl"]
    result = run(f"{mine}:{name}", "CrawlNCIS-v0", *options, out=tmp_path / "out")
    refused(result, f"{mine}:{name} in CrawlNCIS-v0 failed: ", *words)
    assert not (tmp_path / "out").exists()
    if form == "page":
        options = ["--settings", "noisy", "--num-pages", 4, "--policies", f"{mine}:{name}"]
        result = commands.run(benchmark.app, *options, *FEW[2:], out=tmp_path / "out")
        refused(result, "setting noisy: ", f"{mine}:{name} in", *words)
        assert not (tmp_path / "out").exists()


def test_rows_of_others_outlast_an_own_policy_that_fails_late(mine, tmp_path):
    options = [*SMALL, *FEW, "--policies", "RandomCrawl"]
    result = run("Greedy", "CrawlNCIS-v0", *options[:-1], f"{mine}:Late", out=tmp_path / "out")
    line = "KeyError: 'late' (policies_of_mine.py, line 31); "
    refused(result, f"{mine}:Late in CrawlNCIS-v0, seed 0 failed: {line}", "has the rows so far")
    rows, _ = read_rows(tmp_path / "out" / "rows.parquet")
    assert {row.policy for row in rows} == {"Greedy"}
