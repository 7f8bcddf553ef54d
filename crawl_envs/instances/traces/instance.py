"""Recorded change histories as instances with given events and fitted parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crawl_envs.instances.traces import loading as traces
from crawl_envs.instances.traces.fragments import window_contents, window_tape
from crawl_envs.sim.tape import Tape
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.arguments import quantity, real
from crawl_envs.types.contents import Contents

Importance = Literal["uniform", "zipf"]
IMPORTANCES = ("uniform", "zipf")


@dataclass(frozen=True, eq=False)
class Recorded:
    """A window of a trace; calling it with a NumPy generator returns an instance.

    The instance's change rates and signal quality were fitted on another window. Its events are
    ``tape``, and the fragments of its pages ``contents``, if requested. Only ``zipf`` importance,
    1 / rank in a random order, depends on the generator.
    """

    tape: Tape
    duration: float
    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    bandwidth: float
    importance: Importance
    group: IntArray | None = None
    contents: Contents | None = None

    @property
    def num_pages(self) -> int:
        """Number of pages, m: all pages of the trace, or those with fragments."""
        return int(self.tape.alive.size)

    @property
    def num_sources(self) -> int:
        """Number of sources of signals, S."""
        return self.tape.num_sources

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Return the instance."""
        rank = rng.permutation(self.num_pages) if self.importance == "zipf" else 0
        weights = np.broadcast_to(1.0 / (1.0 + rank), self.num_pages)
        return Instance(
            weights,
            self.change_rate,
            self.recall,
            self.false_signal_rate,
            bandwidth=self.bandwidth,
            group=self.group,
        )


def window_of(window: Any) -> tuple[float, float] | None:
    """Return a first and a last day, or None if ``window`` is None.

    Raises:
        ValueError: ``window`` is not two finite numbers.
    """
    if window is None:
        return None
    if not isinstance(window, Sequence) or isinstance(window, str) or len(window) != 2:
        raise ValueError(f"window must be a first and a last day, got {window!r}")
    first, last = (real("window", day) for day in window)
    return first, last


def recorded(
    trace: str,
    *,
    signals: str = "directory",
    window: tuple[float, float] | None = None,
    bandwidth: float | None = None,
    days_per_crawl: float = 30.0,
    importance: str = "uniform",
    parameters: str | None = None,
    fragments: bool = False,
) -> Recorded:
    """Read a window of a trace and its fitted parameters.

    Args:
        trace: name of a shipped trace, or path of a folder.
        signals: kind of recorded signals: directory, mentions, both or none.
        window: first and last day, within the trace; None is the second half.
        bandwidth: crawls per day; None is the mean number of pages alive in the window divided by
            ``days_per_crawl``.
        days_per_crawl: mean days between crawls of a page under uniform crawls, > 0.
        importance: ``uniform`` or ``zipf``.
        parameters: file of fitted parameters; None is the default file in the folder of the trace.
        fragments: whether to keep only pages with recorded fragments, and return their contents.

    Raises:
        ValueError: an argument is outside its range, or a file is missing or invalid.
    """
    kind = traces.check_signals(signals)
    if importance not in IMPORTANCES:
        raise ValueError(f"importance must be one of {IMPORTANCES}, got {importance!r}")
    quantity("days_per_crawl", days_per_crawl, above=0.0)
    folder = traces.find(trace)
    record = traces.load(folder)
    start, end = (record.days / 2.0, record.days) if window is None else window
    contents, pages = (
        window_contents(record, start, end) if fragments else (None, np.arange(record.num_pages))
    )
    events = window_tape(record, start, end, kind, pages)
    path = Path(parameters) if parameters is not None else traces.parameters_path(folder, kind)
    fitted = traces.load_parameters(path, record)
    if fitted.num_sources != events.num_sources:
        raise ValueError(
            f"parameters must be fitted to {events.num_sources} sources for signals={kind!r}, "
            f"got those of {fitted.signals!r}: {path}"
        )
    if bandwidth is None:
        alive = float(record.alive_days(start, end)[pages].sum()) / (end - start)
        bandwidth = alive / days_per_crawl
    return Recorded(
        Tape(events.time, events.code, events.alive, events.num_sources),
        events.duration,
        fitted.change_rate[pages],
        fitted.recall[..., pages],
        fitted.false_signal_rate[..., pages],
        bandwidth,
        "zipf" if importance == "zipf" else "uniform",
        record.directory[pages],
        contents,
    )
