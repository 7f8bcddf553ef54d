"""Laws of the NCIS paper (Busa-Fekete et al., sections 6.3 to 6.6 and Appendix C).

All draw importance and change rate from U(0, 1). Each extends the previous one from the same
random stream, so instances of one seed share their common parameters. They do not share events: a
tape is drawn from all rates together, and delays from its stream. ``mixed`` and ``cold`` are not
from the paper; ``mixed`` has the two classes of pages of LambdaCrawl (Kolobov et al. 2019).

``more`` are bandwidth, bandwidth_steps and delay of :class:`crawl_envs.Instance`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.instances.laws import DELAY, Law
from crawl_envs.types import MAX_SOURCES, Delay, Instance
from crawl_envs.types.arguments import whole

RECALL_BETA = (0.25, 0.25)
FALSE_SIGNAL_RANGE = (0.1, 0.6)

DELAY_SLOTS = 6.0
"""Mean delay of ``delayed``, in slots of 1 / bandwidth; the paper states no unit."""

SOURCES = 2
"""Default number of sources of ``sources``."""
SOURCES_RECALL = (0.5, 1.0)
SOURCES_SPREAD = 20.0
"""Ratio of the false-signal rates of the last and the first source of ``sources``."""

COLD_MEAN = 0.5
"""Mean change rate of ``cold``, as in the instances of the NCIS paper."""
COLD_SPREAD = math.log(1000.0) / (2.0 * 1.959963984540054)
"""Standard deviation of the log change rate of ``cold``: 95% of the rates lie in [0.0033, 3.3],
with median 0.11."""


def draw_uniform(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance of ``num_pages`` pages without signals."""
    return Instance(rng.random(num_pages), rng.random(num_pages), **more)


def draw_partial(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance whose pages have a recall from Beta(1/4, 1/4), and no false signals."""
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    return Instance(importance, change_rate, rng.beta(*RECALL_BETA, num_pages), **more)


def draw_noisy(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance like ``partial``, with false signals at rates from U(0.1, 0.6)."""
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    recall = rng.beta(*RECALL_BETA, num_pages)
    false_signal_rate = rng.uniform(*FALSE_SIGNAL_RANGE, num_pages)
    return Instance(importance, change_rate, recall, false_signal_rate, **more)


def draw_delayed(
    rng: np.random.Generator,
    num_pages: int,
    *,
    bandwidth: float,
    delay: Delay | None = None,
    **more: Any,
) -> Instance:
    """Draw an instance like ``noisy``, by default with a Poisson delay of DELAY_SLOTS slots."""
    delay = delay or Delay("poisson", DELAY_SLOTS / bandwidth, 1.0 / bandwidth)
    return draw_noisy(rng, num_pages, bandwidth=bandwidth, delay=delay, **more)


def draw_sources(
    rng: np.random.Generator, num_pages: int, *, num_sources: int = SOURCES, **more: Any
) -> Instance:
    """Draw an instance with sources of signals from precise, low-recall to noisy, high-recall ones.

    Source s of S has a recall from U(1/2, 1) times (s + 1) / (1 + ... + S), and a false-signal rate
    from U(0.1, 0.6) times SOURCES_SPREAD ** (s / (S - 1) - 1). For S = 2, recalls are from U(1/6,
    1/3) and U(1/3, 2/3), false-signal rates from U(0.005, 0.03) and U(0.1, 0.6). A change is
    signalled by one source at most, unlike by the independent ones of footnote 2 of the NCIS paper.
    """
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    rank = np.arange(num_sources, dtype=np.float64)[:, None]
    share = (rank + 1.0) / (num_sources * (num_sources + 1) / 2)
    noise = SOURCES_SPREAD ** (rank / (num_sources - 1) - 1.0)
    recall = share * rng.uniform(*SOURCES_RECALL, (num_sources, num_pages))
    false_signal_rate = noise * rng.uniform(*FALSE_SIGNAL_RANGE, (num_sources, num_pages))
    return Instance(importance, change_rate, recall, false_signal_rate, **more)


def draw_mixed(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw pages of which half, rounded down, signal exactly their changes, the others nothing."""
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    complete = rng.permutation(num_pages) < num_pages // 2
    return Instance(importance, change_rate, complete.astype(np.float64), **more)


def draw_cold(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance like ``noisy``, with log-normal change rates over three decades.

    It is meant for ``reveal="importance"``: a few pages change often, and a common prior rate is
    wrong for nearly all pages.
    """
    noisy = draw_noisy(rng, num_pages, **more)
    median = COLD_MEAN * math.exp(-0.5 * COLD_SPREAD**2)
    change_rate = median * np.exp(COLD_SPREAD * rng.standard_normal(num_pages))
    return Instance(noisy.importance, change_rate, noisy.recall, noisy.false_signal_rate, **more)


def _sources(value: Any, bandwidth: float) -> int:
    """Return a number of sources of signals; raise ValueError if it is out of range."""
    return whole("num_sources", value, 2, MAX_SOURCES)


LAWS = {
    "uniform": Law(draw_uniform, "No signals.", arguments=DELAY),
    "partial": Law(draw_partial, "Signals of some changes.", arguments=DELAY),
    "noisy": Law(draw_noisy, "Signals of some changes, and false signals.", arguments=DELAY),
    "delayed": Law(draw_delayed, "The same, with a Poisson delay.", arguments=DELAY),
    "sources": Law(
        draw_sources,
        "Several sources of signals.",
        arguments={**DELAY, "num_sources": _sources},
        num_sources=SOURCES,
    ),
    "mixed": Law(
        draw_mixed,
        "Half of the pages signal every change.",
        bandwidth=0.2,
        per_page=True,
        arguments=DELAY,
    ),
}
"""Laws by name; 0.2 crawls per page is the bandwidth of the LambdaCrawl paper."""
