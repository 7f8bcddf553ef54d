"""Print a line on the terminal while kernels compile, which can take a minute."""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event as untyped_event

event: Any = untyped_event
Listener: Any = event.Listener

PATIENCE = 2.0
"""Seconds of compilation after which the line is printed."""
LINE = "crawl_envs: compiling the simulator, once after installation or a change; up to a minute"


class CompileNotice(Listener):  # type: ignore[misc]  # numba has no types
    """Print LINE to a terminal or notebook, at most once, if a compilation takes PATIENCE."""

    def __init__(self) -> None:
        self._running, self._printed = 0, False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start the timer when the outermost compilation starts."""
        self._running += 1
        if self._running == 1 and not self._printed and people_look():
            self._timer = threading.Timer(PATIENCE, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Stop the timer when the outermost compilation ends."""
        self._running -= 1
        if self._running == 0 and self._timer is not None:
            self._timer.cancel()

    def _say(self) -> None:
        self._printed = True
        print(LINE, file=sys.stderr, flush=True)


def people_look() -> bool:
    """Return whether the standard error goes to a terminal or a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


event.register("numba:compile", CompileNotice())
