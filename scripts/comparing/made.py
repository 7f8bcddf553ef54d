"""How results were made: what is written beside them."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scripts.comparing.rows import replacing

PACKAGES = ("crawl-envs", "gymnasium", "numpy", "scipy", "numba")


def write_made(path: Path, module: str, seconds: float, **more: Any) -> None:
    """Write the command (of a module), date, wall time, machine and versions as JSON."""
    made = {
        "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "wall_seconds": round(seconds, 1),
        **more,
        "cpu": cpu(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


def cpu() -> str:
    """Name of the processor, as well as it is known."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
