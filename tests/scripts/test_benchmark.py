from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crawl_envs.evaluation import summarize
from scripts import rank
from scripts.benchmark import app
from scripts.cli.options import plain_value
from scripts.study.comparisons import WINDOWS, Sizes, compare
from scripts.study.rows import read_rows

TINY = ["--num-pages", "5", "--bandwidth", "5", "--horizon", "4", "--seeds", "3", "--workers", "1"]
POLICIES = ["--policies", "Greedy,GreedyNCISApprox:terms=2,RoundRobin"]
SIZES = Sizes(5, 5.0, 4.0, 10.0, "mentions")


def test_it_writes_rows_summary_and_pictures(tmp_path: Path) -> None:
    settings = ["--settings", "noisy,garden-handbook"]
    result = CliRunner().invoke(app, [*TINY, *POLICIES, *settings, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows, about = read_rows(tmp_path / "rows.parquet")
    with (tmp_path / "rows.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    with (tmp_path / "summary.csv").open() as file:
        summary = list(csv.DictReader(file))
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
    assert about["settings"]["noisy"]["labels"]["GreedyNCISApprox:terms=2"] == (
        "make('GreedyNCISApprox', terms=2)"
    )
    assert json.loads((tmp_path / "provenance.json").read_text())["versions"]["numba"]
    assert "not over seeds" in " ".join(result.output.split())


def test_rows_are_added_and_fresh_starts_over(tmp_path: Path) -> None:
    arguments = [*TINY, "--settings", "uniform", "--out", str(tmp_path)]
    for more, policies in (
        (["--policies", "Greedy"], {"BASELINE", "Greedy"}),
        (["--policies", "RoundRobin"], {"BASELINE", "Greedy", "RoundRobin"}),
        (["--policies", "RoundRobin", "--fresh"], {"BASELINE", "RoundRobin"}),
    ):
        result = CliRunner().invoke(app, [*arguments, *more])
        assert result.exit_code == 0, result.output
        assert {row.policy for row in read_rows(tmp_path / "rows.parquet")[0]} == policies


def test_a_trace_is_tested_after_the_days_it_was_fitted_on() -> None:
    compared = compare("garden-handbook", ["Greedy"], SIZES)
    assert [*compared.setting.policies] == ["RoundRobin", "Greedy"]
    assert compared.setting.windows == ((100, 125), (125, 150), (150, 175), (175, 200))
    rows = [
        row for seed in compared.setting.seeds(1) for row in compared.setting.play("Greedy", seed)
    ]
    assert {row.metric for row in rows} == {"freshness", "changed_share", "crawl_rate", "wasted"}
    bounds = compared.setting.play("BASELINE", 0)
    assert all(0.0 < row.value < 1.0 for row in bounds)


def test_pages_with_fragments_are_judged_by_divergence(tmp_path: Path) -> None:
    sizes = ["--num-pages", "10", "--horizon", "30", "--seeds", "2", "--workers", "1"]
    named = ["--policies", "CurveFitting,FragmentStatic,FragmentDynamic"]
    arguments = [*sizes, *named, "--settings", "random", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--settings", "unifrom"], "setting 'unifrom' is unknown; did you mean uniform"),
        (["--settings", ","], "--settings must be names separated by commas, got ','"),
        (["--policies", "Gredy"], "policy or agent 'Gredy' is unknown; did you mean Greedy or"),
        (["--policies", "Greedy:terms"], "must be Name or Name:key=value, got 'Greedy:terms'"),
        (["--policies", "GreedyNCISApprox:terms=0"], "setting uniform: terms must be"),
        (["--policies", "Greedy:color=1"], "setting uniform: unknown argument 'color'"),
        (["--policies", "CurveFitting"], "setting uniform: env must be .* with fragments"),
        (["--bandwidth", "0"], "--bandwidth must be finite and > 0, got 0"),
        (["--workers", "-1"], "--workers must be >= 1, got -1"),
        (["--horizon", "0.001"], "setting uniform: horizon must hold"),
        (["--trace", "/nowhere"], "trace must be a folder"),
        (["--trace", "garden-handbook", "--signals", "smoke"], "signals must be one of"),
        (["--out", "/proc/nowhere"], "cannot write to /proc/nowhere"),
        (["--agents", "runs/mine"], "policy or agent 'runs/mine' is unknown"),
        (["--score"], "--score does not apply without --suite"),
        (["--suite", "mini", "--settings", "noisy"], "--settings does not apply with --suite"),
        (["--suite", "mini", "--quick"], "--quick does not apply with --suite"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line), line
    assert not (tmp_path / "out" / "rows.parquet").exists()


def test_foreign_rows_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"something else" + os.urandom(8))
    before = path.read_bytes()
    for more in ([], ["--fresh"]):
        result = CliRunner().invoke(app, [*TINY, "--out", str(tmp_path), *more])
        assert result.exit_code == 2
        assert "not a whole Parquet file" in result.stderr
    assert path.read_bytes() == before


def test_a_suite_is_ranked_by_the_command_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[rank.RankOptions] = []
    monkeypatch.setattr(rank, "main", lambda options, module: asked.append(options))
    given = ["--suite", "mini", "--policies", "a:B,a:C", "--fresh", "--workers", "2"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0
    same = "the same as python -m scripts.rank mini --policies a:B,a:C --fresh --workers 2"
    assert set(result.output.split()) == set(same.split())
    assert asked == [rank.RankOptions(suite="mini", policies="a:B,a:C", workers=2, fresh=True)]


def test_agents_are_compared_as_policies_are(tmp_path: Path) -> None:
    entrants = ["--settings", "noisy", "--policies", "Greedy", "--agents", "noisy-index"]
    result = CliRunner().invoke(app, [*TINY, *entrants, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    policies = {row.policy for row in read_rows(tmp_path / "rows.parquet")[0]}
    assert {"Greedy", "noisy-index"} < policies
