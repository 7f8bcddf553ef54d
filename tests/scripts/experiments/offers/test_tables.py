"""Tables 5 and 6 and Figure 4 from rows: marks, intervals, and a run from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from crawl_envs.evaluation import Row
from scripts.experiments.measures import offer_freshness
from scripts.experiments.measures.offer_freshness import (
    BUDGETS,
    CLICK,
    CLICK_GAIN,
    ID,
    NAMES,
    TIGHT,
    name_of,
)
from scripts.experiments.measures.offer_strategies import Run
from scripts.experiments.measures.offer_tables import (
    GAIN_5,
    GAIN_6,
    TABLE_5,
    TABLE_6,
    PaperTable,
    Record,
    write_tables,
)
from scripts.experiments.offers import tables as offers_tables
from scripts.reproduce import app
from scripts.study.intervals import median_of, signed_rank
from scripts.study.rows import indexed
from tests.scripts.commands import records
from tests.scripts.experiments.offers.smoothed_rates import forget, predict_by_history

PAPER = {"Delta_h": (0.2,) * 9, "KAB5": (0.9,) * 9}
MEASURE = PaperTable("", "click_freshness", "click_gain", "click_day", PAPER, (0.01,) * 9)
GROUPS = {
    "one": ("Uniform",),
    "two": ("mu_ml", "lambda_ml"),
    "truth": ("best",),
    "three": ("KAB5",),
}
RUNS, DAYS = 8, 5


def read(path: Path) -> list[dict[str, str]]:
    return records(path)


def made_rows(more: float) -> list[Row]:
    """Runs in which KAB5 is above lambda_ml by a share ``more``, on every day."""
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(RUNS):
        days = rng.uniform(0.6, 0.7, DAYS)
        for label, scale in (("Uniform", 0.5), ("mu_ml", 0.9), ("lambda_ml", 1.0), ("best", 1.3)):
            values = {MEASURE.value: scale * np.median(days)}
            if label == "lambda_ml":
                values |= indexed(MEASURE.day, days)
            rows += [Row(ID, "10%", label, seed, *item) for item in values.items()]
        values = {
            MEASURE.value: (1.0 + more) * np.median(days),
            MEASURE.gain: more,
            **indexed(MEASURE.day, (1.0 + more) * days),
        }
        rows += [Row(ID, "10%", "KAB5", seed, *item) for item in values.items()]
    return rows


def written(tmp_path: Path, more: float) -> list[list[dict[str, str]]]:
    path = tmp_path / "table5.csv"
    write_tables(
        made_rows(more),
        path,
        table=MEASURE,
        groups=GROUPS,
        beyond=("best",),
    )
    names = ("table5.csv", "table5_intervals.csv", "paper_table5.csv")
    return [read(path.with_name(name)) for name in names]


def test_the_best_of_a_group_and_of_all_are_marked(tmp_path: Path) -> None:
    table, _, _ = written(tmp_path, 0.02)
    cells = {line["policy"]: line["10%"] for line in table}
    middle = np.median(
        [
            row.value
            for row in made_rows(0.02)
            if row[2:3] + row[4:5] == ("lambda_ml", MEASURE.value)
        ]
    )
    assert cells["lambda_ml"] == f"**{middle:.4f}**"
    assert cells["mu_ml"] == f"{0.9 * middle:.4f}"
    assert cells["Uniform"] == f"{0.5 * middle:.4f}"
    assert cells["best"] == f"{1.3 * middle:.4f}"
    assert cells["KAB5"] == f"{1.02 * middle:.4f}*"
    assert cells["+% vs. lambda_ml"] == "+2.00%†"


@pytest.mark.parametrize(("more", "cell"), [(-0.02, "-2.00%"), (0.0, "+0.00%")])
def test_only_a_gain_has_a_dagger(tmp_path: Path, more: float, cell: str) -> None:
    table, _, _ = written(tmp_path, more)
    assert {line["policy"]: line["10%"] for line in table}["+% vs. lambda_ml"] == cell


def test_intervals_and_tests_are_over_runs_and_over_days(tmp_path: Path) -> None:
    _, long, _ = written(tmp_path, 0.02)
    by_policy = {line["policy"]: line for line in long}
    assert tuple(by_policy["KAB5"]) == Record._fields
    rows = made_rows(0.02)
    runs = {
        label: [row.value for row in rows if (row.policy, row.metric) == (label, MEASURE.value)]
        for label in ("KAB5", "lambda_ml")
    }
    days = {
        label: [
            row.value for row in rows if row.policy == label and row.metric.startswith("click_day")
        ]
        for label in ("KAB5", "lambda_ml")
    }
    line = {name: float(by_policy["KAB5"][name]) for name in Record._fields[2:]}
    assert line["runs"] == RUNS
    assert (line["median"], line["low_95"], line["high_95"]) == median_of(runs["KAB5"])
    assert line["p_runs"] == signed_rank(runs["KAB5"], runs["lambda_ml"]) == 2.0 / 2.0**RUNS
    assert (line["days_median"], line["days_low_95"], line["days_high_95"]) == median_of(
        days["KAB5"]
    )
    assert line["p_days"] == pytest.approx(signed_rank(days["KAB5"], days["lambda_ml"]))
    assert line["p_days"] < line["p_runs"]
    assert line["days_gain"] == pytest.approx(0.02)
    assert np.isnan(float(by_policy["mu_ml"]["days_median"]))
    assert float(by_policy["lambda_ml"]["p_runs"]) == 1.0


def test_the_papers_numbers_are_next_to_ours(tmp_path: Path) -> None:
    _, _, beside = written(tmp_path, 0.02)
    assert [line["policy"] for line in beside] == ["KAB5", "KAB5 over lambda_ml, share"]
    assert float(beside[0]["difference"]) == pytest.approx(float(beside[0]["here"]) - 0.9)
    assert float(beside[1]["difference"]) == pytest.approx(0.01)


def test_tables_of_the_paper_are_complete() -> None:
    """Each policy at all budgets, more with more to crawl; and gains as the two medians have them.

    The paper's gains are medians of ratios, ours here ratios of medians, hence the tolerance.
    """
    for table, gains in ((TABLE_5, GAIN_5), (TABLE_6, GAIN_6)):
        assert len(table) == 10
        for label, numbers in table.items():
            assert len(numbers) == len(BUDGETS), label
            assert np.all(np.diff(numbers) > 0.0), label
        ratio = np.divide(table["KAB5"], table["lambda_ml"]) - 1.0
        np.testing.assert_allclose(ratio, gains, atol=0.006)


def test_settings_are_named_after_budgets() -> None:
    assert name_of(0.001) == "0.1%"
    assert tuple(f"{share}%" for share in range(10, 100, 10)) == NAMES
    assert list(offers_tables.SETTING_BUDGETS.values()) == [*TIGHT, *BUDGETS]
    assert [float(name[:-1]) for name in offers_tables.SETTING_BUDGETS] == pytest.approx(
        [100.0 * budget for budget in (*TIGHT, *BUDGETS)]
    )
    names = [item.name for item in offers_tables.measurements(False)]
    assert names == [*offers_tables.ALL_NAMES]
    assert len({*names}) == 27


def test_every_label_is_in_one_group() -> None:
    grouped = [label for labels in offers_tables.GROUPS.values() for label in labels]
    assert sorted(grouped) == sorted(offers_tables.LABELS)


def test_the_tables_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)
    monkeypatch.setattr(offer_freshness, "QUICK_RUN", Run(0, 300, 1, 3))
    given = ["offers_tables", "--quick", "--repetitions", "2", "--workers", "1"]
    result = CliRunner().invoke(app, [*given, "--out", str(tmp_path)])
    forget()
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "offers" / "tables").iterdir()}
    assert made >= {"table5.png", "table6.png", "fig4.png", "fig6.png", "paper_table6.csv"}
    assert (
        len(read(tmp_path / "offers" / "tables" / "fig4.csv")) == 2 * 4 * 3
    )  # measures, budgets, policies
    table = read(tmp_path / "offers" / "tables" / "table6.csv")
    assert [key for key in table[0] if key.endswith("%")] == ["10%", "50%", "90%"]
    assert {line["policy"] for line in table} >= {*offers_tables.LABELS}


def test_lifts_and_gaps_are_derived_seed_by_seed() -> None:
    values = [
        *(("10%", label, CLICK, x) for label, x in (("Delta_ml", 0.6), ("Delta_h", 0.3))),
        *(("10%", "KAB2", CLICK_GAIN, -0.2), ("90%", "KAB2", CLICK_GAIN, 0.05)),
        ("10%", "KAB3", CLICK_GAIN, 0.1),  # without a row at 90%
    ]
    rows = [Row(ID, setting, label, 0, metric, x) for setting, label, metric, x in values]
    found = {row[1:3] + row[4:5]: row.value for row in offers_tables.derive(rows)}
    closed = ("10%", "KAB2", offers_tables.CLOSED[CLICK_GAIN])
    lift = ("10%", "Delta_ml", f"{CLICK} over Delta_h")
    assert found == {lift: pytest.approx(2.0), closed: pytest.approx(0.15)}
