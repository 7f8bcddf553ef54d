"""What kept rows are recognised by: declared names of functions, versions, and arguments.

Code can be renamed and moved. Rows are lost if one of these changes: the name that :func:`spec`
declares, the names and values of the arguments of a ``functools.partial``, and the fields of
dataclasses among them.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import policies

Function = TypeVar("Function", bound=Callable[..., Any])
REPLAYED = ("version", "file_digest")
"""Parts of a description whose change means that rows are to be simulated again: the version of a
function, and the hash of the file of an agent or of a policy of the user's own."""


def spec(name: str, version: int = 1) -> Callable[[Function], Function]:
    """Declare a function whose rows are kept, or one among the arguments of such a function.

    Args:
        name: a name that no other function has, chosen once.
        version: to be raised when the function is meant to return other numbers: kept rows of it
            are then simulated again.
    """

    def declare(function: Function) -> Function:
        function.spec = {"spec": name, "version": version}  # type: ignore[attr-defined]
        return function

    return declare


def describe(value: Any) -> Any:
    """Return a declared function, a partial of one, or an argument of one, as plain JSON.

    Registered policies are described by name and arguments, dataclasses by their fields. Fields
    with the default value are left out, so that a new field changes no description.

    Raises:
        ValueError: a function without a spec, or a value that JSON does not have.
    """
    if isinstance(value, partial):
        arguments = dict(zip(inspect.signature(value.func).parameters, value.args, strict=False))
        about = {} if value.func is policies.make else describe(value.func)
        if clash := about.keys() & (arguments := arguments | value.keywords):
            raise ValueError(f"a function with a spec must have no argument {clash.pop()!r}")
        return about | describe(arguments)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if hasattr(value, "_asdict"):
        return describe(value._asdict())
    if isinstance(value, Mapping):
        return {key: describe(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [describe(each) for each in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if not hasattr(value, "spec"):
        raise ValueError(
            f"{value!r} must be a plain value or a function with a spec: write "
            '@spec("name-of-the-measure") above it, from scripts.study.specs'
        )
    return dict(value.spec)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults."""
    fields = {}
    for field in dataclasses.fields(value):
        made = field.default_factory
        default = field.default if made is dataclasses.MISSING else made()
        if (given := getattr(value, field.name)) != default:
            fields[field.name] = describe(given)
    return fields


def lasting(description: Any) -> Any:
    """Return a description without the parts named in ``REPLAYED``."""
    if isinstance(description, Mapping):
        return {key: lasting(each) for key, each in description.items() if key not in REPLAYED}
    return [*map(lasting, description)] if isinstance(description, list) else description
