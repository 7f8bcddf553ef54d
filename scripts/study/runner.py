"""Simulate many policies on many seeds in parallel, save the rows, and resume interrupted runs.

The unit of work is one label (a policy, a bound, a measurement) on one seed of one setting. All
settings and labels of a seed come before the next seed, so that an interrupted run has fewer seeds.
Rows are saved every few seconds. When a run resumes, one stored unit of every label is simulated
again and must agree.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.progress import COUNT, ProgressBar, tracked
from crawl_envs.evaluation import Row
from scripts.cli.commands import one_line_errors
from scripts.study.rows import base, check_folder, origin, read_rows, write_provenance, write_rows
from scripts.study.settings import Playable
from scripts.study.specs import without_versions
from scripts.study.workers import Unit, Workers, play_all

ROWS = "rows.parquet"
"""Name of the file of rows in the folder of a job."""
SAVE_EVERY = 5.0
"""Seconds between two writes of the rows."""

STOPPED = "stopped; {} has the rows so far; the same command resumes"
"""Message after an interrupt; ``{}`` stands for the folder."""
AGREEMENT = 2e-4
"""Largest accepted difference between stored rows and the same rows simulated again.

It is relative for metrics above 1, and the mean over the entries of an indexed metric. Rounding
differs between processors and can decide between two pages of equal value. Other events or another
policy change the metrics of a long episode by far more.
"""


def _text(description: Any) -> str:
    """Return a description as JSON in which integers are floats, so that 1 equals 1.0."""
    return json.dumps(json.loads(json.dumps(description), parse_int=float), sort_keys=True)


def _differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return the keys of ``now`` that have another value, or none, in ``then``."""
    return [key for key in now if _text(then.get(key)) != _text(now[key])]


class Store:
    """The rows of a job in a Parquet file, saved periodically.

    The metadata of the file have the settings and, for each run that added rows, its date, commit,
    machine, versions, seconds and number of rows. Loading drops the rows of labels whose versions
    or files have changed; ``changed`` has these labels.

    Args:
        path: path of the file.
        job: declared name of the job; the file of another job is refused.
        settings: settings of the job.
    """

    def __init__(self, path: Path, job: str, settings: Sequence[Playable]) -> None:
        self.start()
        self.path, self.job = path, job
        self.settings = {setting.name: setting.described() for setting in settings}
        self.rows: list[Row] = []
        self.runs: list[dict[str, Any]] = []
        self.changed: set[str] = set()
        self.seconds = 0.0

    def load(self, keep: bool = True) -> None:
        """Load the rows of an earlier run, if any.

        Args:
            keep: whether to keep the rows; False only checks that the file is of the same job.

        Raises:
            ValueError: the file is truncated, has no rows of this suite, or has other settings.
        """
        if not self.path.exists():
            return
        rows, about = read_rows(self.path, self.job)
        if not keep:
            return
        changed = set[tuple[str, str]]()  # labels, and the old descriptions
        for name, now in self.settings.items():
            then = about["settings"].get(name, now)
            old, new = then["labels"], now["labels"]
            common = {label: new[label] for label in new if label in old}
            differing = _differences({**now, "labels": {}}, {**then, "labels": {}})
            differing += _differences(without_versions(common), without_versions(old))
            for key in differing:
                raise ValueError(
                    f"{self.path} must have rows of setting {name!r} with the same {key}; "
                    "name another --out, or start over with --fresh"
                )
            changed |= {(label, _text(old[label])) for label in _differences(common, old)}
            now["labels"] = old | new
        self.changed = {label for label, _ in changed}
        old_rows = {
            (name, label)
            for name, then in about["settings"].items()
            for label, description in then["labels"].items()
            if (label, _text(description)) in changed
        }
        self.rows = [row for row in rows if (row.setting, row.policy) not in old_rows]
        self.settings = about["settings"] | self.settings
        self.seconds, self.runs = about["seconds"], about.get("runs", [])

    def drop(self, setting: str, labels: Collection[str]) -> None:
        """Drop the rows of labels that can no longer act in a setting."""
        for label in labels:
            self.settings[setting]["labels"].pop(label, None)
        self.rows = [row for row in self.rows if row.setting != setting or row.policy not in labels]

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows, and save if ``SAVE_EVERY`` seconds have passed since the last save."""
        before = len(self.rows)
        self.rows += rows
        self._run["rows"] += len(self.rows) - before
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save(level=6)

    @property
    def run_seconds(self) -> float:
        """Seconds that this run has taken at the last save."""
        return float(self._run["seconds"])

    def start(self) -> None:
        """Start counting the seconds and rows of a new run."""
        self._saved = self._ticked = time.monotonic()
        self._run: dict[str, Any] = {"seconds": 0.0, "rows": 0}

    def save(self, level: int = 11) -> None:
        """Write all rows, compressed at ``level``, sorted by setting, label, metric and seed."""
        now = time.monotonic()
        self.seconds += now - self._ticked
        self._run["seconds"] += now - self._ticked
        self._saved = self._ticked = now
        place = {name: position for position, name in enumerate(self.settings)}
        order = {
            (name, label): position
            for name, described in self.settings.items()
            for position, label in enumerate(described["labels"])
        }
        self.rows.sort(key=lambda row: (place[row.setting], order[row[1:3]], row.metric, row.seed))
        if "commit" not in self._run:
            self._run |= origin()
            self.runs.append(self._run)
        about = {"job": self.job, "seconds": self.seconds, "settings": self.settings}
        write_rows(self.path, self.rows, {**about, "runs": self.runs}, level)

    def sign(self, module: str, **more: Any) -> None:
        """Write provenance.json to the folder of the rows; ``module`` is the command's module."""
        path = self.path.with_name("provenance.json")
        write_provenance(path, module, self.seconds, rows=len(self.rows), **more)

    @property
    def done(self) -> set[tuple[str, str, int]]:
        """Set of (setting, policy, seed) that have rows."""
        return {(row.setting, row.policy, row.seed) for row in self.rows}


