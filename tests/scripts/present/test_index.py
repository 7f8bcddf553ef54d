from __future__ import annotations

import re
from pathlib import Path

from scripts import experiments
from scripts.present.index import write_index

ROOT = Path(__file__).resolve().parents[3]
EVERY = [experiments.find(name) for name in experiments.names()]


def test_the_committed_index_is_current_and_its_links_exist(
    tmp_path: Path,
) -> None:
    for verdicts in (ROOT / "results").glob("*/verdicts.csv"):
        kept = tmp_path / verdicts.relative_to(ROOT / "results")
        kept.parent.mkdir(parents=True)
        kept.write_bytes(verdicts.read_bytes())
    page = write_index(tmp_path, EVERY).read_text("utf-8")
    assert page == (ROOT / "results" / "README.md").read_text("utf-8")
    links = re.findall(r'(?:\]\(|src="|href=")([^)"]+)', page)
    assert len(links) > 3 * len(EVERY)
    assert not [link for link in links if not (ROOT / "results" / link).exists()]


def test_without_results_there_is_only_the_head(tmp_path: Path) -> None:
    assert "##" not in write_index(tmp_path, EVERY).read_text("utf-8")
