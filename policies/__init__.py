"""Analytic policies: crawl values, solvers, schedules, and policies built from them.

Every policy is an attribute of this package, such as ``policies.GreedyNCIS``. To add one,
decorate a class in one of FOLDERS with :func:`policies.base.registry.registered`.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.base.binding import ActingPolicy, CrawlPolicy
from policies.base.registry import POLICIES

__all__ = ["ActingPolicy", "CrawlPolicy", "fragment_names", "make", "names"]

FOLDERS = ("base", "baselines", "ncis", "lambdacrawl", "longevity", "offers", "bandits")
"""Folders whose modules are imported with this package, since they may hold policies."""

for _folder in FOLDERS:
    _path = str(Path(__file__).parent / _folder)
    for _module in pkgutil.walk_packages([_path], f"{__name__}.{_folder}."):
        importlib.import_module(_module.name)
globals().update(POLICIES)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def fragment_names() -> tuple[str, ...]:
    """Return the names, known to :func:`make`, of the policies for pages with fragments.

    All act in the forms ``page``, ``scores`` and ``refresh``; the last one needs the argument
    ``threshold`` (``UniformRefresh``: ``interval``) at which they refresh. The ``oracle`` of
    ``FragmentDynamic`` and ``HolisticDynamic`` is True: they read the true events, as
    ``CurrentDivergence`` does with ``dynamic=True``.
    """
    return tuple(sorted(name for name, policy in POLICIES.items() if policy.for_fragments))


def names(action: str | None = None, *, fragments: bool = False) -> tuple[str, ...]:
    """Return the names of policies that :func:`make` knows, in alphabetical order.

    Args:
        action: keep only policies that act in this form of action; ``probe`` stands for the form
            ``page`` where pages can be probed.
        fragments: whether pages have fragments, which adds :func:`fragment_names`. False gives
            the policies for every environment.
    """
    return tuple(
        sorted(
            name
            for name, policy in POLICIES.items()
            if action in (None, *policy.acts) and (fragments or not policy.for_fragments)
        )
    )


def make(name: str, env: Any = None, **arguments: Any) -> ActingPolicy[Any]:
    """Build the policy of that name.

    Args:
        name: one of ``names(fragments=True)``.
        env: a crawl environment, single or vector, wrapped or not.
        **arguments: arguments of the policy's class.

    Raises:
        ValueError: unknown name, or an argument that the policy's class refuses.
    """
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(sorted(POLICIES))}, got {name!r}")
    return POLICIES[name](env, **arguments)
