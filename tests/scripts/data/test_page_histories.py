from __future__ import annotations

from pathlib import Path

import pytest

from scripts.data.git.git_history import Touch
from scripts.data.git.page_histories import PageBook
from scripts.data.git.trace_writing import directory_groups, group_of
from scripts.data.git.versions import jaccard_distance, read_version


def test_two_pages_may_swap_names() -> None:
    book = PageBook()
    whole = ("0" * 40, "1" * 40)
    book.enter([Touch(None, n, None, b, 1, 0) for n, b in zip("ab", whole, strict=True)], 0.0, 0.0)
    a, b = book.pages
    book.enter(
        [Touch("a", "b", whole[0], whole[0], 0, 0), Touch("b", "a", whole[1], whole[1], 0, 0)],
        1.0,
        1.0,
    )
    assert (a.path, b.path) == ("b", "a")
    assert book.pages == [a, b]
    assert book.mentioned("a") == [b]


@pytest.mark.parametrize(
    ("subject", "named"),
    [
        ("Fix index.md", {"index"}),
        ("Fix index", {"index"}),
        ("fix INDEX!", {"index"}),
        ("docs/index.md: fix", {"index"}),
        ("reindex everything", set()),
        ("index2 is new", set()),
        ("Fix git-commit", {"git-commit"}),
        ("Fix git commit", {"git"}),
        ("git: fix; see index.", {"git", "index"}),
        ("C++ is back", {"c++"}),
        ("the C language", set()),
        ("node.js@20.1: update", {"node.js"}),
        ("edit 'two words'", {"two words"}),
        ("edit two", set()),
        (".profile", {".profile"}),
        ("", set()),
    ],
)
def test_which_pages_a_subject_names(subject: str, named: set[str]) -> None:
    book = PageBook()
    stems = ["index", "git", "git-commit", "c++", "node.js", "two words", ".profile"]
    book.enter([Touch(None, f"d/{stem}.md", None, "0" * 40, 1, 0) for stem in stems], 0.0, 0.0)
    assert {Path(page.path).stem for page in book.mentioned(subject)} == named


@pytest.mark.parametrize(
    ("subject", "named"),
    [
        ("Fix index", set()),
        ("Update index.md", set()),
        ("Fix the index of Guide", {"guide/index.md"}),
        ("guide/index.md: typo", {"guide/index.md"}),
        ("Fix the guides' index", set()),
        ("Fix the two words index", {"en/two words/index.md"}),
        ("en: index", set()),
        ("Api and guide: index", {"api/index.rst", "guide/index.md"}),
        ("api index.rst", {"api/index.rst"}),
        ("index.rst", {"api/index.rst"}),
        ("Fix setup", {"guide/setup.md"}),
    ],
)
def test_a_name_that_pages_share_needs_the_directory(subject: str, named: set[str]) -> None:
    book = PageBook()
    paths = ["index.md", "guide/index.md", "api/index.rst", "en/two words/index.md"]
    paths.append("guide/setup.md")
    book.enter([Touch(None, path, None, "0" * 40, 1, 0) for path in paths], 0.0, 0.0)
    assert {page.path for page in book.mentioned(subject)} == named


def test_a_name_is_shared_by_living_pages_alone() -> None:
    book = PageBook()
    paths = ["a/index.md", "b/index.md"]
    book.enter([Touch(None, path, None, "0" * 40, 1, 0) for path in paths], 0.0, 0.0)
    assert book.mentioned("Fix index.md") == []
    book.enter([Touch(paths[0], None, "0" * 40, None, 0, 1)], 1.0, 1.0)
    assert [page.path for page in book.mentioned("Fix index.md")] == ["b/index.md"]


def test_the_dead_and_the_renamed_are_not_named() -> None:
    book = PageBook()
    book.enter([Touch(None, f"{n}.md", None, n * 40, 1, 0) for n in "abc"], 0.0, 0.0)
    book.enter([Touch("a.md", None, "a" * 40, None, 0, 1)], 1.0, 1.0)
    book.enter([Touch("b.md", "d.md", "b" * 40, "b" * 40, 0, 0)], 2.0, 2.0)
    assert [page.path for page in book.mentioned("a b c d")] == ["c.md", "d.md"]


def test_large_directories_are_split_by_first_letters() -> None:
    small = [f"small/{row}.md" for row in range(100)]
    large = [f"large/{letter}{row}.md" for letter in "ab" for row in range(60)]
    crowded = [f"crowd/page{row:03}.md" for row in range(150)]
    twice = ["same/x.md"] * 120 + ["same/xy.md"]
    groups = directory_groups([*small, *large, *crowded, *twice])
    assert sorted(groups.values()) == list(range(len(groups)))
    assert group_of("small/7.md", groups) == ("small", "")
    assert group_of("large/b7.md", groups) == ("large", "b")
    assert group_of("crowd/page149.md", groups) == ("crowd", "page1")
    assert group_of("same/x.md", groups) != group_of("same/xy.md", groups)
    for path in [*small, *large, *crowded, *twice]:
        assert group_of(path, groups) in groups
    assert group_of("nowhere/x.md", groups) not in groups


@pytest.mark.parametrize(
    ("old", "new", "distance"),
    [("", "", 0.0), ("", "a", 1.0), ("a b", "a b", 0.0), ("a b c", "c b a", 1.0),
     ("a b c d", "a b c", 0.5), ("a b c a b c", "a b c a b", 0.0)],
)  # fmt: skip
def test_jaccard_distance(old: str, new: str, distance: float) -> None:
    assert jaccard_distance(read_version(old.encode()), read_version(new.encode())) == distance
