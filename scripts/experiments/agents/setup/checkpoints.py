"""Save the best agent of each task and algorithm of ``agents_rl`` next to its rows, in an archive.

The best seed has the best last validation among trainings in runs/rl at the larger budget. It is
left out if it is not above random crawling, or if its file has more than 30 kB. Files have weights
without the state of the optimiser, so they cannot continue training.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from agents.runs import read_rows
from agents.sb3.loading import MODEL
from agents.sb3.model_file import read_arguments
from agents.sb3.validation import VALIDATION, ValidationRow
from crawl_envs.system.files import replacing
from scripts.cli.commands import command
from scripts.experiments.agents.setup import trainings
from scripts.study import rows as kept_rows
from scripts.training.ranking import RANDOM

OUT, ARCHIVE, MAX_BYTES = Path("results/agents/rl"), "checkpoints.zip", 30_000


def best_seeds(runs: Path) -> Iterator[tuple[str, str, Path, float]]:
    """Yield task, algorithm, folder and last validation of the best training seed of each pair.

    A pair's trainings with fewer steps are ignored, and those without a belief if others have one.
    """
    reached: dict[tuple[str, str], tuple[tuple[int, bool, float], Path]] = {}
    for file in sorted(runs.glob(f"*/*/seed-*/{VALIDATION}")):
        arguments, rows = read_arguments(file.with_name(MODEL)), read_rows(file, ValidationRow)
        if not rows:  # a training without a curve
            continue
        last = rows[-1].mean_reward
        rank = (arguments.steps, arguments.belief, last)
        cell = file.parents[2].name, arguments.algorithm
        reached[cell] = max(reached.get(cell, (rank, file.parent)), (rank, file.parent))
    for (task, algorithm), ((_, _, last), folder) in reached.items():
        yield task, algorithm, folder, last


def without_optimiser(model: Path) -> bytes:
    """Return the bytes of a model's archive, uncompressed and without the optimiser's arrays."""
    less = io.BytesIO()
    with zipfile.ZipFile(model) as source, zipfile.ZipFile(less, "w") as target:
        for name in source.namelist():
            if not name.partition("/")[0].endswith("optimizer"):
                target.writestr(zipfile.ZipInfo(name), source.read(name))
    return less.getvalue()


def main(runs: Path = trainings.RUNS, out: Path = OUT) -> None:
    """Write the archive TASK/ALGORITHM/model.zip, and print which models are in it or left out."""
    rows, _ = kept_rows.read_rows(out / "rows.parquet")
    validated = [row for row in rows if (row.policy, row.metric) == (RANDOM, "validated")]
    random = {row.setting: row.value for row in validated}
    with replacing(out / ARCHIVE) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
        for task, algorithm, folder, reached in best_seeds(runs):
            name, reason = f"{task}/{algorithm}/{MODEL}", ""
            data = without_optimiser(folder / MODEL)
            if reached <= random.get(task, math.inf):
                reason = ", not above random crawling"
            elif len(zlib.compress(data)) > MAX_BYTES:
                reason = ", too large"
            else:
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            print(f"{name}: {folder.name}, validation {reached:.4f}{reason}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
