"""The Markdown files that visitors read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "policies" / "live" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
"""README files and the pages of the site that are written by hand."""


def named(path: Path) -> str:
    """Return a path as it is named in the repository."""
    return str(path.relative_to(ROOT))
