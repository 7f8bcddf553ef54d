"""Training of the agent for every family, whose environments are given."""

from __future__ import annotations

import time
from pathlib import Path

from agents.catalog import GENERALIST, check_vacant
from agents.generalist.training import GeneralistArguments, train
from scripts.reporting import tables
from scripts.reporting.commands import default_folder
from scripts.reporting.rows import check_folder, write_provenance

KIND = "generalist"


def train_generalist(out: Path | None, seed: int, fresh: bool) -> None:
    """Train the agent and write it to a folder, ``runs/generalist`` by default.

    Raises:
        ValueError: there is an agent already, and ``fresh`` is False.
        OSError: the folder cannot be written.
    """
    folder, started = out or default_folder(KIND), time.perf_counter()
    arguments = GeneralistArguments(seed=seed)
    check_vacant(folder, but=GENERALIST if fresh else "")
    check_folder(folder)
    (folder / GENERALIST).unlink(missing_ok=True)
    train(arguments, folder, progress=True)
    seconds = time.perf_counter() - started
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used={"seed": seed})
    tables.console().print(f"trained in {seconds:.0f} s -> {folder}", soft_wrap=True)
