"""Look up a user's class by its name, ``module:Class``, without importing its module."""

from __future__ import annotations

import sys
from typing import Any


def own_class(argument: str, name: str, base: type) -> type[Any]:
    """Return the class ``name`` of a module that is already imported.

    The name can come from a file of unknown origin, so its module is not imported here.

    Raises:
        ValueError: there is no such class, or it is not derived from ``base``.
    """
    module, _, attribute = name.partition(":")
    kind = getattr(sys.modules.get(module), attribute, None)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ValueError(
            f"{argument} must be module:Class of a {base.__name__}, in a module that is imported, "
            f"got {name!r}"
        )
    return kind
