r"""GREEDY-NCIS for delayed signals, an exact form of Appendix C of Busa-Fekete et al.

Write D for the delay of a signal, G for its distribution and H(t) = E[min(D, t)] (see
:mod:`policies.values.delays`). Signals arrive at rate gamma whatever their delay. At age x, the
time since the last crawl, signals of changes before that crawl arrive at rate
lambda Delta (1 - G(x)), and carry no information, like false ones. The changes since the crawl
whose signals have not arrived yet are Poisson of mean lambda Delta H(tau). All are independent, so
that with signals at ages x_1, ..., x_n

    P(fresh) = exp(-alpha tau - lambda Delta H(tau)) prod_k (nu + lambda Delta (1 - G(x_k))) / gamma

which is exp(-y) with the evidence

    y = alpha tau + lambda Delta H(tau) + sum_k ln(gamma / (nu + lambda Delta (1 - G(x_k)))).

Without delay y is alpha tau_EFF. It does not decrease between crawls, so that the optimal time of
a crawl is when y reaches a threshold (Lemma 1). With the mean length psi(y) of the cycle that ends
there, the value is, as in Theorem 1 (its proof only needs identically distributed cycles),

    V(y) = mu (w(y) - exp(-y) psi(y)) = mu int_0^y exp(-z) psi(z) dz.

For a constant delay D no useful signal arrives before age D, and later signals arrive as without
delay: psi(y) = y / Delta up to y = Delta D, and D + psi_NCIS at y - Delta D beyond, so that

    V(y) = V_GREEDY(D) + exp(-Delta D) (mu D (1 - exp(-(y - Delta D))) + V_NCIS(y - Delta D)).

Every delay uses this formula, with its mean for D: the evidence is exact, psi is approximate. In
most cases V is accurate to a few percent. A policy with psi tabulated by simulation for every page
was better only for a Poisson delay of mean half a quantum, by .001 to .002 of freshness. A delay of
0 gives GREEDY-NCIS, a delay longer than all cycles GREEDY.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled
from crawl_envs.types import Delay, FloatArray, Problem
from policies.base.registry import registered
from policies.ncis.greedy import SIGNAL_MODEL, GreedyNCIS
from policies.values import tables as value_tables
from policies.values.delays import arrived, delay_numbers, under_way
from policies.values.kernels import greedy_ncis_value
from policies.values.series import (
    ALPHA,
    EVIDENCE,
    REST,
    SATURATED,
    SPACING,
    TERMS,
    TOP,
    greedy_form,
)

# Columns of the table, after the columns of GREEDY-NCIS.
SIGNALLED = TERMS  # lambda Delta, the rate of changes with a signal
FALSE = TERMS + 1  # nu
BLIND = TERMS + 2  # Delta D, the evidence before the first useful signal
KIND, MEAN, QUANTUM = TERMS + 3, TERMS + 4, TERMS + 5  # the delay


@compiled(VALUE.signature)
def evidence_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return V_GREEDY_NCIS of a page, where ``signals`` is the total evidence of all signals.

    V_GREEDY_NCIS is a function of time and signals. Here all evidence is expressed as a fractional
    number of signals, or as time where the evidence of a signal is 0 or infinite. With alpha = 0,
    psi is a step function, and V is linear in exp(-y) on every step.
    """
    alpha: float = parameters[page, ALPHA]
    top: float = parameters[page, TOP]
    y = alpha * elapsed + signals
    if y >= SATURATED or top == 0.0:
        return top
    evidence: float = parameters[page, EVIDENCE]
    rest: float = parameters[page, REST]
    if parameters[page, SPACING] == math.inf and (alpha == 0.0 or evidence < math.inf):
        steps = math.floor(y / evidence)
        before = 0.0 if steps == 0.0 else steps * evidence
        value = greedy_ncis_value(parameters, page, 0.0, steps) if steps > 0.0 else 0.0
        gained = math.exp(-before) * -math.expm1(before - y)
        return value + rest * (steps + 1.0) * gained
    if 0.0 < evidence < math.inf:
        return greedy_ncis_value(parameters, page, 0.0, y / evidence)
    return greedy_ncis_value(parameters, page, y / alpha, 0.0)


