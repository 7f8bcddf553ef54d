"""Identify stored rows by declared names of functions, their versions, and their arguments.

Code can be renamed and moved. Rows are simulated again if one of these changes: the name that
:func:`spec` declares, the names and values of the arguments of a ``functools.partial``, the fields
of dataclasses among them, and defaults with a spec.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import policies

Function = TypeVar("Function", bound=Callable[..., Any])
VERSIONS = ("version", "file_digest")
"""Parts of a description whose change drops stored rows: the version of a function, and the hash of
the file of an agent or of a policy of the user."""


def spec(name: str, version: int = 1) -> Callable[[Function], Function]:
    """Declare a function whose rows are stored, or that is an argument of a declared function.

    Args:
        name: a name that no other function has; it must never change.
        version: raise it when the function returns other numbers: stored rows are then simulated
            again.
    """

    def declare(function: Function) -> Function:
        function.spec = {"spec": name, "version": version}  # type: ignore[attr-defined]
        function.declared = function  # type: ignore[attr-defined]  # wrappers and subclasses copy it
        return function

    return declare


def describe(value: Any) -> Any:
    """Describe a declared function, a partial of a function, or an argument, as plain JSON.

    Registered policies are described by name and arguments, dataclasses by their fields. Fields
    with the default value are omitted, so that a new field changes no description. Fields and
    default arguments that are functions with a spec are always described: specs have versions.

    Raises:
        ValueError: a function without a spec, a value that JSON does not have, or positional
            arguments without names.
    """
    if isinstance(value, partial):
        names = [*inspect.signature(value.func).parameters.values()][: len(value.args)]
        if len(names) < len(value.args) or any(name.kind is name.VAR_POSITIONAL for name in names):
            raise ValueError(f"{value!r} must pass arguments by name, got positional ones of *args")
        arguments = {name.name: item for name, item in zip(names, value.args, strict=True)}
        arguments |= value.keywords
        described = {} if value.func is policies.make else describe(value.func)
        if clash := {"spec", "version"} & described.keys() & arguments.keys():
            raise ValueError(f"a function with a spec must have no argument {clash.pop()!r}")
        return described | describe(arguments)
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
    if isinstance(value, None | str | bool | int | float):
        return value
    function: Any = getattr(value, "declared", None)
    if function is not value:
        raise ValueError(
            f"{value!r} must be a plain value or a function with a spec of its own: write "
            '@spec("name-of-the-measure") above it, from scripts.study.specs'
        )
    parameters = inspect.signature(function).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    with_spec = {name: default for name, default in defaults.items() if _has_spec(default)}
    return function.spec | describe(with_spec)


def _has_spec(value: Any) -> bool:
    """Return whether a value is, or contains, a function with a spec."""
    if isinstance(value, partial):
        return _has_spec([value.func, *value.args, value.keywords])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _has_spec([getattr(value, field.name) for field in dataclasses.fields(value)])
    if isinstance(value, Mapping):
        return _has_spec([*value.values()])
    if isinstance(value, list | tuple):
        return any(_has_spec(item) for item in value)
    return getattr(value, "declared", None) is not None


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults or have a spec."""
    defaults = {
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(value)
    }

    def text(item: Any) -> str:
        return json.dumps(describe(item), sort_keys=True)  # True is not 1

    fields = {name: getattr(value, name) for name in defaults}
    always = {name for name in fields if defaults[name] is dataclasses.MISSING}
    always |= {name for name in fields if _has_spec(fields[name])}
    return {
        name: item
        for name, item in fields.items()
        if name in always or text(item) != text(defaults[name])
    }


def without_versions(description: Any) -> Any:
    """Return a copy of a description without versions of functions and hashes of files."""
    if isinstance(description, Mapping):
        return {
            key: without_versions(item) for key, item in description.items() if key not in VERSIONS
        }
    if isinstance(description, list):
        return [without_versions(item) for item in description]
    return description
