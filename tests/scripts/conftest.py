"""Fixtures of the tests of scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from scripts.present import charts


@pytest.fixture(scope="package", autouse=True)
def coarse() -> Iterator[None]:
    """Draw pictures of fewer pixels, as palettes are found in time that grows with these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "DPI", 40)
        yield


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
