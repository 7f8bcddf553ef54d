"""What a job compares: policies in an environment, and the bounds that stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium

from crawl_envs.evaluation import PolicyFactory, Row, evaluate

Window = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """An environment and what is compared in it; it can travel to a worker process.

    Attributes:
        name: stands in the rows.
        id: the environment's id.
        arguments: of ``gymnasium.make``, plain values.
        policies: for each label, a function of an environment that returns a policy for it, as a
            ``functools.partial`` of a module's function.
        bounds: for each label, a module's function of an instance, or a partial of one; it is
            also given ``window=`` where there are windows.
        windows: stretches of a recorded trace; where there are any, seed i plays the i-th.
    """

    name: str
    id: str
    arguments: Mapping[str, Any]
    policies: Mapping[str, PolicyFactory]
    bounds: Mapping[str, Callable[..., float]] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the bounds and policies, in this order."""
        return (*self.bounds, *self.policies)

    def seeds(self, count: int) -> Sequence[int]:
        """Seeds 0, 1, ... of ``count`` repetitions; with windows, one for each of them."""
        return range(len(self.windows) or count)

    def arguments_of(self, seed: int) -> dict[str, Any]:
        """Arguments of ``gymnasium.make`` for a seed."""
        window = {"window": list(self.windows[seed])} if self.windows else {}
        return {**self.arguments, **window}

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of one policy or bound on one seed."""
        given = {"window": self.windows[seed]} if self.windows else {}
        rows = evaluate(
            self.id,
            {label: self.policies[label]} if label in self.policies else {},
            [seed],
            setting=self.name,
            bounds={label: partial(self.bounds[label], **given)} if label in self.bounds else None,
            **self.arguments_of(seed),
        )
        return [row for row in rows if row.value == row.value]

    def check(self) -> None:
        """Make and reset the environment, and make the policies; ValueError where one objects."""
        for window in range(max(len(self.windows), 1)):
            try:
                env = gymnasium.make(self.id, **self.arguments_of(window))
                env.reset(seed=0)
                for factory in self.policies.values():
                    factory(env)
            except (ValueError, TypeError, gymnasium.error.Error) as error:
                raise ValueError(f"setting {self.name}: {_one_line(error)}") from None
            env.close()

    def described(self) -> dict[str, Any]:
        """Everything that decides the numbers, as plain values."""
        return {
            "id": self.id,
            "arguments": dict(self.arguments),
            "windows": [list(window) for window in self.windows],
            "labels": {
                label: _spelled(made) for label, made in {**self.bounds, **self.policies}.items()
            },
        }


def _spelled(made: Any) -> str:
    """Spell a function, or a partial with its arguments."""
    if not isinstance(made, partial):
        return str(made.__qualname__)
    given = [repr(value) for value in made.args]
    given += [f"{name}={value!r}" for name, value in sorted(made.keywords.items())]
    return f"{_spelled(made.func)}({', '.join(given)})"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
