"""The notebooks run from top to bottom, and are kept with the outputs of such a run."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
SAME = {"what_signals_are_worth", "from_crawls_to_a_schedule"}
"""Notebooks whose words do not depend on the processor's float32."""


def texts(notebook) -> list[str]:
    """What every cell prints and shows: the kernel may hand it over in any number of pieces.

    Standard error is left out: at the first use it says that kernels are compiled.
    """
    cells = [cell.get("outputs", []) for cell in notebook.cells]
    return ["".join(text_of(made) for made in outputs) for outputs in cells]


def text_of(made) -> str:
    if made.output_type == "stream":
        return made.text if made.name == "stdout" else ""
    return made.data["text/plain"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of Jupyter
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs_and_prints_what_it_is_kept_with(path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("stable_baselines3")
    kept = nbformat.read(path, as_version=4)
    codes = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == list(range(1, len(codes) + 1))
    before = texts(kept)
    assert sum(text != "" for text in before) >= 2
    for cell in codes if path.stem not in SAME else ():  # a tenth of training and episodes
        cell.source = cell.source.replace("20_000", "2_000").replace("1020", "1002")
    place = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(kept, timeout=300, kernel_name="python3", resources=place).execute()
    if path.stem in SAME:
        assert texts(kept) == before


def test_there_are_three_notebooks() -> None:
    assert len(NAMES) == 3
    assert set(NAMES) >= SAME
