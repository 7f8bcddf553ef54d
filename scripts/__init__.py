"""Commands that combine environments, policies and agents.

An interrupt during imports prints one line, and so does another distribution that uses one of our
package names.
"""

from __future__ import annotations

import sys
from types import TracebackType

from crawl_envs.system.own_packages import ForeignPackage, check_own

SUITE = "crawl_envs"
"""Name that marks this package as ours; see :mod:`crawl_envs.system.own_packages`."""

_default_hook = sys.excepthook


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, ForeignPackage):
        print(f"error: {error}", file=sys.stderr)
    elif not issubclass(kind, KeyboardInterrupt):
        _default_hook(kind, error, trace)
    elif "--multiprocessing-fork" not in sys.orig_argv:  # workers are silent
        print("\nstopped; nothing was written", file=sys.stderr)


sys.excepthook = _print
check_own("policies", "agents")
