"""Compile all functions that a scheduler calls, so that no call waits for the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import ready
from policies.live.scheduler.choices import admit, hand_out, look, take, value_now
from policies.live.scheduler.ids import PageIds
from policies.live.scheduler.learning import LEARNED, PageLearner
from policies.live.scheduler.page_costs import settle
from policies.live.scheduler.page_values import PageValues
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.reading import as_ids
from policies.live.scheduler.reports import dismiss, fail, give_back, reopen, revive
from policies.live.scheduler.signal_log import count_signals, signals_until, weigh

KERNELS: tuple[Any, ...] = (
    *(admit, count_signals, dismiss, fail, give_back, hand_out, look, reopen, revive),
    *(signals_until, take, weigh, value_now, settle),
)
"""Kernels that the calls of a scheduler use on the tables of its pages."""


def warm(pages: PageTables) -> None:
    """Compile the kernels, and set the bars of the search by the values of all pages."""
    for kernel in KERNELS:
        ready(kernel)
    look(pages.arguments[1], pages.values.value, pages.pace.time)
    shape = (pages.num_sources, 2) if pages.num_sources > 1 else (2,)
    columns = {name: np.full(2, 0.5) for name in ("importance", *pages.values.needs)}
    columns |= {k: np.full(shape, 0.2 / pages.num_sources) for k in LEARNED[1:] if k in columns}
    values = PageValues(pages.values.policy)
    values.value(values.table(columns, 1.0), 0, 1.0, 0.0)
    for old, new in ((0, 1), ("a", "b")):  # an id of each type
        ids = PageIds()
        ids.add(as_ids(old))
        ids.rows(as_ids(old))
        ids.move(as_ids(old), as_ids(new))
        ids.remove(as_ids(new))
    if pages.learner is not None:
        learner, row = PageLearner(1.0, 1, pages.num_sources), np.zeros(1, np.int64)
        signals = np.zeros((1, pages.num_sources))
        learner.learn(row, np.ones(1), signals, np.ones(1, np.bool_))
        learner.share(row)
