"""Write the index of all results: a thumbnail per experiment, and how many of its tests hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from crawl_envs.system.files import replacing
from scripts.present.claims import HEADS, PAGE, SIGNS
from scripts.present.experiment import Experiment
from scripts.present.verdicts import FILE, counted_answers

INDEX = "README.md"
ABOUT = """# Results

`python -m scripts.reproduce` writes this page. Each folder has rows, a summary and pictures; the
folder of a paper has the tests with their 95% intervals in `verdicts.csv`.
[provenance.json](provenance.json) has the command, commit and versions of each run.
[crawl-v2](crawl-v2/README.md) is the leaderboard of all policies and agents, by `python -m
scripts.rank crawl-v2`. Tests: ✓ holds, ✗ does not hold, ? open; `claims.md` lists them by claim.
"""


def write_index(folder: Path, experiments: Iterable[Experiment]) -> Path:
    """Write the index of all experiments with results under ``folder``; return its path."""
    sections: dict[str, list[str]] = {}
    answers: dict[str, dict[str, Counter[str]]] = {}
    for experiment in experiments:
        paper, figure = experiment.paper, experiment.figure
        verdicts = folder / paper / FILE
        if paper not in answers:
            answers[paper] = counted_answers(verdicts) if verdicts.exists() else {}
        if figure in answers[paper]:
            line = _line(f"{paper}/{figure}", experiment, answers[paper][figure])
            sections.setdefault(paper, []).append(line)
    parts = [ABOUT]
    for paper, lines in sections.items():
        links = f"[What they show]({paper}/README.md), [claim by claim]({paper}/{PAGE})."
        heads = ["| | experiment | tests |", "|---|---|---|"]
        parts.append("\n".join([f"## {HEADS.get(paper, paper)}\n", f"{links}\n", *heads, *lines]))
    path = folder / INDEX
    with replacing(path) as unfinished:
        unfinished.write_text("\n".join([*parts[:1], "\n\n".join(parts[1:]), ""]), "utf-8")
    return path


def _line(place: str, experiment: Experiment, answers: Counter[str]) -> str:
    picture = f"{place}/{next(iter(experiment.pictures))}.png"
    tests = " ".join(f"{answers[word]}&nbsp;{SIGNS[word]}" for word in SIGNS if answers[word])
    title = experiment.title.replace("|", "\\|")
    thumbnail = f'<a href="{picture}"><img src="{picture}" width="240" alt="{title}"></a>'
    return f"| {thumbnail} | [{title}]({place}) | {tests} |"
