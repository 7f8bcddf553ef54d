r"""Fit change rates and signal quality to the training window of a recorded trace.

Every page has a change rate :math:`\Delta`, a recall :math:`\lambda` and a false-signal rate
:math:`\nu` (NCIS, section 3). A page has T days of life in the window, n changes, h of them
signalled at the time of the change, and f signals at times without a change of the page. The model
is

.. math::
    n \sim \mathrm{Poisson}(\Delta T),\quad h \sim \mathrm{Binomial}(n, \lambda),\quad
    f \sim \mathrm{Poisson}(\nu T),

All pages share the distributions of the rates and of the recall, and a page gets its posterior mean
(:mod:`policies.estimators.count_priors`). Data outside the window are not used.

New pages differ from old ones, in most cases by more frequent changes. Therefore a page born after
the window gets the means of the pages born in the window. Their events since birth count, up to the
window's end: in a later window of the same length, pages born in it reach the same ages. If few
pages were born, these means are shrunk to the pooled values. Without births in the window a page
that did not exist in it gets the pooled values.

A directory is signalled at every commit to it, so the recall of directory signals is 1 by
construction. With recall 1 the rate of unsignalled changes is 0, and a page without signals would
have value 0 at any elapsed time. Therefore recall is capped at ``RECALL_CAP``: one change in a
hundred is assumed to be unsignalled. On five recorded sites, caps from .9 to .999 change the
freshness of greedy crawling by at most .01.

With both kinds of signals there are two sources, each with a recall and a false-signal rate. In the
model at most one source signals a change, so a change signalled by both is credited to the mention,
which names the page. All other signals are false, so that the signal rate of each source is as
recorded. The directory's recall is fitted to the changes without a mention, and the cap applies to
the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.console import Console
from typer import Argument, Option

from crawl_envs.instances import traces
from crawl_envs.instances.traces import Parameters, Pooled, Signals, Trace
from crawl_envs.sim.tape import CHANGE, CODE_STRIDE, SIGNAL
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.count_priors import RatePrior, SharePrior, fit_rate_prior, fit_share_prior
from scripts.cli.commands import command_of, one_line_errors
from scripts.present.tables import counted

RECALL_CAP = 0.99


class Counts(NamedTuple):
    """Days of life and numbers of events of each page in a window, shape (m,).

    With two sources, ``signalled`` and ``false_signals`` have the shape (2, m). Masks, (m,) bool,
    are of the pages ``born`` in the window, and ``later``.
    """

    days: FloatArray
    changes: IntArray
    signalled: IntArray
    false_signals: IntArray
    born: BoolArray
    later: BoolArray


def count_events(trace: Trace, start: float, end: float, signals: Signals) -> Counts:
    """Count the changes and signals of each page; a change is credited to one source.

    Raises:
        ValueError: the window does not lie in the record, or ``signals`` is unknown.
    """
    window = trace.window(start, end, signals)
    kind = window.code % CODE_STRIDE
    page = (window.code // CODE_STRIDE).astype(np.int64)
    moments, moment = np.unique(window.time, return_inverse=True)
    event = page * max(moments.shape[0], 1) + moment

    def by_page(events: BoolArray) -> IntArray:
        return np.bincount(page[events], minlength=trace.num_pages)

    changes = kind == CHANGE
    rest = changes
    signalled, false = np.zeros((2, window.num_sources, trace.num_pages), np.int64)
    for source in reversed(range(window.num_sources)):
        received = kind == SIGNAL + 2 * source
        credited = rest & np.isin(event, event[received])
        rest = rest & ~credited
        signalled[source] = by_page(credited)
        false[source] = by_page(received & ~np.isin(event, event[credited]))
    events = (by_page(changes), _by_source(signalled), _by_source(false))
    later = trace.created > end
    born = (trace.created > start) & ~later
    return Counts(trace.alive_days(start, end), *events, born, later)


def _by_source(values: Any) -> Any:
    """Return values by source, or the value of the only source."""
    return values[0] if len(values) == 1 else values


def _estimate(
    prior: RatePrior | SharePrior, events: IntArray, exposure: Any, counts: Counts
) -> FloatArray:
    """Return the posterior mean of each page; of a page born later, the mean of those born."""
    values, born = prior.estimate(events, exposure), counts.born
    if born.any():
        values[counts.later] = prior.group_mean(events[born], exposure[born])
    return values


def fit_recall(counts: Counts) -> tuple[FloatArray, Pooled]:
    """Return the recall of each page, (m,), or of two sources, (2, m), and pooled over pages.

    The last source is fitted to all changes, the first source to changes without its signals.
    """
    hits = np.atleast_2d(counts.signalled)
    recalls, pooled = np.zeros(hits.shape), [0.0] * len(hits)
    trials, share_left, pooled_left = counts.changes, np.ones(counts.days.shape), 1.0
    for source in reversed(range(len(hits))):
        prior = fit_share_prior(hits[source], trials)
        share = _estimate(prior, hits[source], trials, counts)
        recalls[source] = np.minimum(share_left * share, RECALL_CAP - recalls.sum(0))
        pooled[source] = min(pooled_left * prior.mean, RECALL_CAP - sum(pooled))
        trials, share_left = trials - hits[source], share_left * (1.0 - share)
        pooled_left *= prior.no / (prior.yes + prior.no)
    return _by_source(recalls), _by_source(tuple(pooled))


def _fit_rates(events: IntArray, counts: Counts) -> tuple[FloatArray, float]:
    """Return each page's events per day, (m,), and the rate of all pages."""
    prior = fit_rate_prior(events, counts.days)
    return _estimate(prior, events, counts.days, counts), prior.mean


