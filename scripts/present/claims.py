"""Write the page of claims: each sentence of a paper with its verdicts from the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from crawl_envs.system.files import replacing
from scripts.present.experiment import EXPECTED, NOT_IN_PAPER, Experiment
from scripts.present.tables import counted
from scripts.present.verdicts import (
    ANSWERS,
    FILE,
    UNTESTED,
    Claim,
    Sentence,
    Verdict,
    write_verdicts,
)
from scripts.study.rows import read_rows

PAGE = "claims.md"
ROUNDING = 1e-12
"""Half-widths below this share of a mean are rounding errors."""
SIGNS = dict(zip(ANSWERS, "✓✗?", strict=True))
HEADS = {
    "ncis": "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals "
    "(Busa-Fekete et al.)",
    "lambdacrawl": "Staying up to Date with Online Content Changes Using Reinforcement Learning "
    "for Scheduling (Kolobov et al. 2019)",
    "offers": "Adversarial Bandits Policy for Crawling Commercial Web Content (Han et al. 2020)",
    "longevity": "Recrawl Scheduling Based on Information Longevity (Olston and Pandey 2008)",
    "agents": "Learned agents compared with analytic policies",
    "real": "Policies on recorded histories of real sites",
}
BEYOND: dict[str, tuple[Claim, ...]] = {
    "ncis": (
        Claim(
            "On a billion pages, the signals save 10 to 20% of the crawls of the hosts that send "
            "them, at no loss of freshness.",
            "appendix F",
            note="The crawler and its pages are not public; `saved` asks what it takes on "
            "synthetic ones.",
        ),
    ),
    "lambdacrawl": (
        Claim(
            "On 18.5 million URLs that were crawled daily for 14 weeks the approach has "
            "significant advantages.",
            "abstract, section 7",
            note="The recorded URLs are not part of this project. All pages here are a stand-in: "
            "draws of a law that was fitted to what is published of the set.",
        ),
    ),
    "offers": (
        Claim(
            "On 1.3 million offers of Google Shopping that were crawled every hour for 8 months, "
            "the bandit outperforms LambdaCrawl.",
            "abstract, section 4",
            note="The recorded offers are not public. All offers here are drawn from a law that "
            "was fitted to what the paper tells of them.",
        ),
        Claim(
            "Not all snapshots of offers could be downloaded, as crawls might be rejected.",
            "section 4",
            note="The paper says neither how many nor how it fills the gaps in its prices, and "
            "lets no crawl of a strategy fail. Here every crawl succeeds. Rejection of each crawl "
            "with probability p, at random, multiplies the rates of a strategy by 1 - p, nothing "
            "else; rejections that depend on the merchant are not modelled.",
        ),
    ),
}
"""Claims that no experiment here can test."""


def write_claims(
    folder: Path, paper: str, experiments: Sequence[Experiment], *, quick: bool
) -> Path:
    """Write the page of claims of a paper, and ``verdicts.csv``, from the rows under ``folder``.

    Nothing is simulated.

    Raises:
        ValueError: rows are damaged, or of another experiment.
    """
    contents, sections, judged = [], [], {}
    for experiment in experiments:
        rows = rows_of(folder / experiment.figure, experiment)
        sentences = experiment.sentences(rows, quick)
        if rows:
            judged[experiment.figure] = sentences
        lines, section = _section(experiment, sentences, len({row.seed for row in rows}))
        contents += lines
        sections.append(section)
    write_verdicts(folder / FILE, judged)
    beyond = BEYOND.get(paper, ())
    if beyond:
        contents += [_content("", claim, UNTESTED) for claim in beyond]
        parts = [
            "## Beyond these experiments",
            *(_entry(Sentence(claim, (), UNTESTED)) for claim in beyond),
        ]
        sections.append("\n\n".join(parts))
    path = folder / PAGE
    tables = [_table(contents)] if contents else []
    page = "\n\n".join([*_head(folder, paper, quick), *tables, *sections])
    with replacing(path) as unfinished:
        unfinished.write_text(page + "\n", "utf-8")
    return path


def rows_of(folder: Path, experiment: Experiment) -> list[Row]:
    """Read the saved rows of an experiment and add derived ones; return none without a file.

    Raises:
        ValueError: the file is damaged, or its rows are of another experiment.
    """
    path = folder / "rows.parquet"
    if not path.exists():
        return []
    rows = experiment.current(read_rows(path, experiment.name)[0], quick=False)
    return experiment.with_derived(rows)


def _head(folder: Path, paper: str, quick: bool) -> list[str]:
    head = ["# Claims, one by one"]
    if paper in HEADS:
        head.append(f"{HEADS[paper]}.")
    if quick:
        head.append("**A quick run, with small sizes and short times: nothing is judged.**")
    head.append(
        f"`python -m scripts.reproduce {paper} --score` writes this page from the rows in this "
        "folder; without `--score` it also simulates missing rows. ± is the half-width of a 95% "
        "interval (Student's, over repetitions). ✓: the interval agrees with the claim. ✗: it "
        "disagrees. ?: it does neither, for want of repetitions. Where a level is known, the mean "
        "is judged. *Fitted*: inputs were chosen to agree with the claim, which is no evidence. "
        "Margins are ours: the paper states none."
    )
    if (folder / "README.md").exists():
        head.append("How the experiments interpret the paper, and why: [README.md](README.md).")
    return head


def _section(
    experiment: Experiment, sentences: Iterable[Sentence], seeds: int
) -> tuple[list[str], str]:
    """Return the lines of an experiment in the table of contents, and its section."""
    figure = experiment.figure
    parts = [f"## {figure}: {experiment.title}"]
    if seeds:
        pictures = ", ".join(f"[{name}]({figure}/{name}.png)" for name in experiment.pictures)
        scored = f"Metric: {experiment.metric}, except where another is named."
        scored += f" Intervals: {experiment.intervals}." if experiment.intervals else ""
        parts.append(f"{counted(seeds, 'repetition')}. {scored} Pictures: {pictures}.")
    else:
        parts.append(f"No rows yet: `python -m scripts.reproduce {experiment.paper}_{figure}`.")
    contents = []
    for sentence in sentences:
        claim, verdicts, answer = sentence
        if claim.text not in (NOT_IN_PAPER, EXPECTED):
            contents.append(_content(figure, claim, answer))
            parts.append(_entry(sentence))
        elif verdicts:
            parts += [f"{claim.text}:", "\n".join(_lines(verdicts))]
    return contents, "\n\n".join(parts)


def _content(figure: str, claim: Claim, answer: str) -> str:
    text = claim.text.replace("|", "\\|")
    return f"| {figure} | {text} | {answer} |"


def _table(contents: Iterable[str]) -> str:
    return "\n".join(["| | claim | here |", "|---|---|---|", *contents])


def _entry(sentence: Sentence) -> str:
    claim, verdicts, answer = sentence
    parts = [f"**{claim.text}** ({claim.source}) *{answer}*"]
    if verdicts:
        parts.append("\n".join(_lines(verdicts)))
    if claim.note:
        parts.append(claim.note)
    return "\n\n".join(parts)


def _lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line of Markdown per test, with its measured values in all settings."""
    lines: dict[str, list[str]] = {}
    for verdict in verdicts:
        measured = f"{verdict.setting} {_number(verdict)} {SIGNS[verdict.holds]}"
        lines.setdefault(verdict.claim, []).append(measured)
    return [f"- {claim}: {'; '.join(measured)}" for claim, measured in lines.items()]


def _number(verdict: Verdict) -> str:
    """Return a verdict's mean and half-width as text, with two digits of the half-width."""
    if not ROUNDING * abs(verdict.measured) < verdict.half_width < math.inf:
        return f"{verdict.measured:.4g}"
    decimals = max(0, 1 - math.floor(math.log10(verdict.half_width)))
    return f"{verdict.measured:.{decimals}f} ± {verdict.half_width:.{decimals}f}"
