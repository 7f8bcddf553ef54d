"""Write the pages of a leaderboard: README.md, and a report in one HTML file."""

from __future__ import annotations

import base64
import gzip
import json
import math
import os.path
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.system.files import replacing
from scripts.present.tables import counted
from scripts.study.budget import OVER
from scripts.study.entrants import Candidate
from scripts.study.rows import PROVENANCE
from scripts.suite import headroom, tables
from scripts.suite.bounds import BOUND, BUDGET, bound_label
from scripts.suite.entrants import COMPOSITE, FIXED, KINDS
from scripts.suite.episodes import ARGUMENTS, EPISODE_POLICIES, record
from scripts.suite.report import charts
from scripts.suite.scores import ABSENT, ACTS, LATE, Leaderboard
from scripts.suite.sites import means_of
from scripts.suite.tasks import BOUNDS, MEASURED, TRACE, WINDOW

TEMPLATES = Path(__file__).parent
ROOT = TEMPLATES.parents[2]
MAX_TICKED = 8
REFERENCES = ("GreedyNCIS", "Greedy", "RoundRobin")
"""Well-known policies that the report shows at first (their boxes are ticked)."""
REASONS = TEMPLATES / "reasons.json"
TRAINING_HEAD = ("agent", "by", "on", "formula", "processor seconds", "command")


def write_page(board: Leaderboard, folder: Path) -> None:
    """Write the leaderboard as README.md in ``folder``, with links to code and papers."""
    rows = tables.board_rows(board)
    for cells, policy in zip(rows, board.standings.policy, strict=True):
        for place, page in ((1, board.entrants[policy].file), (3, board.entrants[policy].page)):
            if (link := target(folder, page)) and cells[place]:
                cells[place] = f"[{cells[place]}]({link})"
    over, late = (
        sorted(set(board.scores[board.scores.state == state].policy)) for state in (OVER, LATE)
    )
    _write(folder / "README.md", "leaderboard.md", board, rows=rows, over=over, late=late)


def write_report(path: Path, board: Leaderboard, candidates: Mapping[str, Candidate]) -> None:
    """Write the report of a leaderboard as one HTML file, with the provenance in its folder.

    ``candidates`` are the entrants by label; some are simulated to record an episode.
    """
    import vl_convert

    provenance, ticked = path.parent / PROVENANCE, _ticked(board)
    factories = {label: candidates[label].factory for label in EPISODE_POLICIES}
    recorded = charts.of_episode(record(factories))
    _write(
        path,
        "page.html",
        board,
        rows=tables.board_rows(board),
        style=(TEMPLATES / "style.css").read_text("utf-8"),
        behaviour=(TEMPLATES / "behaviour.js").read_text("utf-8"),
        library=_packed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        states=board.scores.groupby(["task", "state"]).policy.unique().to_dict(),
        notes=[("Over the budget", OVER), ("Promise broken", LATE), ("Cannot act here", ABSENT)],
        provenance=json.loads(provenance.read_text("utf-8")) if provenance.exists() else None,
        setting=ARGUMENTS,
        data={
            "chosen": ticked,
            "mostChosen": MAX_TICKED,
            "charts": charts.of_board(board),
            "episode": recorded,
        },
    )


def _write(path: Path, template: str, board: Leaderboard, **contents: Any) -> None:
    """Fill a template of this folder with a leaderboard and ``contents``, and write the file."""
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
    used = {entrant.kind for entrant in board.entrants.values()}
    text = environment.get_template(template).render(
        board=board,
        tables=tables,
        training=[TRAINING_HEAD, *training_rows(board)],
        reasons=reasons_of(board),
        gains=gains_of(board),
        kinds={kind: text for kind, text in KINDS.items() if kind in used or kind != COMPOSITE},
        heads=headroom.HEAD,
        headrooms=[item.texts for item in headroom.headrooms(board)],
        target=partial(target, path.parent),
        counted=counted,
        seeds=counted(board.scores.seed.nunique(), "seed"),
        bounds={task.bound: BOUNDS[task.bound] for task in board.tasks},
        measured=MEASURED,
        means_of=means_of,
        **contents,
    )
    with replacing(path) as unfinished:
        unfinished.write_text(text, "utf-8")


