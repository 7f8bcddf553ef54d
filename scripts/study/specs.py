"""What kept rows are recognised by: declared names of functions, versions, and arguments.

Code can be renamed and moved. Rows are lost if one of these changes: the name that :func:`spec`
declares, the names and values of the arguments of a ``functools.partial``, and the fields of
dataclasses among them.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import policies

Function = TypeVar("Function", bound=Callable[..., Any])
VERSIONS = ("version", "file_digest")
"""Parts of a description that may change, so that rows are simulated again: the version of a
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
        arguments |= value.keywords
        function = {} if value.func is policies.make else describe(value.func)
        if clash := function.keys() & arguments:
            raise ValueError(f"a function with a spec must have no argument {clash.pop()!r}")
        return function | describe(arguments)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return describe(_fields(value))
    if hasattr(value, "_asdict"):
        return describe(value._asdict())
    if isinstance(value, Mapping):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
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
    defaults = {
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(value)
    }
    fields = {name: getattr(value, name) for name in defaults}
    return {name: fields[name] for name in fields if fields[name] != defaults[name]}


def without_versions(description: Any) -> Any:
    """Return a description without VERSIONS."""
    if isinstance(description, Mapping):
        return {
            key: without_versions(item) for key, item in description.items() if key not in VERSIONS
        }
    if isinstance(description, list):
        return [without_versions(item) for item in description]
    return description
