"""Learned indices as files: ``index.json``, plain text; reading it runs no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agents.evolution.belief.inputs import INPUTS as CORRECTION_INPUTS
from agents.evolution.network import hidden_units
from agents.evolution.outcomes.inputs import INPUTS as OUTCOME_INPUTS
from agents.evolution.outcomes.inputs import OutcomeNetworks, networks_of
from agents.runs import read_object, replace_text
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import one_of

INDEX = "index.json"
FORMAT = "crawl-envs index 1"
BELIEF = "BeliefNCIS"
OUTCOMES = "outcomes"
INPUTS = {BELIEF: CORRECTION_INPUTS, OUTCOMES: OUTCOME_INPUTS}
"""Inputs by base of an index: the policy whose crawl value it corrects, or the outcomes of crawls,
from which it was learned."""
LARGEST = 1e6
"""Largest absolute weight; trained networks have weights of about 1."""


@dataclass(frozen=True, eq=False)
class StoredIndex:
    """A learned index: the free numbers of its network, and its training.

    Attributes:
        free: the weights in a row, up to LARGEST in size.
        base: ``BeliefNCIS`` or ``outcomes``.
        made: how it was trained, plain values as JSON has them.
        day: with base ``BeliefNCIS``, the length of a day, > 0, for the inputs of hours; None for
            none.
        inputs: the networks' inputs: all, or with base ``BeliefNCIS`` some of
            :data:`agents.evolution.belief.inputs.INPUTS`, in that order; empty means all.

    Raises:
        ValueError: a value outside its range, or a number of weights that fits no index.
    """

    free: FloatArray
    base: str
    made: Mapping[str, Any] = field(default_factory=dict)
    day: float | None = None
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("base", self.base, INPUTS)
        free = np.array(self.free, np.float64)
        if free.ndim != 1 or not np.all(np.isfinite(free)):
            odd = free[~np.isfinite(free)]
            got = odd[0] if odd.size else f"shape {free.shape}"
            raise ValueError(f"weights must be finite numbers in a row, got {got}")
        if free.size and np.abs(free).max() > LARGEST:
            got = free[np.abs(free).argmax()]
            raise ValueError(f"weights must be in [{-LARGEST:g}, {LARGEST:g}], got {got:g}")
        object.__setattr__(self, "inputs", chosen_inputs(self.base, self.inputs))
        if self.day is not None and not (self.base == BELIEF and 0.0 < self.day < math.inf):
            raise ValueError(
                f"day must be None, or finite and > 0 with base {BELIEF}, got {self.day!r}"
            )
        if self.base == BELIEF:
            hidden_units(free.size, len(self.inputs))
        else:
            networks_of(free, len(self.inputs))
        object.__setattr__(self, "free", free)

    @property
    def networks(self) -> OutcomeNetworks:
        """The networks; for the base ``outcomes``."""
        return networks_of(self.free, len(self.inputs))

    def to_json(self) -> str:
        """Return the index as text; equal indices have equal texts."""
        values = {
            "format": FORMAT,
            "base": self.base,
            "inputs": list(self.inputs),
            **({} if self.day is None else {"day": self.day}),
            "made": dict(self.made),
            "weights": self.free.tolist(),
        }
        return json.dumps(values, indent=1) + "\n"


def chosen_inputs(base: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the inputs of the network of an index with a base; all where none are named.

    Raises:
        ValueError: the base has no such inputs, or has them in another order.
    """
    known, chosen = INPUTS[base], tuple(inputs)
    if not chosen:
        return known
    if chosen != tuple(name for name in known if name in chosen):
        raise ValueError(
            f"inputs: it must have the inputs {', '.join(known)}, or some of them in this order, "
            f"got {', '.join(chosen)}"
        )
    if base != BELIEF and chosen != known:
        raise ValueError(f"inputs: it must have the inputs {', '.join(known)}, all of them")
    return chosen


def save_index(folder: str | Path, index: StoredIndex) -> None:
    """Write an index into a folder, made if need be; an existing file is replaced atomically.

    Raises:
        OSError: it cannot be written.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    replace_text(Path(folder) / INDEX, index.to_json())


def read_index(folder: str | Path) -> StoredIndex:
    """Return the index in a folder.

    Raises:
        ValueError: there is none, or the file is damaged, foreign, or for other inputs.
    """
    path = Path(folder) / INDEX
    values = read_object(path)
    if values.get("format") != FORMAT:
        raise ValueError(f"{path} is not a learned index of this suite ({FORMAT})")
    try:
        return StoredIndex(
            np.array(values["weights"], np.float64),
            values["base"],
            dict(values["made"]),
            values.get("day"),
            tuple(values["inputs"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
