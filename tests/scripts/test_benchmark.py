from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crawl_envs.evaluation import summarize
from scripts.benchmark import app
from scripts.cli.options import plain_value
from scripts.study.comparisons import WINDOWS, Sizes, compare
from scripts.study.rows import read_rows
from tests.scripts.commands import done, records, refused, run

TINY = ["--num-pages", "5", "--bandwidth", "5", "--horizon", "4", "--seeds", "3", "--workers", "1"]
POLICIES = ["--policies", "Greedy,GreedyNCISApprox:terms=2,RoundRobin"]
SIZES = Sizes(5, 5.0, 4.0, 10.0, "mentions")


def test_it_writes_rows_summary_and_pictures(tmp_path: Path) -> None:
    settings = ["--settings", "noisy,garden-handbook"]
    result = done(run(app, *TINY, *POLICIES, *settings, out=tmp_path))
    rows, about = read_rows(tmp_path / "rows.parquet")
    assert len(records(tmp_path / "rows.csv")) == len(rows)
    summary = records(tmp_path / "summary.csv")
    assert {(line["setting"], line["reference"]) for line in summary} == {
        ("noisy", "OPTIMUM"),
        ("noisy", "BASELINE"),
        ("garden-handbook", "RoundRobin"),
        ("garden-handbook", "BASELINE"),
    }
    for name in ("noisy", "garden-handbook"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    seeds = {(row.setting, row.seed) for row in rows}
    assert len(seeds) == 3 + WINDOWS
    assert about["settings"]["noisy"]["labels"]["GreedyNCISApprox:terms=2"] == {
        "name": "GreedyNCISApprox",
        "terms": 2,
    }
    assert json.loads((tmp_path / "provenance.json").read_text())["versions"]["numba"]
    assert "not over seeds" in " ".join(result.output.split())


def test_rows_are_added_and_fresh_starts_over(tmp_path: Path) -> None:
    arguments = [*TINY, "--settings", "uniform", "--out", str(tmp_path)]
    for more, policies in (
        (["--policies", "Greedy"], {"BASELINE", "Greedy"}),
        (["--policies", "RoundRobin"], {"BASELINE", "Greedy", "RoundRobin"}),
        (["--policies", "RoundRobin", "--fresh"], {"BASELINE", "RoundRobin"}),
    ):
        done(run(app, *arguments, *more))
        assert {row.policy for row in read_rows(tmp_path / "rows.parquet")[0]} == policies


def test_a_trace_is_tested_after_the_days_it_was_fitted_on() -> None:
    compared = compare("garden-handbook", ["Greedy"], SIZES)
    assert [*compared.setting.policies] == ["RoundRobin", "Greedy"]
    assert compared.setting.windows == ((100, 125), (125, 150), (150, 175), (175, 200))
    rows = [
        row for seed in compared.setting.seeds(1) for row in compared.setting.play("Greedy", seed)
    ]
    counted = {"changed_share", "crawl_rate", "wasted", "budget_share"}
    assert {row.metric for row in rows} == {"freshness", *counted}
    bounds = compared.setting.play("BASELINE", 0)
    assert all(0.0 < row.value < 1.0 for row in bounds)


def test_pages_with_fragments_are_judged_by_divergence(tmp_path: Path) -> None:
    sizes = ["--num-pages", "10", "--horizon", "30", "--seeds", "2", "--workers", "1"]
    named = ["--policies", "CurveFitting,FragmentStatic,FragmentDynamic"]
    arguments = [*sizes, *named, "--settings", "random", "--out", str(tmp_path)]
    result = done(run(app, *arguments))
    rows, about = read_rows(tmp_path / "rows.parquet")
    assert about["settings"]["random"]["id"] == "CrawlLongevity-v0"
    assert about["settings"]["random"]["arguments"]["bandwidth"] == pytest.approx(1.0)
    played = {"RoundRobin", "CurveFitting", "FragmentStatic", "FragmentDynamic"}
    assert {row.policy for row in rows} == played
    means = {item.policy: item.mean for item in summarize(rows, "divergence")}
    labels = [line.split("│")[1].strip() for line in result.output.splitlines() if "│" in line]
    assert [name.removesuffix(" (oracle)") for name in labels] == sorted(played, key=means.get)
    assert {name for name in labels if "oracle" in name} == {"FragmentDynamic (oracle)"}


def test_oracles_are_played_where_they_are_named() -> None:
    by_default = compare("quality", [], SIZES).setting
    assert {"RoundRobin", "CurveFitting", "LearningLongevity"} <= {*by_default.labels}
    assert not {"FragmentDynamic", "HolisticDynamic"} & {*by_default.labels}
    assert by_default.arguments["bandwidth"] == 5.0
    usual = compare("quality", [], SIZES._replace(bandwidth=None)).setting
    assert usual.arguments["bandwidth"] == pytest.approx(0.5)
    assert (
        compare("noisy", [], SIZES._replace(bandwidth=None)).setting.arguments["bandwidth"] == 100
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((".01", 0.01), ("1.", 1.0), ("+2.5e-1", 0.25), ("-.5", -0.5), ("3", 3), ("true", True)),
        *((".", "."), ("e5", "e5"), ("1.2.3", "1.2.3"), ("noisy", "noisy"), ("[1, 2]", [1, 2])),
    ],
)
def test_values_are_read_as_people_write_them(text: str, value: object) -> None:
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


def test_foreign_rows_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"something else" + os.urandom(8))
    before = path.read_bytes()
    for more in ([], ["--fresh"]):
        refused(run(app, *TINY, *more, out=tmp_path), "must be a complete Parquet file")
    assert path.read_bytes() == before


def test_agents_are_compared_as_policies_are(tmp_path: Path) -> None:
    entrants = ["--settings", "noisy", "--policies", "Greedy", "--agents", "noisy-index"]
    done(run(app, *TINY, *entrants, out=tmp_path))
    policies = {row.policy for row in read_rows(tmp_path / "rows.parquet")[0]}
    assert {"Greedy", "noisy-index"} < policies
