"""The crawl values of a scheduler's pages, by an index policy or by allocated rates."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

import policies
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import within_domain
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled, ready
from policies.base.allocated import AllocatedPolicy
from policies.base.index import IndexPolicy
from policies.ncis.greedy import GreedyNCIS
from policies.ncis.learning_greedy import one_source

COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate", "complete")

WEIGHTS = 14
"""The column of the first weight, after those of GREEDY-NCIS with one source."""
EVIDENCE = 1e-9, 40.0
"""Least and largest evidence of a signal in nats, so that sums of several are finite."""


@compiled(SIGNAL_WEIGHT.signature)
def weight_of_source(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return the weight of a signal of a source, in signals of the one source in their place."""
    return float(parameters[page, WEIGHTS + source])


def evidence_of(columns: Mapping[str, FloatArray]) -> FloatArray:
    """Return ln(gamma_s / nu_s) of each source, (S, n), within ``EVIDENCE``; 0 without signals."""
    true, false = columns["recall"] * columns["change_rate"], columns["false_signal_rate"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(true > 0.0, np.log1p(true / false).clip(*EVIDENCE), 0.0))


def in_place_of_several(columns: Mapping[str, FloatArray]) -> tuple[dict[str, Any], FloatArray]:
    """Return columns with one source in place of S, and the weight of a signal of each, (S, n).

    See :func:`policies.ncis.learning_greedy.one_source`.
    """
    change, recall = columns["change_rate"], columns["recall"]
    if (most := recall.sum(axis=0).max(initial=0.0)) > 1.0 + 1e-12:
        raise ValueError(f"recall must sum to at most 1 over sources, got {most:g}")
    evidence, rate = evidence_of(columns), recall * change + columns["false_signal_rate"]
    none = (evidence == 0.0).all(axis=0)
    rate = np.where(evidence > 0.0, rate, 0.0)
    evidence, rate = np.where(none, 1.0, evidence), np.where(none, 1.0, rate)
    one = one_source(np.maximum(1.0 - recall.sum(axis=0), 0.0) * change, evidence, rate)
    found = {"change_rate": one.change_rate, "recall": np.minimum(one.recall, 1.0)}
    found["false_signal_rate"] = within_domain(one.false_signal_rate)
    given: dict[str, Any] = {"change_rate": change, "recall": 0.0, "false_signal_rate": 0.0}
    known = {name: np.where(none, given[name], column) for name, column in found.items()}
    return {**columns, **known}, np.where(none, 0.0, one.signal_weight)


@compiled(SIGNAL_WEIGHT.signature)
def count_alike(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Count every signal as 1."""
    return 1.0


@compiled(VALUE.signature)
def overdue(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the crawls that a page has had too few, at its rate: from 1 on one is due."""
    return float(elapsed * parameters[page, 0] + parameters[page, 1])


class Address(types.WrapperAddressProtocol):
    """A compiled function with its address, which Numba else looks up at every call, in 20 us."""

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
    """The compiled value of a policy, and its table of the pages' parameters.

    Args:
        policy: the name of an index policy or of a policy that allocates rates, a class of these,
            or an instance of one that is not bound to an environment.

    Attributes:
        name: the policy's name, None if it was not given by name.
        needs: the columns of the pages that the policy reads.
        apart: whether a page's parameters do not depend on those of other pages.
        reduces: whether several sources of signals are replaced by one.
    """

    def __init__(self, policy: str | type[Any] | IndexPolicy | AllocatedPolicy) -> None:
        cls = policies.find(policy) if isinstance(policy, str) else policy
        self.name = policy if isinstance(policy, str) else None
        if isinstance(cls, type) and issubclass(cls, IndexPolicy):
            self.policy: Any = cls(features=("elapsed", "signals", *cls.needs))
        elif isinstance(cls, type) and issubclass(cls, AllocatedPolicy):
            self.policy = cls(action_form="page")
        else:
            self.policy = policy
        if not isinstance(self.policy, IndexPolicy | AllocatedPolicy):
            raise ValueError(
                "policy must be an index policy or one that allocates rates, such as 'GreedyNCIS' "
                f"or 'LambdaCrawl', got {policy!r}"
            )
        self.needs: tuple[str, ...] = tuple(self.policy.needs)
        self.apart = isinstance(self.policy, IndexPolicy)
        self.reduces = type(self.policy) is GreedyNCIS
        self.value, self.signal_weight = (
            address(overdue, VALUE),
            address(count_alike, SIGNAL_WEIGHT),
        )
        self.delay_window = 0.0

    def table(self, columns: Mapping[str, FloatArray], bandwidth: float) -> FloatArray:
        """Return the parameters of pages, (n, P), from their columns, (n,) or (S, n) each.

        With S sources, GREEDY-NCIS is that of one source with the same rates of true signals and
        of evidence: S + 14 columns, not one per term of a series.

        Raises ValueError where the policy refuses them.
        """
        weights = np.zeros((0, columns["importance"].size))
        if self.reduces and np.ndim(columns["recall"]) == 2:
            columns, weights = in_place_of_several(columns)
        known: dict[str, Any] = {name: columns[name] for name in COLUMNS if name in columns}
        if "complete" in known:
            known["complete"] = known["complete"] > 0.5
        problem = Problem(num_pages=columns["importance"].size, bandwidth=bandwidth, **known)
        if not self.apart:
            rates = self.policy.rates(problem, bandwidth)
            return np.stack([rates, np.zeros_like(rates)], axis=1)
        form = self.policy.compile(problem, 0, np.random.default_rng(0))
        if len(form.parameters) != problem.num_pages:
            raise ValueError(
                f"policy must value each page by its own parameters, got {self.policy!r}, "
                "whose pages share some"
            )
        self.value, self.delay_window = address(form.value, VALUE), form.delay_window
        if form.signal_weight is not None:
            self.signal_weight = address(form.signal_weight, SIGNAL_WEIGHT)
        if len(weights):
            self.signal_weight = address(weight_of_source, SIGNAL_WEIGHT)
        return np.ascontiguousarray(np.concatenate([form.parameters, weights.T], axis=1))

    def signal_weights(self, parameters: FloatArray, num_sources: int) -> FloatArray:
        """Return the weight of a signal of each source of pages with parameters, (S, n)."""
        if self.reduces and num_sources > 1:
            return parameters[:, WEIGHTS:].T
        return np.ones((num_sources, len(parameters)))
