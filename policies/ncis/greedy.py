"""Policies that crawl the page of the largest crawl value (Busa-Fekete et al., Algorithm 1).

They differ in their model of signals: :class:`Greedy` ignores signals, :class:`GreedyCIS` assumes
no false ones, :class:`GreedyCISPlus` does so only for pages of high signal quality,
:class:`GreedyNCIS` models noisy signals exactly, and :class:`GreedyNCISApprox` truncates its sum.
:class:`GreedyHarmonic` has the harmonic penalty.

GREEDY-NCIS distinguishes several sources of signals. Policies with a formula for one source pool
all sources into one, whose recall, false signals and counts are their sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import one_of, share, whole
from policies.base.index import IndexPolicy, SignalPolicy
from policies.base.registry import registered
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from policies.values.sources import kernels as source_kernels
from policies.values.sources import tables as source_tables
from policies.values.tables import Reading

SIGNAL_MODEL = ("importance", "change_rate", "recall", "false_signal_rate")


def _model(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in SIGNAL_MODEL}


def several_sources(problem: Problem) -> bool:
    """Return whether the pages have several sources of signals."""
    return problem.recall is not None and problem.recall.ndim == 2


@registered(paper="NCIS")
class Greedy(IndexPolicy):
    """GREEDY: the value of a page without signals (section 5.1)."""

    needs = ("importance", "change_rate")

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        assert problem.change_rate is not None
        table = value_tables.greedy_table(problem.importance, problem.change_rate)
        return value_kernels.greedy_value, table


@registered()
class GreedyHarmonic(SignalPolicy):
    """Crawls by the largest value under the harmonic penalty (:func:`policies.values.harmonic`).

    The value depends on the number of signals for pages with complete observation, and on the time
    since the last crawl for all others. No paper has this policy: it is the crawl value of Olston
    and Pandey for the objective of LambdaCrawl. Without a column ``complete`` no page has complete
    observation.
    """

    needs = ("importance", "change_rate")

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        assert problem.change_rate is not None
        complete = False if problem.complete is None else problem.complete
        table = value_tables.harmonic_table(problem.importance, problem.change_rate, complete)
        return value_kernels.harmonic_value, table


@registered(paper="NCIS")
class GreedyCIS(SignalPolicy):
    """GREEDY-CIS: assumes that no signal is false (section 5.1).

    Args:
        reading: the interpretation where false signals exist: ``I1`` sets their rate to 0, ``I2``
            (the literal formula) keeps the true rate of signals, ``I3`` is ``I2`` with the
            consistent limit after a signal.
        **settings: as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, *, reading: Reading = "I2", **settings: Any) -> None:
        super().__init__(**settings)
        self.reading = one_of("reading", reading, Reading)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.greedy_cis_table(**_model(problem.pooled()), reading=self.reading)
        return value_kernels.greedy_cis_value, table


@registered(paper="NCIS")
class GreedyCISPlus(GreedyCIS):
    """GREEDY-CIS+: GREEDY-CIS for pages of high quality, GREEDY for all others (section 6.7).

    Args:
        precision_above: a page of high quality has a precision above this, in [0, 1].
        recall_above: a page of high quality also has a recall above this, in [0, 1].
        **settings: as for :class:`GreedyCIS`.
    """

    def __init__(
        self,
        *,
        precision_above: float = value_tables.HIGH_PRECISION,
        recall_above: float = value_tables.HIGH_RECALL,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.precision_above = share("precision_above", precision_above)
        self.recall_above = share("recall_above", recall_above)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.greedy_cis_plus_table(
            **_model(problem.pooled()),
            reading=self.reading,
            precision_above=self.precision_above,
            recall_above=self.recall_above,
        )
        return value_kernels.greedy_cis_value, table


@registered(paper="NCIS")
class GreedyNCIS(SignalPolicy):
    """GREEDY-NCIS: the exact value for noisy signals (Theorem 1).

    With several sources, the weight of a signal is the evidence of its source
    (:mod:`policies.values.sources`).
    """

    needs = SIGNAL_MODEL

    def _signal_weight(self, problem: Problem) -> Any:
        return source_kernels.source_evidence if several_sources(problem) else None

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        if several_sources(problem):
            table = source_tables.greedy_ncis_sources_table(**_model(problem))
            return source_kernels.greedy_ncis_sources_value, table
        table = value_tables.greedy_ncis_table(**_model(problem))
        return value_kernels.greedy_ncis_value, table


@registered(paper="NCIS")
class GreedyNCISApprox(SignalPolicy):
    """G-NCIS-APPROX-J: the first J terms of GREEDY-NCIS's value (appendix A.1).

    A page with recall exactly 0 counts as a page without signals, where one term is exact: its
    signals carry no information, and its sum is infinite. :func:`policies.values
    .greedy_ncis_approx` takes the first J terms there too.

    Args:
        terms: J, an integer >= 1.
        **settings: as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, *, terms: int = 1, **settings: Any) -> None:
        super().__init__(**settings)
        self.terms = whole("terms", terms, 1)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        model = _model(problem.pooled())
        model["false_signal_rate"] = np.where(model["recall"] > 0, model["false_signal_rate"], 0.0)
        table = value_tables.greedy_ncis_approx_table(**model, terms=self.terms)
        return value_kernels.greedy_ncis_approx_value, table
