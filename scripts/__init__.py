"""Commands that combine environments, policies and agents.

An interrupt while they are still being imported ends in one line, as later ones do.
"""

from __future__ import annotations

import sys
from types import TracebackType

_shown = sys.excepthook


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _shown(kind, error, trace)
    elif "--multiprocessing-fork" not in sys.orig_argv:  # workers say nothing
        print("\nstopped; nothing was written", file=sys.stderr)


sys.excepthook = _show
