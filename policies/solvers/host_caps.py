"""Optimal rates under caps on the crawls of each host."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import SMALLEST, check_domain, floats, page_arrays, quantity, real
from policies.solvers.allocation import Allocation, normalised
from policies.solvers.binary_periodic import binary_periodic
from policies.solvers.binary_random import binary_poisson
from policies.solvers.harmonic_periodic import harmonic_periodic
from policies.solvers.lambdacrawl import harmonic
from policies.solvers.page_totals import page_mask

Solver = Callable[..., Allocation]

HARMONIC: tuple[Solver, ...] = (harmonic, harmonic_periodic)
BINARY: tuple[Solver, ...] = (binary_poisson, binary_periodic)
SOLVERS = HARMONIC + BINARY
"""Solvers of convex problems whose pages share nothing but the bandwidth."""

SLACK = 1e-9
"""Crawls of a host beyond its cap, as a share of it, that count as rounding."""


def host_capped(
    solver: Solver,
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    host: ArrayLike,
    host_bandwidth: ArrayLike,
    **arguments: Any,
) -> Allocation:
    """Return optimal rates under a cap on the crawl rate of each host.

    Adds ``sum of the rates of a host <= R_h`` to the problem of a solver. The solver first runs
    without caps. Hosts above their cap get the rates that are optimal for their cap alone; the
    others share the remaining bandwidth; and so on until no cap is exceeded. Without the settled
    hosts there is more bandwidth per page and the multiplier falls, so a settled cap stays binding.
    The result therefore satisfies the optimality conditions: pages of a settled host share a
    multiplier that is not below that of the others. (Politeness constraints as in Kolobov,
    Peres, Lubetzky and Horvitz 2019, who solve them for binary freshness.)

    Pages are sorted by host once. There is one solution per host whose cap binds, and usually 2 to
    6 for the remaining pages.

    Args:
        solver: one of :data:`SOLVERS`: ``harmonic``, ``harmonic_periodic``, ``binary_poisson``,
            ``binary_periodic``.
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: crawls per unit time of all pages, > 0.
        host: the host of each page, shape (m,), integers in [0, H).
        host_bandwidth: cap in crawls per unit time of each host, > 0, inf for no cap: shape (H,),
            or a scalar for all hosts.
        **arguments: of the solver: ``complete``, or ``floor`` (a share of the uniform rate of all
            pages, also with caps).

    Returns:
        The allocation for all pages, with ``host_multipliers``: the value of one more crawl per
        unit time of a host minus ``multiplier``, which is 0 (and bandwidth is left over) if the
        caps add up to less than the bandwidth. ``iterations`` excludes the hosts' own solutions.

    Raises:
        ValueError: the solver rejects an argument; another solver; ``host`` is not of integers in
            [0, H); a cap is not > 0, or does not allow the floor.
    """
    each = floats("host", host)
    weight, change, _ = page_arrays(
        importance=importance, change_rate=change_rate, host=np.zeros(each.shape)
    )
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    hosts, caps = _hosts(host, host_bandwidth, len(weight))
    order = np.argsort(hosts, kind="stable")
    hosts = hosts[order]
    problem = _Problem(solver, weight[order], change[order], order, bandwidth, arguments)
    problem.check_floor(np.bincount(hosts, minlength=len(caps)), caps)
    solution, prices = _settle(problem, hosts, caps, bandwidth)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    columns = {name: column[back] for name, column in solution.columns.items()}
    spent = bool(abs(columns["rates"].sum() / bandwidth - 1.0) <= 1e-9)
    return Allocation(
        probabilities=columns.pop("probabilities", None),
        multiplier=solution.multiplier,
        objective=solution.objective,
        iterations=solution.iterations,
        converged=solution.converged and (spent or solution.multiplier == 0.0),
        host_multipliers=prices,
        **columns,
    )


def _hosts(
    host: ArrayLike, host_bandwidth: ArrayLike, num_pages: int
) -> tuple[IntArray, FloatArray]:
    """Return the checked hosts of the pages, (m,), and caps of the hosts, (H,)."""
    hosts = np.asarray(host)
    if hosts.shape != (num_pages,) or hosts.dtype.kind not in "iu":
        raise ValueError(
            f"host must be integers of shape ({num_pages},), got {hosts.dtype} of shape "
            f"{hosts.shape}"
        )
    caps = floats("host_bandwidth", host_bandwidth)
    if caps.ndim == 0:
        caps = np.full(max(int(hosts.max()) + 1, 1), float(caps))
    if caps.ndim > 1 or not (caps > 0.0).all():
        bad = caps[~(caps > 0.0)]
        got = f"shape {caps.shape}" if caps.ndim > 1 else str(bad[0])
        raise ValueError(f"host_bandwidth must be > 0, a scalar or of shape (H,), got {got}")
    check_domain("host_bandwidth", caps[np.isfinite(caps)])
    if hosts.min() < 0 or hosts.max() >= len(caps):
        wrong = hosts.min() if hosts.min() < 0 else hosts.max()
        raise ValueError(f"host must lie in [0, {len(caps)}), got {wrong}")
    return hosts.astype(np.int64), caps


class _Problem:
    """Pages sorted by host, to be solved in parts."""

    def __init__(
        self,
        solver: Solver,
        importance: FloatArray,
        change_rate: FloatArray,
        order: IntArray,
        bandwidth: float,
        arguments: dict[str, Any],
    ) -> None:
        if solver not in SOLVERS:
            known = ", ".join(sorted(each.__name__ for each in SOLVERS))
            raise ValueError(f"solver must be one of {known}, got {solver!r}")
        self.solver, self.importance, self.change_rate = solver, importance, change_rate
        taken = {harmonic: "complete", harmonic_periodic: "complete", binary_poisson: "floor"}
        for name, value in arguments.items():
            if name != taken.get(solver):
                raise ValueError(f"{name} must be an argument of {solver.__name__}, got {value!r}")
        self._complete: BoolArray | None = None
        if arguments.get("complete") is not None:
            self._complete = page_mask(arguments["complete"], len(order))[order]
        self._floored = "floor" in arguments
        floor = real("floor", arguments.get("floor", 0.0), least=0.0)
        if floor > 1.0:
            raise ValueError(f"floor must lie in [0, 1], got {floor!r}")
        self.floor = floor * bandwidth / len(order)
        shares = normalised(importance)
        self._shares = shares if solver in BINARY else None

    def check_floor(self, pages: IntArray, caps: FloatArray) -> None:
        """Raise ValueError if a host's cap does not allow the floor for its pages."""
        short = self.floor * pages > caps * (1.0 + SLACK)
        if short.any():
            worst = int(np.argmax(short))
            raise ValueError(
                f"host_bandwidth must allow the floor of {self.floor:g} to the {pages[worst]} "
                f"pages of host {worst}, got {caps[worst]}"
            )

    def solve(self, pages: slice | IntArray, bandwidth: float) -> Allocation | None:
        """Return the allocation of some pages, in units of the whole; None without importance."""
        importance = self.importance[pages]
        if not importance.any():
            return None
        more: dict[str, Any] = {}
        if self._complete is not None:
            more["complete"] = self._complete[pages]
        if self._floored:
            more["floor"] = min(self.floor * len(importance) / bandwidth, 1.0)
        allocation = self.solver(importance, self.change_rate[pages], bandwidth, **more)
        if self._shares is None:
            return allocation
        share = float(self._shares[pages].sum())
        return replace(
            allocation,
            multiplier=share * allocation.multiplier,
            objective=share * allocation.objective,
        )


