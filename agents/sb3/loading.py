"""Load trained agents.

``model.zip`` (:mod:`agents.sb3.model_file`), ``scorer.npz`` and ``index.json``
(:mod:`agents.index.stored`) have plain values and arrays. Nothing is unpickled, so an agent of
unknown origin runs no code of its author.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.catalog import AGENT_FILES
from agents.networks.resizing import in_units, resized, scores_of
from agents.sb3.algorithms import rules_of
from agents.sb3.arguments import TrainArguments
from agents.sb3.belief_columns import COLUMNS, with_belief
from agents.sb3.building import ModelTraits, build_model
from agents.sb3.lanes import cycle_of
from agents.sb3.model_file import in_one_line, load_model
from agents.sb3.torch_threads import threads
from crawl_envs.spaces.actions import SLOT_FORMS
from crawl_envs.types.arguments import real
from policies import BeliefNCIS, bind

MODEL, SCORER = AGENT_FILES[0], AGENT_FILES[-1]
SCORER_FORMAT = "crawl_envs page scorer 1"
ENCODER = ("rows.weight", "rows.bias", "alone.weight", "alone.bias", "all.weight")
HEAD = ("score.weight", "score.bias")


class Agent:
    """A trained agent: a policy like those of :mod:`policies`, for unscaled observations.

    With the network ``pages`` it acts on any number of pages. If m or the time T = m / R differs
    from the training, it needs ``env`` or ``cycle``.

    Attributes:
        name: the algorithm's name.
        arguments: the arguments of its training run.
        model: Stable-Baselines3's model.
        features: names of the observation's columns.

    Args:
        model: Stable-Baselines3's model, of :func:`agents.sb3.building.build_model`.
        arguments: the arguments of its run.
        env: the environment to act in, single, vector or bridge; its T is read at every decision.
        cycle: T, without ``env``; None for the T of the training, at its number of pages.

    Raises:
        ValueError: both ``env`` and ``cycle``; an ``env`` that does not fit; a ``cycle`` that is
            not positive, or with a network other than ``pages``.
    """

    def __init__(
        self,
        model: BaseAlgorithm,
        arguments: TrainArguments,
        env: Any = None,
        *,
        cycle: float | None = None,
    ) -> None:
        built: Any = model
        self.name, self.model, self.arguments = arguments.algorithm, model, arguments
        self._base_algorithm = rules_of(arguments.algorithm)
        self._traits: ModelTraits = built.crawl_traits
        self.features = self._traits.features
        self._any_size = arguments.any_size and self._traits.action_form in SLOT_FORMS
        self._core = None if env is None else getattr(env, "unwrapped", env)
        self._cycle = None if cycle is None else real("cycle", cycle, above=0.0)
        self._resized: Any = None
        self._belief = None
        if env is not None:
            self._check_fits(env)
            self._belief = bind(BeliefNCIS(), self._core) if arguments.belief else None
        if cycle is not None and (env is not None or not self._any_size):
            raise ValueError(
                f"cycle must be None with env, and for agents of a fixed size, got {cycle!r}"
            )

    def _check_fits(self, env: Any) -> None:
        """Raise ValueError unless the agent can act in ``env``, of any number of lanes."""
        trained, traits = self._traits, ModelTraits.read(env, self._traits.cycle)
        if self.arguments.belief:
            traits = replace(traits, features=(*traits.features, *COLUMNS))
        pages = traits.num_pages if self._any_size else trained.num_pages
        if traits != replace(trained, num_pages=pages, batch=traits.batch):
            expected, got = (
                f"{side.num_pages} pages with {', '.join(side.features)}, and actions "
                f"{side.action_form!r} {side.action_space()}"
                for side in (trained, traits)
            )
            hint = "" if self._any_size else "; other numbers of pages need the network 'pages'"
            raise ValueError(f"the agent was trained on {expected}, got {got}{hint}")

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, and the next ``state`` of recurrentppo.

        Args:
            observation: (m, F) of one lane, or (N, m, F) of N, in the environment's units.
            state: the state of recurrentppo, None at first; returned as it is by other algorithms.
            episode_start: mask of lanes at the start of an episode, (N,) bool, for recurrentppo.
            deterministic: return the best action; otherwise it is sampled (dqn: epsilon-greedy
                at the number of pages of the training).

        Raises:
            ValueError: an observation of another shape, or of another number of pages without
                ``env`` and ``cycle``; an agent with a belief without ``env``.
        """
        rows, actor = self._with_belief(np.asarray(observation)), self.model
        if self._any_size and rows.ndim in (2, 3):  # otherwise the model raises an error
            rows, actor = self._in_units_of_training(rows), self._actor(rows.shape[-2])
        extra: dict[str, Any] = {"deterministic": deterministic}
        if self._base_algorithm == "maskableppo" and "alive" in self.features:
            extra["action_masks"] = rows[..., self.features.index("alive")] > 0.5
        if self._base_algorithm == "recurrentppo":
            extra |= {"state": state, "episode_start": episode_start}
        with threads(self.arguments.threads):  # more threads are slower
            action, renewed = actor.predict(rows, **extra)
        action = np.asarray(action, self.model.action_space.dtype)
        return action, renewed if self._base_algorithm == "recurrentppo" else state

    def _with_belief(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return observations with the columns of a belief, if the agent was trained with them."""
        if not self.arguments.belief:
            return rows
        if self._belief is None:
            raise ValueError("env must be an environment for an agent with a belief, got None")
        lanes = with_belief(rows if rows.ndim == 3 else rows[None], self._belief, self._core)
        return lanes if rows.ndim == 3 else lanes[0]

    def scores(self, observation: Any) -> NDArray[np.float32]:
        """Return the score of each page, (m,) or (N, m), by the actor of the network ``pages``.

        Scores are logits of pages, or of their bits: for a2c, maskableppo and ppo.

        Raises:
            ValueError: another network or algorithm; the errors of :meth:`predict`.
        """
        if not self._any_size or self._base_algorithm not in ("a2c", "maskableppo", "ppo"):
            raise ValueError(
                f"scores need the network 'pages' with a2c, maskableppo or ppo, got {self.name}"
            )
        rows = self._with_belief(np.asarray(observation, np.float32))
        rows, _ = self._in_units_of_training(rows), self._actor(rows.shape[-2])
        scores = scores_of(self.model.policy, rows.reshape(-1, *rows.shape[-2:]))
        return scores.reshape(rows.shape[:-1])

    def _actor(self, num_pages: int) -> Any:
        """Return the model, or its policy for another number of pages, or of pages per action.

        Without an environment, the policy for another number of pages scores all of them.
        """
        trained, core = self._traits, self._core
        batch = trained.batch if num_pages == trained.num_pages else num_pages
        if trained.action_form != "scores":
            batch = 1
        elif core is not None:
            batch = core.batch
        if (num_pages, batch) == (trained.num_pages, trained.batch):
            return self.model
        if core is None and self._cycle is None:
            raise ValueError(
                f"env or cycle is needed to act on {num_pages} pages after training on "
                f"{trained.num_pages}, got neither"
            )
        if self._resized is None or self._resized.observation_space.shape[0] != num_pages:
            new = replace(trained, num_pages=num_pages, batch=batch)
            spaces = new.observation_space(), new.action_space()
            self._resized = resized(self.model.policy, *spaces, batch)
        return self._resized

    def _in_units_of_training(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Convert observations to the unit of time in which T equals the T of the training."""
        lanes = rows if rows.ndim == 3 else rows[None]
        cycles = [self._cycle or self._traits.cycle]
        if self._core is not None:
            if len(lanes) != self._core.num_lanes:
                raise ValueError(
                    f"observation must have the {self._core.num_lanes} lanes of the environment, "
                    f"got {len(lanes)}"
                )
            cycles = [cycle_of(self._core.lanes.problem(lane)) for lane in range(len(lanes))]
        scaled = in_units(lanes, self.features, self._traits.cycle / np.array(cycles))
        return scaled if rows.ndim == 3 else scaled[0]


def start_file(folder: str | Path) -> Path:
    """Return the file of the initial model of a run in a folder; ValueError if there is none."""
    path = Path(folder) / MODEL
    if not path.is_file():
        raise ValueError(f"start must be a folder with {MODEL} of a run or clone, got {folder!s}")
    return path


def start_from(model: BaseAlgorithm, folder: str | Path) -> None:
    """Copy the weights of a trained model to a new one.

    Both must have the same network and columns. Another algorithm with an actor and a critic is
    allowed. With the network ``pages`` the number of pages may differ. The new model keeps its time
    T = m / R. The optimiser is reset. The scale of rewards, in which the critic learned, is copied.

    Args:
        model: the new model, of :func:`agents.sb3.building.build_model`.
        folder: folder of the trained model.

    Raises:
        ValueError: there is no such model, or its weights do not fit.
    """
    path = start_file(folder)
    source: Any = load_model(path)[0]
    built: Any = model
    columns, source_columns = built.crawl_traits.features, source.crawl_traits.features
    if columns != source_columns:
        raise ValueError(
            f"start must have the columns {', '.join(columns)}, got {', '.join(source_columns)} "
            f"in {path}"
        )
    try:
        model.policy.load_state_dict(source.policy.state_dict())
    except RuntimeError:
        raise ValueError(
            f"start must be an agent with the same network, {path} has another"
        ) from None
    built.reward_scale.restore(source.reward_scale.moments())


def load(file: Path, env: Any = None, *, cycle: float | None = None) -> Agent:
    """Return the agent in a file ``model.zip`` or ``scorer.npz``; see :func:`agents.load`."""
    if file.name == SCORER:
        return load_scorer(file, env, cycle=cycle)
    return Agent(*load_model(file), env, cycle=cycle)


def load_scorer(file: Path, env: Any = None, *, cycle: float | None = None, **form: Any) -> Agent:
    """Return the agent in a file ``scorer.npz``: the actor of a network ``pages``, and no critic.

    The arrays have the names and shapes of the layers of :class:`agents.networks.encoder`; a line
    of JSON has the algorithm and the traits of the training.

    Args:
        file: the file.
        env: argument of :class:`Agent`.
        cycle: argument of :class:`Agent`.
        **form: traits that replace those of the training: ``action_form``, ``batch``.

    Raises:
        ValueError: there is no such file, or it is damaged or foreign; errors of :class:`Agent`.
    """
    with (
        in_one_line(file, "is not a page scorer of this suite"),
        file.open("rb") as opened,
        np.load(opened, allow_pickle=False) as arrays,
    ):
        about = json.loads(str(arrays["about"]))
        if about.pop("format") != SCORER_FORMAT or not about.pop("draws"):
            raise ValueError(f"its format must be {SCORER_FORMAT!r}, of an actor that draws")
        width = len(arrays["rows.bias"])
        arguments = TrainArguments(
            algorithm=about.pop("name"), width=width, lanes=1, steps=1, rollout=2
        )
        model = build_model(arguments, ModelTraits(**{**about, **form}))
        weights = {f"pi_features_extractor.{name}": arrays[name] for name in ENCODER}
        weights |= {f"mlp_extractor.{name}": arrays[name] for name in HEAD}
        tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
        model.policy.load_state_dict(tensors, strict=False)
    return Agent(model, arguments, env, cycle=cycle)
