from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure

import agents
import policies as crawl_policies
from crawl_envs.evaluation import Row, play
from scripts.experiments.agents import noisy
from scripts.experiments.measures import learned_values

FRESH = {
    noisy.REFERENCE: 0.9,
    "GreedyCIS": 0.88,
    noisy.RANDOM: 0.7,
    noisy.INDEX: 0.899,
    noisy.PPO: 0.89,
}


def rows_of(setting: str, seeds: int = 3) -> list[Row]:
    return [
        Row(noisy.ID, setting, label, seed, noisy.EXPERIMENT.metric, mean + 0.01 * (seed - 1))
        for label, mean in FRESH.items()
        for seed in range(seeds)
    ]


def small(form: str = "page", batch: int = 1, num_pages: int = 30) -> Any:
    several = {"batch": batch} if batch > 1 else {}
    env = gymnasium.make(
        noisy.ID,
        instance="noisy",
        num_pages=num_pages,
        bandwidth=float(num_pages),
        horizon=2.0,
        action=form,
        **several,
    )
    env.reset(seed=3)
    return env


def test_available_agents_are_simulated() -> None:
    assert set(noisy.entrants()) == {*noisy.ANALYTIC, *noisy.SAVED_AS}


def test_unavailable_agents_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "names", lambda: ("noisy-index",))
    assert set(noisy.entrants()) == {*noisy.ANALYTIC, noisy.INDEX}
    assert noisy.tabulated(num_pages=20, horizon=2.0).labels == (noisy.FORMULA, noisy.INDEX)


def test_large_settings_have_few_seeds_and_choose_several_pages_at_a_time() -> None:
    settings = {item.name: item for item in noisy.measurements(quick=False)}
    assert [*settings["m=1000"].seeds(100)] == [*range(noisy.MAX_SEEDS[1000])]
    assert [*settings["m=100000"].seeds(2)] == [0, 1]
    large: Any = settings["m=100000"]
    assert large.arguments["batch"] == noisy.BATCH
    assert large.arguments["bandwidth"] == 100_000
    others: Any = settings["m=100, R=0.25m"]
    assert others.arguments["bandwidth"] == 25
    assert "batch" not in others.arguments


@pytest.mark.parametrize("label", [noisy.PPO, noisy.CLONE])
def test_a_page_set_chooses_the_best_pages_of_a_batch(label: str) -> None:
    one, few = small(), small("scores", 4)
    name = noisy.SAVED_AS[label]
    observation, _ = one.reset(seed=3)
    first = noisy.page_set(one, name=name).predict(observation, deterministic=True)[0]
    scores = noisy.page_set(few, name=name).predict(observation, deterministic=True)[0]
    assert (scores > 0.0).sum() == 4
    assert scores.argmax() == first


def test_agents_beat_random_crawling_by_far() -> None:
    mean: dict[str, list[float]] = {}
    for label, factory in noisy.entrants().items():
        for seed in range(4):
            env = small(num_pages=50)
            env.reset(seed=seed)
            mean.setdefault(label, []).append(play(env, factory(env), seed).freshness)
    top, low = np.mean(mean[noisy.REFERENCE]), np.mean(mean[noisy.RANDOM])
    for label in noisy.SAVED_AS:
        assert np.mean(mean[label]) > low + 0.7 * (top - low)


def test_scores_and_losses_use_means_over_seeds() -> None:
    derived = noisy.derive([*rows_of("m=100"), *rows_of("m=50")[:2]])
    value = {(*row[1:3], row.metric): row.value for row in derived}
    assert value["m=100", noisy.PPO, noisy.SCORE] == pytest.approx(0.95)
    assert value["m=100", noisy.PPO, noisy.LOSS] == pytest.approx(100.0 / 90.0)
    assert value["m=100", noisy.RANDOM, noisy.SCORE] == 0.0
    assert not [key for key in value if key[0] == "m=50"]


def test_the_increasing_fit_is_the_best_one() -> None:
    scores, values = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 5.0])
    order = np.array([2, 0, 3, 1])
    rise = learned_values.increasing_fit(scores[order], values[order], np.ones(4))
    # Neighbours that fall are pooled: 3 and 2 become their mean.
    assert rise(scores) == pytest.approx([1.0, 2.5, 2.5, 5.0])
    assert rise(np.array([-9.0, 2.5, 9.0])) == pytest.approx([1.0, 3.75, 5.0])
    weighed = learned_values.increasing_fit(scores, values, np.array([1.0, 3.0, 1.0, 1.0]))
    assert weighed(scores) == pytest.approx([1.0, 2.75, 2.75, 5.0])


def test_an_increasing_function_of_the_formula_explains_its_variance() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((5, 7))
    assert learned_values.explained(np.exp(3.0 * values) - 2.0, values) == pytest.approx(1.0)
    # Of the formula turned round, a rising function can make nothing but a constant.
    assert learned_values.explained(-values, values) == pytest.approx(0.0, abs=1e-12)


