"""The registry of policies: a decorated class can be built by its name."""

from __future__ import annotations

from typing import Any, TypeVar

from policies.base.binding import ActingPolicy

POLICIES: dict[str, type[ActingPolicy[Any]]] = {}
"""The registered policies by name."""

PolicyClass = TypeVar("PolicyClass", bound=type[ActingPolicy[Any]])


def registered(policy: PolicyClass) -> PolicyClass:
    """Register a class of policies under its own name; a class decorator."""
    POLICIES[policy.__name__] = policy
    return policy
