"""The registry of policies: decorated classes are built by name, and selected by tags."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from crawl_envs.types.arguments import one_of
from policies.base.policy import CrawlPolicy, Policy

Family = Literal["pages", "fragments", "offers"]
Kind = Literal["formula", "learning formula", "bandit", "crawler's rule", "baseline", "oracle"]
KINDS: Mapping[Kind, str] = {
    "formula": "crawl values or rates by a formula of the true parameters, which it is given",
    "learning formula": "the same of estimates or beliefs, learned from its own crawls and signals",
    "bandit": "learns by trial which policies, pages or rates pay, without a formula of changes",
    "crawler's rule": "a rule of crawlers in use, from signals or the results of its crawls; it "
    "ignores costs",
    "baseline": "crawls all pages alike",
    "oracle": "reads the true events; not on leaderboards",
}
"""The kinds of policies, and what they are."""


class Paper(NamedTuple):
    """A paper: its authors and year, and the section of docs/papers.md that has its equations."""

    authors: str
    section: str = "related-work"


PAPERS: Mapping[str, Paper] = {
    "NCIS": Paper("Busa-Fekete et al. 2025", "ncis-busa-fekete-et-al-2025"),
    "LambdaCrawl": Paper("Kolobov et al. 2019", "lambdacrawl-kolobov-et-al-2019"),
    "Longevity": Paper("Olston and Pandey 2008", "information-longevity-olston-and-pandey-2008"),
    "Offers": Paper("Han et al. 2020", "shopping-offers-han-et-al-2020"),
    "Learning to Crawl": Paper("Upadhyay et al. 2020"),
    "Lagrangian index": Paper("Avrachenkov, Borkar and Shah 2024"),
    "EXP3-IX": Paper("Neu 2015", "shopping-offers-han-et-al-2020"),
    "EXP3++": Paper("Seldin and Lugosi 2017", "shopping-offers-han-et-al-2020"),
}
"""The papers of policies by their short names."""


class Tags(NamedTuple):
    """Properties of a registered policy.

    Attributes:
        kind: what it is, a key of ``KINDS``.
        paper: short name of the paper that defines it, a key of ``PAPERS``; empty if none does.
        family: what it is for: ``pages`` of any environment, pages with ``fragments``, ``offers``.
        acts: its forms of action.
        oracle: whether it reads the true events.
        learns: whether it learns from the results of its crawls.
        compiled: whether it has a compiled form.
    """

    kind: Kind
    paper: str
    family: Family
    acts: tuple[str, ...]
    oracle: bool
    learns: bool
    compiled: bool


POLICIES: dict[str, type[Policy]] = {}
"""The registered policies by name."""
TAGS: dict[str, Tags] = {}
"""The tags of the registered policies by name."""

PolicyClass = TypeVar("PolicyClass", bound=type[Policy])


def registered(
    *, kind: Kind | None = None, paper: str = "", family: Family = "pages"
) -> Callable[[PolicyClass], PolicyClass]:
    """Register a class of policies under its own name; a class decorator.

    Args:
        kind: as for :class:`Tags`; None for ``oracle``, ``learning formula`` or ``formula``, by the
            class, from which all tags follow that are not given.
        paper: as for :class:`Tags`.
        family: as for :class:`Tags`.
    """

    def register(policy: PolicyClass) -> PolicyClass:
        name, compiled = policy.__name__, issubclass(policy, CrawlPolicy)
        POLICIES[name] = policy
        formula: Kind = "learning formula" if policy.learns else "formula"
        tag = kind or ("oracle" if policy.oracle else formula)
        TAGS[name] = Tags(tag, paper, family, policy.acts, policy.oracle, policy.learns, compiled)
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
    predicts = callable(getattr(policy, "predict", None))
    if isinstance(policy, type) and (predicts or issubclass(policy, Policy)):
        return policy
    raise ValueError(f"policy {name!r} must be a class of policies, got {policy!r}")