def test_instants_are_where_values_cross_the_level() -> None:
    cycles = learned_values.CYCLES
    values = np.array([2.0 * cycles, cycles**2, 0.0 * cycles, 5.0 + cycles])
    result = learned_values.instants(values, 1.5)
    assert result[:2] == pytest.approx([0.75, np.sqrt(1.5)], abs=2e-3)
    assert np.isnan(result[2])
    assert result[3] == cycles[0]


def test_tables_vary_one_page_only() -> None:
    rows = learned_values.visit(0, 8, 1.0)[1][-1]
    page, i, j = 5, 2, 7
    seen = []

    def spying(varied: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(varied.copy())
        return varied[:, 0] + 10.0 * varied[:, 1]

    result = learned_values.table(spying, rows)
    assert result[page, i, j] == learned_values.CYCLES[j] + 10.0 * learned_values.SIGNALS[i]
    states = itertools.product(range(8), range(len(learned_values.SIGNALS)), range(40))
    varied = dict(zip(states, seen, strict=True))[page, i, j]
    assert varied[page, :2].tolist() == [learned_values.CYCLES[j], 2.0]
    others = np.arange(8) != page
    assert np.array_equal(varied[others], rows[others])


def test_states_are_from_the_second_half_of_the_policys_episode() -> None:
    _, observations = learned_values.visit(1, 20, 2.0)
    env = small(num_pages=20)
    observation, _ = env.reset(seed=1)
    policy = crawl_policies.make("GreedyNCIS", env)
    pages, seen = [], []
    for _ in range(env.unwrapped.num_slots()):
        page, _ = policy.predict(observation, deterministic=True)
        pages.append(int(page))
        seen.append(observation)
        observation, *_ = env.step(page)
    half = len(pages) // 2
    assert np.array_equal(observations, np.array(seen[half:], np.float64))
    assert learned_values.formula_scores(observations).argmax(1).tolist() == pages[half:]


def test_the_index_scores_as_the_policy_chooses() -> None:
    env = small()
    observation, _ = env.reset(seed=3)
    scores = learned_values.index_scores("noisy-index", env.unwrapped.problem)
    policy = agents.load("noisy-index", env)
    for _ in range(20):
        page, _ = policy.predict(observation, deterministic=True)
        assert scores(np.asarray(observation, np.float64)).argmax() == page
        observation, *_ = env.step(page)


def test_a_clone_values_pages_as_its_teacher_does() -> None:
    clone = learned_values.set_table(1, name="noisy-clone", num_pages=50, horizon=4.0)
    assert clone["explained"] > 0.9
    assert clone["agreement"] > 0.6
    assert 0.9 < clone["value_ratio"] <= 1.0
    assert not [name for name in clone if name.startswith(("value[", "instant["))]


def test_pictures_show_all_sizes_and_bandwidths(tmp_path: Path, drawn: list[Figure]) -> None:
    names = [*map(noisy.name_of, noisy.SIZES), "m=100, R=0.25m", "m=100, R=4m"]
    rows = [row for name in names for row in rows_of(name)]
    for name in (noisy.EXPERIMENT.metric, "bandwidths"):
        noisy.EXPERIMENT.pictures[name](rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    sizes, bandwidths = drawn
    level, close = sizes.axes
    assert len(level.containers) == len(FRESH)
    # Random crawling is too far off for the differences, and the reference is their zero.
    assert len(close.containers) == len(FRESH) - 2
    [index] = [item for item in close.containers if item.get_label() == noisy.INDEX]
    assert index.lines[0].get_ydata() == pytest.approx(np.full(4, -0.001), abs=1e-12)
    [axes] = bandwidths.axes
    assert [item.get_label() for item in axes.containers] == ["R = 0.25 m", "R = 1 m", "R = 4 m"]
    scarce = axes.containers[0].lines[0].get_xdata()
    assert sorted(scarce) == pytest.approx([-0.2, -0.02, -0.01, -0.001])


def test_learned_values_are_drawn(tmp_path: Path, drawn: list[Figure]) -> None:
    tables = noisy.tabulated(num_pages=12, horizon=2.0)
    rows = [row for label in tables.labels for row in tables.play(label, 0)]
    for name in ("learned_values", "learned_instants"):
        noisy.EXPERIMENT.pictures[name](rows, tmp_path / f"{name}.png")
    values, instants = drawn
    agents_drawn = len(noisy.SAVED_AS)
    assert len(values.axes) == agents_drawn * len(learned_values.PAGES_SHOWN)
    assert len(instants.axes) == agents_drawn * len(learned_values.FEW_SIGNALS)
    # Eight lines per page, and the agent's level.
    assert len(values.axes[0].lines) == 2 * len(learned_values.SIGNALS) + 1
    [dots] = instants.axes[0].collections
    assert len(dots.get_offsets()) == 12
