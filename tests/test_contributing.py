"""The policy of CONTRIBUTING.md works wherever a policy is named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs.checks import check_policy
from policies.base.registry import POLICIES, TAGS
from scripts import benchmark, evaluate, experiments, reproduce
from scripts.experiments import ncis
from scripts.study.entrants import candidate_of, is_oracle
from scripts.study.rows import read_rows
from scripts.timing import cases, scale
from tests.scripts.commands import done, refused, run

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILE, USE, EXPERIMENT, TIMING = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
NAME = "my_policies:ImportanceAge"
SMALL = {"num_pages": 5, "bandwidth": 5.0, "horizon": 4.0}


@pytest.fixture(autouse=True, scope="module")
def _my_policies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "my_policies.py").write_text(FILE)
    (folder / "broken_policies.py").write_text("import nothing_of_this_name\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        for kept in (POLICIES, TAGS):  # restored afterwards
            patch.setitem(kept, "ImportanceAge", None)
            del kept["ImportanceAge"]
        yield


def test_the_code_runs():
    assert len(FILE.splitlines()) <= 30
    names: dict[str, Any] = {}
    exec(compile(USE, "CONTRIBUTING.md", "exec"), names)
    assert names["rollout"].crawl_counts.sum() == 500
    best = names["instance"].importance.argmax()
    assert names["live"].choose(names["pages"].tracker()).tolist() == [best]


def test_the_case_of_a_timing_is_measured():
    names = {**vars(scale), "my_estimator": lambda intervals, changed: None}
    exec(compile(TIMING, "CONTRIBUTING.md", "exec"), names)
    ratio, *speeds = cases.measured(names["case"], 20, 2, 1e-4)
    assert (ratio.case, ratio.name, len(speeds)) == ("change rates, mine", "mine", 2)
    assert len(TIMING.splitlines()) <= 10


def test_the_experiment_is_played_and_judged(tmp_path, monkeypatch):
    (tmp_path / "ncis").mkdir()
    (tmp_path / "ncis" / "__init__.py").touch()
    (tmp_path / "ncis" / "size.py").write_text(EXPERIMENT)
    for package, folder in ((experiments, tmp_path), (ncis, tmp_path / "ncis")):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    options = ["--quick", "--seeds", 2, "--backend", "local"]
    text = done(run(reproduce.app, "size", *options, out=tmp_path / "out")).stdout
    del sys.modules["scripts.experiments.ncis.size"]
    assert "Freshness by the number of pages" in text
    assert "The full run" not in text
    assert (tmp_path / "out" / "ncis" / "size" / "size.png").exists()
    rows, _ = read_rows(tmp_path / "out" / "ncis" / "size" / "rows.parquet")
    assert {(row.setting, row.policy) for row in rows} >= {("m = 200", "RoundRobin")}


@pytest.mark.slow
@pytest.mark.parametrize("check", ["ruff check", "ruff format --check", "mypy --strict"])
def test_it_passes_the_checks_of_the_tree(check, tmp_path):
    (tmp_path / "importance_age.py").write_text(FILE)
    settings = ["--config-file" if "mypy" in check else "--config", ROOT / "pyproject.toml"]
    command = [sys.executable, "-m", *check.split(), *settings, tmp_path / "importance_age.py"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_it_crawls_by_importance_times_age():
    check_policy(
        lambda env: policies.make(NAME, env), lambda: gymnasium.make("CrawlNCIS-v0", **SMALL)
    )
    env = gymnasium.make("CrawlNCIS-v0", **SMALL)
    observation, _ = env.reset(seed=0)
    policy = policies.make(NAME, env)
    for _ in range(15):
        known = env.unwrapped.tracker()
        page, _ = policy.predict(observation)
        assert page == np.argmax(known.problem.importance * known.elapsed)
        observation, *_ = env.step(page)
    assert "ImportanceAge" in policies.names("page", compiled=True, learns=False)


def test_the_commands_know_it(tmp_path):
    sizes = [f"--{name.replace('_', '-')}={value:g}" for name, value in SMALL.items()]
    named = ["--settings", "noisy", "--policies", f"{NAME},{NAME}:delay_window=0", "--seeds", "2"]
    refused(
        run(benchmark.app, *sizes, *named, "--workers", "1", out=tmp_path / "a"), "delay_window"
    )
    named[3] = f"{NAME},Greedy"
    done(run(benchmark.app, *sizes, *named, "--workers", "1", out=tmp_path / "b"))
    rows, _ = read_rows(tmp_path / "b" / "rows.parquet")
    assert {row.policy for row in rows} >= {NAME, "Greedy"}
    few = ["--episodes", "2", "--policies", "Greedy", "--workers", "1"]
    done(run(evaluate.app, NAME, "CrawlNCIS-v0", *few, out=tmp_path / "c"))
    rows, _ = read_rows(tmp_path / "c" / "rows.parquet")
    assert {row.policy for row in rows} >= {NAME, "Greedy"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Mine", "'no_such_module:Mine' cannot be imported .*No module named"),
        (
            "broken_policies:Mine",
            "'broken_policies:Mine' cannot be imported .*nothing_of_this_name",
        ),
        ("my_policies:Missing", "'my_policies:Missing' cannot be imported .*Missing"),
        ("my_policies:VALUE", "'my_policies:VALUE' must be a class of policies"),
        ("my_policies", "policy( or agent)? 'my_policies' is unknown; .*, or module:Class"),
    ],
)
def test_others_are_refused_in_words(name, message):
    with pytest.raises(ValueError, match=message):
        policies.make(name)
    with pytest.raises(ValueError, match=message):
        candidate_of(name)


def test_specs_have_arguments():
    factory = candidate_of(f"{NAME}:threshold=0.5:believed=x").factory
    assert factory.args == (NAME,)
    assert factory.keywords["arguments"] == {"threshold": 0.5, "believed": "x"}
    assert re.fullmatch(r"[0-9a-f]{16}", factory.keywords["file_digest"])
    assert not is_oracle(NAME)
    assert not is_oracle("run:2")
    assert is_oracle("FragmentDynamic:threshold=1")
