"""Bad command lines and files end in one line that names what is wrong, and leave nothing."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.scripts import commands

HUGE = 10**400
NCIS = ("CrawlNCIS-v0",)
EVALUATE = ("evaluate", "noisy-index", *NCIS)
TRAIN = ("train", "ppo", *NCIS)
TUNE = ("tune", "ppo", *NCIS)
TRACE = ("data.trace_from_git", "{}")
BENCHMARK = ("benchmark", "--quick")
REPRODUCE = ("reproduce", "ncis_fig3", "--quick")

LINES: list[tuple[str, ...]] = [  # whose errors name the option or its value
    *((*EVALUATE, "--env-arg", arg) for arg in ("foo=1", "foo", "=1", "num_pages=0", "horizon=x")),
    *((*EVALUATE, "--env-arg", f"{name}=1000000000000") for name in ("num_pages", "batch")),
    *((*EVALUATE, "--env-arg", arg) for arg in ("horizon=1e300", "bandwidth=-1", "instance=x")),
    *((*EVALUATE, "--seeds", value) for value in ("0", "-1", "x", "1.5", str(HUGE), str(10**12))),
    *((*EVALUATE, "--metric", value) for value in ("x", "", "penalty x")),
    *((*EVALUATE, "--policies", value) for value in ("x", "GreedyNCIS:foo=1", "nosuch:Foo")),
    *((*EVALUATE, "--policies", value) for value in ("GreedyNCISApprox:terms=x", ":", "a:b:c")),
    *((*EVALUATE, "--workers", value) for value in ("0", "-1", "x")),
    (*EVALUATE, "--backend", "x"),
    (*EVALUATE, "--out", ""),
    (*EVALUATE, "--foo"),
    ("evaluate", "noisy-index", "CartPole-v1"),
    ("evaluate", "noisy-index", "nosuch"),
    ("evaluate", "nosuch", *NCIS),
    ("evaluate", "", *NCIS),
    *((*BENCHMARK, "--seeds", value) for value in ("0", "-1", "x", str(HUGE), str(10**12))),
    *((*BENCHMARK, "--num-pages", value) for value in ("0", "-1", "x", str(HUGE))),
    *((*BENCHMARK, "--horizon", value) for value in ("0", "-1", "nan", "inf", "x", "1e300")),
    (*BENCHMARK, "--policies", ","),
    (*BENCHMARK, "--trace", ""),
    *((*BENCHMARK, "--days-per-crawl", value) for value in ("0", "-1", "nan", "1e300")),
    (*BENCHMARK, "--signals", "x"),
    (*BENCHMARK, "--out", ""),
    ("reproduce", ""),
    *((*REPRODUCE, "--seeds", value) for value in ("-1", "x")),
    *((*TRAIN, "--steps", value) for value in ("-1", "x", str(HUGE))),
    *((*TRAIN, "--seed", value) for value in ("-1", "x", str(HUGE))),
    *((*TRAIN, "--width", value) for value in ("0", "-1", "1000000000000")),
    (*TRAIN, "--gamma", "2"),
    (*TRAIN, "--out", ""),
    ("train", "ppo", "CartPole-v1"),
    (*TUNE, "--out", ""),
    ("tune", "ppo", "CartPole-v1"),
    *(("schedule", *given) for given in (("/nowhere",), ("",))),
    *(("estimate", value) for value in ("/nowhere", "")),
    *(("backtest", value) for value in ("/nowhere", "")),
    ("speed", "--against", "/nowhere"),
    (*TRACE, "--start", "x"),
    *((*TRACE, "--days", value) for value in ("0", "-1", "nan", "inf", "1e300", "x")),
    *(
        (*TRACE, *bad)
        for bad in (("--fragment-modulus", "-1"), ("--max-bytes", "0"), ("--missing", "x"))
    ),
]
SAID: list[tuple[str, ...]] = [  # a line, and what its error says
    ("train sarsa CrawlNCIS-v0", "algorithm", "'sarsa'", "mean sac"),
    ("train ppo CrawlNothing-v0", "env_id", "'CrawlNothing-v0'", "CrawlNCIS-v0"),
    ("train ppo CrawlNCIS-v0 --steps 0", "steps", "in [1, ", "got 0"),
    ("train ppo CrawlNCIS-v0 --lanes 0", "lanes", "in [1, ", "got 0"),
    ("train ppo CrawlNCIS-v0 --episodes 0", "episodes", ">= 1", "got 0"),
    ("train ppo CrawlNCIS-v0 --env-arg num_pages", "name=value", "'num_pages'"),
    ("train ppo CrawlNCIS-v0 --env-arg sites=3", "env_args", "'sites'"),
    ("train ppo CrawlNCIS-v0 --env-arg num_pages=0", "num_pages", "got 0"),
    ("train dqn CrawlNCIS-v0 --env-arg action=scores", "dqn", "page"),
    ("train ppo CrawlNCIS-v0 --instance /nowhere.json", "/nowhere.json"),
    ("train ppo CrawlNCIS-v0 --teacher Greedy", "option of ppo", "--teacher"),
    ("train ppo CrawlNCIS-v0 --start /nowhere", "/nowhere"),
    ("train ppo CrawlNCIS-v0 --set batch", "set", "name=value", "'batch'"),
    ("train ppo CrawlNCIS-v0 --set batches=3", "batches"),
    ("train ppo CrawlNCIS-v0 --set env_id=3", "env_id", "the command"),
    ("train ppo CrawlNCIS-v0 --set batch_size=0", "batch_size", ">= 2", "got 0"),
    ("train ppo CrawlNCIS-v0 --set ent_coef=x", "ent_coef", ">= 0", "got 'x'"),
    ("train ppo CrawlNCIS-v0 --set learning_rate=x", "learning_rate", "got 'x'"),
    ("train ppo CrawlNCIS-v0 --start noisy-clone", "start", "model.zip", "noisy-clone"),
    ("train ppo CrawlNCIS-v0 --hyperparameters /no.yml", "/no.yml"),
    ("train ppo CrawlNCIS-v0 --policies Nobody", "Nobody"),
    ("train clone CrawlNCIS-v0 --teacher Nobody", "teacher", "'Nobody'"),
    ("train clone CrawlNCIS-v0 --start x", "option of clone", "--start"),
    ("train es CrawlNCIS-v0", "algorithm", "'es'", "index"),
    ("train index CrawlNCIS-v0 --gamma .9", "option of index", "--gamma"),
    ("train index CrawlNCIS-v0 --set gamma=1", "settings of index", "'gamma'"),
    ("train index CrawlNCIS-v0 --env-arg reveal=none", "env-arg", "'reveal'"),
    ("train ppo CrawlNCIS-v0 --seeds 0", "seeds", ">= 1", "got 0"),
    ("train ppo CrawlNCIS-v0 --seeds 2 --lanes 0", "lanes", "got 0"),
    ("train ppo CrawlNCIS-v0 --validation -1", "validation", ">= 0", "got -1"),
    ("train ppo CrawlNCIS-v0 --callback nowhere:X", "callback", "nowhere"),
    ("train ppo CrawlNCIS-v0 --callback json:dumps", "BaseCallback", "json:dumps"),
    ("train clone CrawlNCIS-v0 --tensorboard", "option of clone", "--tensorboard"),
    ("train index CrawlTrace-v0", "env_id", "index", "'CrawlTrace-v0'"),
    ("train index CrawlNCIS-v0 --set crawls=0", "crawls", ">= 1", "got 0"),
    ("train ppo", "ppo", "ENV_ID", "--resume"),
    ("train ppo CrawlNCIS-v0 more", "unexpected extra argument", "(more)"),
    ("train --steps 3 ppo CrawlNCIS-v0", "algorithm", "'--steps'", "ppo"),
    ("train generalist CrawlNCIS-v0", "unexpected extra argument", "(CrawlNCIS-v0)"),
    ("train ppo CrawlNCIS-v0 -o x", "option of ppo", "'-o'", "--out"),
    ("train ppo CrawlNCIS-v0 --steps ''", "must not be empty", "--steps"),
    ("train generalist --steps 3", "option of generalist", "--seed", "'--steps'"),
    ("train index CrawlNCIS-v0 --log x.csv", "index --log", "(CrawlNCIS-v0)"),
    ("train index --log=x.csv --gamma 2", "option of index --log", "'--gamma'"),
    ("train index CrawlNCIS-v0 --merge www", "option of index", "'--merge'"),
    ("train ppo CrawlTrace-v0 --train-pages 5", "train_pages", "CrawlTrace-v0", "got 5"),
    ("train ppo CrawlNCIS-v0 --train-pages -1", "train_pages", "[0, ", "got -1"),
    ("train ppo CrawlNCIS-v0 --train-pages 1000000000", "train_pages", "1000000000"),
    ("train ppo CrawlNCIS-v0 --train-pages 1e9", "--train-pages", "integer", "1e9"),
    (
        "train ppo CrawlNCIS-v0 --train-pages 5 --network mlp",
        "train_pages must be 0 with another network than 'pages'",
        "got 5",
    ),
    ("tune sarsa CrawlNCIS-v0", "algorithm", "'sarsa'", "ppo"),
    ("tune clone CrawlNCIS-v0", "algorithm", "'clone'"),
    ("tune ppo CrawlNothing-v0", "env_id", "'CrawlNothing-v0'"),
    ("tune ppo CrawlNCIS-v0 --trials 0", "trials", ">= 1", "got 0"),
    ("tune ppo CrawlNCIS-v0 --steps 1", "steps", ">= 4", "got 1"),
    ("tune ppo CrawlNCIS-v0 --episodes 0", "episodes", ">= 1", "got 0"),
    ("tune ppo CrawlNCIS-v0 --seed -1", "seed", ">= 0", "got -1"),
    ("tune ppo CrawlNCIS-v0 --env-arg num_pages=0", "num_pages", "got 0"),
    ("tune sac CrawlNCIS-v0", "sac", "scores"),
    ("tune es CrawlNCIS-v0", "algorithm", "'es'"),
    ("evaluate /nowhere CrawlNCIS-v0", "model", "'/nowhere'", "a folder with model.zip"),
    ("evaluate Greedy:delay=1 CrawlNCIS-v0", "delay"),
    ("evaluate CurveFitting CrawlNCIS-v0", "CurveFitting", "fragments"),
    ("evaluate Greedy CrawlNCIS-v0 --metric beauty", "metric", "'beauty'", "freshness"),
    ("evaluate Greedy CrawlNCIS-v0 --env-arg reveal=importance", "Greedy"),
    ("film CrawlNCIS-v0 --policies Greedy", "--policies", "two", "Greedy"),
    ("film CrawlNCIS-v0 --policies Greedy,Greedy", "--policies", "'Greedy' twice"),
    ("film CrawlNCIS-v0 --policies Greedy,Nobody", "Nobody"),
    ("film Nowhere-v0", "env_id", "'Nowhere-v0'", "CrawlNCIS-v0"),
    ("film CartPole-v1", "env_id", "crawling environment", "'CartPole-v1'"),
    ("film Nowhere-v0 --policies Greedy,RoundRobin", "env_id", "Nowhere-v0"),
    ("film CrawlNCIS-v0 --seed -1", "seed", "-1"),
    ("film CrawlNCIS-v0 --env-arg num_pages", "env-arg", "num_pages"),
    ("film CrawlNCIS-v0 --env-arg num_pages=0", "num_pages", "0"),
    ("film CrawlNCIS-v0 --env-arg sites=4", "unknown argument 'sites'"),
    ("live.replayed_web garden-handbook --fault moved:x", "fault must be", "got 'x'"),
    ("live.replayed_web garden-handbook --fault moved", "fault must be", "got ''"),
    ("play --seed -1", "seed must be"),
    ("play --policies Gredy", "did you mean"),
    ("play --env-arg num_pages=41", "num_pages must be <= 40 in play, got 41"),
    ("play --env-arg sites=4", "CrawlNCIS-v0: unknown argument 'sites'"),
    ("play --env-arg action=rates", "action must be 'page', got 'rates'"),
    ("benchmark --settings unifrom", "setting 'unifrom' is unknown; did you mean uniform"),
    ("benchmark --settings ,", "--settings must be names separated by commas, got ','"),
    ("benchmark --policies Gredy", "policy or agent 'Gredy' is unknown; did you mean Greedy or"),
    ("benchmark --policies Greedy:terms", "must be Name or Name:key=value, got 'Greedy:terms'"),
    ("benchmark --policies GreedyNCISApprox:terms=0", "setting uniform: terms must be"),
    ("benchmark --policies Greedy:color=1", "setting uniform: unknown argument 'color'"),
    ("benchmark --policies CurveFitting", "setting uniform: env must be", "with fragments"),
    ("benchmark --bandwidth 0", "--bandwidth must be finite and > 0, got 0"),
    ("benchmark --workers -1", "--workers must be >= 1, got -1"),
    ("benchmark --horizon 0.001", "setting uniform: horizon must hold"),
    ("benchmark --trace /nowhere", "trace must be a folder"),
    ("benchmark --trace garden-handbook --signals smoke", "signals must be one of"),
    ("benchmark --out /proc/nowhere", "cannot write to /proc/nowhere"),
    ("benchmark --agents runs/mine", "policy or agent 'runs/mine' is unknown"),
    (
        "rank crawl-v0",
        "suite must be one of crawl-v2, crawl-v1, mini, recorded-dev, got 'crawl-v0'",
    ),
    ("rank mini --policies Gredy", "policy or agent 'Gredy' is unknown; did you mean G"),
    ("rank mini --policies mine", "or a folder with ", ", or module:Class"),
    ("rank mini --policies Greedy:foo=1", "cannot act in any task", "'foo'"),
    ("rank mini --seeds 0", "seeds must be an integer >= 1, got 0"),
    ("rank mini --score --fresh", "--fresh must be left out with --score"),
    ("rank mini --score --out nowhere", "nowhere has no leaderboard to score"),
    ("reproduce fig99", "figure 'fig99' is unknown; did you mean fig"),
    ("reproduce fig3", "figure 'fig3' is in several papers: name lambdacrawl_fig3 or"),
    ("reproduce ncis_fig3 --seeds 0", "seeds must be an integer >= 1, got 0"),
    ("reproduce ncis_fig3 --workers 0", "--workers must be >= 1, got 0"),
    ("reproduce ncis_fig3 --fresh --score", "--fresh must be left out with --score"),
    ("reproduce ncis_fig3 --out /proc/nowhere", "cannot write to /proc/nowhere"),
    (
        "training.train_predictors --model forest",
        "model must be one of network, trees, got 'forest'",
    ),
    ("training.train_predictors --offers 0", "num_offers must be an integer >= 1, got 0"),
    ("training.train_predictors --days 2", "num_days must be an integer >= 3, got 2"),
    ("training.train_predictors --markets 1", "markets must be an integer >= 2, got 1"),
    (
        "training.train_predictors --stored nowhere",
        "there is no folder nowhere (the names offers-network, offers-trees)",
    ),
    (
        "training.train_predictors --stored offers-trees",
        "stored must have predictors of network, got those of trees",
    ),
    ("training.train_predictors --per-day 0", "per_day must be an integer >= 1, got 0"),
    ("training.train_predictors --share 1.5", "share must lie in [0, 1], got 1.5"),
    ("training.train_predictors --seed -1", "seed must be an integer >= 0, got -1"),
    (
        "data.fit_market --quick --set merchant=3",
        "set 'merchant' is unknown; did you mean merchants",
    ),
    (
        "data.fit_market --quick --set merchants=some",
        "merchants must be an integer in [1, 1000000], got 'some'",
    ),
    ("data.fit_market --quick --set drift", "set must be name=value, got 'drift'"),
    ("data.fit_market --quick --set drift=-1", "drift must be"),
    (
        "data.fit_market --quick --set change_rate=1e6",
        "change_rate must lie in [0, 1000], got 1000000.0",
    ),
    ("data.fit_market --quick --model forest", "model must be one of"),
    ("data.fit_market --quick --seed -1", "seed must be"),
    ("data.fit_market --quick --train-seed -2", "train_seed must be"),
]
PAGES = "url,importance,change_rate\n"
FILES: dict[str, bytes] = {
    "empty": b"",
    "header alone": PAGES.encode(),
    "text": (PAGES + "a,1,x\n").encode(),
    "negative": (PAGES + "a,-1,1\n").encode(),
    "huge rate": (PAGES + "a,1,9e39\n").encode(),
    "nan": (PAGES + "a,nan,1\n").encode(),
    "twice": (PAGES + "a,1,1\na,1,1\n").encode(),
    "ragged": (PAGES + "a,1\n").encode(),
    "binary": bytes(range(256)),
    "no such column": b"foo\n1\n",
}
LOG = "url,time,changed\n"
LOGS: dict[str, bytes] = {
    "empty": b"",
    "header alone": LOG.encode(),
    "time": (LOG + "a,x,0\n").encode(),
    "changed": (LOG + "a,1,maybe\n").encode(),
    "nan": (LOG + "a,nan,0\n").encode(),
    "ragged": (LOG + "a,1\n").encode(),
    "binary": bytes(range(256)),
    "no such column": b"foo\n1\n",
}


NAMED = ("must not be empty", "budget", "events", "crawls")
"""What is wrong where the number of an option is too large or nothing is given."""


WITHOUT_OUT = ("play", "live.replayed_web")


def run(name: str, *arguments: str, out: Path) -> Any:
    given = ["--bandwidth", "1"] if name == "schedule" and "--bandwidth" not in arguments else []
    app = importlib.import_module(f"scripts.{name}").app
    given += [] if "--out" in arguments or name in WITHOUT_OUT else ["--out", str(out)]
    return CliRunner().invoke(app, [*arguments, *given])


def refused(result: Any, out: Path, *words: str) -> None:
    """Fail unless one line names one of the words, and there are no files."""
    assert result.exit_code == 2, f"{result.exit_code} {result.stderr} {result.exception!r}"
    assert isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if line.lower().startswith("error: ")]
    assert len(lines) == 1, result.stderr
    assert any(word and word in lines[0] for word in words), lines[0]
    assert not out.exists() or not any(path.is_file() for path in out.rglob("*"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(word[:20] for word in line))
def test_command_lines(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    repository = str(Path(__file__).parents[2])
    out = tmp_path / "out"
    option, value = line[-2].strip("-"), line[-1]
    spelled = (option, option.replace("-", "_"), option.replace("-", " "))
    words = (*spelled, *re.split("[:=]", value), value.strip("-"), *NAMED)
    refused(run(*(word.replace("{}", repository) for word in line), out=out), out, *words)


@pytest.mark.parametrize("line", SAID, ids=lambda line: line[0])
def test_what_is_wrong_is_said(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out, (name, *arguments) = tmp_path / "out", shlex.split(line[0])
    result = run(name, *arguments, out=out)
    commands.refused(result, *line[1:])
    assert len(result.stderr.strip().splitlines()) == 1
    assert not [path for path in tmp_path.rglob("*") if path != out]
    assert not out.exists() or "." in name  # these commands make it first


@pytest.mark.parametrize("content", FILES)
def test_tables_of_pages(content: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_bytes(FILES[content])
    refused(run("schedule", str(table), out=tmp_path / "out"), tmp_path / "out", "table.csv")


@pytest.mark.parametrize("content", LOGS)
@pytest.mark.parametrize("name", ["estimate", "backtest"])
def test_crawl_logs(name: str, content: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(LOGS[content])
    refused(run(name, str(log), out=tmp_path / "out"), tmp_path / "out", "log.csv")


def git(*words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["nowhere", "no repository", "no commit", "shallow"])
def test_repositories(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "source"
    if kind != "nowhere":
        path.mkdir()
    if kind in ("no commit", "shallow"):
        git("init", "-q", str(path))
    if kind == "shallow":
        for _ in range(2):
            git("-C", str(path), "commit", "-q", "--allow-empty", "-m", "x")
        git("clone", "-q", "--depth", "1", f"file://{path}", str(tmp_path / "shallow"))
        path = tmp_path / "shallow"
    made = run("data.trace_from_git", str(path), out=tmp_path / "out")
    refused(made, tmp_path / "out", str(path), "shallow", "commit")
