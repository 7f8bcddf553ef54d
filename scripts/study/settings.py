"""Settings and measurements: what a runner simulates, for each label and seed.

A :class:`Setting` compares policies and bounds in an environment. A :class:`Measurement` calls
functions of a seed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import gymnasium

from crawl_envs.evaluation import PolicyFactory, Row, evaluate, make_env
from scripts.study.specs import describe, spec

__all__ = ["Measure", "Measurement", "Playable", "Setting", "Window", "env_with", "spec"]

Window = tuple[float, float]
Measure = Callable[..., Mapping[str, float]]


class Playable(Protocol):
    """Interface of :class:`Setting` and :class:`Measurement` for the runner."""

    @property
    def name(self) -> str:
        """Name of the setting in the rows."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the policies, bounds or functions, in the order of the rows."""

    def seeds(self, count: int) -> Sequence[int]:
        """Return the seeds of ``count`` repetitions, or fewer if the setting has fewer."""

    def has_unit(self, label: str, seed: int) -> bool:
        """Return whether a label plays one of the seeds."""

    @property
    def trained(self) -> tuple[str, ...]:
        """Labels that train an agent: rounding changes their rows, so the rows are not verified."""

    def play(self, label: str, seed: int) -> list[Row]:
        """Simulate one label on one seed, and return its rows."""

    def check(self) -> None:
        """Raise ValueError if ``play`` would raise it for wrong arguments."""

    def described(self) -> dict[str, Any]:
        """Return everything that determines the numbers, as plain values."""


@dataclass(frozen=True)
class Setting:
    """An environment and the policies compared in it; picklable.

    Attributes:
        name: name of the setting in the rows.
        id: id of the environment.
        arguments: arguments of ``gymnasium.make``, plain values.
        policies: for each label, a function of an environment that returns a policy, as a
            ``functools.partial`` of ``policies.make`` or of a module-level function with a
            :func:`scripts.study.specs.spec`.
        bounds: for each label, a function with a spec that takes an instance and returns a number
            or metrics; with windows, it also receives ``window=``.
        windows: windows of a recorded trace; if there are any, repetition i uses the i-th.
        first_seed: seed of the first repetition; repetition i uses ``first_seed + i``.
        learned: labels of agents, which run with one thread of torch.
        most: largest number of repetitions of a slow setting; None for any.
        budget_share: an argument of :func:`crawl_envs.evaluation.evaluate`.
    """

    name: str
    id: str
    arguments: Mapping[str, Any]
    policies: Mapping[str, PolicyFactory]
    bounds: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    first_seed: int = 0
    learned: tuple[str, ...] = ()
    most: int | None = None
    budget_share: bool = False

    @property
    def trained(self) -> tuple[str, ...]:
        """Empty: policies are not trained here."""
        return ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the bounds and policies, in this order."""
        return (*self.bounds, *self.policies)

    def seeds(self, count: int) -> Sequence[int]:
        """Return the seeds 0, 1, ... of ``count`` repetitions, at most ``most``.

        A setting with windows has one repetition per window.
        """
        return range(len(self.windows) or (count if self.most is None else min(count, self.most)))

    def has_unit(self, label: str, seed: int) -> bool:
        """Return True: all labels play all seeds."""
        return True

    def arguments_of(self, seed: int) -> dict[str, Any]:
        """Return the arguments of ``gymnasium.make`` for a seed, and its window if it has one."""
        window = {"window": list(self.windows[seed])} if self.windows else {}
        return {**self.arguments, **window}

    def play(self, label: str, seed: int) -> list[Row]:
        """Simulate one policy or bound on one seed, and return its rows without NaNs."""
        window = {"window": self.windows[seed]} if self.windows else {}
        with self.threads(label):
            rows = evaluate(
                self.id,
                {label: self.policies[label]} if label in self.policies else {},
                [self.first_seed + seed],
                setting=self.name,
                bounds={label: partial(self.bounds[label], **window)}
                if label in self.bounds
                else None,
                budget_share=self.budget_share,
                **self.arguments_of(seed),
            )
            return [row._replace(seed=seed) for row in rows if row.value == row.value]

    def threads(self, label: str) -> contextlib.AbstractContextManager[None]:
        """Return a context for playing a label, which limits torch to one thread for agents."""
        if label not in self.learned:
            return contextlib.nullcontext()
        from agents.sb3.torch_threads import threads

        return threads(1)

    def check(self) -> None:
        """Make and reset the environment and make the policies; ValueError if one fails."""
        for window in range(max(len(self.windows), 1)):
            try:
                env = make_env(self.id, **self.arguments_of(window))
                env.reset(seed=0)
                for factory in self.policies.values():
                    factory(env)
            except (ValueError, TypeError, gymnasium.error.Error) as error:
                raise ValueError(f"setting {self.name}: {_one_line(error)}") from None
            env.close()

    def described(self) -> dict[str, Any]:
        """Return everything that determines the numbers, as plain values."""
        return {
            "id": self.id,
            "arguments": describe(self.arguments),
            "windows": describe(self.windows),
            **({"first_seed": self.first_seed} if self.first_seed else {}),
            "labels": describe({**self.bounds, **self.policies}),
        }


@dataclass(frozen=True)
class Measurement:
    """Measurements by functions of a seed; picklable.

    Attributes:
        name: setting of the rows.
        measures: for each label (the policy of the rows), a module-level function with a
            :func:`scripts.study.specs.spec`, or a partial of one. ``measure(seed, **arguments)``
            returns a number for each metric; arrays come from :func:`scripts.study.rows.indexed`.
            All labels of a seed should use the same events. NaNs have no rows; at least one value
            must not be NaN.
        arguments: plain values.
        id: environment of the rows.
        most: largest useful number of repetitions: 1 if the seed does not matter.
        trained: labels whose measures train an agent: rounding, which differs between processors,
            changes their rows, so stored rows are not verified.
    """

    name: str
    measures: Mapping[str, Measure]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    most: int | None = None
    trained: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the functions, in the order of ``measures``."""
        return tuple(self.measures)

    def seeds(self, count: int) -> Sequence[int]:
        """Return the seeds 0, 1, ... of ``count`` repetitions, at most ``most``."""
        return range(count if self.most is None else min(count, self.most))

    def has_unit(self, label: str, seed: int) -> bool:
        """Return True: all labels play all seeds."""
        return True

    def play(self, label: str, seed: int) -> list[Row]:
        """Call the function of a label with a seed, and return its metrics as rows without NaNs."""
        metrics = self.measures[label](seed, **self.arguments)
        rows = [
            Row(self.id, self.name, label, seed, name, float(value))
            for name, value in metrics.items()
        ]
        return [row for row in rows if row.value == row.value]

    def check(self) -> None:
        """Do nothing, since errors of the functions appear only in ``play``."""

    def described(self) -> dict[str, Any]:
        """Return everything that determines the numbers, as plain values."""
        return {
            "id": self.id,
            "arguments": describe(self.arguments),
            "labels": describe(self.measures),
        }


def env_with(id: str, arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make the environment ``id`` with arguments that a user has given.

    Raises:
        ValueError: an argument is unknown or invalid.
    """
    try:
        return make_env(id, **arguments)
    except TypeError as error:
        raise ValueError(f"{id}: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line; for an unknown argument, only its name."""
    message = " ".join(str(error).split())
    unknown = re.match(r".*got an unexpected keyword argument '(\w+)'", message)
    return f"unknown argument {unknown[1]!r}" if unknown else message
