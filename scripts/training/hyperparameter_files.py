"""Hyperparameter files in the format of RL-Zoo."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from scripts.reporting.options import PREFIX


def read_hyperparameters(path: Path | None, env_id: str) -> dict[str, Any]:
    """Return the entry of an environment in a hyperparameter file.

    Only the class of the policy (Mlp or not) and the ``width`` of its arguments are used.

    Raises:
        ValueError: the file cannot be read, or has no such entry.
    """
    if path is None:
        return {}
    import yaml  # type: ignore[import-untyped]  # it ships no types

    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"hyperparameters {path} cannot be read: {error}") from None
    name = env_id.removeprefix(PREFIX)
    entry = entries.get(name) if isinstance(entries, dict) else None
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise ValueError(f"hyperparameters {path} must have an entry {name}, got none")
    result: dict[str, Any] = {}
    policy = str(entry.pop("policy", ""))
    if policy:
        result["network"] = "mlp" if policy.startswith("Mlp") else "pages"
    width = _width(entry.pop("policy_kwargs", None))
    if width is not None:
        result["width"] = width
    return {**entry, **result}


def _width(kwargs: Any) -> Any:
    """Return the width in the arguments of a policy, given as values or as a call of ours.

    The text is parsed, never executed.
    """
    if isinstance(kwargs, dict):
        return kwargs.get("width")
    try:
        call = ast.parse(str(kwargs), mode="eval").body
    except SyntaxError:
        return None
    for keyword in call.keywords if isinstance(call, ast.Call) else ():
        if keyword.arg == "width" and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None