@compiled(VALUE.signature)
def delayed_ncis_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the crawl value for delayed signals; ``signals`` is the total evidence of signals."""
    top: float = parameters[page, TOP]
    y = parameters[page, ALPHA] * elapsed + signals
    y += parameters[page, SIGNALLED] * under_way(
        parameters[page, KIND], parameters[page, MEAN], parameters[page, QUANTUM], elapsed
    )
    if y >= SATURATED:
        return top
    blind: float = parameters[page, BLIND]
    if y <= blind:
        return greedy_form(top, y)
    after = evidence_value(parameters, page, 0.0, y - blind)
    later = top * blind * -math.expm1(blind - y) + after
    return min(top, greedy_form(top, blind) + math.exp(-blind) * later)


@compiled(SIGNAL_WEIGHT.signature)
def delayed_ncis_weight(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return the evidence of a signal that came ``age`` after the last crawl.

    It is ln(gamma / (nu + lambda Delta (1 - G(age)))).
    """
    signalled: float = parameters[page, SIGNALLED]
    if signalled == 0.0:
        return 0.0
    soon, late = arrived(
        parameters[page, KIND], parameters[page, MEAN], parameters[page, QUANTUM], age
    )
    return math.log1p(signalled * soon / (parameters[page, FALSE] + signalled * late))


def delayed_ncis_table(
    importance: FloatArray,
    change_rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    delay: Delay,
) -> FloatArray:
    """Return the constants for value and weight with delayed signals, (m, P), from arrays (m,).

    Raises:
        ValueError: an argument is negative, not finite, or a recall above 1.
    """
    undelayed = value_tables.greedy_ncis_table(importance, change_rate, recall, false_signal_rate)
    added = recall * change_rate, false_signal_rate, change_rate * delay.mean, *delay_numbers(delay)
    table = np.stack(np.broadcast_arrays(*added), axis=-1)
    return np.ascontiguousarray(np.hstack([undelayed, table]))


@registered()
class GreedyNCISDelayed(GreedyNCIS):
    """GREEDY-NCIS with a known distribution of delays (see :mod:`policies.ncis.delayed`).

    The weight of a signal depends on its age, the time from its page's last crawl to its arrival,
    through the probability that its change came after that crawl. Changes whose signals have not
    arrived yet are included. Without delay it is :class:`policies.GreedyNCIS`. With a delay,
    several sources are pooled into one, whose recall and false signals are their sums.

    It ignores two facts of a tracker: whether the last crawl found a change, and that no signals
    are pending at time 0 or at a page's birth.

    Args:
        delay: delay of signals; None for the delay that the problem reveals.
        **settings: as for :class:`policies.GreedyNCIS`.

    Raises:
        ValueError: as for the base class; when an episode starts, no delay as argument or revealed.
            From columns, a delay above 0: the ages of signals come from logs.
    """

    def __init__(self, *, delay: Delay | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        if not isinstance(delay, Delay | None):
            raise ValueError(f"delay must be a Delay or None, got {delay!r}")
        self.delay = delay
        if delay is None or delay.mean > 0.0:  # the ages of signals come from logs
            self.reads_columns = False

    def _delay(self, problem: Problem) -> Delay:
        delay = problem.delay if self.delay is None else self.delay
        if delay is None:
            raise ValueError(
                f"{self.name} needs delay=, a Delay, where the environment does not reveal it; "
                "got None"
            )
        return delay

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        delay = self._delay(problem)
        if delay.mean == 0.0:
            return super()._index(problem)
        pooled = problem.pooled()
        parameters = {name: getattr(pooled, name) for name in SIGNAL_MODEL}
        return delayed_ncis_value, delayed_ncis_table(**parameters, delay=delay)

    def _signal_weight(self, problem: Problem) -> Any:
        if self._delay(problem).mean == 0.0:
            return super()._signal_weight(problem)
        return delayed_ncis_weight
