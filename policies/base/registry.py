"""The registry of policies: decorated classes are built by name, and selected by tags."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from crawl_envs.types.arguments import one_of
from policies.base.binding import ActingPolicy, CrawlPolicy

Family = Literal["pages", "fragments", "offers"]


class Tags(NamedTuple):
    """Properties of a registered policy.

    Attributes:
        paper: short name of the paper that defines it; empty if none does.
        family: what it is for: ``pages`` of any environment, pages with ``fragments``, ``offers``.
        acts: its forms of action; ``probe`` is the form ``page`` where pages can be probed.
        oracle: whether it reads the true events.
        learns: whether it learns from the results of its crawls.
        compiled: whether it has a compiled form.
    """

    paper: str
    family: Family
    acts: tuple[str, ...]
    oracle: bool
    learns: bool
    compiled: bool


POLICIES: dict[str, type[ActingPolicy]] = {}
"""The registered policies by name."""
TAGS: dict[str, Tags] = {}
"""Their tags."""

PolicyClass = TypeVar("PolicyClass", bound=type[ActingPolicy])


def registered(
    *, paper: str = "", family: Family = "pages"
) -> Callable[[PolicyClass], PolicyClass]:
    """Register a class of policies under its own name; a class decorator.

    Args:
        paper: as for :class:`Tags`; the tags that are not given follow from the class.
        family: as for :class:`Tags`.
    """

    def register(policy: PolicyClass) -> PolicyClass:
        name, compiled = policy.__name__, issubclass(policy, CrawlPolicy)
        POLICIES[name] = policy
        TAGS[name] = Tags(paper, family, policy.acts, policy.oracle, policy.learns, compiled)
        return policy

    return register


def find(name: str) -> type[Any]:
    """Return the class of a policy by its name, or as ``module:Class``, whose module is imported.

    Raises:
        ValueError: an unknown name, a module or class that cannot be imported, or no policy.
    """
    if not isinstance(name, str):
        raise ValueError(f"policy must be a name or module:Class, got {name!r}")
    if name in POLICIES:
        return POLICIES[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        one_of("policy", name, sorted(POLICIES), "module:Class")
    try:
        policy = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"policy {name!r} cannot be imported ({reason})") from error
    if not (isinstance(policy, type) and callable(getattr(policy, "predict", None))):
        raise ValueError(f"policy {name!r} must be a class of policies, got {policy!r}")
    return policy
