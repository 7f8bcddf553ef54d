"""The search for hyperparameters: trials of a study that can be stopped and gone on with.

Optuna draws them by its TPE (Bergstra et al. 2011, Algorithms for Hyper-Parameter Optimization)
and gives up a trial that is below the median of the earlier ones at the same stage. The sampler is
seeded anew for every trial, by how many have ended: so a study that was stopped goes on as one
that was not.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.evolution import load_index
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.train import evolve
from agents.sb3.arguments import TrainArguments, make_lanes
from agents.sb3.comparison import mean_rewards
from agents.sb3.training import train
from crawl_envs.types import Policy
from scripts.training.jobs import Learning
from scripts.training.options import PREFIX
from scripts.training.ranges import (
    TUNED,
    generations_of,
    network_of,
    rounded,
    settings_of,
    suggested,
)
from scripts.training.recipes import ES, Wanted, job_of

VALIDATION_SEED = 2_000_000
"""First seed of validations, away from those of training and of comparisons."""
STAGES = 4
"""Parts of a trial; after each it is measured, and may be given up."""
STARTUP = 8
"""Trials that are drawn at random before TPE has anything to go by."""
STUDY = "crawl-envs"


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned, and how far; all are plain values.

    Raises:
        ValueError: a value outside its range, an unknown algorithm, or what the environment
            objects to.
    """

    algorithm: str
    env_id: str
    env_args: Mapping[str, Any]
    instance: Mapping[str, Any] | None
    steps: int
    """Steps of a trial, over all lanes; generations for es."""
    episodes: int
    """Validation seeds."""
    seed: int

    def __post_init__(self) -> None:
        if self.algorithm not in TUNED:
            raise ValueError(f"algorithm must be one of {', '.join(TUNED)}, got {self.algorithm!r}")
        for name, least in (("steps", STAGES), ("episodes", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)}")
        object.__setattr__(self, "env_id", self.env_id.removeprefix(PREFIX))
        make_lanes(self.job({}, 1).where, 1, training=False).close()

    def job(self, found: Mapping[str, Any], stage: int) -> Any:
        """Return the run up to a stage with such settings."""
        steps = math.ceil(self.steps * stage / STAGES)
        options: dict[str, Any] = {"seed": self.seed}
        if self.algorithm == ES:
            settings = {**found, **generations_of(self.steps, stage, STAGES)}
        else:
            settings = settings_of(found, math.ceil(self.steps / STAGES))
            options |= {"steps": steps, "network": network_of(self.algorithm, self.env_id)}
        wanted = (self.algorithm, self.env_id, self.env_args, self.instance, options, settings)
        return job_of(Wanted(*wanted))

    def score(self, found: Mapping[str, Any], stage: int, folder: Path) -> float:
        """Train up to a stage in a folder, going on from the one before; return the mean reward.

        It is that of the best actions, over the validation seeds.
        """
        job = self.job(found, stage)
        build = _play(job, folder, resume=stage > 1)
        rewards = mean_rewards(build, job.where, episodes=self.episodes, seed=VALIDATION_SEED)
        return float(rewards.mean())


def _play(job: Any, folder: Path, resume: bool) -> Callable[[Any], Policy]:
    """Train without a progress bar of its own."""
    if isinstance(job, Learning):
        arguments: TrainArguments = job.arguments
        agent = train(arguments, folder, resume=resume)
        return lambda env: agent
    evolution: EvolutionArguments = job.arguments
    evolve(evolution, folder, resume=resume)
    return lambda env: load_index(folder, env)


class Ended(NamedTuple):
    """A trial that has ended: ``value`` is its last mean reward, NaN if there was none."""

    number: int
    value: float
    stages: int
    found: dict[str, Any]

    @property
    def whole(self) -> bool:
        """Whether it was played to its end."""
        return self.stages == STAGES


