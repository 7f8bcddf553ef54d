"""What the Markdown files name exists: files, headings, commands, environments."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import pytest

import crawl_envs
from tests.docs.pages import PAGES, ROOT, named

LLMS = ROOT / "docs" / "llms.txt"
FILES = [
    *PAGES,
    LLMS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "results").glob("**/*.md")),
]
TEXT = {file: file.read_text("utf-8") for file in FILES}
COMMANDS = {
    name
    for file, text in TEXT.items()
    for name in re.findall(r"-m (scripts[.\w]+\w)", text)
    if file.name != "CHANGELOG.md"  # which has old names
}


def _headings(file: Path) -> set[str]:
    """Return the anchors of the headings of a Markdown file, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("file", FILES, ids=named)
def test_relative_links_lead_to_files_and_headings(file):
    links = re.findall(r'(?:\]\(|src="|href=")(?!https?:)([^)"\s]+)', TEXT[file])
    for link in links:
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(file.parent / path)) if path else file
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in _headings(target), link


def test_there_are_links():
    assert sum(text.count("](") for text in TEXT.values()) > 200


@pytest.mark.parametrize("module", sorted(COMMANDS))
def test_commands_exist(module):
    assert (ROOT / (module.replace(".", "/") + ".py")).is_file()


def test_every_environment_has_a_row():
    rows = (ROOT / "docs" / "environments.md").read_text("utf-8")
    assert set(crawl_envs.FAMILIES) == set(re.findall(r"^\| `(Crawl\w+-v\d+)` \|", rows, re.M))


def test_every_page_is_in_the_contents():
    contents = (ROOT / "docs" / "index.md").read_text("utf-8")
    listed = re.findall(r"^(\w+)$", contents, re.MULTILINE)
    assert sorted({*listed, "index"}) == sorted(
        page.stem for page in PAGES if page.parent == ROOT / "docs"
    )


def test_the_overview_for_language_models_is_of_the_convention_and_whole():
    head, *sections = re.split(r"^## .*\n", TEXT[LLMS], flags=re.MULTILINE)
    assert re.match(r"# [^\n]+\n\n> [^\n]+\n\n", head)
    lines = [line for section in sections for line in section.split("\n") if line]
    entries = [re.fullmatch(r"- \[[^\]]+\]\(([^)]+)\): .+", line) for line in lines]
    assert all(entries), lines
    linked = {os.path.normpath(LLMS.parent / entry[1]) for entry in entries if entry}
    pages = {str(page) for page in PAGES if page.parent == LLMS.parent}
    assert pages - linked == {str(LLMS.parent / "index.md")}
    assert set(crawl_envs.FAMILIES) == set(re.findall(r"`(Crawl\w+-v\d+)`", head))


def test_the_leaderboard_of_the_readme_is_the_committed_one():
    board = TEXT[ROOT / "results" / "crawl-v1" / "README.md"]
    table = re.search(r"\| track \| first.*?\n\n", board, re.S)
    assert table is not None
    assert table[0].count("\n") > 8
    assert table[0] in TEXT[ROOT / "README.md"]
