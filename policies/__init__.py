"""Analytic policies: crawl values, solvers, schedules, and policies built from them.

Every policy is an attribute of this package, such as ``policies.GreedyNCIS``. To add one,
decorate a class in one of FOLDERS with :func:`policies.base.registry.registered`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.base.bound import Bound, bind
from policies.base.columns import FromColumns
from policies.base.live import LivePages
from policies.base.policy import CrawlPolicy, Policy
from policies.base.registry import POLICIES, TAGS, find

__all__ = [
    "Bound",
    "CrawlPolicy",
    "FromColumns",
    "LivePages",
    "Policy",
    "bind",
    "find",
    "make",
    "names",
]

SUITE = "crawl_envs"
"""Says that the package is this one; see :mod:`crawl_envs.system.own_packages`."""

FOLDERS = ("baselines", "ncis", "lambdacrawl", "longevity", "offers", "bandits")
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


def make(
    name: str,
    env: Any = None,
    *,
    features: Sequence[str] | None = None,
    action_form: str | None = None,
    batch: int | None = None,
    **arguments: Any,
) -> Any:
    """Build the policy of that name.

    Args:
        name: one of ``names(fragments=True)``, or ``module:Class``.
        env: a crawl environment, single or vector, wrapped or not; None for the policy itself.
        features: instead of ``env``, the names of the observation's columns
            (``env.unwrapped.features``).
        action_form: without an environment, the form of the actions, one of the policy's ``acts``.
        batch: without an environment, crawls per decision in the form ``scores``.
        **arguments: arguments of the policy's class.

    Returns:
        With ``env`` a :class:`Bound` policy, with ``features`` a policy :class:`FromColumns`; both
        have ``predict``. Without both the :class:`Policy`, to be started on :class:`LivePages` or
        simulated. A class with ``predict`` that is no :class:`Policy` is called with ``env``.

    Raises:
        ValueError: unknown name, an argument that the policy's class refuses, or an argument that
            the environment decides.
    """
    cls = find(name)
    if not issubclass(cls, Policy):
        if features is not None or (action_form, batch) != (None, None):
            raise ValueError(f"features, action_form and batch must be None for {name}")
        return cls(env, **arguments)
    policy = cls(**arguments)
    if env is not None:
        if features is not None or (action_form, batch) != (None, None):
            raise ValueError(
                "features, action_form and batch must be None where env is given: they are the "
                "environment's"
            )
        return bind(policy, env)
    policy = policy.in_form(action_form or (*policy.acts, "page")[0], batch)
    return policy if features is None else FromColumns(policy, features)
