"""Events on a recorded site before the days that are played, as a history to learn from."""

from __future__ import annotations

from crawl_envs.instances.traces import Signals, Trace
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL
from policies.ncis.belief import History, warm_start


def past(trace: Trace, start: float, end: float, signals: Signals) -> History:
    """Return the events of a trace in (start, end] as a history; its time 0 is ``start``.

    Pages and sources are those of the environments that play other days of the same trace::

        trace = traces.load(traces.find("garden-handbook"))
        history = past(trace, 0.0, 100.0, "directory")
        env = gymnasium.make("CrawlTrace-v0", trace="garden-handbook", window=(100.0, 200.0))
        policy = policies.BeliefNCIS(env, history=history)

    Args:
        trace: the record.
        start: start of the history, days since the record's start.
        end: end of the history, before the days that are played.
        signals: which recorded signals are sent, as in the environment.

    Raises:
        ValueError: the window does not lie in the record, or ``signals`` is unknown.
    """
    window = trace.window(start, end, signals)
    page, code = window.code // CODE_STRIDE, window.code % CODE_STRIDE
    kind = warm_start.SIGNAL + (code - SIGNAL) // 2
    for recorded, learned in (
        (BIRTH, warm_start.BIRTH),
        (DEATH, warm_start.DEATH),
        (CHANGE, warm_start.CHANGE),
    ):
        kind[code == recorded] = learned
    return History(window.time, page, kind, window.alive, window.duration)
