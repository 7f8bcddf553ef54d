"""Beliefs on recorded histories: what is played, days to learn from, and normalised scores."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from policies.ncis.belief import warm_start
from scripts.data.replays import past
from scripts.experiments.agents import real
from scripts.experiments.measures import recorded
from scripts.present.verdicts import judge, minus
from scripts.study import intervals
from scripts.study.equal_freshness import ENDS as ENDS_OF_SAVED
from scripts.study.settings import Measurement
from tests.crawl_envs.instances.recorded import tiny_trace

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = "garden-handbook"


def test_history_of_the_days_before(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    history = past(trace, 0.0, 8.0, "both")
    result = list(zip(history.time, history.page, history.kind, strict=True))
    directory, mention = warm_start.SIGNAL, warm_start.SIGNAL + 1
    expected = [
        *[(1.0, 0, warm_start.CHANGE), (1.0, 0, directory), (1.0, 1, directory), (1.0, 0, mention)],
        *[(2.0, 3, warm_start.BIRTH), (2.0, 2, directory)],
        *[(3.0, 0, warm_start.CHANGE), (3.0, 0, directory), (3.0, 1, directory)],
        *[(4.0, 4, warm_start.BIRTH), (4.0, 0, directory), (4.0, 1, directory)],
        *[(5.0, 2, warm_start.CHANGE), (5.0, 2, directory), (5.0, 3, directory), (5.0, 2, mention)],
        *[(6.0, 0, directory), (6.0, 4, directory), (6.0, 1, warm_start.DEATH)],
        (7.5, 2, mention),
    ]
    assert result == expected
    np.testing.assert_array_equal(history.alive, [True, True, True, False, False])
    assert history.duration == 8.0
    later = past(trace, 4.5, 8.0, "mentions")
    assert list(zip(later.time, later.page, later.kind, strict=True)) == [
        (0.5, 2, warm_start.CHANGE),
        (0.5, 2, directory),
        (1.5, 1, warm_start.DEATH),
        (3.0, 2, directory),
    ]


def test_history_ends_where_the_episode_begins() -> None:
    trace = recorded.record(SHIPPED)
    for seed, share in enumerate(real.STARTS):
        split = real.split_of(trace.days, seed)
        assert split.fit_start == 0.0
        assert split.fit_end == split.start == share * trace.days
        assert split.end == min(split.start + trace.days / 2.0, trace.days)
        history = real.before(SHIPPED, seed)
        assert history.duration == split.start
        assert history.time.max() <= split.start
        assert history.alive.size == trace.num_pages
    first = real.split_of(trace.days, 0)
    assert first == recorded.halves(trace.days)


@pytest.fixture(scope="module")
def played() -> list[Row]:
    [setting] = [item for item in real.measurements(True) if item.name.startswith(SHIPPED)]
    return [row for label in setting.labels for row in setting.play(label, 0)]


def test_freshness_is_between_round_robin_and_the_clairvoyant(played: list[Row]) -> None:
    """A log of a crawl in 30 days is too small to learn an index from."""
    refused = {row.policy: row.value for row in played if row.metric == real.REFUSED}
    assert refused == {real.INDEX: 1.0, real.FORMULA_OF_LOG: 0.0}
    fresh = {row.policy: row.value for row in played if row.metric == "freshness"}
    assert {*fresh} == {*real.MEASURES, real.FORMULA_OF_LOG}
    assert max(fresh.values()) == fresh[real.CLAIRVOYANT]
    assert len({*fresh.values()}) == len(fresh)
    for label in (real.BELIEF, real.HISTORY, real.FITTED, real.FORMULA):
        assert fresh[label] > fresh[real.REFERENCE]


def test_same_seed_same_freshness(played: list[Row]) -> None:
    arguments = {"site": SHIPPED, "days": 30, "importance": "uniform"}
    for label in (real.HISTORY, real.BELIEF):
        [row] = [row for row in played if row.policy == label]
        assert real.MEASURES[label](0, **arguments)["freshness"] == row.value


def test_settings_have_their_number_of_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [SHIPPED, "other"]
    monkeypatch.setattr(recorded, "sites", lambda: dict.fromkeys(everything))
    result = {item.name: item for item in real.measurements(False)}
    assert len(result) == len(everything) * 8
    assert all(isinstance(item, Measurement) for item in result.values())
    assert len(result["other, 30 days, uniform"].seeds(5)) == len(real.STARTS)
    assert len(result["other, 3 days, uniform"].seeds(5)) == len(real.STARTS)
    assert len(result["other, 30 days, zipf"].seeds(5)) == 1
    quick = real.measurements(True)
    assert [item.arguments["site"] for item in quick] == list(traces.shipped())


def row(site: str, label: str, seed: int, value: float, days: int = 30) -> Row:
    return Row(real.ID, f"{site}, {days} days, uniform", label, seed, "freshness", value)


def made(sites: list[str], seeds: int = 3) -> list[Row]:
    """Rows with a score of (s + 1 + seed) / 10 on site s, and half of it for the formula."""
    rows = []
    for number, site in enumerate(sites):
        for seed in range(seeds):
            score = (number + 1 + seed) / 10
            rows += [
                row(site, real.REFERENCE, seed, 0.5),
                row(site, real.CLAIRVOYANT, seed, 0.9),
                row(site, real.HISTORY, seed, 0.5 + 0.4 * score),
                row(site, real.FORMULA, seed, 0.5 + 0.2 * score),
            ]
    return rows


def values_of(rows: list[Row]) -> dict[Any, float]:
    return {(item.setting, item.policy, item.seed, item.metric): item.value for item in rows}


def test_scores_and_their_means_over_sites_and_splits() -> None:
    sites = [*real.EIGHT_SITES, SHIPPED]
    result = values_of(real.derive(made(sites)))
    name = recorded.name_of("nyc-covid", 30, "uniform")
    assert result[name, real.HISTORY, 1, real.METRIC] == pytest.approx(0.4)
    assert result[name, real.FORMULA, 1, real.METRIC] == pytest.approx(0.2)
    assert result[name, real.FORMULA, 1, real.STALE] == pytest.approx(100 * (0.5 - 0.4 * 0.2))
    assert (name, real.REFERENCE, 1, real.METRIC) not in result
    assert result[name, real.REFERENCE, 1, real.STALE] == pytest.approx(50.0)
    for group, members in ((real.EIGHT, 8), (real.TOGETHER, 9)):
        together = recorded.name_of(group, 30, "uniform")
        ways = np.arange(1, members + 1) / 10
        order = ways if group == real.EIGHT else ways[[0, 1, 8, *range(2, 8)]]  # by their names
        own = (order[:, None] + np.arange(3) / 10).clip(max=1.0)
        half = (order[:, None] + np.arange(3) / 10) / 2
        versus = minus(real.METRIC, real.FORMULA)
        for metric, scores in ((real.METRIC, own), (versus, own - half)):
            ends = [result[together, real.HISTORY, 0, metric + end] for end in intervals.ENDS]
            assert ends == pytest.approx(list(intervals.mean(scores)))
            assert ends[0] == pytest.approx(scores.mean())
            assert ends[1] < ends[0] < ends[2]
        assert result[together, real.CLAIRVOYANT, 0, real.STALE] == pytest.approx(10.0)


@pytest.fixture
def two_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "sites", lambda: dict.fromkeys("ab"))
    monkeypatch.setattr(recorded, "BUDGETS", (3, 5, 10, 20, 30, 40, 80))


@pytest.mark.usefixtures("two_sites")
def test_scores_are_clipped() -> None:
    rows = [*made(["a"], 1), row("a", "GREEDY", 0, 0.0), row("a", real.LEARNING, 0, 1.0)]
    scores = real.scores_of(real.played_of(rows))
    assert scores["GREEDY"].item() == -1.0
    assert scores[real.LEARNING].item() == 1.0
    level = [item._replace(value=0.5) if item.policy == real.CLAIRVOYANT else item for item in rows]
    # no difference to divide by
    assert real.scores_of(real.played_of(level)).isna().to_numpy().all()


def test_a_mean_needs_rows_of_all_sites() -> None:
    rows = made([*real.EIGHT_SITES])
    last = [item for item in rows if item[2:4] != (real.HISTORY, 2) or "tldr" not in item.setting]
    result = values_of(real.derive(last))
    name = recorded.name_of(real.EIGHT, 30, "uniform")
    assert result[name, real.HISTORY, 0, real.SPLITS] == 2
    assert result[name, real.FORMULA, 0, real.SPLITS] == 3
    over = np.arange(1, 9)[:, None] / 10 + np.arange(2) / 10
    apart = result[name, real.HISTORY, 0, minus(real.METRIC, real.FORMULA)]
    assert apart == pytest.approx(over.mean() / 2)
    few = real.derive(made(["nyc-covid", SHIPPED]))
    assert {item.setting.split(",")[0] for item in few} == {"nyc-covid", SHIPPED, real.TOGETHER}


@pytest.mark.usefixtures("two_sites")
def test_crawls_saved_at_the_freshness_of_another() -> None:
    """Freshness .2, .4, .6, .8 at budgets that double, of HISTORY .1 more: half a doubling less."""
    curve = {80: 0.2, 40: 0.4, 20: 0.6, 10: 0.8}
    rows = [
        row(site, label, seed, fresh + more + (seed - 0.5) / 50, days)
        for site in ("a", "b")
        for days, fresh in curve.items()
        for label, more in ((real.HISTORY, 0.1 if site == "a" else 0.0), (real.REFERENCE, 0.0))
        for seed in (0, 1)
    ]
    rows.append(row("a", real.REFERENCE, 2, 0.9, 80))  # on this split HISTORY was not played
    rows += [row("a", label, 0, 0.9, 5) for label in (real.HISTORY, real.REFERENCE)]  # on one split
    result = values_of(real.derive(rows))
    metric = real.SAVED[real.REFERENCE]
    few = recorded.name_of("a", 5, "uniform"), real.HISTORY, 0, metric + ENDS_OF_SAVED[0]
    assert few not in result
    half = 100 * (1 - 2**-0.5)
    for days, least, most in ((10, half, half), (20, half, half), (40, half, half), (80, 0, 100)):
        name = recorded.name_of("a", days, "uniform")
        ends = [result[name, real.HISTORY, 0, metric + end] for end in ENDS_OF_SAVED]
        assert ends == pytest.approx([least, most])
        name = recorded.name_of("b", days, "uniform")
        assert result[name, real.HISTORY, 0, f"{metric}, at least"] == pytest.approx(0.0, abs=1e-9)
        name = recorded.name_of(real.TOGETHER, days, "uniform")
        ends = [result[name, real.HISTORY, 0, metric + end] for end in ENDS_OF_SAVED]
        assert ends == pytest.approx([least / 2, most / 2])


def test_history_is_above_the_formula_with_an_interval_over_sites() -> None:
    rows = made([*real.EIGHT_SITES])
    rows += real.derive(rows)
    verdicts = {item.claim: item for item in judge(rows, real.METRIC, real.EXPERIMENT.expected)}
    above = verdicts[f"{real.HISTORY} > {real.FORMULA}"]
    assert above.measured == pytest.approx((3.6 + 4.4 + 5.2) / 3 / 8 / 2, abs=0.01)
    assert above.holds == "yes"
    assert above.half_width > 0.1  # over sites too, which differ more than splits


def test_tables_fill_their_places_in_the_page() -> None:
    rows = made([*real.EIGHT_SITES])
    tables = {
        name: table([*rows, *real.derive(rows)]) for name, table in real.EXPERIMENT.tables.items()
    }
    lines = tables["scores, uniform"].splitlines()
    assert lines[0].split(" | ")[3:5] == ["10 days", real.STALE]
    [line] = [line for line in lines if line.startswith(f"| {real.CLAIRVOYANT}")]
    assert "| 10.0 |" in line
    [line] = [line for line in lines if line.startswith(f"| {real.HISTORY}")]
    assert ".550 [" in line
    page = (ROOT / "results" / "agents" / "real" / "README.md").read_text("utf-8")
    for name in tables:
        assert page.count(f"<!-- {name} -->\n") == page.count(f"<!-- end of {name} -->\n") == 1


def test_the_page_has_the_commands_to_record_other_sites(tmp_path: Path) -> None:
    folder = ROOT / "results" / "agents" / "real"
    [loop] = re.findall(r"```bash\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    for name in ("git", "python"):
        (tmp_path / name).write_text('#!/bin/sh\nprintf "%s|" "$@"; echo\n')
        (tmp_path / name).chmod(0o755)
    found = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    bash = ["bash", "-euc", loop]
    said = subprocess.run(bash, cwd=ROOT, env=found, capture_output=True, text=True, check=True)
    with (folder / "sites.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            included = "".join(f"--include|{pattern}|" for pattern in line["include"].split())
            asked = f"|--start|{line['start']}|--out|traces/{line['site']}|{included}\n"
            assert said.stdout.count(f"|clones/{line['site']}{asked}") == 1


def test_pictures(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = made([*real.EIGHT_SITES, SHIPPED])
    rows += [
        item._replace(setting=item.setting.replace("30", "100"), value=0.1 + item.value)
        for item in rows
    ]
    rows += real.derive(rows)
    for name, draw in real.EXPERIMENT.pictures.items():
        draw(rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    _, figure = drawn
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["30", "100"]
    names = axes.get_legend_handles_labels()[1]
    assert {*names} == {real.HISTORY, real.FORMULA}
    value = {(item.setting, item.policy, item.metric): item.value for item in rows}
    expected = value[recorded.name_of(real.EIGHT, 30, "uniform"), real.HISTORY, real.METRIC]
    lines = [container.lines[0].get_ydata()[0] for container in axes.containers]
    assert lines[0] == pytest.approx(expected)


@pytest.mark.usefixtures("two_sites")
def test_a_budget_that_some_sites_lack_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        recorded,
        "draw_scores",
        lambda values, *_, **__: given.extend(values.itertuples(index=False)),
    )
    rows = made(["a", "b"])
    rows += [item._replace(setting=item.setting.replace("30", "3")) for item in made(["a"])]
    real.EXPERIMENT.pictures["sites"]([*rows, *real.derive(rows)], tmp_path / "sites.png")
    assert {item.setting for item in given} == {"a, 30 days, uniform", "b, 30 days, uniform"}
    [first] = [item for item in given if item[:2] == ("a, 30 days, uniform", real.HISTORY)]
    assert first.value == pytest.approx(0.2)


def test_a_picture_of_one_site_shows_all_sites(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = made([SHIPPED])
    real.EXPERIMENT.pictures["budgets"]([*rows, *real.derive(rows)], tmp_path / "budgets.png")
    [axes] = drawn[0].axes
    assert {*axes.get_legend_handles_labels()[1]} == {real.HISTORY, real.FORMULA}
