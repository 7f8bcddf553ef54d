"""Agents that learn; the only package that uses torch and Stable-Baselines3.

Importing it imports neither: :func:`load` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.catalog import ALGORITHMS, CURVES, GENERALIST, PRIOR, agent_file, names
from crawl_envs.system.own_packages import check_own

SUITE = "crawl_envs"
"""Marks this package as part of the suite; see :mod:`crawl_envs.system.own_packages`."""
check_own("policies")

__all__ = ["ALGORITHMS", "agent_file", "load", "names"]


def load(
    folder_or_name: str | Path,
    env: Any = None,
    *,
    cycle: float | None = None,
    history: Any = None,
) -> Any:
    """Return a trained agent.

    The file in the folder determines its kind: ``model.zip``, or ``scorer.npz`` with the actor
    alone, is an :class:`agents.sb3.loading.Agent`, ``index.json`` a learned index,
    ``generalist.json`` an agent for many laws, ``prior.json`` a belief with a prior learned on
    recorded sites, and ``curves.json`` a network for pages with fragments.

    Args:
        folder_or_name: the output folder of a training run, or one of :func:`agents.names`. Of a
            folder with several trainings, ``seed-0`` and so on, the first is loaded.
        env: the environment to act in, single, vector or bridge, or None; it must fit the agent.
            With the network ``pages`` the number of pages may differ, and the network scales time
            by the environment's T = m / R. With None, a learned index reads the columns of
            ``CrawlNCIS-v0``, and a generalist is a :class:`policies.Policy` for live pages.
        cycle: T, if ``env`` is None; None for the T of the training.
        history: earlier events of the same pages, a :class:`policies.ncis.belief.History`, for a
            generalist; None for none.

    Raises:
        ValueError: there is no such agent, its file is damaged or foreign, or it does not fit
            ``env``, ``cycle`` or ``history``.
    """
    file = agent_file(folder_or_name)
    if file.name in ("index.json", GENERALIST, PRIOR, CURVES) and cycle is not None:
        raise ValueError(f"cycle must be None for the agent of {file}, got {cycle!r}")
    if file.name not in (GENERALIST, PRIOR) and history is not None:
        raise ValueError(f"history must be None for the agent of {file}, got {history!r}")
    if file.name == "index.json":
        import policies
        from agents.index.policy import FEATURES, load_index

        index = load_index(file.parent)
        return policies.FromColumns(index, FEATURES) if env is None else policies.bind(index, env)
    if file.name == PRIOR:
        from agents.generalist.prior import load_prior

        return load_prior(file.parent, env, history)
    if file.name == CURVES:
        from agents.generalist.curves import load_curves

        return load_curves(file.parent, env)
    if file.name == GENERALIST:
        from agents.generalist.policy import load_generalist

        return load_generalist(file.parent, env, history)
    from agents.sb3.loading import load as load_network

    return load_network(file, env, cycle=cycle)
