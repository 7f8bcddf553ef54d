"""That the packages ``policies``, ``agents`` and ``scripts`` are those of the suite.

The names are common: other distributions install packages of the same names, and pip then mixes the
files of both in one folder without a word.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MARK = 'SUITE = "crawl_envs"'
"""A line in the ``__init__`` of each package of the suite."""


class ForeignPackage(ImportError):
    """A package of somebody else has the name of one of the suite's."""


def check_own(*names: str) -> None:
    """Check that packages are those of the suite, without importing them.

    Raises:
        ForeignPackage: one is missing, or of somebody else.
    """
    for name in names:
        found = find_spec(name)
        if found is None:
            raise ForeignPackage(f"the package {name!r} of crawl-envs is not installed")
        if found.origin is None or MARK not in Path(found.origin).read_text("utf-8"):
            where = found.origin or ", ".join(found.submodule_search_locations or ())
            raise ForeignPackage(
                f"the package {name!r} in {where} is somebody else's, not that of crawl-envs: "
                "install crawl-envs into a virtual environment of its own"
            )
