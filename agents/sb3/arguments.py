"""Arguments of training runs, and their JSON form."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, get_type_hints

from agents.catalog import ALGORITHMS
from agents.runs import RunArguments
from agents.sb3.algorithms import (
    OFF_POLICY,
    algorithm_class,
    check_model_arguments,
    check_network,
)
from crawl_envs.types.arguments import whole

PREFIX = "crawl_envs:"
ENV_ID = re.compile(r"([\w.]+:)?([\w:.-]+/)?[\w.-]+")
"""An id of an environment, with or without a module and a namespace."""


class Expected(NamedTuple):
    """A constraint on an argument of an algorithm's class, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _is_real(value: Any) -> bool:
    """Return whether a value is a finite number and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _whole(least: int) -> Expected:
    return Expected(
        f"an integer >= {least}", lambda value: type(value) is int and bool(value >= least)
    )


def _or_none(expected: Expected) -> Expected:
    return Expected(
        f"None or {expected.words}", lambda value: value is None or expected.holds(value)
    )


def _is_entropy(value: Any) -> bool:
    """Return whether a value is a valid entropy coefficient of SAC."""
    if not isinstance(value, str):
        return _is_real(value) and value >= 0
    word, separator, start = value.partition("_")
    try:
        return word == "auto" and (not separator or 0.0 < float(start) < math.inf)
    except ValueError:
        return False


def _is_buffer_arguments(value: Any) -> bool:
    """Return whether a value is valid as arguments of a replay buffer."""
    return value is None or (
        isinstance(value, Mapping)
        and set(value) <= {"handle_timeout_termination"}
        and all(type(flag) is bool for flag in value.values())
    )


FLAG = Expected("True or False", lambda value: type(value) is bool)
NOTHING = Expected("None", lambda value: value is None)
POSITIVE = Expected("finite and > 0", lambda value: _is_real(value) and value > 0)
NOT_NEGATIVE = Expected("finite and >= 0", lambda value: _is_real(value) and value >= 0)
SHARE = Expected("a number in [0, 1]", lambda value: _is_real(value) and 0 <= value <= 1)
POSITIVE_SHARE = Expected("a number in (0, 1]", lambda value: _is_real(value) and 0 < value <= 1)
EXPECTED: Mapping[str, Expected] = {
    **dict.fromkeys(("action_noise", "replay_buffer_class", "rollout_buffer_class"), NOTHING),
    **dict.fromkeys(("clip_range", "max_grad_norm", "rms_prop_eps"), POSITIVE),
    **dict.fromkeys(("clip_range_vf", "target_kl"), _or_none(POSITIVE)),
    **dict.fromkeys(("ent_coef", "vf_coef"), NOT_NEGATIVE),
    **dict.fromkeys(("exploration_fraction", "tau"), POSITIVE_SHARE),
    **dict.fromkeys(("exploration_final_eps", "exploration_initial_eps", "gae_lambda"), SHARE),
    **dict.fromkeys(("normalize_advantage", "optimize_memory_usage", "use_rms_prop"), FLAG),
    **dict.fromkeys(("use_sde", "use_sde_at_warmup"), FLAG),
    **dict.fromkeys(("buffer_size", "n_epochs", "stats_window_size"), _whole(1)),
    **dict.fromkeys(("target_update_interval", "train_freq"), _whole(1)),
    "batch_size": _whole(1),
    "gradient_steps": Expected(
        "an integer >= 1, or -1", lambda value: type(value) is int and (value == -1 or value >= 1)
    ),
    "learning_starts": _whole(0),
    "replay_buffer_kwargs": Expected(
        "None or handle_timeout_termination with True or False", _is_buffer_arguments
    ),
    "rollout_buffer_kwargs": NOTHING,
    "sde_sample_freq": _whole(-1),
    "target_entropy": Expected(
        "a finite number or 'auto'", lambda value: _is_real(value) or value == "auto"
    ),
    "tensorboard_log": Expected(
        "None or a folder", lambda value: value is None or isinstance(value, str)
    ),
    "verbose": Expected("0, 1 or 2", lambda value: type(value) is int and 0 <= value <= 2),
}
"""Constraints on the arguments of the algorithms' classes, by name."""
ENTROPY = Expected("finite and >= 0, 'auto' or 'auto_' and a number > 0", _is_entropy)


def expected_of(algorithm: str, name: str) -> Expected | None:
    """Return the constraint on an argument of an algorithm's class; None if there is none.

    With normalised advantages, a batch of one would have no standard deviation.
    """
    if name == "ent_coef" and algorithm == "sac":
        return ENTROPY
    if name == "batch_size" and algorithm not in OFF_POLICY:
        return _whole(2)
    return EXPECTED.get(name)


def check_model_values(algorithm: str, model_args: Mapping[str, Any]) -> None:
    """Raise ValueError for an invalid value of an argument of an algorithm's class."""
    for name, value in model_args.items():
        expected = expected_of(algorithm, name)
        if expected is not None and not expected.holds(value):
            raise ValueError(f"{name} must be {expected.words}, got {value!r}")


