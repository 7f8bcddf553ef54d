"""The commands of the suite: ``crawl-envs benchmark`` is ``python -m scripts.benchmark``."""

from __future__ import annotations

import importlib
import sys

from crawl_envs.system.own_packages import ForeignPackage, check_own


def main() -> None:
    """Run the command that the first argument names."""
    try:
        check_own("scripts", "agents", "policies")
    except ForeignPackage as error:
        sys.exit(f"error: {error}")
    importlib.import_module("scripts.__main__").main()


if __name__ == "__main__":
    main()
