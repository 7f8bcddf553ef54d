"""Discrete policies after Busa-Fekete et al. (Algorithm 1), one crawl value each.

They differ in their model of signals: :class:`Greedy` ignores signals, :class:`GreedyCIS` assumes
no false ones, :class:`GreedyCISPlus` does so only for pages of high signal quality,
:class:`GreedyNCIS` models noisy signals exactly, and :class:`GreedyNCISApprox` truncates its sum.
:class:`GreedyHarmonic` is for another penalty, the harmonic one.

GREEDY-NCIS distinguishes several sources of signals; policies with a formula for one source pool
them into one, whose recall, false signals and counts are their sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, Problem
from policies.base.index import IndexPolicy, SignalPolicy
from policies.base.registry import registered
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from policies.values.sources import kernels as source_kernels
from policies.values.sources import tables as source_tables
from policies.values.tables import READINGS, Reading

SIGNAL_MODEL = ("importance", "change_rate", "recall", "false_signal_rate")


def _model(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in SIGNAL_MODEL}


def _several(problem: Problem) -> bool:
    """Return whether the pages have several sources of signals."""
    return problem.recall is not None and problem.recall.ndim == 2


def _known(reading: Reading) -> Reading:
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {READINGS}, got {reading!r}")
    return reading


@registered(paper="NCIS")
class Greedy(IndexPolicy):
    """GREEDY: the value of a page without signals (section 5.1).

    Arguments and errors as for :class:`policies.base.index.IndexPolicy`; the columns ``elapsed``,
    ``importance`` and ``change_rate`` suffice.
    """

    needs = ("importance", "change_rate")

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        assert problem.change_rate is not None
        table = value_tables.greedy_table(problem.importance, problem.change_rate)
        return value_kernels.greedy_value, table


@registered()
class GreedyHarmonic(SignalPolicy):
    """Crawls by the largest value under the harmonic penalty (:func:`policies.values.harmonic`).

    The value depends on the number of signals for pages with complete observation, on the time
    since the last crawl for all others. No paper has this policy: it is the crawl value of Olston
    and Pandey for the objective of LambdaCrawl.

    Arguments and errors as for :class:`policies.base.index.SignalPolicy`; the columns ``elapsed``,
    ``signals``, ``importance`` and ``change_rate`` are needed, and without a column ``complete`` no
    page has complete observation.
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
        env: a crawl environment, or None with ``features``.
        reading: the interpretation where false signals exist: ``I1`` sets their rate to 0, ``I2``
            (the literal formula) keeps the true rate of signals, ``I3`` is ``I2`` with the
            consistent limit after a signal.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: an unknown reading; as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, env: Any = None, *, reading: Reading = "I2", **binding: Any) -> None:
        super().__init__(env, **binding)
        self.reading = _known(reading)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.greedy_cis_table(**_model(problem.pooled()), reading=self.reading)
        return value_kernels.greedy_cis_value, table


@registered(paper="NCIS")
class GreedyCISPlus(SignalPolicy):
    """GREEDY-CIS+: GREEDY-CIS for pages of high quality, GREEDY for all others (section 6.7).

    Args:
        env: a crawl environment, or None with ``features``.
        reading: as for :class:`GreedyCIS`.
        precision_above: a page of high quality has a precision above this.
        recall_above: the same for recall.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: an unknown reading; a threshold outside [0, 1]; as for
            :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(
        self,
        env: Any = None,
        *,
        reading: Reading = "I2",
        precision_above: float = value_tables.HIGH_PRECISION,
        recall_above: float = value_tables.HIGH_RECALL,
        **binding: Any,
    ) -> None:
        super().__init__(env, **binding)
        self.reading = _known(reading)
        for name, share in (("precision_above", precision_above), ("recall_above", recall_above)):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} must lie in [0, 1], got {share!r}")
        self.precision_above = float(precision_above)
        self.recall_above = float(recall_above)

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

    Arguments and errors as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def _signal_weight(self, problem: Problem) -> Any:
        return (
            source_kernels.source_evidence if _several(problem) else super()._signal_weight(problem)
        )

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        if _several(problem):
            table = source_tables.greedy_ncis_sources_table(**_model(problem))
            return source_kernels.greedy_ncis_sources_value, table
        table = value_tables.greedy_ncis_table(**_model(problem))
        return value_kernels.greedy_ncis_value, table


@registered(paper="NCIS")
class GreedyNCISApprox(SignalPolicy):
    """G-NCIS-APPROX-J: the first J terms of GREEDY-NCIS's value (appendix A.1).

    A page with recall exactly 0 is treated as one without signals, where one term is exact: its
    signals carry no information, and its sum is infinite. :func:`policies.values
    .greedy_ncis_approx` takes the first J terms there as everywhere.

    Args:
        env: a crawl environment, or None with ``features``.
        terms: J, a whole number >= 1.
        **binding: as for :class:`policies.base.index.SignalPolicy`.

    Raises:
        ValueError: ``terms`` out of its range; as for :class:`policies.base.index.SignalPolicy`.
    """

    needs = SIGNAL_MODEL

    def __init__(self, env: Any = None, *, terms: int = 1, **binding: Any) -> None:
        super().__init__(env, **binding)
        if not (terms >= 1 and terms == int(terms)):
            raise ValueError(f"terms must be a whole number >= 1, got {terms!r}")
        self.terms = int(terms)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        known = _model(problem.pooled())
        known["false_signal_rate"] = np.where(known["recall"] > 0, known["false_signal_rate"], 0.0)
        table = value_tables.greedy_ncis_approx_table(**known, terms=self.terms)
        return value_kernels.greedy_ncis_approx_value, table
