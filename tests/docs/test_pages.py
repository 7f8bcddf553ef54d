"""What the Markdown files name exists: files, headings, commands, environments."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import gymnasium
import pandas as pd
import pytest
from scipy.special import stdtrit

import crawl_envs
import policies
from crawl_envs.evaluation import evaluate
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
README = TEXT[ROOT / "README.md"]
TASKS = {
    "CrawlNCIS-v0": "noisy",
    "CrawlHarmonic-v0": "harmonic",
    "CrawlLongevity-v0": "quality",
    "CrawlOffers-v1": "offers-scores",
    "CrawlTrace-v0": "garden-directory-4",
}
"""The task of each environment in the table of the README."""
BY_FORMULA = ("CrawlHarmonic-v0", "CrawlLongevity-v0")
"""Environments where the agent ``generalist`` is a formula."""
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


def test_the_table_of_environments_has_the_shapes_and_lengths_of_the_ids():
    rows = re.findall(
        r"^\| `(Crawl\w+-v\d+)` \|.*\| \(([\d, ]+)\) \| (.*) \| (\d+|varies) \|$",
        TEXT[ROOT / "docs" / "environments.md"],
        re.MULTILINE,
    )
    assert {name for name, *_ in rows} == set(crawl_envs.FAMILIES)
    for name, shape, action, steps in rows:
        env = gymnasium.make(name)
        space = env.action_space
        pages = isinstance(space, gymnasium.spaces.Discrete)
        assert env.observation_space.shape == tuple(map(int, shape.split(",")))
        assert action == (f"page, 0 to {space.n - 1}" if pages else f"crawl rates, {space.shape}")
        if steps != "varies":
            assert env.spec.max_episode_steps == int(steps)


def test_the_presets_are_counted_and_their_table_is_complete():
    page = TEXT[ROOT / "docs" / "environments.md"]
    assert f"[{len(crawl_envs.PRESETS)} ids](../results/presets/README.md)" in page
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
    "track",
    [
        "sanity",
        "hidden rates",
        "misspecified",
        "held-out laws",
        "missed changes",
        "fragments",
        "offers",
        "prices",
        "across sites",
        "guarantees",
    ],
)
def test_the_best_scores_of_tracks_are_the_committed_ones(track):
    board = TEXT[ROOT / "results" / "crawl-v2" / "README.md"]
    first = re.search(rf"^\| {track} \| (\S+) ([.\d]+) \[", board, re.M)
    assert first is not None
    assert f"| {track} | {first[1]} {first[2]} |" in TEXT[ROOT / "docs" / "results.md"]


def test_the_archived_board_alone_names_its_successor_first():
    boards = [TEXT[ROOT / "results" / name / "README.md"] for name in ("crawl-v1", "crawl-v2")]
    begins = [text.split("\n\n")[1].startswith("**Archived.** [crawl-v2](") for text in boards]
    assert begins == [True, False]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 90
    assert len(README.split()) <= 800


def test_the_rewards_of_the_readme_are_the_committed_ones():
    rows = pd.read_parquet(ROOT / "results" / "agents" / "rl" / "rows.parquet")
    rewards = rows[rows.metric == "reward"].groupby(["setting", "policy"]).value.mean()
    cells = re.findall(r"^\| `(Crawl\w+-v\d+)` \|.*?\| (-?\d.*) \|$", README, re.M)
    assert [name for name, _ in cells] == list(TASKS)
    for name, shown in cells:
        task = rewards[TASKS[name]]
        learned = task.drop(["RandomCrawl", "RoundRobin", "best formula", "bound"])
        if name in BY_FORMULA:
            learned = learned.drop("generalist")
        numbers = [task["RandomCrawl"], task["best formula"], learned.max(), task["bound"]]
        expected = [f"{number:.3f}" for number in numbers]
        expected[2] += f" ({learned.idxmax()})"
        assert shown.split(" | ") == expected


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("GreedyNCIS", "# {} of all requests were served fresh"),
        ("RoundRobin", "Round robin reaches {} on the same events"),
        ("RandomCrawl", "random crawling {}."),
    ],
)
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_accuracies_beside_the_first_code_are_right(page, policy, words):
    factories = {policy: lambda env: policies.make(policy, env)}
    arguments = {"num_pages": 100, "instance": "noisy"}
    rows = evaluate("crawl_envs:CrawlNCIS-v0", factories, [0], **arguments)
    [accuracy] = [row.value for row in rows if row.metric == "accuracy"]
    assert words.format(f"{accuracy:.3f}") in " ".join(TEXT[ROOT / page].split())


def test_the_staleness_that_costs_save_is_the_committed_one():
    rows = pd.read_parquet(ROOT / "results" / "ncis" / "costs" / "rows.parquet")
    saved = 100.0 * rows[rows.metric == "saved"].groupby("setting").value.agg(["mean", "sem"])
    half = stdtrit(19, 0.975) * saved["sem"]
    page = TEXT[ROOT / "docs" / "costs.md"]
    for setting in ("R = m, spread 1", "R = m / 4, spread 1"):
        assert f"{saved['mean'][setting]:.1f} ± {half[setting]:.1f}%" in page


def test_the_staleness_with_costs_and_the_least_are_the_committed_ones():
    rows = pd.read_parquet(ROOT / "results" / "ncis" / "costs" / "rows.parquet")
    stale = rows.pivot_table(index="setting", columns="metric", values="value")
    numbers = re.findall(
        r"the staleness of.*is (\.\d+), the least possible\s+(\.\d+)\. .* it is "
        r"(\.\d+), the least (\.\d+)",
        TEXT[ROOT / "docs" / "environments.md"],
    )
    expected = [
        f"{stale[metric][f'R = m, spread {spread}']:.3f}"[1:]
        for spread in (1, 2)
        for metric in ("per_cost", "least")
    ]
    assert numbers == [tuple(expected)]


def test_the_scores_of_the_page_of_policies_are_the_committed_ones():
    scores = pd.read_csv(ROOT / "results" / "crawl-v2" / "scores.csv")
    scores = scores[scores.state == "plays"].set_index(["task", "policy"]).score
    page = TEXT[ROOT / "docs" / "policies.md"]
    rows = re.findall(r"^\| .* \| `(\w+)` \| ([\w-]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert len(rows) == 7
    for policy, task, score, alike in rows:
        baseline = "RoundRobin" if "RoundRobin" in scores[task] else "UniformCrawl"
        assert [score, alike] == [f"{scores[task, name]:.3f}" for name in (policy, baseline)]
