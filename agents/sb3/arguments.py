"""The arguments of training runs, with their checks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, get_type_hints

from agents.runs import RunArguments
from agents.sb3.algorithms import (
    OFF_POLICY,
    algorithm_class,
    check_network,
    new_parameters,
    parameters_of,
    rules_of,
)
from agents.sb3.hyperparameters import PREFIX, WIDTH
from crawl_envs.sim.streams import PageSets
from crawl_envs.types.arguments import flag, one_of, real, share, whole

ENV_ID = re.compile(r"([\w.]+:)?([\w:.-]+/)?[\w.-]+")
"""Matches the id of an environment, optionally with a module and a namespace."""

Check = Callable[[str, Any], Any]
"""Function of an argument's name and value that raises ValueError for a bad value."""


def _or_value(allowed: Any, check: Check) -> Check:
    """Return a check that accepts ``allowed`` and any value that ``check`` accepts."""
    return lambda name, value: value == allowed or check(name, value)


def _entropy(name: str, value: Any) -> None:
    """Check SAC's entropy coefficient: a number >= 0, or ``auto_`` followed by its start."""
    start = math.nan
    with suppress(AttributeError, ValueError):
        start = float(value.removeprefix("auto_"))
    if not (0.0 < start < math.inf and value.startswith("auto_")):
        real(name, value, least=0.0)


def _unchecked(name: str, value: Any) -> None:
    """Accept any value of an argument."""


COUNT: Check = partial(whole, least=1)
POSITIVE: Check = partial(real, above=0.0)
CHECKED: Mapping[Check, tuple[str, ...]] = {
    POSITIVE: ("clip_range", "max_grad_norm", "rms_prop_eps"),
    _or_value(None, POSITIVE): ("clip_range_vf", "target_kl"),
    partial(real, least=0.0): ("ent_coef", "vf_coef"),
    partial(share, above=True): ("exploration_fraction", "tau"),
    share: ("exploration_final_eps", "exploration_initial_eps", "gae_lambda"),
    flag: (
        *("normalize_advantage", "optimize_memory_usage", "use_rms_prop"),
        *("use_sde", "use_sde_at_warmup"),
    ),
    COUNT: (
        *("batch_size", "buffer_size", "n_epochs", "stats_window_size"),
        *("target_update_interval", "train_freq"),
    ),
    _or_value(-1, COUNT): ("gradient_steps",),
    partial(whole, least=0): ("learning_starts",),
    partial(whole, least=-1): ("sde_sample_freq",),
    _or_value("auto", real): ("target_entropy",),
    partial(whole, least=0, most=2): ("verbose",),
}
"""Checks of the arguments of algorithm classes that a run may set, by name."""
CHECKS = {name: check for check, names in CHECKED.items() for name in names}


def check_model_arguments(algorithm: str, model_args: Mapping[str, Any]) -> None:
    """Raise ValueError for an argument that an algorithm's class lacks, or for a bad value.

    With normalised advantages, a batch of one has no standard deviation. A user's class checks the
    arguments that it adds.
    """
    base = rules_of(algorithm)
    checks = {**dict.fromkeys(new_parameters(algorithm), _unchecked), **CHECKS}
    if base == "sac":
        checks["ent_coef"] = _or_value("auto", _entropy)
    if base not in OFF_POLICY:
        checks["batch_size"] = partial(whole, least=2)
    allowed = sorted(parameters_of(algorithm_class(algorithm)) & {*checks})
    for name, value in model_args.items():
        if name not in allowed:
            raise ValueError(f"model_args must be among {', '.join(allowed)}, got {name}={value!r}")
        checks[name](name, value)


MAX_VALUES = {"seed": 2**31 - 1, "width": 4096, "steps": 10**12, "lanes": 1_000_000}
"""Maximal values of some arguments."""


