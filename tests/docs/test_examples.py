"""The examples with other libraries run, and their scores are those of the leaderboard."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs.evaluation import evaluate
from policies import solvers
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "ecosystem.md").read_text("utf-8")
LITTLE: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "cleanrl_ppo": (("torch",), {"steps": 2048}),
    "minari_cloning": (("torch", "minari", "jax"), {"recorded": 2, "steps": 4}),
    "sb3_contrib_maskable_ppo": (("sb3_contrib",), {"steps": 2048}),
    "sb3_ppo": (("stable_baselines3",), {"steps": 2048}),
    "torchrl_ppo": (("torchrl",), {"steps": 2048}),
}
"""Modules that an example needs, and arguments of a short run."""
SHARED = ("network", "task")
LONGEST = 120
"""Lines of a file."""
FIRST_SEED, METRIC = 3_000_000, "freshness"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports an example as its command does, with one thread as before."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(FOLDER)
    threads = torch.get_num_threads()

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield imported
    torch.set_num_threads(threads)
    for name in (*LITTLE, *SHARED):
        sys.modules.pop(name, None)


@pytest.mark.filterwarnings("default")  # those of the libraries
@pytest.mark.parametrize("name", LITTLE)
def test_an_example_runs_and_prints_the_scores_of_all(
    example: Any, name: str, capsys: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    needed, arguments = LITTLE[name]
    for module in needed:
        pytest.importorskip(module)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    found = example(name).main(seed=1, episodes=2, **arguments)
    assert -1.0 <= found < 1.5
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split("  score ")[0].strip() for line in lines if "  score " in line]
    assert shown[:3] == ["RandomCrawl", "Greedy", "GreedyNCIS"]
    assert len(shown) == 4
    assert f"score {found:.4f} " in lines[-1]


def test_the_scores_are_those_of_the_formula(example: Any) -> None:
    task = example("task")
    seeds = range(FIRST_SEED, FIRST_SEED + 5)
    makers = {name: partial(policies.make, name) for name in task.BESIDE}
    played = list(evaluate(task.ID, makers, seeds, **task.ARGUMENTS))
    values = {
        name: np.array([row.value for row in played if (row.policy, row.metric) == (name, METRIC)])
        for name in makers
    }
    bounds = []
    for seed in seeds:
        env = gymnasium.make(task.ID, **task.ARGUMENTS)
        env.reset(seed=seed)
        bounds.append(solvers.ncis(env.unwrapped.instance).objective)
    low, high = values["RandomCrawl"].mean(), np.mean(bounds)
    rows = task.scores("own", makers["GreedyNCIS"], len(seeds))
    for label, name in {"own": "GreedyNCIS", **dict(zip(makers, makers, strict=True))}.items():
        scores = [row.value for row in rows if row.policy == label]
        expected = np.maximum((values[name] - low) / (high - low), -1.0)
        np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_advantages_are_discounted_sums_of_errors(example: Any) -> None:
    import torch

    ppo = example("cleanrl_ppo")
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(6, 2)), rng.normal(size=(7, 2))
    dones = np.zeros((6, 2))
    dones[3, 1] = 1.0
    found = ppo.advantages(*(torch.as_tensor(part) for part in (rewards, values, dones)))
    for lane in range(2):
        for first in range(6):
            total, weight = 0.0, 1.0
            for t in range(first, 6):
                going = 1.0 - dones[t, lane]
                ahead = ppo.GAMMA * values[t + 1, lane] * going
                total += weight * (rewards[t, lane] + ahead - values[t, lane])
                weight *= ppo.GAMMA * ppo.LAMBDA * going
            assert float(found[first, lane]) == pytest.approx(total, rel=1e-12)


def test_all_examples_are_short_and_in_the_page() -> None:
    crawlers = set(FOLDER.glob("*_crawl.py"))  # tests/docs/test_crawler_examples.py
    files = sorted(set(FOLDER.glob("*.py")) - crawlers)
    assert [file.stem for file in files] == sorted((*LITTLE, *SHARED))
    for file in files:
        assert file.read_text("utf-8").count("\n") < LONGEST, file.name
        assert f"{{literalinclude}} examples/{file.name}\n" in PAGE, file.name
