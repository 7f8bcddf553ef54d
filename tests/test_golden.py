"""Every registered id does what it did when its golden file was written.

After a wanted change of behaviour: ``python -m tests.golden``, and a new version of the id.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.golden import FOLDER, names, path_of, play


@pytest.mark.parametrize("name", names())
def test_an_id_does_what_it_did(name):
    path = path_of(name)
    assert path.exists(), f"{name} has no golden file: run python -m tests.golden"
    golden = json.loads(path.read_text("utf-8"))
    assert golden["id"] == name.split()[0]
    played = play(golden["id"], golden["seed"], golden["arguments"], golden["actions"])
    versions = f"written with numpy {golden['numpy']}, played with {np.__version__}"
    for part, value in played.items():
        assert value == golden[part], f"{part} of {name} differ ({versions})"


@pytest.mark.parametrize("name", names())
def test_a_golden_file_tells_something(name):
    """Rewards vary, signals arrive where there are any, and crawls find changes."""
    golden = json.loads(path_of(name).read_text("utf-8"))
    assert len(set(golden["rewards"])) > 5
    assert sum(golden["signals"]) > 0 or golden["id"] == "CrawlOffers-v1"
    assert golden["ledgers"][0]["changes_found"] > 0


def test_no_golden_file_is_of_an_unknown_id():
    assert {path.stem for path in FOLDER.glob("*.json")} == {path_of(name).stem for name in names()}
