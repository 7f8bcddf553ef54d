"""Fixtures of the tests of scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from scripts.present import charts


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return the list of all figures that are saved from now on."""
    figures: list[Figure] = []
    save = charts.save

    def keep(figure: Figure, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(charts, "save", keep)
    return figures
