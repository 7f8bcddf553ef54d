"""What the Markdown files name exists: files, headings, commands, environments."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import gymnasium
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
    name for file, text in TEXT.items() for name in re.findall(r"-m (scripts[.\w]+\w)", text)
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


def test_the_table_of_the_readme_has_the_shapes_and_lengths_of_the_ids():
    rows = re.findall(
        r"^\| `(Crawl\w+-v\d+)` \|.*\| \(([\d, ]+)\) \| (.*) \| (\d+) \|$",
        TEXT[ROOT / "README.md"],
        re.MULTILINE,
    )
    assert {name for name, *_ in rows} == set(crawl_envs.FAMILIES)
    for name, shape, action, steps in rows:
        env = gymnasium.make(name)
        space = env.action_space
        pages = isinstance(space, gymnasium.spaces.Discrete)
        assert env.observation_space.shape == tuple(map(int, shape.split(",")))
        assert action == (f"page, 0 to {space.n - 1}" if pages else f"crawl rates, {space.shape}")
        assert env.spec.max_episode_steps == int(steps)


def test_the_readme_counts_the_presets_and_their_table_is_complete():
    assert f"[{len(crawl_envs.PRESETS)} ids](results/presets/README.md)" in TEXT[ROOT / "README.md"]
    table = TEXT[ROOT / "results" / "presets" / "README.md"]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.M) == list(crawl_envs.PRESETS)
    gains = re.findall(r"\| \+([.\d]+) ± ([.\d]+) \|$", table, re.M)
    little = [
        name
        for name, (gain, half) in zip(crawl_envs.PRESETS, gains, strict=True)
        if float(gain) <= float(half)
    ]
    assert little == ["CrawlOffers-100-Scores-v1"]  # which CrawlOffers-Month replaces


@pytest.mark.parametrize(
    ("words", "track"),
    [
        ("known rates", "known rates"),
        ("missed changes", "missed changes"),
        ("a learning formula, are near", "unknown rates"),
        ("pages of fragments", "fragments"),
        ("offers", "offers"),
        ("misspecified models", "misspecified"),
        ("a recorded site", "recorded"),
    ],
)
def test_what_the_readme_calls_solved_or_open_is_as_committed(words, track):
    board = TEXT[ROOT / "results" / "crawl-v1" / "README.md"]
    first = re.search(rf"^\| {track} \| \S+ ([.\d]+) \[", board, re.M)
    assert first is not None
    said = TEXT[ROOT / "README.md"].replace("\n  ", " ")
    assert f"{words} ({first[1]})" in said


def test_the_leaderboard_of_the_readme_is_the_committed_one():
    board = TEXT[ROOT / "results" / "crawl-v1" / "README.md"]
    table = re.search(r"\| track \| first.*?\n\n", board, re.S)
    assert table is not None
    assert table[0].count("\n") > 8
    assert table[0] in TEXT[ROOT / "README.md"]
