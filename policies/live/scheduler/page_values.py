"""The crawl values of a scheduler's pages, by an index policy or by allocated rates."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

import policies
from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, ready
from crawl_envs.types import FloatArray, Problem
from policies.base.allocated import AllocatedPolicy
from policies.base.index import IndexPolicy
from policies.ncis.greedy import GreedyNCIS
from policies.values.series import SATURATED
from policies.values.sources.kernels import EVIDENCES

COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate", "complete")

EVIDENCE = 1e-9, SATURATED
"""Least and largest evidence of a signal in nats, so that sums of several are finite."""


def evidence_of(columns: Mapping[str, FloatArray]) -> FloatArray:
    """Return each source's evidence ln(signal rate / false signal rate), (S, n); 0 at recall 0."""
    true, false = columns["recall"] * columns["change_rate"], columns["false_signal_rate"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(true > 0.0, np.log1p(true / false).clip(*EVIDENCE), 0.0))


@compiled(SIGNAL_WEIGHT.signature)
def count_alike(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return 1, the weight of every signal for a policy that weighs all signals alike."""
    return 1.0


@compiled(VALUE.signature)
def overdue(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return how many crawls a page is behind its crawl rate; from 1 on a crawl is due."""
    return float(elapsed * parameters[page, 0] + parameters[page, 1])


class Address(types.WrapperAddressProtocol):
    """A compiled function that stores its address; Numba would else spend 20 us per call on it."""

    def __init__(self, function: Any, kind: Any) -> None:
        self.function, self.kind = ready(function), kind
        result = function.get_compile_result(kind.signature)
        self.address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        """Return the address of the function."""
        return int(self.address)

    def signature(self) -> Any:
        """Return the function's type."""
        return self.kind.signature

    def __call__(self, *arguments: Any) -> float:
        """Return the function's value."""
        return float(self.function(*arguments))


address = functools.cache(Address)


class PageValues:
    """The compiled crawl value of a policy, and the table of the parameters that it takes.

    Args:
        policy: an index policy or a policy that allocates rates, as its name, its class or an
            instance.

    Attributes:
        name: the policy's name, None if it was not given by name.
        needs: the columns of the pages that the policy reads.
        apart: whether a page's parameters do not depend on those of other pages.
    """

    def __init__(self, policy: str | type[Any] | IndexPolicy | AllocatedPolicy) -> None:
        if isinstance(policy, policies.FromColumns):
            policy = policy.policy
        cls = policies.find(policy) if isinstance(policy, str) else policy
        self.name = policy if isinstance(policy, str) else None
        self.policy: Any = policy
        if isinstance(cls, type) and issubclass(cls, IndexPolicy | AllocatedPolicy):
            self.policy = cls()
        if not isinstance(self.policy, IndexPolicy | AllocatedPolicy):
            raise ValueError(
                "policy must be an index policy or one that allocates rates, such as 'GreedyNCIS' "
                f"or 'LambdaCrawl', got {policy!r}"
            )
        self.needs: tuple[str, ...] = tuple(self.policy.needs)
        self.apart = isinstance(self.policy, IndexPolicy)
        self.value, self.delay_window = address(overdue, VALUE), 0.0
        self.signal_weight = address(count_alike, SIGNAL_WEIGHT)

    def table(self, columns: Mapping[str, FloatArray], bandwidth: float) -> FloatArray:
        """Return the parameters of pages, (n, P), from their columns, (n,) or (S, n) each.

        With a column ``cost`` values are per unit of cost.
        A page of GREEDY-NCIS has 14 columns with one source, and 181 + S with S of them.

        Raises ValueError where the policy refuses the columns.
        """
        known: dict[str, Any] = {name: columns[name] for name in COLUMNS if name in columns}
        if "complete" in known:
            known["complete"] = known["complete"] > 0.5
        known["cost"] = columns.get("cost")
        problem = Problem(num_pages=columns["importance"].size, bandwidth=bandwidth, **known)
        if not self.apart:
            rates = self.policy.rates(problem, bandwidth)
            return np.stack([rates, np.zeros_like(rates)], axis=1)
        form = self.policy.compile(problem, 0, np.random.default_rng(0))
        if len(form.parameters) != problem.num_pages or form.promises.size:
            raise ValueError(
                f"policy must value each page by its own parameters, got {self.policy!r}, whose "
                "pages share some, or have promises (give these to the scheduler: most_interval)"
            )
        self.value, self.delay_window = address(form.value, VALUE), form.delay_window
        if form.signal_weight is not None:
            self.signal_weight = address(form.signal_weight, SIGNAL_WEIGHT)
        return np.ascontiguousarray(form.parameters)

    def signal_weights(self, parameters: FloatArray, num_sources: int) -> FloatArray:
        """Return the weight that one signal of each source has for each page, (S, n)."""
        if type(self.policy) is GreedyNCIS and num_sources > 1:
            return parameters[:, EVIDENCES : EVIDENCES + num_sources].T
        return np.ones((num_sources, len(parameters)))
