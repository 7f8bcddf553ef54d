"""Evolution of an index: it climbs, repeats itself, resumes, and says what is wrong."""

from __future__ import annotations

import json
import math
import shutil

import gymnasium
import numpy as np
import pytest
from scipy import stats

import policies
from agents.catalog import SHIPPED, names
from agents.evolution import read_index
from agents.evolution import train as evolution
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.fitness import freshness_of, mapping, play_all
from agents.evolution.strategy import candidates_of, noise_of, ranks_of, start_at, stepped
from agents.evolution.train import CurveRow, evolve, first_weights, index_of
from agents.runs import read_rows
from crawl_envs.evaluation import play
from crawl_envs.instances import STRESS

PINNED = {"importance": [1.0, 1.5], "change_rate": [1.0, 50.0], "bandwidth": 1.0}


def short(**changes) -> EvolutionArguments:
    small = {
        **{"num_pages": 6, "bandwidth": 4.0, "horizon": 5.0, "hidden": 2, "generations": 12},
        **{"pairs": 3, "episodes": 2, "validation_every": 4, "validation_episodes": 3},
        **{"instance": "bursty"},
    }
    return EvolutionArguments(**{**small, **changes})


def files_of(folder) -> dict[str, bytes]:
    """Return the files of a run that do not depend on the clock."""
    return {name: (folder / name).read_bytes() for name in ("index.json", "state.json")}


# Search


@pytest.mark.parametrize("seed", range(3))
def test_ranks(seed):
    fitness = np.random.default_rng(seed).integers(0, 5, 9).astype(float)
    expected = []
    for one in fitness:
        below, equal = np.sum(fitness < one), np.sum(fitness == one)
        expected.append((below + (equal - 1) / 2) / 8 - 0.5)
    np.testing.assert_allclose(ranks_of(fitness), expected, rtol=0, atol=1e-15)


def test_a_step_is_adam_on_the_ranks():
    """The first two steps, written out for one weight."""
    centre = start_at(np.array([2.0]))
    noise = noise_of(centre, 1, seed=5)
    ahead, behind = candidates_of(centre, noise, 0.5)[:, 0]
    assert ahead - 2.0 == pytest.approx(0.5 * noise[0, 0])
    assert ahead + behind == pytest.approx(4.0)
    first = stepped(centre, noise, np.array([1.0, 3.0]), 0.5, 0.1)
    slope = -noise[0, 0] / (2 * 0.5)
    assert first.free[0] == pytest.approx(2.0 + 0.1 * math.copysign(1.0, slope))
    assert first.average[0] == pytest.approx(0.95 * 2.0 + 0.05 * first.free[0])
    again = noise_of(first, 1, seed=5)
    assert again[0, 0] != noise[0, 0]
    second = stepped(first, again, np.array([4.0, 3.0]), 0.5, 0.1)
    later = again[0, 0] / (2 * 0.5)
    mean = (0.9 * 0.1 * slope + 0.1 * later) / (1 - 0.9**2)
    square = (0.99 * 0.01 * slope**2 + 0.01 * later**2) / (1 - 0.99**2)
    assert second.free[0] == pytest.approx(first.free[0] + 0.1 * mean / math.sqrt(square))


def test_the_search_climbs_a_hill():
    top = np.array([1.0, -2.0, 0.5])
    centre = start_at(np.zeros(3))
    for _ in range(300):
        noise = noise_of(centre, 8, seed=1)
        fitness = -np.sum((candidates_of(centre, noise, 0.1) - top) ** 2, axis=1)
        centre = stepped(centre, noise, fitness, 0.1, 0.03)
    np.testing.assert_allclose(centre.average, top, atol=0.05)


# Fitness


def test_seeds_of_search_and_validation_are_apart():
    arguments = short(seed=3)
    searched = [evolution.training_seeds(arguments, g) for g in range(50)]
    flat = [seed for seeds in searched for seed in seeds]
    assert len(set(flat)) == 100
    assert all(2**40 <= seed < 2**41 for seed in flat)
    assert min(evolution.validation_seeds(arguments)) >= 2**41
    assert not set(evolution.validation_seeds(arguments)) & set(
        evolution.validation_seeds(short(seed=4))
    )


# Runs


