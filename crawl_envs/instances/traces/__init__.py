"""Recorded change histories of real sites.

Public modules: fragments, instance, tables, windows.
"""

from __future__ import annotations

from crawl_envs.instances.traces.loading import (
    SHIPPED,
    find,
    load,
    shipped,
)
from crawl_envs.instances.traces.parameters import (
    Parameters,
    Pooled,
    load_parameters,
    parameters_path,
    save_parameters,
)
from crawl_envs.instances.traces.windows import (
    SIGNALS,
    Signals,
    Trace,
    TraceWindow,
    check_signals,
)

__all__ = [
    "SHIPPED",
    "SIGNALS",
    "Parameters",
    "Pooled",
    "Signals",
    "Trace",
    "TraceWindow",
    "check_signals",
    "find",
    "load",
    "load_parameters",
    "parameters_path",
    "save_parameters",
    "shipped",
]