@dataclass(eq=False)
class _Solution:
    """The solution so far; ``columns`` are fields of :class:`Allocation` of shape (m,)."""

    columns: dict[str, FloatArray]
    objective: float = 0.0
    multiplier: float = 0.0
    iterations: int = 0
    converged: bool = True

    def take(self, pages: slice | IntArray, part: Allocation | None) -> float:
        """Store the allocation of some pages; return its multiplier."""
        if part is None:
            return 0.0
        for name, column in self.columns.items():
            column[pages] = getattr(part, name)
        self.objective += part.objective
        self.converged &= part.converged
        return part.multiplier


def _settle(
    problem: _Problem, hosts: IntArray, caps: FloatArray, bandwidth: float
) -> tuple[_Solution, FloatArray]:
    """Settle hosts whose caps are exceeded, until none is; also return host prices, (H,)."""
    starts = np.searchsorted(hosts, np.arange(len(caps) + 1))
    prices = np.zeros(len(caps))
    settled = np.zeros(len(caps), np.bool_)
    part = problem.solve(slice(None), bandwidth)
    solution = _Solution(_blank(part, problem))
    pages, left = np.arange(len(hosts)), bandwidth
    while part is not None:
        solution.iterations += part.iterations
        spent = np.bincount(hosts[pages], weights=part.rates, minlength=len(caps))
        over = np.flatnonzero(spent > caps * (1.0 + SLACK))
        if len(over) == 0:
            solution.multiplier = solution.take(pages, part)
            break
        for one in over:
            span = slice(int(starts[one]), int(starts[one + 1]))
            prices[one] = solution.take(span, problem.solve(span, float(caps[one])))
        settled[over] = True
        left -= float(caps[over].sum())
        pages = pages[~settled[hosts[pages]]]
        part = problem.solve(pages, max(left, SMALLEST)) if len(pages) > 0 else None
    prices[settled] = np.maximum(prices[settled] - solution.multiplier, 0.0)
    return solution, prices


def _blank(part: Allocation | None, problem: _Problem) -> dict[str, FloatArray]:
    """Return the columns of pages outside all parts: those without importance."""
    others = {
        "rates": problem.floor,
        "probabilities": 1.0 if problem.solver is harmonic_periodic else 0.0,
        "thresholds": math.inf,
        "signals": math.inf,
    }
    return {
        name: np.full(len(problem.importance), other)
        for name, other in others.items()
        if getattr(part, name) is not None
    }
