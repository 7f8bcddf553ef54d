"""A trained page network without torch, for any number of pages.

The network ``pages`` has the same weights whatever the number of pages, but a model of
Stable-Baselines3 is tied to the shapes of the spaces it was trained on. :class:`PageScorer` has
only the weights, in NumPy, and :class:`ScoringAgent` acts with it. It is saved as ``scorer.npz``:
arrays and a line of JSON, without pickles.

The network measures time in units of T = m / R. An agent needs the T of the environment, not that
of the training, through ``env`` or as ``cycle``.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents.networks.scaled_columns import (
    LEAST_WEIGHT,
    RECALL_BOUND,
    ScaledColumns,
    check_cycle,
    scaled_columns,
)
from crawl_envs.spaces.actions import top_pages
from crawl_envs.types.arguments import one_of
from crawl_envs.types.files import replacing

SCORER = "scorer.npz"
FORMAT = "crawl_envs page scorer 1"
LAYERS = ("rows.weight", "rows.bias", "alone.weight", "alone.bias", "all.weight")
HEAD = ("score.weight", "score.bias")
FORMS = ("page", "scores", "refresh")
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ScorerTraits:
    """Properties of a scorer.

    Attributes:
        name: the algorithm that trained it.
        features: names of the observation's columns.
        action_form: ``page``, ``scores`` or ``refresh``.
        num_pages, cycle: m and T = m / R in training.
        draws: scores are logits of random actions; else the best action is always taken.

    Raises:
        ValueError: another action form.
    """

    name: str
    features: tuple[str, ...]
    action_form: str
    num_pages: int
    cycle: float
    draws: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        one_of("action_form", self.action_form, FORMS)


class PageScorer:
    """Scores pages by their rows of an observation.

    Args:
        traits: properties of the scorer.
        weights: LAYERS and HEAD, float32, as torch's layers have them.

    Raises:
        ValueError: weights are missing, or their shapes disagree.
    """

    def __init__(self, traits: ScorerTraits, weights: dict[str, NDArray[Any]]) -> None:
        self.traits, self.columns = traits, scaled_columns(traits.features)
        names = (*LAYERS, *HEAD)
        for name in names:
            if name not in weights:
                raise ValueError(f"weights must hold {', '.join(names)}, {name} is missing")
        self.weights = {name: np.ascontiguousarray(weights[name], np.float32) for name in names}
        width, columns = self.weights["rows.bias"].size, len(traits.features)
        square = (width, width)
        shapes = ((width, columns), (width,), square, (width,), square, (1, width), (1,))
        for (name, array), shape in zip(self.weights.items(), shapes, strict=True):
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            if not np.all(np.isfinite(array)):
                raise ValueError(f"{name} must be finite")

    def scores(self, observation: ArrayLike, cycle: float) -> Floats:
        """Return a score per page, (m,), -inf where it does not exist.

        Args:
            observation: (m, F), m >= 1, in the environment's own units.
            cycle: the time T = m / R, > 0.

        Raises:
            ValueError: an observation of another shape, or a bad ``cycle``.
        """
        rows, w = np.asarray(observation, np.float32), self.weights
        if rows.ndim != 2 or rows.shape[1] != len(self.traits.features) or not len(rows):
            raise ValueError(
                f"observation must have shape (m, {len(self.traits.features)}), got {rows.shape}"
            )
        column = self.columns.alive
        alive = np.ones(len(rows), bool) if column is None else rows[:, column] > 0.5
        first = scaled(rows, self.columns, check_cycle(cycle), alive) @ w["rows.weight"].T
        first += w["rows.bias"]
        np.maximum(first, 0.0, out=first)
        known = first if alive.all() else first[alive]
        mean = (known.sum(0, dtype=np.float64) / max(len(known), 1)).astype(np.float32)
        second = first @ w["alone.weight"].T
        second += mean @ w["all.weight"].T + w["alone.bias"]
        np.maximum(second, 0.0, out=second)
        scores: Floats = second @ w["score.weight"][0] + w["score.bias"]
        scores[~alive] = -np.inf
        return scores

    def save(self, path: str | Path) -> None:
        """Write this scorer to a file atomically.

        Raises:
            OSError: it cannot be written.
        """
        about = json.dumps({"format": FORMAT, **asdict(self.traits)})
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, about=np.array(about), **self.weights)

    @classmethod
    def load(cls, path: str | Path) -> PageScorer:
        """Return the scorer in a file.

        Raises:
            ValueError: there is no such file, or it is damaged or foreign.
        """
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                about = json.loads(str(arrays["about"]))
                weights = {name: arrays[name] for name in (*LAYERS, *HEAD)}
            if about.pop("format") != FORMAT:
                raise ValueError("another format")
            return cls(ScorerTraits(**about), weights)
        except FileNotFoundError:
            raise ValueError(f"there is no scorer at {path}") from None
        except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is not a page scorer of this suite: {error}") from None


def scaled(rows: Floats, columns: ScaledColumns, cycle: float, alive: NDArray[np.bool_]) -> Floats:
    """Return scaled rows, (m, F); see :mod:`agents.networks.scaled_columns`."""
    share = max(float(alive.mean()), 1.0 / len(rows))
    gain = np.array(columns.gain) / (cycle * share) ** np.array(columns.cycle_power, np.float64)
    if columns.importance is not None:
        weight = rows[alive, columns.importance]
        mean = weight.mean(dtype=np.float64) if weight.size else 0.0
        gain[columns.importance] /= max(mean, LEAST_WEIGHT)
    result: Floats = np.log1p(rows * gain.astype(np.float32))
    result += np.array(columns.shift, np.float32)
    result += rows * np.array(columns.keep, np.float32)
    for k in columns.recalls:
        result[:, k] = np.arctanh((2.0 * rows[:, k] - 1.0) / RECALL_BOUND)
    for k in columns.others:
        result[:, k] = np.sign(rows[:, k]) * np.log1p(np.abs(rows[:, k]))
    return result


class ScoringAgent:
    """Acts by a page scorer on any number of pages.

    Attributes:
        name: the algorithm that trained it.
        features: names of the observation's columns.
        scorer: the network.

    Args:
        scorer: the network.
        env: the environment that it acts in, single, vector or bridge; T = m / R of each lane is
            read at every decision.
        cycle: T, without an environment; None for that of the training, at its number of pages.
        seed: of random actions.

    Raises:
        ValueError: both ``env`` and ``cycle``, a bad one, or ``env`` does not fit.
    """

    def __init__(
        self, scorer: PageScorer, env: Any = None, *, cycle: float | None = None, seed: int = 0
    ) -> None:
        if env is not None and cycle is not None:
            raise ValueError(f"cycle must be None where env is given, got {cycle!r}")
        self.scorer, self.name, self.features = scorer, scorer.traits.name, scorer.traits.features
        self._cycle = None if cycle is None else check_cycle(cycle)
        self._core = None if env is None else getattr(env, "unwrapped", env)
        self._rng = np.random.default_rng(seed)
        if env is not None:
            check_columns(env, self.features, scorer.traits.action_form)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, and ``state`` unchanged.

        Args:
            observation: (m, F) of one lane, or (N, m, F) of N, in the environment's own units.
            state: passed through.
            episode_start: not used.
            deterministic: take the best action; else draw it, where scores are logits.

        Raises:
            ValueError: an observation of another shape; without ``env`` and ``cycle``, one of
                another number of pages than in training.
        """
        rows = np.asarray(observation)
        lanes = rows if rows.ndim == 3 else rows[None]
        actions = [
            self._act(self.scorer.scores(lane, self._cycle_of(number, lanes)), deterministic)
            for number, lane in enumerate(lanes)
        ]
        return (np.stack(actions) if rows.ndim == 3 else actions[0]), state

    def _cycle_of(self, lane: int, lanes: NDArray[Any]) -> float:
        """Return the time T of a lane."""
        if self._core is not None:
            if lanes.shape[0] != self._core.num_lanes:
                raise ValueError(
                    f"observation must have the {self._core.num_lanes} lanes of the environment, "
                    f"got {lanes.shape[0]}"
                )
            return cycle_of(self._core, lane)
        if self._cycle is not None:
            return self._cycle
        traits = self.scorer.traits
        if lanes.shape[1] != traits.num_pages:
            raise ValueError(
                f"env or cycle must be given to act on {lanes.shape[1]} pages, other than the "
                f"{traits.num_pages} of the training, got neither"
            )
        return traits.cycle

    def _act(self, scores: Floats, deterministic: bool) -> NDArray[Any]:
        form, draw = self.scorer.traits.action_form, self.scorer.traits.draws and not deterministic
        if draw:  # the difference of two Gumbel numbers is logistic
            noise = self._rng.logistic if form == "refresh" else self._rng.gumbel
            scores = scores + noise(size=len(scores)).astype(np.float32)
        if form == "refresh":
            return np.asarray(scores > 0.0, np.int8)
        if form == "page":
            return np.asarray(np.argmax(scores), np.int64)
        return encode_scores(scores, getattr(self._core, "batch", len(scores)))


