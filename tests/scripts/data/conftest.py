"""A repository that a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.data.repositories import Scratch


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "site")
