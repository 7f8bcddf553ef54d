"""README.md of a leaderboard, and what its templates share with those of the report."""

from __future__ import annotations

import os.path
import re
from functools import partial
from pathlib import Path
from typing import Any

from scripts.present.filled_tables import grid
from scripts.present.tables import counted
from scripts.suite import tables
from scripts.suite.kinds import KINDS
from scripts.suite.scores import OVER
from scripts.suite.tables import Played
from scripts.suite.tasks import BOUNDS, MEASURED

TEMPLATES = Path(__file__).parent
ROOT = TEMPLATES.parents[2]


def page_of(played: Played, folder: Path) -> str:
    """Return the page of the leaderboard in a folder."""
    board = []
    for item in played.ranked:
        entrant, cells = played.entrants[item.policy], tables.cells_of(item, played)
        cells[1] = _linked(cells[1], target(folder, entrant.file))
        cells[3] = _linked(cells[3], target(folder, entrant.page))
        board.append(cells)
    over = sorted(set(played.scores[played.scores.state == OVER].policy))
    return rendered("leaderboard.md", played, folder, table=grid, board=board, over=over)


def rendered(template: str, played: Played, folder: Path, **contents: Any) -> str:
    """Return a file of this folder, for another, with its contents, which HTML escapes."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["number"] = tables.number
    environment.filters["code"] = _code
    return environment.get_template(template).render(
        played=played,
        tables=tables,
        kinds=KINDS,
        target=partial(target, folder),
        gains=tables.gains_of(played),
        counted=counted,
        seeds=counted(played.scores.seed.nunique(), "seed"),
        bounds=BOUNDS,
        measured=MEASURED,
        **contents,
    )


def target(folder: Path, page: str) -> str:
    """Return where a link from a folder leads to a page of the checkout; empty if it has none."""
    file, _, _ = page.partition("#")
    if not file or not (ROOT / file).is_file():
        return ""
    return Path(os.path.relpath(ROOT / page, folder.resolve())).as_posix()


def _code(text: str) -> Any:
    """Return a text whose words in backticks are code, as HTML."""
    import markupsafe

    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def _linked(text: str, place: str) -> str:
    return f"[{text}]({place})" if text and place else text