def fit_false_rate(counts: Counts) -> tuple[FloatArray, Pooled]:
    """Return each page's false signals per day by source, (m,) or (2, m), and pooled over pages."""
    fits = [_fit_rates(events, counts) for events in np.atleast_2d(counts.false_signals)]
    rates, pooled = zip(*fits, strict=True)
    return _by_source(np.array(rates)), _by_source(pooled)


def fit(
    trace: Trace,
    start: float = 0.0,
    end: float | None = None,
    signals: Signals = "directory",
    *,
    newborn_prior: bool = True,
) -> Parameters:
    """Fit the parameters of every page to a window of the record.

    Args:
        trace: the recorded site.
        start: start of the training window, days since the record's start.
        end: end of the training window; half of the record when left out.
        signals: which recorded signals are used; with ``none``, recall and false signals are 0.
        newborn_prior: whether pages born after the window get the means of pages born in it; False
            gives them the pooled values.

    Raises:
        ValueError: the window does not lie in the record, no page is alive in it, or ``signals``
            is unknown.
    """
    end = trace.days / 2.0 if end is None else end
    counts = count_events(trace, start, end, signals)
    if not newborn_prior:
        counts = counts._replace(later=np.zeros_like(counts.later))
    change_rate, pooled_change = _fit_rates(counts.changes, counts)
    nothing: tuple[FloatArray, Pooled] = np.zeros(trace.num_pages), 0.0
    recall, pooled_recall = nothing if signals == "none" else fit_recall(counts)
    false_rate, pooled_false = nothing if signals == "none" else fit_false_rate(counts)
    return Parameters(
        signals=signals,
        start=float(start),
        end=float(end),
        change_rate=change_rate,
        recall=recall,
        false_signal_rate=false_rate,
        observed_days=counts.days,
        pooled_change_rate=pooled_change,
        pooled_recall=pooled_recall,
        pooled_false_signal_rate=pooled_false,
    )


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of the command."""

    folder: Annotated[str, Argument(help="Folder of a trace, or name of a shipped one.")]
    start: Annotated[float, Option(help="Start of the training window, in days.")] = 0.0
    end: Annotated[
        float | None, Option(help="End of the window, in days.", show_default="half of the record")
    ] = None
    signals: Annotated[str, Option(help="Signals to use: directory, mentions, both or none.")] = (
        "directory"
    )
    out: Annotated[
        Path | None, Option(help="Output file.", show_default="FOLDER/parameters-SIGNALS.parquet")
    ] = None


def main(options: FitOptions) -> None:
    """Fit the parameters of a trace, write them, and print a summary."""
    kind = traces.check_signals(options.signals)
    trace = traces.load(traces.find(options.folder))
    parameters = fit(trace, options.start, options.end, kind)
    path = options.out or traces.parameters_path(trace.folder, kind)
    with one_line_errors(place=path):
        traces.save_parameters(path, parameters, trace)
    counts = count_events(trace, parameters.start, parameters.end, kind)
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{trace.name}, days {parameters.start:g} to {parameters.end:g}, "
        f"{np.count_nonzero(parameters.observed_days)} of {trace.num_pages} pages: "
        f"{_values_text(parameters)} (pooled) -> {path}"
    )
    if counts.later.any():
        source = f"the {n} born in the window" if (n := counts.born.sum()) else "all pages"
        values = _values_text(parameters, int(counts.later.argmax()))
        console.print(f"{counted(counts.later.sum(), 'page')} born later, as {source}: {values}")


def _values_text(parameters: Parameters, page: int | None = None) -> str:
    """Return change rate, recall and false-signal rate of a page, or pooled, as text."""
    names = ("change_rate", "recall", "false_signal_rate")
    if page is None:
        values = [getattr(parameters, f"pooled_{name}") for name in names]
    else:
        values = [getattr(parameters, name)[..., page] for name in names]
    rate, shares, false = (" and ".join(f"{x:.4g}" for x in np.atleast_1d(v)) for v in values)
    return f"change rate {rate} per day, recall {shares}, false signals {false} per day"


app = command_of(
    main, FitOptions, "Fit change rates and signal quality to a trace's training window."
)

if __name__ == "__main__":
    app()
