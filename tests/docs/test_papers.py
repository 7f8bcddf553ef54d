"""The page of papers, equation by equation: it is whole, and what it names exists where it says."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, NamedTuple

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "papers.md"
LINK = r"\[`?([^\]`]+)`?\]\(\.\./([^)]+)\)"
LAST = {
    "NCIS": {"eq.": 7, "lemma": 4, "theorem": 1, "algorithm": 1},  # eqs. 3 to 7: appendix A
    "LambdaCrawl": {  # eqs. 12 and 13 are in the supplement, cited in section 7
        "eq.": 13,
        "proposition": 9,
        "problem": 3,
        "algorithm": 4,
    },
    "Information longevity": {"eq.": 4},  # section 2.2
    "Shopping offers": {"eq.": 4, "algorithm": 1},  # section 4.2.2, section 3.2.3
    "Related work": {},
}
"""The last number of each kind in each paper, by section of the page."""
FOLDERS = {
    "NCIS": "ncis",
    "LambdaCrawl": "lambdacrawl",
    "Information longevity": "longevity",
    "Shopping offers": "offers",
}
"""Folders of results."""


class Equation(NamedTuple):
    """A row of the page."""

    section: str
    source: str
    says: str
    here: str
    checked: str


def sections() -> dict[str, str]:
    """Return the text of each section by the first words of its heading."""
    parts = re.split(r"^## ([^:\n]+).*\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def rows() -> list[Equation]:
    """Return the rows of all tables."""
    result = []
    for section, text in sections().items():
        head, line, *lines = [line for line in text.split("\n") if line.startswith("|")]
        assert head == "| in the paper | what it says | here | checked against |"
        assert set(line) == {"|", "-", " "}
        result += [Equation(section, *row.strip("| ").split(" | ")) for row in lines]
    return result


ROWS = rows()
NAMES = [(name, file) for row in ROWS for name, file in re.findall(LINK, row.here)]


def resolved(name: str) -> Any:
    """Return what a dotted name stands for: the longest module, then attributes."""
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        for part in parts[number:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def test_there_are_tables():
    assert list(sections()) == list(LAST)
    assert len(ROWS) > 150
    assert len(NAMES) > 180
    assert all(any(row.section == section for row in ROWS) for section in LAST)


@pytest.mark.parametrize("section", LAST)
def test_every_number_of_the_papers_has_one_row(section):
    sources = [row.source for row in ROWS if row.section == section]
    for kind, last in LAST[section].items():
        found = [re.fullmatch(rf"{re.escape(kind)} (\d+)", source) for source in sources]
        numbers = sorted(int(match[1]) for match in found if match)
        assert numbers == list(range(1, last + 1)), kind
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize(("name", "file"), sorted(set(NAMES)))
def test_names_are_defined_in_the_files_that_are_linked(name, file):
    thing = resolved(name)
    thing = thing.fget if isinstance(thing, property) else thing
    thing = inspect.unwrap(getattr(thing, "py_func", thing))  # of compiled functions
    source = inspect.getsourcefile(thing)
    assert source is not None
    assert source == str(ROOT / file)


def test_names_that_are_nothing_are_noticed():
    with pytest.raises(AttributeError):
        resolved("policies.values.no_such_function")
    with pytest.raises(ModuleNotFoundError):
        resolved("no_such_package.values")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}, {row.source}")
def test_rows_name_a_function_and_a_test_or_say_why_not(row):
    assert row.says.endswith(".")
    files = [file for _, file in re.findall(LINK, row.checked)]
    assert all(re.fullmatch(r"tests/.*test_\w+\.py", file) for file in files)
    if row.here.startswith("not implemented"):
        assert re.fullmatch(r"not implemented: \w.+", row.here)
        assert files or row.checked == "–"  # noqa: RUF001
    else:
        assert re.fullmatch(rf"{LINK}(, {LINK})*", row.here)
        assert files
        assert re.match(r"[^\[]+: \[", row.checked)


@pytest.mark.parametrize("section", FOLDERS)
def test_papers_lead_to_their_figures_and_claims(section):
    folder = f"../results/{FOLDERS[section]}"
    links = f"[figures]({folder}/README.md) and [claims]({folder}/claims.md)"
    assert links in sections()[section]