def target(folder: Path, page: str) -> str:
    """Return the relative link from a folder to a file of the checkout; empty if it is missing."""
    file, _, _ = page.partition("#")
    if not file or not (ROOT / file).is_file():
        return ""
    return Path(os.path.relpath(ROOT / page, folder.resolve())).as_posix()


def _code(text: str) -> Any:
    """Convert a text to HTML, in which words in backticks become code."""
    import markupsafe

    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def _packed(code: str) -> str:
    """Return a text packed by gzip in base64, under half as long; browsers since 2023 unpack it."""
    return base64.b64encode(gzip.compress(code.encode(), mtime=0)).decode()


def _ticked(board: Leaderboard) -> list[str]:
    """Return at most ``MAX_TICKED`` labels to tick: the user's, ``REFERENCES``, track leaders."""
    standings = board.standings
    versatile = {*standings.policy[2 * standings.tasks >= len(board.tasks)]}
    first = [places.policy[0] for places in board.places.values()]
    labels = [*board.yours, *REFERENCES, *(label for label in first if label in versatile)]
    labels = list(dict.fromkeys(labels))[:MAX_TICKED]
    return [label for label in standings.policy if label in labels]


class Gain(NamedTuple):
    """What can be gained in a task: mean values of its metric, and best scores.

    ``crawls`` are those per page in an episode, NaN if unknown. ``fixed`` is the best entrant that
    does not learn, and its score; empty and NaN if there is none.
    """

    random: float
    bound: float
    crawls: float
    fixed: tuple[str, float]
    best: tuple[str, float]


def gains_of(board: Leaderboard) -> dict[str, Gain]:
    """Return for each task, by name, what can be gained in it."""
    table = pd.DataFrame(board.rows, columns=list(Row._fields))
    values = table.groupby(["setting", "policy", "metric"]).value.mean()
    acting = board.scores[board.scores.state == ACTS]
    means = acting.groupby(["task", "policy"]).score.mean()
    gains = {}
    for task in board.tasks:
        scores = means[task.name]
        fixed = scores[[board.entrants[policy].kind in FIXED for policy in scores.index]]
        arguments, bound = task.arguments, bound_label(task)
        crawls = values[task.name, BOUND, BUDGET] / arguments.get("num_pages", math.nan)
        if "days_per_crawl" in arguments:  # lengths or budgets differ between sites
            one_site = task.id == TRACE and not task.variants
            crawls = 1.0 / arguments["days_per_crawl"] if one_site else math.nan
        gains[task.name] = Gain(
            float(values[task.name, task.random, task.metric]),
            float(values[task.name, bound, task.metric]),
            float(crawls * arguments.get("horizon", WINDOW)),
            (str(fixed.idxmax()), float(fixed.max())) if len(fixed) else ("", math.nan),
            (str(scores.idxmax()), float(scores.max())),
        )
    return gains


def reasons_of(board: Leaderboard) -> dict[str, str]:
    """Return for each track with a stored reason, by name, why its leader leads."""
    reasons = {}
    for entry in json.loads(REASONS.read_text("utf-8")):
        places = board.places.get(entry["track"])
        if entry["suite"] == board.name and places is not None:
            scores = dict(zip(places.policy, places.score, strict=True))
            if next(iter(scores)) == entry["first"]:
                reasons[entry["track"]] = entry["reason"].format(**scores)
    return reasons


def training_rows(board: Leaderboard) -> list[list[str]]:
    """Return a row of texts for each trained agent, with the columns ``TRAINING_HEAD``."""
    return [
        [item.policy, *entrant[4:7], tables.number(item.training_seconds, 0), entrant.command]
        for item in board.standings.itertuples()
        if (entrant := board.entrants[item.policy]).by
    ]
