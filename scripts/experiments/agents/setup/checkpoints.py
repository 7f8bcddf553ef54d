"""Keep the best agent of each cell of ``agents_rl`` beside its rows: weights alone.

Of the trainings in runs/rl, at the larger budget, the seed with the best validation at its end is
kept for each task and algorithm, where that is above random crawling. A file has no state of the
optimiser, so that it plays but does not go on; larger ones than 60 kB are left out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from agents.runs import read_rows
from agents.sb3.loading import MODEL
from agents.sb3.model_file import read_arguments
from agents.sb3.validation import VALIDATION, ValidationRow
from crawl_envs.types.files import replacing
from scripts.cli.commands import command
from scripts.experiments.agents import rl
from scripts.experiments.agents.setup import trainings
from scripts.study import rows as kept_rows

OUT, MOST_BYTES = Path("results/agents/rl"), 60_000


def best_seeds(runs: Path, random: dict[str, float]) -> Iterator[tuple[str, str, Path, float]]:
    """Yield task, algorithm, folder of the best seed and its last validation, above random."""
    for task in rl.ALL:
        for algorithm, steps in rl.STEPS.items():
            reached = {
                folder.parent: read_rows(folder, ValidationRow)[-1].mean_reward
                for folder in (runs / task).glob(f"{algorithm}-{steps}*/seed-*/{VALIDATION}")
                if read_arguments(folder.with_name(MODEL)).belief == (task in rl.UNSEEN)
            }
            if reached and task in random:
                best = max(reached, key=lambda folder: reached[folder])
                if reached[best] > random[task]:
                    yield task, algorithm, best, reached[best]


def without_optimiser(model: Path, out: Path) -> None:
    """Copy the file of a model, which is never compressed, without the arrays of optimisers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(model) as whole,
        replacing(out) as unfinished,
        zipfile.ZipFile(unfinished, "w") as kept,
    ):
        for name in whole.namelist():
            if not name.partition("/")[0].endswith("optimizer"):
                kept.writestr(zipfile.ZipInfo(name), whole.read(name))


def main(runs: Path = trainings.RUNS, out: Path = OUT) -> None:
    """Copy, and print what was kept."""
    rows, _ = kept_rows.read_rows(out / "rows.parquet")
    played = [row for row in rows if (row.policy, row.metric) == (rl.RANDOM, "validated")]
    for task, algorithm, folder, reached in best_seeds(
        runs, {row.setting: row.value for row in played}
    ):
        file = out / "checkpoints" / task / algorithm / MODEL
        without_optimiser(folder / MODEL, file)
        size = file.stat().st_size
        if size > MOST_BYTES:
            file.unlink()
        left = "" if size <= MOST_BYTES else ", left out"
        print(f"{file.parent}: {folder.name}, validation {reached:.4f}, {size} bytes{left}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
