"""The README's code runs, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crawl_envs
import policies

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_code_runs_from_top_to_bottom():
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 9
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert 0.0 < names["rollout"].accuracy < 1.0
    assert names["crawl"].core.ledger().cost > 0.0
    assert names["strategy"].core.ledger().accuracy > 0.9
    assert names["fresh"] > 0.9
    assert 0.0 < names["spent"].divergence < 0.2
    assert names["mean"] > 0.8 * names["policy"].core.num_slots()


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_every_environment_and_policy_is_named():
    for name in (*crawl_envs.FAMILIES, *policies.names(), *policies.names(family="fragments")):
        assert f"`{name}" in README, name


def test_the_catalogue_is_the_registry():
    table = README.partition("| policy | which page is crawled |")[2].partition("\n\n")[0]
    cells = "".join(line.split(" | ")[0] for line in table.splitlines()[2:])
    named = re.findall(r"`(\w+)(?:\([^`]*\))?`", cells)
    assert sorted(named) == list(policies.names(fragments=True))


def test_the_tags_are_those_of_the_registry():
    rows = re.findall(r"\| `(\w+)=([\w\"]+)` \| (.*) \|", README)
    assert len(rows) == 4
    for tag, value, listed in rows:
        wanted = {tag: True if value == "True" else value.strip('"')}
        assert listed == ", ".join(policies.names(fragments=True, **wanted)), tag


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m (scripts[.\w]+)", README))))
def test_commands_exist(module):
    assert (ROOT / (module.replace(".", "/") + ".py")).is_file()