def opened(
    folder: Path,
    job: str,
    settings: Sequence[Playable],
    *,
    fresh: bool,
    begin_with: Path | None = None,
) -> Store:
    """Open the stored rows of a folder; create the folder and reserve it for this command.

    ``fresh`` discards earlier rows. The rows of the file ``begin_with``, if it exists, are copied
    into a folder without rows.

    Raises:
        ValueError: the folder cannot be written or is in use, or its rows are of another job.
    """
    store = Store(folder / ROWS, job, settings)
    check_folder(folder)
    store.load(keep=not fresh)
    if begin_with is not None and begin_with.exists() and not store.rows:
        shutil.copyfile(begin_with, store.path)
        store.load()
    return store


def play_missing(
    settings: Sequence[Playable], count: int, store: Store, workers: Workers, console: Console
) -> int:
    """Verify one stored unit of every policy, then simulate all units that have no rows.

    An interrupt ends the command and says how to resume. Arguments are explained in :func:`run`.

    Returns:
        The number of new units.

    Raises:
        ValueError: a stored row differs from its new simulation.
    """
    with one_line_errors(STOPPED.format(store.path.parent)):
        check_kept(settings, count, store, console)
        return run(settings, count, store, workers, console)


def run(
    settings: Sequence[Playable], count: int, store: Store, workers: Workers, console: Console
) -> int:
    """Simulate all units of the settings that have no rows in the store; return their number.

    Settings without windows have ``count`` seeds. The store is saved.
    """
    units = _units(settings, count)
    done = store.done
    open_units = [unit for unit in units if unit.key not in done]
    store.start()
    for label in sorted(store.changed):
        console.print(f"{label} has changed: its rows are simulated again", soft_wrap=True)
    try:
        with ProgressBar(COUNT, "{task.elapsed:.0f} s", console=console) as progress:
            bar = progress.add_task("", total=len(units), completed=len(units) - len(open_units))
            for number, (unit, rows) in enumerate(play_all(open_units, workers), 1):
                store.add(rows)
                last = number == len(open_units)
                what = "policies x seeds" if last else f"{unit.setting.name} {unit.label}"
                progress.update(bar, advance=1, description=what)
    except ValueError as error:
        raise ValueError(f"{error}; {store.path.parent} has the rows so far") from error
    finally:
        if open_units:
            store.save()
    return len(open_units)


def _units(settings: Sequence[Playable], count: int) -> list[Unit]:
    """Return all units of work (setting, label, seed), ordered by seed."""
    return [
        Unit(setting, label, seed)
        for seed in range(max(len(setting.seeds(count)) for setting in settings))
        for setting in settings
        if seed in setting.seeds(count)
        for label in setting.labels
        if setting.has_unit(label, seed)
    ]


def check_kept(
    settings: Sequence[Playable], count: int, store: Store, console: Console | None = None
) -> None:
    """Simulate one stored unit of every untrained policy again, and compare it with its rows.

    The progress bar is shown on ``console``, by default on standard error.

    Raises:
        ValueError: a row of the store differs from the new simulation.
    """
    done, samples = store.done, dict[str, Unit]()
    for unit in _units(settings, count):
        if unit.label not in unit.setting.trained and unit.key in done:
            samples.setdefault(unit.label, unit)
    keys = {unit.key for unit in samples.values()}
    stored = {row[1:5]: row.value for row in store.rows if row[1:4] in keys}
    for unit in tracked([*samples.values()], "checking stored rows", console):
        played_rows = sorted(unit.play(), key=_base_of)
        for rows in (list(group) for _, group in groupby(played_rows, key=_base_of)):
            off = [abs(stored.get(row[1:5], math.inf) - row.value) for row in rows]
            size = sum(abs(row.value) for row in rows) / len(rows)
            if sum(off) / len(off) > AGREEMENT * max(1.0, size):
                worst = rows[off.index(max(off))]
                raise ValueError(
                    f"{store.path}: {worst.metric} of {unit.label}, {unit.setting.name}, seed "
                    f"{unit.seed} must be {worst.value}, got {stored.get(worst[1:5])}: the code "
                    "has changed; raise the version of its spec, or start over with --fresh"
                )


def _base_of(row: Row) -> str:
    return base(row.metric)
