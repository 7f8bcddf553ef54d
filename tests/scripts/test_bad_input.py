"""Bad command lines and files end in one line that names what is wrong, and leave nothing."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

HUGE = 10**400
NCIS = ("CrawlNCIS-v0",)
EVALUATE = ("evaluate", "noisy-index", *NCIS)
TRAIN = ("train", "ppo", *NCIS)
TUNE = ("tune", "ppo", *NCIS)
TRACE = ("data.trace_from_git", "{}")
BENCHMARK = ("benchmark", "--quick")
REPRODUCE = ("reproduce", "ncis_fig3", "--quick")

LINES: list[tuple[str, ...]] = [
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
    *((*BENCHMARK, "--policies", value) for value in ("x", "GreedyNCIS:foo=1", ",")),
    *((*BENCHMARK, "--trace", value) for value in ("", "/nowhere")),
    *((*BENCHMARK, "--days-per-crawl", value) for value in ("0", "-1", "nan", "1e300")),
    *(("benchmark", "--suite", value) for value in ("x", "")),
    (*BENCHMARK, "--signals", "x"),
    (*BENCHMARK, "--out", ""),
    ("reproduce", "nosuch"),
    ("reproduce", ""),
    *((*REPRODUCE, "--seeds", value) for value in ("0", "-1", "x")),
    *((*TRAIN, "--steps", value) for value in ("0", "-1", "x", str(HUGE))),
    *((*TRAIN, "--seed", value) for value in ("-1", "x", str(HUGE))),
    *((*TRAIN, "--width", value) for value in ("0", "-1", "1000000000000")),
    *((*TRAIN, "--env-arg", arg) for arg in ("foo=1", "foo", "num_pages=0")),
    *((*TRAIN, option, "0") for option in ("--episodes", "--seeds", "--lanes")),
    (*TRAIN, "--gamma", "2"),
    (*TRAIN, "--instance", "/nowhere"),
    (*TRAIN, "--out", ""),
    ("train", "x", *NCIS),
    ("train", "ppo", "CartPole-v1"),
    *((*TUNE, option, "0") for option in ("--trials", "--steps", "--episodes")),
    (*TUNE, "--seed", "-1"),
    (*TUNE, "--out", ""),
    ("tune", "x", *NCIS),
    ("tune", "ppo", "CartPole-v1"),
    *(("schedule", *given) for given in (("/nowhere",), ("",))),
    *(("estimate", value) for value in ("/nowhere", "")),
    *(("backtest", value) for value in ("/nowhere", "")),
    ("speed", "--against", "/nowhere"),
    (*TRACE, "--start", "x"),
    *((*TRACE, "--days", value) for value in ("0", "-1", "nan", "inf", "1e300", "x")),
    *((*TRACE, option, "0") for option in ("--fragment-modulus", "--max-bytes")),
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


def run(name: str, *arguments: str, out: Path) -> Any:
    given = ["--bandwidth", "1"] if name == "schedule" and "--bandwidth" not in arguments else []
    app = importlib.import_module(f"scripts.{name}").app
    given += [] if "--out" in arguments else ["--out", str(out)]
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
