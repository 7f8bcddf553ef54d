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
from policies.base.live import Description, LivePages
from policies.base.registry import POLICIES, TAGS, find

__all__ = [
    "ActingPolicy",
    "CrawlPolicy",
    "Description",
    "LivePages",
    "find",
    "make",
    "names",
]

SUITE = "crawl_envs"
"""Says that the package is this one; see :mod:`crawl_envs.system.own_packages`."""

FOLDERS = ("base", "baselines", "ncis", "lambdacrawl", "longevity", "offers", "bandits")
"""Folders whose modules are imported with this package, since they may hold policies."""

for _folder in FOLDERS:
    _path = str(Path(__file__).parent / _folder)
    for _module in pkgutil.walk_packages([_path], f"{__name__}.{_folder}."):
        importlib.import_module(_module.name)
globals().update(POLICIES)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def names(
    action: str | None = None,
    *,
    fragments: bool = False,
    kind: str | None = None,
    paper: str | None = None,
    family: str | None = None,
    oracle: bool | None = None,
    learns: bool | None = None,
    compiled: bool | None = None,
) -> tuple[str, ...]:
    """Return the names of policies that :func:`make` knows, in alphabetical order.

    Args:
        action: keep only policies that act in this form of action.
        fragments: whether pages have fragments, which adds the policies for these. They act in the
            forms ``page``, ``scores`` and ``refresh``; the last one needs the argument
            ``threshold`` (``UniformRefresh``: ``interval``) at which they refresh.
        kind: keep only policies with this tag (:class:`policies.base.registry.Tags`).
        paper: likewise.
        family: likewise; ``fragments`` needs no other argument.
        oracle: likewise.
        learns: likewise.
        compiled: likewise.
    """
    wanted: dict[str, Any] = {"kind": kind, "paper": paper, "family": family}
    wanted |= {"oracle": oracle, "learns": learns, "compiled": compiled}
    return tuple(
        name
        for name, tags in sorted(TAGS.items())
        if action in (None, *tags.acts)
        and (fragments or family == "fragments" or tags.family != "fragments")
        and all(value in (None, getattr(tags, tag)) for tag, value in wanted.items())
    )


def make(name: str, env: Any = None, **arguments: Any) -> ActingPolicy:
    """Build the policy of that name.

    Args:
        name: one of ``names(fragments=True)``, or ``module:Class`` for one of your own.
        env: a crawl environment, single or vector, wrapped or not; or a description of the pages
            (:class:`crawl_envs.types.Problem`, :class:`Description` or :class:`LivePages`).
        **arguments: arguments of the policy's class.

    Raises:
        ValueError: unknown name, or an argument that the policy's class refuses.
    """
    policy: ActingPolicy = find(name)(env, **arguments)
    return policy