def test_same_arguments_same_bytes_and_a_curve(tmp_path):
    index = evolve(short(), tmp_path / "a")
    evolve(short(), tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert index.to_json() == (tmp_path / "a" / "index.json").read_text()
    rows = read_rows(tmp_path / "a" / "curve.csv", CurveRow)
    assert [row.generation for row in rows] == [4, 8, 12]
    assert json.loads((tmp_path / "a" / "config.json").read_text()) == dict(index.made)
    other = evolve(short(seed=1), tmp_path / "c")
    assert not np.array_equal(other.free, index.free)


def test_the_best_average_of_the_validations_is_kept(tmp_path):
    arguments = short()
    index = evolve(arguments, tmp_path)
    rows = read_rows(tmp_path / "curve.csv", CurveRow)
    fresh = freshness_of(arguments, [index], evolution.validation_seeds(arguments)).mean()
    assert fresh == max(row.freshness for row in rows)
    assert len({row.reference for row in rows}) == 1


@pytest.mark.slow
def test_two_workers_find_what_one_finds(tmp_path):
    evolve(short(), tmp_path / "one")
    evolve(short(), tmp_path / "two", workers=2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


@pytest.mark.parametrize("stop", [3, 4, 7, 11])
def test_a_run_that_was_stopped_ends_like_one_that_was_not(tmp_path, monkeypatch, stop):
    evolve(short(), tmp_path / "whole")
    play = evolution.generation_of

    def interrupted(run, play_all):
        if run.centre.generation == stop:
            raise KeyboardInterrupt
        return play(run, play_all)

    monkeypatch.setattr(evolution, "generation_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evolve(short(), tmp_path / "stopped")
    monkeypatch.undo()
    evolve(short(), tmp_path / "stopped", resume=True)
    assert files_of(tmp_path / "stopped") == files_of(tmp_path / "whole")
    curves = [read_rows(tmp_path / name / "curve.csv", CurveRow) for name in ("stopped", "whole")]
    assert [row[:3] for row in curves[0]] == [row[:3] for row in curves[1]]
    seconds = [row.seconds for row in curves[0]]
    assert seconds == sorted(seconds)


def test_a_run_can_be_made_longer(tmp_path):
    evolve(short(), tmp_path / "whole")
    evolve(short(generations=8), tmp_path / "longer")
    evolve(short(), tmp_path / "longer", resume=True)
    assert files_of(tmp_path / "longer") == files_of(tmp_path / "whole")
    before = files_of(tmp_path / "longer")
    evolve(short(), tmp_path / "longer", resume=True)
    assert files_of(tmp_path / "longer") == before


def test_a_lost_index_comes_back_from_the_state(tmp_path):
    evolve(short(), tmp_path)
    before = files_of(tmp_path)
    (tmp_path / "index.json").unlink()
    evolve(short(), tmp_path, resume=True)
    assert files_of(tmp_path) == before


def test_progress_goes_to_standard_error(tmp_path, capsys):
    evolve(short(generations=4), tmp_path, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4 generations" in err
    assert "against" in err


# Corrections of a belief


def test_a_first_candidate_plays_what_the_belief_plays():
    arguments = short(reveal="importance")
    index = index_of(arguments, first_weights(arguments))
    mine, theirs = freshness_of(arguments, [index, "BeliefNCIS"], [7, 8]).T
    np.testing.assert_array_equal(mine, theirs)
    for fresh, seed in zip(theirs, (7, 8), strict=True):
        env = gymnasium.make(
            "CrawlNCIS-v0", instance="bursty", num_pages=6, bandwidth=4.0, horizon=5.0,
            reveal="importance",
        )  # fmt: skip
        env.reset(seed=seed)
        assert fresh == play(env, policies.BeliefNCIS(env), seed).freshness
    revealed = freshness_of(short(), ["BeliefNCIS"], [7, 8])[:, 0]
    assert not np.array_equal(revealed, theirs)


def test_a_correction_of_a_belief_is_evolved_alike_and_resumes(tmp_path):
    arguments = short(instance="deploys", day=1.0, generations=4, validation_every=2)
    index = evolve(arguments, tmp_path / "a")
    assert (index.base, index.day) == ("BeliefNCIS", 1.0)
    assert EvolutionArguments(**index.made) == arguments
    assert not np.array_equal(index.free, first_weights(arguments))
    evolve(short(instance="deploys", day=1.0, generations=2, validation_every=2), tmp_path / "b")
    evolve(arguments, tmp_path / "b", resume=True)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_a_correction_of_a_belief_climbs(tmp_path):
    """On episodes of neither search nor validation."""
    arguments = short(
        instance="late", num_pages=30, bandwidth=30.0, generations=16, pairs=8, episodes=2,
        sigma=0.3, learning_rate=0.1, validation_every=4, validation_episodes=10,
    )  # fmt: skip
    index = evolve(arguments, tmp_path)
    fresh = freshness_of(arguments, [index, "BeliefNCIS"], range(100, 140)).mean(axis=0)
    assert fresh[0] > fresh[1]


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("stress-")])
def test_shipped_corrections_are_what_their_files_say(name):
    folder = SHIPPED / name
    if not (folder / "index.json").exists():
        pytest.skip("not a correction")
    index = read_index(folder)
    arguments = EvolutionArguments.from_json((folder / "config.json").read_text())
    assert EvolutionArguments(**index.made) == arguments
    assert (index.base, index.day) == ("BeliefNCIS", arguments.day)
    setting = STRESS[name.removeprefix("stress-").replace("-", " ")]
    played = {"instance": arguments.instance, **arguments.environment()}
    assert {**dict(setting)} == played
    rows = read_rows(folder / "curve.csv", CurveRow)
    assert rows[-1].generation == arguments.generations
    assert max(row.freshness for row in rows) > rows[0].reference


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instance": "nosuch"}, "instance 'nosuch' is unknown; did you mean noisy"),
        ({"generations": 0}, "generations must be an integer >= 1, got 0"),
        ({"generations": 6}, "generations must be a multiple of validation_every, 4, got 6"),
        ({"pairs": 2.0}, "pairs must be an integer >= 1, got 2.0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": 2**16}, r"seed must be an integer in \[0, 65535\], got 65536"),
        ({"sigma": 0.0}, "sigma must be finite and > 0, got 0.0"),
        ({"learning_rate": math.nan}, "learning_rate must be finite and > 0, got nan"),
        ({"horizon": "long"}, "horizon must be finite and > 0, got 'long'"),
        ({"horizon": 0.1}, "horizon must hold at least one crawl, got 0.1"),
        ({"bandwidth_spread": 0.5}, "bandwidth_spread must be finite and >= 1, got 0.5"),
        ({"horizon": 8.0, "bandwidth_spread": 1e3}, "horizon must hold at least one crawl"),
        ({"base": "GreedyNCIS"}, "base must be one of BeliefNCIS, got 'GreedyNCIS'"),
        ({"reveal": "all"}, "reveal must be one of parameters, importance"),
        ({"day": 0.0}, "day must be finite and > 0, got 0.0"),
        ({"day": "1"}, "day must be finite and > 0, got '1'"),
        ({"pinned": {"importance": 1.0}}, "pinned must be arguments of Instance"),
        ({"pinned": {**PINNED, "recall": 2.0}}, "recall must lie in"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        short(**changes)


def test_arguments_as_text():
    arguments = short(pinned=PINNED)
    assert EvolutionArguments.from_json(arguments.to_json()) == arguments
    assert (arguments.num_pages, arguments.bandwidth) == (2, 1.0)
    with pytest.raises(
        ValueError, match="arguments must be among bandwidth, bandwidth_spread, base, "
    ):
        EvolutionArguments.from_json('{"instanze": "noisy"}')


def test_every_episode_may_have_a_bandwidth_of_its_own():
    arguments = EvolutionArguments(num_pages=3, bandwidth=2.0, bandwidth_spread=4.0, horizon=5.0)
    drawn = np.array([arguments.draw(seed).bandwidth for seed in range(400)])
    logs = np.log(drawn / 2.0) / np.log(4.0)
    assert stats.kstest(logs, stats.uniform(-1.0, 2.0).cdf).pvalue > 0.001
    assert arguments.draw(7).bandwidth == drawn[7]
    assert short().draw(0).bandwidth == short().bandwidth
    played = play_all(arguments, ["RoundRobin", "GreedyNCIS"], 3)
    assert played.shape == (2,)
    assert np.all((played > 0.0) & (played < 1.0))


def test_folders_and_workers(tmp_path):
    with pytest.raises(ValueError, match="workers must be an integer >= 1, got 0"):
        evolve(short(), tmp_path, workers=0)
    evolve(short(generations=4), tmp_path)
    with pytest.raises(ValueError, match="holds an index already; resume it"):
        evolve(short(generations=4), tmp_path)
    with pytest.raises(ValueError, match="pairs must be 3 as in the run to resume, got 4"):
        evolve(short(pairs=4), tmp_path, resume=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:200], "is damaged"),
        (lambda text: "{}", "is not the state of an evolution"),
        (lambda text: text.replace('"best"', '"beast"'), "is damaged: 'best'"),
        (lambda text: text.replace('"best": [', '"best": [1.0, '), "one number per weight"),
        (lambda text: text.replace('"hidden": 2', '"hidden": 1'), "one number per weight"),
    ],
)
def test_damaged_states(tmp_path, damage, message):
    evolve(short(generations=4), tmp_path)
    path = tmp_path / "state.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=message):
        evolve(short(), tmp_path, resume=True)


def test_damaged_curve(tmp_path):
    evolve(short(generations=4), tmp_path)
    shutil.copy(tmp_path / "config.json", tmp_path / "curve.csv")
    with pytest.raises(ValueError, match="is not a curve with generation, "):
        evolve(short(), tmp_path, resume=True)


def test_a_contest_in_this_process_needs_no_pool():
    with mapping(1) as each:
        assert each is map
