"""Recorded tapes of pages with recorded contents."""

from __future__ import annotations

import numpy as np

from crawl_envs.sim.tape import CODE_STRIDE, SPELL_END, SPELL_START, Tape
from crawl_envs.types.contents import Contents


def with_contents(tape: Tape, contents: Contents) -> Tape:
    """Return a tape of pages with the ends and starts of the spells of their contents.

    At equal times, ends of spells come first, then starts, then the events of the given tape in
    their order.
    """
    times, codes, details = [], [], []
    for kind, time in ((SPELL_END, contents.death), (SPELL_START, contents.birth)):
        spells = np.flatnonzero(np.isfinite(time) & (time >= 0.0))
        times.append(time[spells])
        codes.append(contents.page[spells] * CODE_STRIDE + kind)
        details.append(spells)
    times.append(tape.time)
    codes.append(tape.code)
    details.append(np.full(tape.time.size, -1))
    time, code = np.concatenate(times), np.concatenate(codes)
    detail = np.concatenate(details).astype(np.int32)
    order = np.argsort(time, kind="stable")
    return Tape.trusted(
        time[order], code[order], tape.alive, num_sources=tape.num_sources, detail=detail[order]
    )
