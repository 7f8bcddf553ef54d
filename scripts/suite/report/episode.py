"""Recorded episodes: what happened to a few pages, what policies did, and how stale copies were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crawl_envs.evaluation import PolicyFactory, make_env, play
from crawl_envs.sim.tape import CHANGE, CODE_STRIDE, KIND_MASK, SIGNAL
from crawl_envs.types import Instance
from scripts.suite.episodes import (
    Recorder,
    chosen_events,
    stale_spells,
    tape_of,
)
from scripts.suite.tasks import FIRST_SEED, NCIS

ARGUMENTS: Mapping[str, Any] = {
    "instance": "noisy",
    "num_pages": 20,
    "bandwidth": 10.0,
    "horizon": 16.0,
}
"""The recorded setting: half a crawl per page and unit of time, so that policies must choose."""
SHOWN = {"GreedyNCIS": "GREEDY-NCIS", "Greedy": "GREEDY"}
"""Policies of the timeline, and their names in the paper."""
KINDS = ("change with a signal", "change without a signal", "false signal")


def recorder() -> Recorder:
    """Return the recorded setting with the instance of the first seed."""
    env = make_env(NCIS, **ARGUMENTS)
    env.reset(seed=FIRST_SEED)
    core: Any = env.unwrapped
    return Recorder(env, core.instance)


def timeline(env: Recorder, policies: Mapping[str, PolicyFactory]) -> dict[str, Any]:
    """Return the events of the first seed, and what the policies did, as plain values.

    Pages are numbered from 1 by rising change rate.
    """
    tape = tape_of(env, FIRST_SEED)
    rank = _ranks(env.instance)
    kinds = tape.code & KIND_MASK
    events = [
        {"time": round(time, 4), "page": rank[code // CODE_STRIDE], "kind": _word(code)}
        for time, code in chosen_events(tape, (kinds == CHANGE) | (kinds >= SIGNAL))
    ]
    played = []
    for label, factory in policies.items():
        env.reset(seed=FIRST_SEED)
        play(env, factory(env), FIRST_SEED, compiled=False)
        crawls = env.crawls()
        spells = stale_spells(tape, crawls, env.end)
        played.append(
            {
                "policy": SHOWN.get(label, label),
                "crawls": [
                    {"time": round(time, 4), "page": rank[page], "changed": bool(changed)}
                    for time, page, changed in zip(*(part.tolist() for part in crawls), strict=True)
                ],
                "spells": [
                    {"page": rank[page], "start": round(start, 4), "end": round(end, 4)}
                    for page, start, end in spells
                ],
            }
        )
    weights = env.instance.importance / env.instance.importance.sum()
    shares = {rank[page]: round(float(weight), 6) for page, weight in enumerate(weights)}
    step = 1.0 / float(ARGUMENTS["bandwidth"])
    return {"end": env.end, "step": step, "weights": shares, "events": events, "played": played}


def _word(code: int) -> str:
    signalled, silent, false = KINDS
    kind = code & KIND_MASK
    if kind == CHANGE:
        return silent
    return signalled if kind & CHANGE else false


def _ranks(instance: Instance) -> dict[int, int]:
    """Return the numbers of the pages, from 1 by rising change rate."""
    order = np.argsort(instance.change_rate, kind="stable").tolist()
    return {page: place for place, page in enumerate(order, 1)}
