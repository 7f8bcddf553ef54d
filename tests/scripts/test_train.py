"""The command trains, compares and draws; bad input gets one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from contextlib import nullcontext

import numpy as np
import pytest
from typer.testing import CliRunner

import agents
from agents.catalog import ALGORITHMS
from agents.index.arguments import IndexArguments
from agents.runs import read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from agents.sb3.hyperparameters import read_entry
from agents.sb3.lanes import make_lanes
from agents.sb3.training import train
from agents.sb3.validation import ValidationRow
from crawl_envs.evaluation import Row, evaluate, mean_and_half_width
from policies import make
from scripts.cli.options import named_values
from scripts.study.entrants import DEFAULT_POLICIES, candidate_of
from scripts.study.means import table
from scripts.train import app
from scripts.training import baselines, jobs, seeds
from scripts.training.baselines import BASELINES, REWARD, baseline_rows
from scripts.training.jobs import job_of
from scripts.training.ranking import best_first, measured, rank_policies, without_duplicates
from scripts.training.requests import Request
from tests.scripts import commands
from tests.scripts.commands import SMALL, done, files_in, records, refused

SHORT = ["--steps", "600", "--lanes", "4", "--episodes", "3", "--policies", "GreedyNCIS,Greedy"]
NOISY = ["--env-arg", "instance=noisy"]
SAME = ("ranking.csv", "rows.csv")
PNG = b"\x89PNG"


def run(*arguments, out):
    return commands.run(app, *arguments, out=out)


def resume(folder, *options):
    return CliRunner().invoke(app, ["--resume", str(folder), *map(str, options)])


def bytes_of(folder, *names):
    return [(folder / name).read_bytes() for name in names]


def test_a_run_from_end_to_end(tmp_path):
    out = tmp_path / "runs" / "one"
    result = done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, *NOISY, out=out))
    for name in ("ppo", "ppo, drawn", "RandomCrawl", "RoundRobin", "GreedyNCIS", "3 seeds"):
        assert name in result.stdout
    assert "best analytic" in result.stderr
    assert files_in(out) == {
        *("baselines.parquet", "config.json", "curve.csv", "curve.png", "model.zip"),
        *("provenance.json", "ranking.csv", "ranking.png", "rows.csv", "run.json"),
        "validation.csv",
    }
    validated = [row.steps for row in read_rows(out / "validation.csv", ValidationRow)]
    assert validated == [0, 256, 512, 768]  # at the start, and after each update
    assert (out / "curve.png").read_bytes().startswith(PNG)
    assert (out / "ranking.png").read_bytes().startswith(PNG)
    config = json.loads((out / "config.json").read_text())
    assert config["env_args"] == {"num_pages": 4, "bandwidth": 4, "horizon": 5, "instance": "noisy"}
    made = json.loads((out / "provenance.json").read_text())
    assert config["gamma"] == made["used"]["gamma"]
    assert candidate_of(out).training_seconds == made["processor_seconds"] > 0.0
    assert agents.load(out).arguments.lanes == 4

    refused(
        run("a2c", "CrawlNCIS-v0", *SMALL, *SHORT, *NOISY, out=out), "kind must be 'ppo'", "--fresh"
    )
    other = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=out)
    refused(other, "env_args", "as in the run to resume")
    before = agents.load(out).model.num_timesteps
    done(resume(out, "--steps", 1200))
    assert agents.load(out).model.num_timesteps >= 1200 > before
    assert json.loads((out / "config.json").read_text()) == {**config, "steps": 1200}
    refused(resume(out, "--lanes", 8), "lanes must be 4")
    refused(resume(out, "ppo"), "env_id must be 'CrawlNCIS-v0'", "got 'ppo'")
    refused(resume(tmp_path / "none"), "no run.json")
    done(run("a2c", "CrawlNCIS-v0", *SMALL, *SHORT, "--fresh", out=out))
    assert agents.load(out).arguments.algorithm == "a2c"


def test_the_table_says_what_was_played(tmp_path):
    done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, *NOISY, out=tmp_path))
    args = {"num_pages": 4, "bandwidth": 4, "horizon": 5, "instance": "noisy"}
    arguments = TrainArguments(env_args=args)
    names = ("RandomCrawl", "RoundRobin", "GreedyNCIS", "Greedy")
    means = {
        name: mean_rewards(lambda env, name=name: make(name, env), arguments, episodes=3)
        for name in names
    }
    agent = agents.load(tmp_path)
    means["ppo"] = mean_rewards(lambda env: agent, arguments, episodes=3)
    best = max("GreedyNCIS", "Greedy", key=lambda name: means[name].mean())
    low, high = means["RandomCrawl"].mean(), means[best].mean()
    result = {row["policy"]: row for row in records(tmp_path / "ranking.csv")}
    for name, values in means.items():
        mean, half = mean_and_half_width(list(values))
        assert float(result[name]["mean"]) == pytest.approx(mean)
        assert float(result[name]["half_width_95"]) == pytest.approx(half)
        share = (values.mean() - low) / (high - low)
        assert float(result[name]["normalised_score"]) == pytest.approx(share)
        if name != "ppo":
            mean, half = mean_and_half_width(list(means["ppo"] - values))
            assert float(result[name]["behind_agent"]) == pytest.approx(mean)
            assert float(result[name]["behind_agent_half_width_95"]) == pytest.approx(half)


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, "--seed", 3, out=tmp_path / name))
    names = (*SAME, "config.json", "curve.png", "ranking.png", "baselines.parquet")
    assert bytes_of(tmp_path / "one", *names) == bytes_of(tmp_path / "two", *names)
    done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, "--seed", 4, out=tmp_path / "three"))
    assert bytes_of(tmp_path / "one", *SAME) != bytes_of(tmp_path / "three", *SAME)


def test_a_run_on_one_instance_from_a_file(tmp_path):
    instance = tmp_path / "instance.json"
    instance.write_text('{"importance": [1, 2, 3, 4], "change_rate": 1.0, "bandwidth": 2.0}')
    out = tmp_path / "out"
    options = [*SMALL, *SHORT[:-2], "--instance", instance, "--env-arg", "reveal=importance"]
    done(run("a2c", "crawl_envs:CrawlNCIS-v0", *options, "--policies", "UniformCrawl", out=out))
    assert agents.load(out).arguments.instance["bandwidth"] == 2.0


def test_an_agent_among_policies_of_fragments(tmp_path):
    small = ["--env-arg", "num_pages=6", "--env-arg", "horizon=20", *SHORT[:-2]]
    named = ["--policies", "FragmentStatic,FragmentDynamic,CurveFitting"]
    result = done(run("ppo", "CrawlLongevity-v0", *small, *named, out=tmp_path))
    assert "(1 minus the mean divergence)" in result.stdout
    assert "FragmentDynamic (oracle)" in result.stdout
    assert "best analytic FragmentDynamic" not in result.stderr


def test_rivals_on_pages_with_fragments_have_no_oracles(tmp_path):
    args = {"num_pages": 6, "horizon": 10}
    arguments = TrainArguments(env_id="CrawlLongevity-v0", env_args=args)
    rows = baseline_rows(arguments, 1, tmp_path)
    result = {row.policy for row in rows}
    assert {"RoundRobin", "Greedy", "CurveFitting", "LearningLongevity"} <= result
    assert not {"FragmentDynamic", "HolisticDynamic"} & result
    mine = table(rows, REWARD)
    values = list(mine[mine.policy == "FragmentStatic"].value)
    play = {"FragmentStatic": lambda env: make("FragmentStatic", env)}
    [twin] = [
        row.value
        for row in evaluate("CrawlLongevity-v0", play, [FIRST_SEED], **args)
        if row.metric == "divergence"
    ]
    assert values == pytest.approx([1.0 - twin], abs=0.02)


@pytest.mark.parametrize(
    ("env_id", "given", "unit"),
    [
        ("CrawlNCIS-v0", {}, "importance-weighted freshness"),
        ("CrawlHarmonic-v0", {}, "minus the mean penalty"),
        ("CrawlLongevity-v0", {}, "1 minus the mean divergence"),
        ("CrawlLongevity-v0", {"objective": "holistic"}, "importance-weighted freshness"),
    ],
)
def test_the_unit_of_the_reward_is_named(env_id, given, unit):
    words = measured(TrainArguments(env_id=env_id, env_args=given))
    assert words == f"mean reward per step ({unit})"


def test_a_clone_and_what_is_learned_from_it(tmp_path):
    short = ["--set", "rounds=1", "--set", "updates=5", *SHORT[2:], "--teacher", "Greedy"]
    done(run("clone", "CrawlNCIS-v0", *SMALL, *short, out=tmp_path / "clone"))
    assert "clone of Greedy" in (tmp_path / "clone" / "ranking.csv").read_text()
    start = ["--start", tmp_path / "clone"]
    done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, *start, out=tmp_path / "ppo"))
    assert agents.load(tmp_path / "ppo").arguments.start == str(tmp_path / "clone")
    other = run("clone", "CrawlNCIS-v0", *SMALL, *short, "--set", "every=2", out=tmp_path / "clone")
    refused(other, "every must be 4 as in the run to resume")


def test_an_index_is_learned_from_outcomes(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.index.learning.STEPS", 20)
    few = [f"--set={name}" for name in ("crawls=2000", "hidden=3", "validation_episodes=2")]
    result = done(run("index", "CrawlNCIS-v0", *SMALL, *NOISY, *few, out=tmp_path))
    assert "index minus it" in result.stdout
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    learned = bytes_of(tmp_path, "index.json")
    done(resume(tmp_path))
    assert bytes_of(tmp_path, "index.json") == learned
    other = run("index", "CrawlNCIS-v0", *SMALL, *NOISY, *few, "--seed", 9, out=tmp_path)
    refused(other, "seed", "as in the run to resume")


def test_an_index_of_one_instance_is_compared_on_it():
    pinned = {"importance": [1.0, 2.0], "change_rate": [1.0, 1.0], "bandwidth": 2.0}
    environment = jobs.IndexJob("index", IndexArguments(pinned=pinned), {}, {}).environment
    assert (environment.instance, environment.env_args["num_pages"]) == (pinned, 2)
    make_lanes(environment, 1, training=False).close()


def test_sac_scores_pages(tmp_path):
    options = [*SMALL, *SHORT, "--env-arg", "action=scores", "--set", "batch_size=16"]
    done(run("sac", "CrawlNCIS-v0", *options, out=tmp_path))
    assert agents.load(tmp_path).model.batch_size == 16


@pytest.mark.parametrize(
    ("program", "own", "foreign"),
    [
        (["ppo"], ["--steps", "--callback"], ["--teacher", "--log"]),
        (["clone"], ["--teacher", "--gamma"], ["--steps", "--until"]),
        (["index"], ["--seeds", "--set"], ["--gamma", "--until"]),
        (["index", "--log", "x.csv"], ["--until", "--merge"], ["--set", "--policies"]),
        (["generalist"], ["--seed"], ["--policies", "--seeds"]),
    ],
)
def test_the_help_of_a_program_has_its_options_alone(program, own, foreign):
    text = done(CliRunner().invoke(app, [*program, "--help"])).stdout
    assert all(f"  {option} " in text for option in own)
    assert not any(f"  {option} " in text for option in foreign)


def test_the_programs_are_listed():
    text = done(CliRunner().invoke(app, ["--help"])).stdout
    for name in (*ALGORITHMS, "clone", "index", "index --log", "generalist"):
        assert f"\n  {name} " in text


def test_agents_are_compared_as_policies_are(tmp_path):
    done(run("a2c", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path / "one"))
    named = ["--policies", f"Greedy,{tmp_path / 'one'},noisy-index"]
    done(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT[:-2], *named, out=tmp_path / "two"))
    result = {row["policy"]: row for row in records(tmp_path / "two" / "ranking.csv")}
    arguments = TrainArguments(env_args={"num_pages": 4, "bandwidth": 4, "horizon": 5})
    for name, folder in (("one", tmp_path / "one"), ("noisy-index", "noisy-index")):
        rewards = mean_rewards(lambda env, of=folder: agents.load(of, env), arguments, episodes=3)
        assert float(result[name]["mean"]) == pytest.approx(rewards.mean())
    assert float(result["Greedy"]["normalised_score"]) == 1.0  # the best analytic policy


def test_a_policy_that_cannot_act_is_named(tmp_path):
    options = [*SMALL, *SHORT[:-2], "--policies", "GreedyNCIS", "--env-arg", "reveal=importance"]
    refused(run("ppo", "CrawlNCIS-v0", *options, out=tmp_path), "GreedyNCIS")


def test_a_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=blocked / "out"), "cannot write")
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=blocked), "cannot write")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path), "cannot write")


def test_a_foreign_model_is_not_resumed(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"something else")
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path)
    refused(result, "is not an agent of this suite")
    assert (tmp_path / "model.zip").read_bytes() == b"something else"


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "train", interrupt)
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path)
    assert result.exit_code == 130
    assert "--resume" in result.stderr
    assert "Traceback" not in result.output


def test_rivals_are_played_once(tmp_path, monkeypatch):
    args = {"num_pages": 4, "bandwidth": 4, "horizon": 5}
    first = baseline_rows(TrainArguments(env_args=args), 2, tmp_path, ["Greedy"])
    assert {row.policy for row in first} == {"RandomCrawl", "RoundRobin", "Greedy"}
    assert (tmp_path / BASELINES).exists()
    calls = []
    play = baselines.lane_rows
    monkeypatch.setattr(baselines, "lane_rows", lambda *a, **k: calls.append(a) or play(*a, **k))
    again = baseline_rows(TrainArguments(env_args=args, seed=5, steps=7), 2, tmp_path, ["Greedy"])
    assert again == first
    assert calls == []
    for changed in ({"env_args": {**args, "horizon": 6}}, {"instance": {"importance": [1.0] * 4}}):
        arguments = {"env_args": args, **changed}
        if "instance" in changed:
            arguments["instance"] |= {"change_rate": 1.0, "bandwidth": 4.0}
        calls.clear()
        baseline_rows(TrainArguments(**arguments), 2, tmp_path, ["Greedy"])
        assert len(calls) == 3


def test_all_policies_that_can_act_are_rivals(tmp_path):
    few = [*SMALL, *SHORT[:-2], "--env-arg", "reveal=importance", "--policies", "all"]
    done(run("a2c", "CrawlNCIS-v0", *few, out=tmp_path / "run"))
    args = {"num_pages": 3, "bandwidth": 3, "horizon": 3, "reveal": "importance"}
    given = TrainArguments(env_args=args)
    result = {row.policy for row in baseline_rows(given, 1, tmp_path, ["all"])}
    assert {"RandomCrawl", "RoundRobin", "LearningGreedyNCIS"} <= result
    assert "GreedyNCIS" not in result


def test_the_usual_policies_are_rivals_unless_others_are_named(tmp_path):
    args = TrainArguments(env_args={"num_pages": 3, "bandwidth": 3, "horizon": 3})
    usual = {row.policy for row in baseline_rows(args, 1, tmp_path)}
    assert {"RandomCrawl", "RoundRobin", "Greedy", "GreedyNCIS"} < usual <= set(DEFAULT_POLICIES)


class Here:
    """An executor of this process; that of others is seen with algorithms of one's own."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_runs_of_several_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(seeds, "_pool", lambda workers: nullcontext(Here()))
    options = ["--tensorboard", "--validation", 2]
    several, one = tmp_path / "several", tmp_path / "one"
    arguments = ("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, *NOISY, *options)
    result = done(run(*arguments, "--seeds", 2, "--seed", 3, out=several))
    assert "over runs" in result.stdout
    done(run(*arguments, "--seed", 1003, out=one))
    for name in ("curve.csv", "validation.csv"):
        own, other = (
            np.genfromtxt(folder / name, delimiter=",", skip_header=1)[:, :2]
            for folder in (several / "seed-4", one)
        )
        np.testing.assert_array_equal(own, other)
        assert len(own) > 1
    assert list((several / "seed-3" / "tensorboard").rglob("events.*"))
    curves = [
        read_rows(several / f"seed-{seed}" / "validation.csv", ValidationRow) for seed in (3, 4)
    ]
    rows = records(several / "curve.csv")
    assert [int(row["after"]) for row in rows] == [row.steps for row in curves[0]]
    pair = [curve[-1].mean_reward for curve in curves]
    mean, half = mean_and_half_width(pair)
    assert float(rows[-1]["mean"]) == pytest.approx(mean)
    assert float(rows[-1]["half"]) == pytest.approx(half)
    runs = {row["run"]: float(row["mean_reward"]) for row in records(several / "runs.csv")}
    agent = agents.load(several / "seed-4")
    environment = TrainArguments.from_json((several / "seed-4" / "config.json").read_text())
    own = mean_rewards(lambda env: agent, environment, episodes=3)
    assert runs["seed 4"] == pytest.approx(own.mean())
    assert (several / "curve.png").read_bytes().startswith(PNG)
    refused(run(*arguments, "--seeds", 3, "--seed", 3, out=several), "seeds must be 2", "got 3")
    done(resume(several))


def rows_of(**values):
    return [
        Row("id", "", policy, seed, "reward", value)
        for policy, result in values.items()
        for seed, value in enumerate(result)
    ]


def test_ranking_by_hand():
    rows = rows_of(agent=[0.6, 0.8], RandomCrawl=[0.2, 0.2], Best=[0.7, 0.9])
    best, agent, simple = rank_policies(rows, "reward", "agent", "Best")
    assert [one.policy for one in (best, agent, simple)] == ["Best", "agent", "RandomCrawl"]
    assert agent.mean == pytest.approx(0.7)
    assert agent.score == pytest.approx(0.5 / 0.6)
    assert (best.difference, best.difference_half_width) == pytest.approx((-0.1, 0.0))
    # Student's t with one degree of freedom: tan(0.475 pi) = 12.7062.
    assert simple.difference == pytest.approx(0.5)
    assert simple.difference_half_width == pytest.approx(12.7062 * 0.1, rel=1e-4)
    assert np.isnan(agent.difference)
    rows = [row._replace(metric="penalty") for row in rows]
    lower = rank_policies(rows, "penalty", "agent", None)
    assert [one.policy for one in lower] == ["RandomCrawl", "agent", "Best"]
    assert all(np.isnan(one.score) for one in lower)


def test_who_is_over_the_budget_is_not_ranked():
    rows = rows_of(RandomCrawl=[0.2, 0.2], Greedy=[0.6, 0.6], ppo=[0.9, 0.9], GreedyNCIS=[0.5, 0.5])
    shares = {"RandomCrawl": 1.0, "Greedy": 2.5, "ppo": 1.2, "GreedyNCIS": 0.9}
    rows += [
        Row("id", "", policy, seed, "budget_share", share)
        for policy, share in shares.items()
        for seed in range(2)
    ]
    assert best_first(rows, agent="ppo") == ["GreedyNCIS"]
    ranked = {item.policy: item for item in rank_policies(rows, "reward", "ppo", "GreedyNCIS")}
    assert list(ranked) == ["GreedyNCIS", "RandomCrawl", "ppo", "Greedy"]
    assert ranked["GreedyNCIS"].score == 1.0
    assert np.isnan([ranked["ppo"].score, ranked["Greedy"].score]).all()
    assert ranked["ppo"].spending == (pytest.approx(1.2), True)
    assert ranked["ppo"].spending.words == "120.0 %, over budget"
    assert ranked["GreedyNCIS"].spending.words == "90.0 %"


def test_policies_that_do_the_same_are_shown_once():
    same = {"Greedy": [0.5, 0.7], "GreedyCIS": [0.5, 0.7]}
    rows = rows_of(RandomCrawl=[9.0, 9.0], **same, GreedyNCIS=[0.8, 0.3], ppo=[0.9, 0.9])
    assert best_first(rows) == ["Greedy", "GreedyCIS", "GreedyNCIS"]
    assert without_duplicates(rows, best_first(rows)) == ["Greedy", "GreedyNCIS"]


def request(kind="ppo", options=None, settings=None, file=None):
    read = read_entry(file, "CrawlNCIS-v0")
    own = {"options": options or {}, "settings": settings or {}, "hyperparameters": read}
    return Request(kind=kind, env_id="CrawlNCIS-v0", **own)


def test_options_win_over_the_file_and_the_file_over_what_is_recommended(tmp_path):
    file = tmp_path / "own.yml"
    file.write_text(
        "CrawlNCIS-v0:\n  policy: agents.networks.actor_critic.PageActorCritic\n"
        "  policy_kwargs: \"f('ppo', 'CrawlNCIS-v0', width=48)\"\n"
        "  n_envs: 8\n  n_timesteps: 5000\n  n_steps: 16\n  gamma: 0.5\n  n_epochs: 3\n"
        "  ent_coef: 0.01\n"
    )
    result = job_of(request(options={"gamma": 0.7}, settings={"n_epochs": 2}, file=file)).arguments
    assert (result.lanes, result.steps, result.rollout, result.width) == (8, 5000, 16, 48)
    assert (result.gamma, result.network) == (0.7, "pages")
    assert result.model_args == {"n_epochs": 2, "ent_coef": 0.01}
    defaults = agents.sb3.hyperparameters.defaults("ppo")
    assert result.learning_rate == defaults["learning_rate"] == "lin_0.002"
    plain = job_of(request()).arguments
    assert {name: getattr(plain, name) for name in defaults} == defaults
    assert plain.train_pages == 20


@pytest.mark.parametrize(
    "text", ["", "3", "CrawlTrace-v0: {}", "CrawlNCIS-v0: 7", "{", "CrawlNCIS-v0: {1: 2}"]
)
def test_a_file_without_an_entry_is_refused(text, tmp_path):
    file = tmp_path / "own.yml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"own\.yml"):
        job_of(request(file=file))


def test_the_text_of_policy_arguments_is_never_run(tmp_path):
    file, trap = tmp_path / "own.yml", tmp_path / "trap"
    file.write_text(f"CrawlNCIS-v0:\n  policy_kwargs: \"open('{trap}', 'w')\"\n  gamma: 0.5\n")
    assert job_of(request(file=file)).arguments.gamma == 0.5
    assert not trap.exists()


def test_values_are_json_or_words():
    pairs = ["num_pages=20", "bandwidth=2.5", "instance=noisy", 'delay={"kind": "none"}', "a=b=c"]
    assert named_values(pairs) == {
        "num_pages": 20,
        "bandwidth": 2.5,
        "instance": "noisy",
        "delay": {"kind": "none"},
        "a": "b=c",
    }


HOLDER = (
    "import sys; from crawl_envs.system.files import claim; claim(sys.argv[1]); print(); input()"
)


def test_two_runs_at_once_do_not_write_to_one_folder(tmp_path):
    held = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        refused(commands.run(app, "ppo", *SHORT, "CrawlNCIS-v0", out=tmp_path), "another run is")
        small = TrainArguments(
            env_args={"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0},
            steps=64,
            lanes=2,
            rollout=16,
        )
        with pytest.raises(ValueError, match="another run is writing to"):
            train(small, tmp_path)
        assert list(tmp_path.iterdir()) == []
        other.communicate("\n")
    train(small, tmp_path)
    assert (tmp_path / "model.zip").exists()