class Study:
    """Trials in a SQLite file.

    Args:
        tuning: what is tuned.
        storage: the file, made if need be.
        resume: go on with the study that it may hold.

    Raises:
        ValueError: Optuna is missing; the file holds a study and ``resume`` is False, or one of
            something else, or is no such file.
    """

    def __init__(self, tuning: Tuning, storage: Path, *, resume: bool) -> None:
        self.optuna, self.tuning = _optuna(), tuning
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        there = storage.exists()
        try:
            self.storage = self.optuna.storages.RDBStorage(f"sqlite:///{storage.resolve()}")
            self.study = self.optuna.create_study(
                storage=self.storage,
                study_name=STUDY,
                direction="maximize",
                load_if_exists=True,
                pruner=self.optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
            )
            told = self.study.user_attrs
        except Exception as error:  # of SQLAlchemy, of many kinds
            first = str(error).splitlines()[0]
            raise ValueError(f"storage {storage} cannot be used: {first}") from None
        if there and not resume:
            raise ValueError(f"{storage} holds a study already; --resume it, or name another file")
        for name, value in vars(tuning).items():
            if name in told and told[name] != value:
                raise ValueError(f"{name} must be {told[name]!r} as in {storage}, got {value!r}")
            self.study.set_user_attr(name, value)

    def ended(self) -> list[Ended]:
        """Return the trials that have ended, in order; those that were cut off do not count."""
        states = (self.optuna.trial.TrialState.COMPLETE, self.optuna.trial.TrialState.PRUNED)
        return [
            Ended(
                number,
                list(trial.intermediate_values.values())[-1]
                if trial.intermediate_values
                else math.nan,
                len(trial.intermediate_values),
                rounded(trial.params),
            )
            for number, trial in enumerate(self.study.get_trials(deepcopy=False, states=states))
        ]

    def run(self, count: int) -> Iterator[Ended]:
        """Play trials until so many have ended; yield each of the new ones."""
        for number in range(len(self.ended()), count):
            state = np.random.SeedSequence([self.tuning.seed, number]).generate_state(1)
            self.study.sampler = self.optuna.samplers.TPESampler(
                n_startup_trials=STARTUP, seed=int(state[0])
            )
            self._play_trial()
            yield self.ended()[-1]

    def _play_trial(self) -> None:
        states = self.optuna.trial.TrialState
        trial = self.study.ask()
        try:
            found = rounded(suggested(trial, self.tuning.algorithm))
            with tempfile.TemporaryDirectory() as folder:
                for stage in range(1, STAGES + 1):
                    value = self._value(found, stage, Path(folder))
                    if math.isnan(value):
                        self.study.tell(trial, state=states.PRUNED)
                        return
                    trial.report(value, stage)
                    if stage < STAGES and trial.should_prune():
                        self.study.tell(trial, state=states.PRUNED)
                        return
            self.study.tell(trial, value)
        except BaseException:
            self.study.tell(trial, state=states.FAIL, skip_if_finished=True)
            raise

    def _value(self, found: Mapping[str, Any], stage: int, folder: Path) -> float:
        """Return what a stage ends with, NaN where the numbers of the network run away."""
        try:
            return self.tuning.score(found, stage, folder)
        except ValueError as error:
            if "nan" in str(error).lower():
                return math.nan
            raise

    def importances(self) -> dict[str, float]:
        """Return the shares of the variance that settings explain, by Optuna's fANOVA.

        It is empty where too few trials have been played to their end.
        """
        whole = [trial for trial in self.ended() if trial.whole]
        if len(whole) < STARTUP or len({trial.value for trial in whole}) < 2:
            return {}
        evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=self.tuning.seed)
        return dict(self.optuna.importance.get_param_importances(self.study, evaluator=evaluator))

    def close(self) -> None:
        """Let go of the file."""
        self.storage.remove_session()
        self.storage.engine.dispose()


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError(
            "tuning needs the package optuna: pip install 'crawl-envs[tune]'"
        ) from None
    return optuna


def best_of(trials: list[Ended]) -> Ended | None:
    """Return the best trial that was played to its end, the earliest of equals."""
    whole = [trial for trial in trials if trial.whole]
    return max(whole, key=lambda trial: trial.value) if whole else None
