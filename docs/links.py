"""Links between Markdown files of the repository, rewritten to the pages of the site.

All links are written for readers of the repository: relative to their file, to a file that exists.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import crawl_envs

DOCS = Path(__file__).parent
ROOT = DOCS.parent

MIRRORED = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "crawl_envs/instances/recorded/README.md",
    "policies/live/README.md",
    *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("results/**/*.md")),
)
"""Markdown files outside docs that are pages, under ``generated`` with the same path."""

ENVIRONMENTS = {
    name: place.partition(":")[0].replace(".", "/") + ".py"
    for name, place in crawl_envs.FAMILIES.items()
}
"""Files whose page is that of their environment."""

PAGES = (
    {
        "README.md": "index.md",
        "docs": "index.md",
        "policies/base/registry.py": "generated/policies.md",
    }
    | {f"docs/{file.name}": file.name for file in DOCS.glob("*.md")}
    | {name: f"generated/{name}" for name in MIRRORED}
    | {str(Path(name).parent): f"generated/{name}" for name in MIRRORED if "README" in name}
    | {file: f"generated/environments/{name}.md" for name, file in ENVIRONMENTS.items()}
)
"""Pages of the site, relative to docs, by files and folders of the repository."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")
THUMBNAIL = re.compile(r'<a href="[^"]*"><img src="([^"]*)" width="(\d+)" alt="([^"]*)"></a>')


def rewritten(text: str, file: str, page: str) -> str:
    """Return the text of a Markdown file with links for its page of the site.

    A link to a file with a page leads to the page. A link to another file or picture becomes
    relative to the page. A link to a folder without a page becomes its name.

    Args:
        text: the text.
        file: path of its file in the repository.
        page: path of its page in docs.
    """

    def replaced(link: re.Match[str]) -> str:
        picture, words, target, anchor = link.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(file), target))
        if path in PAGES:
            destination = DOCS / PAGES[path]
        elif (ROOT / path).is_dir():
            folder = f"`{path}`"
            return folder if words == folder else f"{words} ({folder})"
        else:
            destination = ROOT / path
        relative = os.path.relpath(destination, (DOCS / page).parent)
        return f"{picture}[{words}]({relative}{anchor or ''})"

    return LINK.sub(replaced, THUMBNAIL.sub(r"![\3](\1){width=\2px}", text))
