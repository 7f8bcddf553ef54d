from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from crawl_envs.evaluation import Row
from scripts.present import claims
from scripts.present.experiment import Experiment
from scripts.present.verdicts import (
    Claim,
    Level,
    Range,
    Trend,
    Verdict,
    answer_of,
    counted_answers,
    write_verdicts,
)
from scripts.study.rows import write_rows

VALUES = {"A": [0.6, 0.7, 0.8], "B": [0.5, 0.6, 0.7]}


def experiment(name: str, **parts: Any) -> Experiment:
    return Experiment(
        name=name,
        title=f"Title of {name}",
        claim="A claim.",
        metric="accuracy",
        settings=lambda quick: [],
        pictures={"accuracy": lambda rows, path: None},
        **parts,
    )


def above(first: str, second: str) -> Trend:
    return Trend(first, "above", second, ("m=2",), "x")


def rows() -> list[Row]:
    return [
        Row("id", "m=2", policy, seed, "accuracy", value + 0.001 * seed * (policy == "A"))
        for policy, series in VALUES.items()
        for seed, value in enumerate(series)
    ]


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ([], "too few repetitions to judge"),
        (["yes", "yes"], "holds"),
        (["yes", "open"], "open"),
        (["open"], "open"),
        (["yes", "no"], "holds in part"),
        (["no", "open"], "does not hold"),
    ],
)
def test_an_answer_follows_from_the_verdicts(answers: list[str], word: str) -> None:
    verdicts = [Verdict("m=2", "A > B", 0.0, 0.0, answer, "x") for answer in answers]
    claim = Claim("A is better.", "section 1", (above("A", "B"),))
    assert answer_of(claim, verdicts, has_rows=True) == word
    fitted = answer_of(claim._replace(fitted=True), verdicts, has_rows=True)
    assert fitted == ("fitted" if word == "holds" else word)


def test_the_page_is_made_from_rows_alone(tmp_path: Path) -> None:
    sentences = (
        Claim("A is better.", "section 1", (above("A", "B"),)),
        Claim("B is better.", "section 2", (above("B", "A"), Range("B", 0.0, 1.0, ("m=2",), "x"))),
        Claim("Nobody knows.", "section 3", note="For want of a crawler."),
    )
    whole = experiment(
        "p-fig1", claims=sentences, expected=(above("A", "C"), Range("A", 0, 1, ("m=2",), ""))
    )
    one = (Claim("One. Two.", "section 4", (above("A", "B"),)),)
    old, missing = experiment("p-fig2", claims=one), experiment("p-fig3", claims=one)
    for figure, module in (("fig1", whole), ("fig2", old)):
        write_rows(tmp_path / figure / "rows.parquet", rows(), {"job": module.name})
    path = claims.write_claims(tmp_path, "p", [whole, old, missing], quick=False)
    page = path.read_text("utf-8")
    for line in (
        "| fig1 | A is better. | holds |",
        "| fig1 | B is better. | holds in part |",
        "| fig1 | Nobody knows. | not tested |",
        "| fig2 | One. Two. | holds |",
        "| fig3 | One. Two. | not tested |",
        "- A > B: m=2 0.1010 ± 0.0025 ✓",
        "- B > A: m=2 -0.1010 ± 0.0025 ✗",
        "For want of a crawler.",
        "Not in the paper:",
        "No rows yet: `python -m scripts.reproduce p_fig3`.",
        "3 repetitions. Metric: accuracy, except where another is named. Pictures: [accuracy](",
    ):
        assert line in page, line
    assert "README.md" not in page


