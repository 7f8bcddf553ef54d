"""Commands that combine environments, policies and agents.

An interrupt while they are still being imported ends in one line, as later ones do, and so does a
package of somebody else that has the name of one of the suite's.
"""

from __future__ import annotations

import sys
from types import TracebackType

from crawl_envs.system.own_packages import ForeignPackage, check_own

SUITE = "crawl_envs"
"""Says that the package is this one; see :mod:`crawl_envs.system.own_packages`."""

_shown = sys.excepthook


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, ForeignPackage):
        print(f"error: {error}", file=sys.stderr)
    elif not issubclass(kind, KeyboardInterrupt):
        _shown(kind, error, trace)
    elif "--multiprocessing-fork" not in sys.orig_argv:  # workers say nothing
        print("\nstopped; nothing was written", file=sys.stderr)


sys.excepthook = _show
check_own("policies", "agents")