MOST = {"seed": 2**31 - 1, "width": 10_000, "steps": 10**12, "lanes": 1_000_000}
"""Largest values of some arguments."""


@dataclass(frozen=True, kw_only=True)
class TrainArguments(RunArguments):
    """Arguments of a training run; all are JSON values.

    Raises:
        ValueError: a value outside its range, an unknown algorithm or network.
    """

    FREE: ClassVar[tuple[str, ...]] = ("steps", "checkpoint_steps", "curve_rows", "threads")

    algorithm: str = "ppo"
    """One of :data:`agents.ALGORITHMS`; ``dqn`` and ``maskableppo`` need the action ``page``, and
    ``sac`` needs ``scores``."""
    env_id: str = "CrawlNCIS-v0"
    """Id of the environment; ``module:Name-v0`` imports the module, once lanes are made."""
    env_args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment. Lanes draw a new instance per episode, unless ``resample`` is
    false: then each lane keeps its first one."""
    instance: Mapping[str, Any] | None = None
    """Arguments of :class:`crawl_envs.Instance`, to train and compare on this instance only."""
    train_pages: int = 0
    """Pages of the environment in training, at the same time T = m / R and horizon; 0: its own.
    With the network ``pages``, without memory, an agent of few pages acts on any number."""
    steps: int = 200_000
    """Steps in all, over all lanes, >= 1; on-policy algorithms finish the last rollout."""
    lanes: int = 64
    """Lanes that step together, >= 1."""
    seed: int = 0
    """Seed of the network and the lanes, in [0, 2**31); lane i has the seed ``seed + i``."""
    network: str = "pages"
    """``pages``, ``mlp`` or ``plain``; see :mod:`agents.networks`; or ``module:Class``, a features
    extractor of one's own (:func:`agents.sb3.algorithms.network_arguments`)."""
    width: int = 32
    """Units of a hidden layer, >= 1."""
    learning_rate: float | str = 1e-3
    """Step size of the optimiser, > 0; ``lin_0.001`` falls linearly to 0 at the last step."""
    gamma: float = 0.95
    """Discount per step, in [0, 1); the time scale of rewards is 1 / (1 - gamma) steps."""
    rollout: int = 64
    """Steps per lane between updates, >= 2, for on-policy algorithms; at most 8 for a2c."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the algorithm's class, such as ``n_epochs``, in addition to the
    recommended ones (:func:`agents.sb3.hyperparameters.model_arguments`)."""
    start: str | None = None
    """Folder of an agent of the same network with the initial weights; see
    :func:`agents.sb3.loading.start_from`."""
    checkpoint_steps: int = 100_000
    """Steps between saves of the model, >= 1; it is saved at the end in any case."""
    curve_rows: int = 100
    """Rows of the learning curve, about, >= 1."""
    threads: int = 1
    """Threads of torch, >= 1; with one thread, results are reproducible from the seed."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            algorithm_class(self.algorithm)
        check_network(self.algorithm, self.network)
        if not isinstance(self.env_id, str) or not ENV_ID.fullmatch(self.env_id):
            raise ValueError(f"env_id must be the id of an environment, got {self.env_id!r}")
        for name in ("env_args", "model_args", "instance"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and not (name == "instance" and value is None):
                raise ValueError(f"{name} must be arguments by name, got {value!r}")
        object.__setattr__(self, "env_id", self.env_id.removeprefix(PREFIX))
        least = {"seed": 0, "rollout": 2, "train_pages": 0}
        for entry in fields(self):
            if get_type_hints(type(self))[entry.name] is int:
                value = getattr(self, entry.name)
                whole(entry.name, value, least.get(entry.name, 1), MOST.get(entry.name))
        if not POSITIVE.holds(step_size(self.learning_rate)[0]):
            raise ValueError(
                "learning_rate must be finite and > 0, or lin_ and such a number, "
                f"got {self.learning_rate!r}"
            )
        if self.train_pages and not self.any_size:
            raise ValueError(
                "train_pages must be 0 but for the network 'pages' without memory on the "
                f"environment's own instances, got {self.train_pages}"
            )
        if not (_is_real(self.gamma) and 0.0 <= self.gamma < 1.0):
            raise ValueError(f"gamma must lie in [0, 1), got {self.gamma!r}")
        if self.start is not None and not isinstance(self.start, str):
            raise ValueError(f"start must be None or a folder, got {self.start!r}")
        check_model_arguments(self.algorithm, self.model_args)
        check_model_values(self.algorithm, self.model_args)

    @property
    def any_size(self) -> bool:
        """Whether the number of pages in training may differ from that of the environment."""
        alike = self.network == "pages" and self.algorithm != "recurrentppo"
        return alike and self.instance is None


FALLING = "lin_"
"""Before a step size that falls linearly to 0, as in RL-Zoo."""


def step_size(learning_rate: Any) -> tuple[Any, bool]:
    """Return the first step size, and whether it falls linearly to 0."""
    if not (isinstance(learning_rate, str) and learning_rate.startswith(FALLING)):
        return learning_rate, False
    try:
        return float(learning_rate.removeprefix(FALLING)), True
    except ValueError:
        return learning_rate, True
