"""Recorded episodes: what happened to a few pages, what policies did, and how stale copies were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crawl_envs.evaluation import make_env, play
from crawl_envs.sim.tape import CHANGE, CODE_STRIDE, KIND_MASK, SIGNAL
from scripts.study.entrants import Candidate
from scripts.suite.episodes import Recorder, chosen_events, stale_spells, tape_of
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


def record(candidates: Mapping[str, Candidate]) -> dict[str, Any]:
    """Return the events of the first seed, and what the policies ``SHOWN`` did, as plain values.

    Pages are numbered from 1 by rising change rate.
    """
    env = recorder()
    tape = tape_of(env, FIRST_SEED)
    order = np.argsort(env.instance.change_rate, kind="stable").tolist()
    numbers = {page: number for number, page in enumerate(order, 1)}
    kinds = tape.code & KIND_MASK
    events = [
        {"time": round(time, 4), "page": numbers[code // CODE_STRIDE], "kind": _kind_of(code)}
        for time, code in chosen_events(tape, (kinds == CHANGE) | (kinds >= SIGNAL))
    ]
    played = []
    for label, name in SHOWN.items():
        env.reset(seed=FIRST_SEED)
        play(env, candidates[label].factory(env), FIRST_SEED, compiled=False)
        crawls = env.crawls()
        spells = stale_spells(tape, crawls, env.end)
        played.append(
            {
                "policy": name,
                "crawls": [
                    {"time": round(time, 4), "page": numbers[page], "changed": bool(changed)}
                    for time, page, changed in zip(*(part.tolist() for part in crawls), strict=True)
                ],
                "spells": [
                    {"page": numbers[page], "start": round(start, 4), "end": round(end, 4)}
                    for page, start, end in spells
                ],
            }
        )
    env.close()
    weights = env.instance.importance / env.instance.importance.sum()
    shares = {numbers[page]: round(float(weight), 6) for page, weight in enumerate(weights)}
    step = 1.0 / float(ARGUMENTS["bandwidth"])
    return {"end": env.end, "step": step, "weights": shares, "events": events, "played": played}


def _kind_of(code: int) -> str:
    """Return the one of ``KINDS`` that the code of an event has."""
    signalled, silent, false = KINDS
    kind = code & KIND_MASK
    if kind == CHANGE:
        return silent
    return signalled if kind & CHANGE else false
