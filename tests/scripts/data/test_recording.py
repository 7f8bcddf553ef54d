"""Data sets: the same seed gives the same bytes, and what is recorded is what happens."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crawl_envs
import policies
import scripts.datasets
from crawl_envs.evaluation import evaluate
from scripts.data.recording import FAMILIES, LEVELS, PATH, dataset_name, minari_folder
from tests.scripts.commands import done, refused, run

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore")  # Minari's


def _made(folder: Path, *more: str) -> Any:
    return run(scripts.datasets.app, "--episodes", 2, *more, out=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place = tmp_path_factory.mktemp("datasets")
    done(_made(place))
    return place


def _bytes(place: Path) -> dict[str, bytes]:
    files = [file for file in place.rglob("*") if file.is_file()]
    return {str(file.relative_to(place)): file.read_bytes() for file in files}


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    done(_made(tmp_path, "--families", "harmonic,ncis"))
    again = _bytes(tmp_path)
    assert len(again) > 2 * 3 * 2 * 2
    first = _bytes(folder)
    assert {name: first[name] for name in again} == again
    done(_made(tmp_path, "--families", "ncis", "--seed", "1", "--fresh"))
    other = _bytes(tmp_path)
    assert set(other) == set(again)
    changed = {name for name in again if other[name] != again[name]}
    assert changed == {
        name for name in again if name.startswith("crawl/ncis/") and "namespace" not in name
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", LEVELS)
def test_replayed_actions_give_the_recorded_episode(folder: Path, family: str, level: str) -> None:
    with minari_folder(folder):
        data = minari.load_dataset(dataset_name(family, level))
    assert data.total_episodes == 2
    env = data.recover_environment()
    metadata = list(data.storage.get_episode_metadata([0, 1]))
    for each, about in zip(data.iterate_episodes(), metadata, strict=True):
        observation, _ = env.reset(seed=about["seed"])
        np.testing.assert_array_equal(each.observations[0], observation)
        for place, action in enumerate(each.actions):
            observation, reward, terminated, truncated, _ = env.step(action)
            np.testing.assert_array_equal(each.observations[place + 1], observation)
            assert each.rewards[place] == reward
            assert (each.terminations[place], each.truncations[place]) == (terminated, truncated)
        assert truncated
        assert len(each.observations) == len(each.actions) + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_of_reference_are_mean_returns_and_the_levels_are_in_order(
    folder: Path, family: str
) -> None:
    with minari_folder(folder):
        for level in LEVELS:
            data = minari.load_dataset(dataset_name(family, level))
            mean = np.mean([each.rewards.sum() for each in data.iterate_episodes()])
            score = minari.get_normalized_score(data, np.array([mean]))[0]
            if level != "medium":
                assert score == pytest.approx(float(level == "expert"))
            elif family != "offers":  # where two weeks do not tell one bandit from another
                assert 0.0 < score < 1.0


@pytest.mark.slow
def test_the_table_of_the_page_is_that_of_the_command(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "ecosystem.md").read_text("utf-8")
    rows = re.findall(r"\| `(crawl/\S+)` \| (\w+) \| ([\d ]+) \| (\S+) \| (\S+) \|", page)
    assert [row[0] for row in rows] == [
        dataset_name(each, level) for each in FAMILIES for level in LEVELS
    ]
    done(run(scripts.datasets.app, out=tmp_path))
    for name, player, steps, mean, score in rows:
        about = json.loads((tmp_path / name / "data" / "metadata.json").read_text("utf-8"))
        low, high = about["ref_min_score"], about["ref_max_score"]
        assert about["algorithm_name"] == player
        assert about["total_steps"] == int(steps.replace(" ", ""))
        assert f"{about['mean_return']:.3f}" == mean
        assert (about["mean_return"] - low) / (high - low) == pytest.approx(float(score), abs=5e-4)


def test_recorded_policies_are_those_of_the_evaluation(folder: Path) -> None:
    task = FAMILIES["ncis"]
    make = {"x": lambda env: policies.make(task.policies[0], env)}
    rows = list(evaluate(task.id, make, [0, 1], **task.arguments))
    fresh = [row.value for row in rows if row.metric == "freshness"]
    with minari_folder(folder):
        data = minari.load_dataset(dataset_name("ncis", "expert"))
    rewards = [each.rewards.mean() for each in data.iterate_episodes()]
    np.testing.assert_allclose(rewards, fresh, atol=0.01)  # which have the first slot as well


def test_what_is_there_is_kept_and_others_are_refused(folder: Path, monkeypatch: Any) -> None:
    before = _bytes(folder)
    with monkeypatch.context() as patched:
        patched.setattr(scripts.datasets, "record", None)
        done(_made(folder))
    refused(_made(folder, "--seed", 3), f"--out {folder} has other data sets of ncis (2 ")
    assert _bytes(folder) == before


def test_bad_input_is_one_line_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for given in (("--families", "x"), ("--episodes", "0"), ("--seed", "-1")):
        refused(_made(out, *given), given[0].strip("-"))
        assert not out.exists()


def test_a_relative_folder_gets_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    done(_made(Path("runs/datasets"), "--families", "harmonic"))
    found = _bytes(tmp_path / "runs" / "datasets")
    assert found == {name: _bytes(folder)[name] for name in found}
    assert any(name.startswith("crawl/harmonic/expert-v0/") for name in found)


def test_the_folder_of_minari_is_restored(monkeypatch: Any) -> None:
    monkeypatch.setenv(PATH, "before")
    with pytest.raises(RuntimeError), minari_folder("here"):
        raise RuntimeError
    assert os.environ[PATH] == "before"


def test_every_family_but_recorded_sites_is_recorded() -> None:
    sites = {"CrawlTrace-v0", "CrawlSites-v0"}
    assert {each.id for each in FAMILIES.values()} == set(crawl_envs.FAMILIES) - sites
