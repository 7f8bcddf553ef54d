"""Make environments that replay days of a record, and histories of the days before."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from agents.generalist.worlds import past_of
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.instances.traces import Signals, Trace
from crawl_envs.instances.traces.instance import replay
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Reveal
from crawl_envs.worlds.lanes import Lanes
from policies.ncis.belief import History
from scripts.data.fit_trace import fit


class Split(NamedTuple):
    """Days that parameters are fitted to, and days that are replayed."""

    fit_start: float
    fit_end: float
    start: float
    end: float


def replayed(
    trace: Trace,
    split: Split,
    *,
    signals: Signals,
    days_per_crawl: float,
    importance: str,
    fit_to_played: bool = False,
    known: Mapping[str, Any] | None = None,
    reveal: Reveal = "parameters",
    newborn_prior: bool = True,
) -> CrawlEnv:
    """Return an environment that replays days of a trace.

    Args:
        trace: the record.
        split: days of the fit and of the replay.
        signals: which signals are sent: directory, mentions, both or none.
        days_per_crawl: days between crawls of a page under an even share of the budget, > 0.
        importance: uniform or zipf.
        fit_to_played: fit the parameters to the replayed days, as in hindsight.
        known: fields of ``Parameters`` to reveal instead of fitted ones.
        reveal: whether parameters are revealed.
        newborn_prior: of :func:`scripts.data.fit_trace.fit`.
    """
    days = (split.start, split.end) if fit_to_played else (split.fit_start, split.fit_end)
    window = trace.window(split.start, split.end, signals)
    alive = float(trace.alive_days(split.start, split.end).sum()) / window.duration
    fitted = fit(trace, *days, signals, newborn_prior=newborn_prior)
    fitted = dataclasses.replace(fitted, **(known or {}))
    generator = replay(
        trace, window, fitted, bandwidth=alive / days_per_crawl, importance=importance
    )
    form = action_form("page", generator.num_pages, 1)
    horizon, tape = generator.duration, generator.tape
    lanes = partial(
        Lanes, generator=generator, form=form, horizon=horizon, reveal=reveal, tape=tape
    )
    return CrawlEnv(lanes, Objective())


def past(trace: Trace, start: float, end: float, signals: Signals) -> History:
    """Return the events of a trace in (start, end] as a history whose time 0 is ``start``.

    Pages and sources equal those of environments on other days of the same trace::

        trace = traces.load(traces.find("garden-handbook"))
        history = past(trace, 0.0, 100.0, "directory")
        env = gymnasium.make("CrawlTrace-v0", trace="garden-handbook", window=(100.0, 200.0))
        policy = policies.make("BeliefNCIS", env, history=history)

    Args:
        trace: the record.
        start: start of the history, days since the record's start.
        end: end of the history, before the simulated days.
        signals: which recorded signals are sent, as in the environment.

    Raises:
        ValueError: the window is not in the record, or ``signals`` is unknown.
    """
    return past_of(trace.window(start, end, signals))
