"""Units of a run where they are simulated: in this process, in worker processes, or in Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import typer

from crawl_envs.evaluation import Row
from crawl_envs.types.arguments import one_of
from crawl_envs.types.worker_processes import pool
from scripts.study.entrants import failure
from scripts.study.settings import Playable

BACKENDS = ("local", "processes", "ray")
"""This process, worker processes, or tasks of Ray."""
DEFAULT_BACKEND = "processes"

Backend = Annotated[str, typer.Option(help="Where to simulate: " + ", ".join(BACKENDS) + ".")]
WorkerCount = Annotated[
    int | None,
    typer.Option("--workers", help="Workers.", show_default="one per processor; local: 1"),
]


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """Arguments of the commands that simulate; see :func:`scripts.cli.commands.command_of`."""

    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    """Fields that are arguments without a name."""

    workers: WorkerCount = None
    backend: Backend = DEFAULT_BACKEND
    out: Path | None = None
    """Output folder."""
    fresh: bool = False
    """Discard what is there and start anew."""

    @property
    def players(self) -> Workers:
        """The workers of the options, as of :func:`chosen_workers`."""
        return chosen_workers(self.backend, self.workers)


class Unit(NamedTuple):
    """One policy or bound on one seed of one setting."""

    setting: Playable
    label: str
    seed: int

    def play(self) -> list[Row]:
        """Return its rows.

        Raises:
            RuntimeError: an error in the run. Settings are checked before, so that it is one of the
                policy or of the code, not bad input. ValueError if the policy is the user's own.
        """
        try:
            return self.setting.play(self.label, self.seed)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            where = f"{self.label} in {self.setting.name}, seed {self.seed}"
            factory = getattr(self.setting, "policies", {}).get(self.label)
            raise failure(where, error, factory) from error

    @property
    def key(self) -> tuple[str, str, int]:
        """Setting, policy and seed of its rows."""
        return self.setting.name, self.label, self.seed


class Workers(NamedTuple):
    """Where units are simulated: one of ``BACKENDS``, and how many at the same time."""

    backend: str
    count: int


def chosen_workers(backend: str, count: int | None) -> Workers:
    """Return the workers of the options ``--backend`` and ``--workers``.

    Args:
        backend: one of ``BACKENDS``.
        count: number of workers; None means one per processor, or all processors of Ray's cluster.

    Raises:
        ValueError: an unknown backend, a count below 1 or not 1 with ``local``, or Ray is not
            installed.
    """
    one_of("--backend", backend, BACKENDS)
    if count is not None and count < 1:
        raise ValueError(f"--workers must be >= 1, got {count}")
    if backend == "local":
        if count not in (None, 1):
            raise ValueError(f"--workers must be 1 with --backend local, got {count}")
        return Workers(backend, 1)
    if backend == "ray":
        if find_spec("ray") is None:
            raise ValueError("--backend ray needs Ray; install it with the extra: .[ray]")
        return Workers(backend, count or int(_ray().cluster_resources()["CPU"]))
    return Workers(backend, count or os.cpu_count() or 1)


def play_all(units: Sequence[Unit], chosen: Workers) -> Iterator[tuple[Unit, list[Row]]]:
    """Simulate units and yield them with their rows as they finish."""
    if chosen.backend == "ray":
        yield from _in_ray(units, chosen.count)
    elif chosen.backend == "local" or chosen.count == 1 or len(units) < 2:
        for unit in units:
            yield unit, unit.play()
    else:
        yield from _in_processes(units, chosen.count)


def _in_processes(units: Sequence[Unit], count: int) -> Iterator[tuple[Unit, list[Row]]]:
    with pool(min(count, len(units))) as executor:
        running: dict[Future[list[Row]], Unit] = {}
        for unit in units:
            running[executor.submit(unit.play)] = unit
            if len(running) >= 2 * count:
                yield from _ended(running)
        while running:
            yield from _ended(running)


def _ended(running: dict[Future[list[Row]], Unit]) -> Iterator[tuple[Unit, list[Row]]]:
    """Wait for the next unit to finish; yield and remove all finished ones."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()


def _ray() -> Any:
    """Return Ray, started on this machine unless it runs or an address is in its variables."""
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    return ray


def _in_ray(units: Sequence[Unit], count: int) -> Iterator[tuple[Unit, list[Row]]]:
    ray = _ray()
    play = ray.remote(num_cpus=1)(Unit.play)
    running: dict[Any, Unit] = {}
    try:
        for unit in units:
            running[play.remote(unit)] = unit
            if len(running) >= 2 * count:
                yield from _ended_in_ray(ray, running)
        while running:
            yield from _ended_in_ray(ray, running)
    finally:
        for task in running:
            ray.cancel(task, force=True)


def _ended_in_ray(ray: Any, running: dict[Any, Unit]) -> Iterator[tuple[Unit, list[Row]]]:
    for task in ray.wait(list(running))[0]:
        try:
            yield running.pop(task), ray.get(task)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