@dataclass(frozen=True, kw_only=True)
class TrainArguments(RunArguments):
    """Arguments of a training run; all are JSON values.

    Raises:
        ValueError: a value outside its range, an unknown algorithm or network.
    """

    FREE: ClassVar[tuple[str, ...]] = ("steps", "checkpoint_steps", "curve_rows", "threads")

    algorithm: str = "ppo"
    """One of :data:`agents.ALGORITHMS`; ``dqn`` and ``maskableppo`` need the action ``page``, and
    ``sac`` needs ``scores``. Or ``module:Class``, a user's class in the form of Stable-Baselines3,
    in a module that is imported."""
    env_id: str = "CrawlNCIS-v0"
    """Id of the environment; ``module:Name-v0`` imports the module, once lanes are made."""
    env_args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment. Lanes draw a new instance per episode, except with ``resample``
    false: then each lane keeps its first one."""
    instance: Mapping[str, Any] | None = None
    """Arguments of :class:`crawl_envs.Instance`, to train and compare on this instance only."""
    train_pages: int = 0
    """Pages of the environment in training, with the same T = m / R and horizon; 0: no change. With
    the network ``pages`` an agent trained on few pages acts on any number."""
    steps: int = 200_000
    """Total steps of all lanes, >= 1; on-policy algorithms finish the last rollout."""
    lanes: int = 64
    """Lanes that step together, >= 1."""
    pages: PageSets = "any"
    """Stream of page sets in training, unless ``env_args`` names one, as for comparisons."""
    seed: int = 0
    """Seed of the network and the lanes, in [0, 2**31); lane i has the seed ``seed + i``."""
    belief: bool = False
    """True to add the columns of a belief to observations (:mod:`agents.sb3.belief_columns`)."""
    network: str = "pages"
    """``pages``, ``mlp`` or ``plain``; see :mod:`agents.networks`. Or ``module:Class``, a user's
    features extractor (:func:`agents.sb3.algorithms.network_arguments`)."""
    width: int = WIDTH
    """Units of a hidden layer, >= 1."""
    learning_rate: float | str = 1e-3
    """Step size of the optimiser, > 0; ``lin_0.001`` falls linearly to 0 at the last step. An
    update uses the step size at the start of its rollout."""
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
    """Steps between saves of the model, >= 1; it is always saved at the end."""
    curve_rows: int = 100
    """Approximate number of rows of the learning curve, >= 1."""
    threads: int = 1
    """Threads of torch, >= 1; with one thread, results are reproducible from the seed."""

    def __post_init__(self) -> None:
        algorithm_class(self.algorithm)
        check_network(self.network)
        if not isinstance(self.env_id, str) or not ENV_ID.fullmatch(self.env_id):
            raise ValueError(f"env_id must be the id of an environment, got {self.env_id!r}")
        for name in ("env_args", "model_args", "instance"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and not (name == "instance" and value is None):
                raise ValueError(f"{name} must be arguments by name, got {value!r}")
        object.__setattr__(self, "env_id", self.env_id.removeprefix(PREFIX))
        minima = {"seed": 0, "rollout": 2, "train_pages": 0}
        for entry in fields(self):
            if get_type_hints(type(self))[entry.name] is int:
                value = getattr(self, entry.name)
                whole(entry.name, value, minima.get(entry.name, 1), MAX_VALUES.get(entry.name))
        flag("belief", self.belief)
        one_of("pages", self.pages, PageSets)
        real("learning_rate", step_size(self.learning_rate)[0], above=0.0)
        share("gamma", self.gamma, below=True)
        if self.train_pages and not (self.any_size and self.instance is None):
            raise ValueError(
                "train_pages must be 0 with another network than 'pages' or with an instance, "
                f"got {self.train_pages}"
            )
        if self.start is not None and not isinstance(self.start, str):
            raise ValueError(f"start must be None or a folder, got {self.start!r}")
        check_model_arguments(self.algorithm, self.model_args)

    @property
    def any_size(self) -> bool:
        """Whether the network acts on any number of pages."""
        return self.network == "pages"


FALLING = "lin_"
"""Prefix of a step size that falls linearly to 0, as in RL-Zoo."""


def step_size(learning_rate: Any) -> tuple[Any, bool]:
    """Return the first step size, and whether it falls linearly to 0."""
    falls = isinstance(learning_rate, str) and learning_rate.startswith(FALLING)
    if falls:
        with suppress(ValueError):
            return float(learning_rate.removeprefix(FALLING)), True
    return learning_rate, falls
