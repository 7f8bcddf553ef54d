"""Simulate the units of a run in this process, in worker processes, or as tasks of Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Option

from crawl_envs.evaluation import Row
from crawl_envs.system.worker_processes import pool
from crawl_envs.types.arguments import one_of
from scripts.cli.options import Fresh
from scripts.study.entrants import failure
from scripts.study.settings import Playable

BACKENDS = ("local", "processes", "ray")
"""Where units are simulated: in this process, in worker processes, or as tasks of Ray."""


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """Options of the commands that simulate; see :func:`scripts.cli.commands.command_of`."""

    workers: Annotated[
        int | None, Option(help="Workers.", show_default="one per processor; local: 1")
    ] = None
    backend: Annotated[str, Option(help=f"Where to simulate: {', '.join(BACKENDS)}.")] = "processes"
    out: Annotated[Path | None, Option(help="Output folder.")] = None
    fresh: Fresh = False

    @property
    def players(self) -> Workers:
        """Workers that the options ask for; see :func:`workers_of`."""
        return workers_of(self.backend, self.workers)


class Unit(NamedTuple):
    """One policy or bound on one seed of one setting."""

    setting: Playable
    label: str
    seed: int

    def play(self) -> list[Row]:
        """Simulate the unit and return its rows.

        Raises:
            RuntimeError: an error of the policy or of the code; settings were checked before.
            ValueError: an error of a policy of the user.
        """
        try:
            return self.setting.play(self.label, self.seed)
        except (OSError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            where = f"{self.label} in {self.setting.name}, seed {self.seed}"
            factory = getattr(self.setting, "policies", {}).get(self.label)
            raise failure(where, error, factory) from error

    @property
    def key(self) -> tuple[str, str, int]:
        """Setting, policy and seed of the unit's rows."""
        return self.setting.name, self.label, self.seed


@dataclass(frozen=True)
class Workers:
    """Where units are simulated (one of ``BACKENDS``), and how many at the same time."""

    backend: str
    count: int


def workers_of(backend: str, count: int | None) -> Workers:
    """Return the workers of the options ``--backend`` and ``--workers``.

    Args:
        backend: one of ``BACKENDS``.
        count: number of workers; None means one per processor, or all processors of Ray's cluster.

    Raises:
        ValueError: the backend is unknown, the count is below 1 or not 1 with ``local``, or Ray is
            not installed.
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


def play_all(units: Sequence[Unit], workers: Workers) -> Iterator[tuple[Unit, list[Row]]]:
    """Simulate units on workers; yield each unit with its rows as soon as it is finished."""
    if workers.backend == "ray":
        yield from _in_ray(units, workers.count)
    elif workers.backend == "local" or workers.count == 1 or len(units) < 2:
        for unit in units:
            yield unit, unit.play()
    else:
        yield from _in_processes(units, workers.count)


def _in_processes(units: Sequence[Unit], count: int) -> Iterator[tuple[Unit, list[Row]]]:
    with pool(min(count, len(units))) as executor:
        running = {executor.submit(unit.play): unit for unit in units}
        for future in as_completed([*running]):
            yield running.pop(future), future.result()


def _ray() -> Any:
    """Import Ray, start it or connect to it if necessary, and return the module."""
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    return ray


def _in_ray(units: Sequence[Unit], count: int) -> Iterator[tuple[Unit, list[Row]]]:
    ray, waiting, running = _ray(), iter(units), dict[Any, Unit]()
    play = ray.remote(num_cpus=1)(Unit.play)
    try:
        while True:
            for unit in islice(waiting, 2 * count - len(running)):
                running[play.remote(unit)] = unit
            if not running:
                return
            for task in ray.wait([*running])[0]:
                yield running.pop(task), ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    finally:
        for task in running:
            ray.cancel(task, force=True)
