"""Crawls and delayed signals of pages, one event at a time, and the likelihood of an audit."""

from __future__ import annotations

import math

import numpy as np


def crawl_log(rng, change_rate, recall, false_rate, delay, times, sent=None):
    """Return the arguments of ``audit_signals`` for pages that change at ``change_rate``, (m,).

    Each source s signals every change with probability ``recall[s]`` by itself, after an
    exponential delay of mean ``delay[s]``, and without a change at ``false_rate[s, i]``. With
    ``sent`` = "one", a change is signalled by one source at most. Page i is crawled at
    ``times[i]``. Signals of changes long before the first crawl are included.
    """
    page, start, elapsed, changed, signals = [], [], [], [], []
    for i, crawls in enumerate(times):
        begin, end = crawls[0] - 12.0 * max(delay, default=0.0), crawls[-1]
        changes = np.sort(rng.uniform(begin, end, rng.poisson(change_rate[i] * (end - begin))))
        draw = rng.random(changes.size)
        passed = 0.0
        for s, share in enumerate(recall):
            if sent == "one":
                heard = (draw >= passed) & (draw < passed + share)
                passed += share
            else:
                heard = rng.random(changes.size) < share
            true = changes[heard] + delay[s] * rng.standard_exponential(heard.sum())
            false = rng.uniform(begin, end, rng.poisson(false_rate[s][i] * (end - begin)))
            signals += [(i, t, s) for t in (*true, *false) if t <= end]
        page += [i] * (len(crawls) - 1)
        start += list(crawls[:-1])
        elapsed += list(np.diff(crawls))
        changed += list(np.diff(np.searchsorted(changes, crawls, side="right")) > 0)
    of, time, source = (
        (np.array(column) for column in zip(*signals, strict=True))
        if signals
        else (np.zeros(0, int), np.zeros(0), np.zeros(0, int))
    )
    return (
        np.array(page),
        np.array(start),
        np.array(elapsed),
        np.array(changed),
        of.astype(int),
        time,
        source.astype(int),
        len(recall),
    )


def fresh_probability(alpha, signal_rate, precision, delay, elapsed, ages, window=0.0):
    """P(no change) of an interval, by times of signals since its start, up to a window after it.

    The change of a true signal is exponentially long before it.
    """
    end = elapsed + window
    waiting = delay * (math.exp(-window / delay) - math.exp(-end / delay)) if delay > 0.0 else 0.0
    result = math.exp(-alpha * elapsed - precision * signal_rate * waiting)
    for age in ages:
        latest, earliest = max(age - elapsed, 0.0), age
        within = float(latest == 0.0)
        if delay > 0.0:
            within = math.exp(-latest / delay) - math.exp(-earliest / delay)
        result *= 1.0 - precision * within
    return result
