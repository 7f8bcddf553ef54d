"""Check that the packages ``policies``, ``agents`` and ``scripts`` belong to this project.

The names are common. If another distribution has a package of the same name, pip silently merges
the files of both in one folder.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MARK = 'SUITE = "crawl_envs"'
"""A line in the ``__init__`` of each package of the suite."""


class ForeignPackage(ImportError):
    """Error: a package with one of this project's names belongs to another distribution."""


def check_own(*names: str) -> None:
    """Check that packages belong to this project, without importing them.

    Raises:
        ForeignPackage: one is missing, or belongs to another distribution.
    """
    for name in names:
        spec = find_spec(name)
        if spec is None:
            raise ForeignPackage(f"the package {name!r} of crawl-envs is not installed")
        if spec.origin is None or MARK not in Path(spec.origin).read_text("utf-8"):
            where = spec.origin or ", ".join(spec.submodule_search_locations or ())
            raise ForeignPackage(
                f"the package {name!r} in {where} belongs to another distribution: install "
                "crawl-envs into a separate virtual environment"
            )