def test_nothing_is_judged_of_a_quick_run(tmp_path: Path) -> None:
    level = Level("m=2", "A", 0.7, 0.1, "x")
    sentences = (
        Claim("A is better.", "section 1", (above("A", "B"),)),
        Claim("A is known.", "section 2", (level,)),
        Claim("Nobody knows.", "section 3"),
    )
    module = experiment("p-fig1", claims=sentences)
    write_rows(tmp_path / "fig1" / "rows.parquet", rows(), {"job": module.name})
    page = claims.write_claims(tmp_path, "p", [module], quick=True).read_text("utf-8")
    for line in (
        "nothing is judged",
        "| fig1 | A is better. | too few repetitions to judge |",
        "| fig1 | A is known. | too few repetitions to judge |",
        "| fig1 | Nobody knows. | not tested |",
        "- A > B: m=2 0.1010 ± 0.0025 ?",
        "- A = 0.7000 +/- 0.1000: m=2 0.70 ± 0.25 ?",
    ):
        assert line in page, line
    assert "holds" not in page
    full = claims.write_claims(tmp_path, "p", [module], quick=False).read_text("utf-8")
    assert "| fig1 | A is known. | holds |" in full


def test_a_claim_whose_numbers_take_more_repetitions(tmp_path: Path) -> None:
    test = Level("m=2", "A", 0.0, 3.0, "x", metric="errors")
    module = experiment("p-fig1", claims=(Claim("So.", "1", (test,)),))
    page = claims.write_claims(tmp_path, "p", [module], quick=False).read_text("utf-8")
    assert "| fig1 | So. | not tested |" in page
    write_rows(tmp_path / "fig1" / "rows.parquet", rows(), {"job": module.name})
    page = claims.write_claims(tmp_path, "p", [module], quick=False).read_text("utf-8")
    assert "| fig1 | So. | too few repetitions to judge |" in page


def test_rows_of_another_experiment_are_an_error(tmp_path: Path) -> None:
    write_rows(tmp_path / "fig1" / "rows.parquet", rows(), {"job": "other"})
    other = experiment("p-fig1", expected=(above("A", "B"),))
    with pytest.raises(ValueError, match="rows of 'p-fig1', got those of 'other'"):
        claims.write_claims(tmp_path, "p", [other], quick=False)


def test_derived_rows_are_judged(tmp_path: Path) -> None:
    def derive(given: list[Row]) -> list[Row]:
        return [row._replace(metric="twice", value=2.0 * row.value) for row in given]

    test = Trend("A", "above", "B", ("m=2",), "x", metric="twice")
    module = experiment("p-fig1", claims=(Claim("So.", "1", (test,)),), derive=derive)
    write_rows(tmp_path / "fig1" / "rows.parquet", rows(), {"job": module.name})
    page = claims.write_claims(tmp_path, "p", [module], quick=False).read_text("utf-8")
    assert "- A > B (twice): m=2 0.2020 ± 0.0050 ✓" in page


def test_the_file_has_every_sentence_and_counts_each_test_once(tmp_path: Path) -> None:
    test = above("A", "B")
    sentences = (Claim("A.", "1", (test,)), Claim("So A.", "2", (test,)), Claim("Nobody.", "3"))
    module = experiment("p-fig1", claims=sentences, expected=(above("B", "A"),))
    judged = module.sentences(rows(), False)
    write_verdicts(tmp_path / "verdicts.csv", {"fig1": judged, "fig2": judged[:1]})
    with (tmp_path / "verdicts.csv").open(encoding="utf-8") as file:
        *lines, last = csv.DictReader(file)
    assert (last["figure"], last["sentence"]) == ("fig2", "A.")
    lines = [(line["sentence"], line["answer"], line["holds"]) for line in lines]
    assert lines == [
        ("A.", "holds", "yes"),
        ("So A.", "holds", "yes"),
        ("Nobody.", "not tested", ""),
        ("Not in the paper", "does not hold", "no"),
    ]
    answers = counted_answers(tmp_path / "verdicts.csv")
    assert answers == {"fig1": {"yes": 1, "no": 1}, "fig2": {"yes": 1}}


def test_a_claim_about_a_label_without_rows_has_this_answer(tmp_path: Path) -> None:
    module = experiment("p-fig1", claims=(Claim("So.", "1", (above("A", "Bb"),)),))
    write_rows(tmp_path / "fig1" / "rows.parquet", rows(), {"job": module.name})
    page = claims.write_claims(tmp_path, "p", [module], quick=False).read_text("utf-8")
    assert "| fig1 | So. | a tested label or setting has no rows |" in page
