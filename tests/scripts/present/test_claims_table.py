from __future__ import annotations

import io

from rich.console import Console

from crawl_envs.evaluation import Row
from scripts.present.claims_table import claims_table
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend

EXPERIMENT = Experiment(
    name="paper-fig1",
    title="Title",
    claim="A claim.",
    metric="accuracy",
    settings=lambda quick: [],
    pictures={},
    claims=(
        Claim("B is better.", "section 1", (Trend("B", "above", "A", ("m=2", "m=3"), "x"),)),
        Claim("It crawls the web.", "section 2"),
    ),
    expected=(Range("A", 0.0, 1.0, ("m=2",), "ours"),),
)


def rows(settings: tuple[str, ...], lead: float) -> list[Row]:
    return [
        Row("id", setting, policy, seed, "accuracy", 0.5 + 0.01 * seed + lead * (policy == "B"))
        for setting in settings
        for policy in "AB"
        for seed in range(3)
    ]


def printed(quick: list[Row] | None, full: list[Row]) -> list[list[str]]:
    console = Console(width=100, record=True, file=io.StringIO())
    beside = None if quick is None else EXPERIMENT.sentences(quick, True)
    console.print(claims_table(EXPERIMENT.sentences(full, False), beside))
    lines = console.export_text().splitlines()
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]


def test_only_the_full_run_is_judged_next_to_a_quick_run() -> None:
    full = [*rows(("m=2",), 0.2), *rows(("m=3",), 0.1)]
    assert printed(rows(("m=2",), -0.1), full) == [
        ["B is better.", "", "", "holds"],
        ["B > A", "-0.1 (1)", "0.1 .. 0.2 (2)", "2 ✓"],
        ["It crawls the web.", "", "", "not tested"],
        ["Not in the paper", "", "", "holds"],
        ["A in [0, 1], m=2", "0.51 (1)", "0.51 (1)", "1 ✓"],
    ]


def test_without_a_full_run_nothing_is_judged() -> None:
    lines = printed(rows(("m=2",), 0.2), [])
    assert lines[1] == ["B > A, m=2", "0.2 (1)", "-", ""]
    assert lines[0][-1] == ""


def test_a_full_run_alone_has_one_column_and_counts_what_fails() -> None:
    lines = printed(None, [*rows(("m=2",), 0.2), *rows(("m=3",), -0.1)])
    assert lines[:2] == [
        ["B is better.", "", "holds in part"],
        ["B > A", "-0.1 .. 0.2 (2)", "1 ✓ 1 ✗"],
    ]


def test_a_quick_run_counts_its_tests() -> None:
    full, quick = [*rows(("m=2", "m=3"), 0.2)], rows(("m=2",), 0.2)
    of_full, of_quick = (EXPERIMENT.sentences(*of) for of in ((full, False), (quick, True)))
    caption = str(claims_table(of_full, of_quick).caption)
    assert caption.startswith("A quick run is too small to be judged; ")
    assert "it has 2 of 3 tests." in caption
    assert "quick run" not in str(claims_table(of_full).caption)
