"""A recorded change history as an instance: its events are given, its parameters fitted."""

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
from crawl_envs.worlds.fragments.contents import Contents

Importance = Literal["uniform", "zipf"]
IMPORTANCES = ("uniform", "zipf")


@dataclass(frozen=True, eq=False)
class Recorded:
    """A window of a trace; call it with a NumPy generator for an instance.

    The instance's change rates and signal quality are what was fitted on another window; the
    events are those of ``tape``, and what pages say is ``contents``, where it is asked for. Only
    ``zipf`` importance, 1 / rank in an order drawn at random, depends on the generator.
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
        """Number of pages, m: all that ever lived, or of these those with fragments."""
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
    """Return a first and a last day, or None where none are given.

    Raises:
        ValueError: it is not two finite numbers.
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
    """Read a window of a trace and the parameters fitted for it.

    Args:
        trace: name of a shipped trace, or path of a folder.
        signals: which recorded signals are sent: directory, mentions, both or none.
        window: first and last day, within the trace; None takes the second half.
        bandwidth: crawls per day; None takes the mean number of pages alive in the window
            divided by ``days_per_crawl``.
        days_per_crawl: days between crawls of a page under an even share of the budget, > 0.
        importance: ``uniform`` or ``zipf``.
        parameters: file of fitted parameters; None takes the one beside the trace.
        fragments: take the pages of the window with recorded fragments alone, and what they say.

    Raises:
        ValueError: an argument outside its range, a missing or foreign file.
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