def cycle_of(core: Any, lane: int) -> float:
    """Return the time T = m / R of a lane's current episode."""
    problem = core.tracker(lane).problem
    return float(problem.num_pages / problem.bandwidth)


def encode_scores(scores: Floats, batch: int) -> Floats:
    """Return an action of the form ``scores``, (m,): from 1 down to above 0 for the best, else -1.

    Args:
        scores: (m,), -inf allowed.
        batch: number of pages to crawl, in [1, m].
    """
    pages = top_pages(scores[None].astype(np.float64), batch)[0]
    action = np.full(len(scores), -1.0, np.float32)
    action[pages] = 1.0 - np.arange(batch) / batch
    return action


def check_columns(env: Any, features: tuple[str, ...], action_form: str) -> None:
    """Raise ValueError unless an environment has these columns and this form of action."""
    core = getattr(env, "unwrapped", env)
    if not hasattr(core, "features"):
        raise ValueError(f"env must be a crawling environment, got {env!r}")
    if tuple(core.features) != features:
        raise ValueError(
            f"the agent was trained on observations of {', '.join(features)}, "
            f"got {', '.join(core.features)}"
        )
    if core.action_form != action_form:
        raise ValueError(
            f"the agent was trained on the action {action_form!r}, got {core.action_form!r}"
        )
