"""Hyperparameter search: a study of trials that can be interrupted and resumed.

Optuna draws hyperparameters by TPE (Bergstra et al. 2011, Algorithms for Hyper-Parameter
Optimization) and prunes a trial below the median of earlier trials at the same stage. The sampler
is seeded for every trial by the number of finished trials, so that a resumed study gives the same
trials as an uninterrupted one.
"""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from agents.catalog import ALGORITHMS
from agents.sb3.comparison import mean_rewards
from agents.sb3.lanes import make_lanes
from agents.sb3.validation import VALIDATION_SEED
from crawl_envs.types.arguments import one_of
from scripts.reporting.options import PREFIX
from scripts.training.jobs import Job, Learning
from scripts.training.ranges import network_of, rounded, settings_of, suggested
from scripts.training.recipes import job_of
from scripts.training.requests import Request

STAGES = 4
"""Stages of a trial; after each it is validated, and may be pruned."""
STARTUP = 8
"""Number of random trials before TPE."""
STUDY = "crawl-envs"


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Arguments of a search, all plain values.

    Raises:
        ValueError: a value outside its range, an unknown algorithm, or arguments that the
            environment rejects.
    """

    algorithm: str
    env_id: str
    env_args: Mapping[str, Any]
    instance: Mapping[str, Any] | None
    steps: int
    """Steps of a trial, over all lanes."""
    episodes: int
    """Number of validation seeds."""
    seed: int
    train_pages: int | None = None
    """Pages in training; None for the recommended number."""

    def __post_init__(self) -> None:
        one_of("algorithm", self.algorithm, ALGORITHMS)
        for name, least in (("steps", STAGES), ("episodes", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)}")
        object.__setattr__(self, "env_id", self.env_id.removeprefix(PREFIX))
        make_lanes(self.job({"learning_rate": 0.1}, 1).environment, 1, training=False).close()

    def job(self, parameters: Mapping[str, Any], stage: int) -> Job:
        """Return the run of hyperparameters up to a stage."""
        options: dict[str, Any] = {"seed": self.seed, "steps": self.steps, "validation": 0}
        options["network"] = network_of(self.algorithm, self.env_id)
        if self.train_pages is not None:
            options["train_pages"] = self.train_pages
        request = Request(
            kind=self.algorithm,
            env_id=self.env_id,
            env_args=self.env_args,
            instance=self.instance,
            options=options,
            settings=settings_of(parameters, math.ceil(self.steps / STAGES)),
        )
        job = job_of(request)
        assert isinstance(job, Learning)
        return replace(job, until=math.ceil(self.steps * stage / STAGES))

    def score(self, parameters: Mapping[str, Any], stage: int, folder: Path) -> float:
        """Train up to a stage in a folder, resuming the stage before; return the mean reward.

        It is the reward of the best actions, over the validation seeds.
        """
        job = self.job(parameters, stage)
        job.run(folder, progress=False)
        rewards = mean_rewards(
            job.load(folder), job.environment, episodes=self.episodes, seed=VALIDATION_SEED
        )
        return float(rewards.mean())


class Ended(NamedTuple):
    """A finished trial: ``value`` is its last mean reward, or NaN."""

    number: int
    value: float
    stages: int
    parameters: dict[str, Any]

    @property
    def whole(self) -> bool:
        """Whether it completed all stages."""
        return self.stages == STAGES


class Study:
    """A study of trials in a SQLite file.

    Args:
        tuning: arguments of the search.
        storage: path of the file, created if missing.
        fresh: whether to discard an existing study; otherwise it goes on.

    Raises:
        ValueError: Optuna is missing; the file has a study of other arguments, or is no such file.
    """

    def __init__(self, tuning: Tuning, storage: Path, *, fresh: bool = False) -> None:
        self.optuna, self.tuning = _optuna(), tuning
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        _check_storage(storage)
        if fresh:
            storage.unlink(missing_ok=True)
        try:
            self.storage = self.optuna.storages.RDBStorage(f"sqlite:///{storage.resolve()}")
            self.study = self.optuna.create_study(
                storage=self.storage,
                study_name=STUDY,
                direction="maximize",
                load_if_exists=True,
                pruner=self.optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
            )
            stored = self.study.user_attrs
        except Exception as error:  # many kinds, from SQLAlchemy
            first = str(error).splitlines()[0]
            raise ValueError(f"storage {storage} cannot be used: {first}") from None
        for name, value in vars(tuning).items():
            if name in stored and stored[name] != value:
                self.close()
                raise ValueError(
                    f"{name} must be {stored[name]!r} as in {storage}, got {value!r}; name another "
                    "--out, or start anew with --fresh"
                )
            self.study.set_user_attr(name, value)

    def ended(self) -> list[Ended]:
        """Return the finished trials in order, without interrupted ones."""
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
        """Run trials until ``count`` have finished; yield each new one."""
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
            parameters = rounded(suggested(trial, self.tuning.algorithm))
            with tempfile.TemporaryDirectory() as folder:
                for stage in range(1, STAGES + 1):
                    value = self._value(parameters, stage, Path(folder))
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

    def _value(self, parameters: Mapping[str, Any], stage: int, folder: Path) -> float:
        """Return the score of a stage, NaN if the weights of the network diverge."""
        try:
            return self.tuning.score(parameters, stage, folder)
        except ValueError as error:
            if "nan" in str(error).lower():
                return math.nan
            raise

    def importances(self) -> dict[str, float]:
        """Return the share of the variance explained by each hyperparameter, by Optuna's fANOVA.

        It is empty with too few complete trials.
        """
        whole = [trial for trial in self.ended() if trial.whole]
        if len(whole) < STARTUP or len({trial.value for trial in whole}) < 2:
            return {}
        evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=self.tuning.seed)
        return dict(self.optuna.importance.get_param_importances(self.study, evaluator=evaluator))

    def close(self) -> None:
        """Close the file."""
        self.storage.remove_session()
        self.storage.engine.dispose()


def _check_storage(path: Path) -> None:
    """Raise ValueError if a file is there that is not of studies; it is not changed."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            tables = {name for (name,) in file.execute("select name from sqlite_master")}
    except sqlite3.Error as error:
        raise ValueError(f"storage {path} cannot be used: {error}") from None
    if tables and "studies" not in tables:
        raise ValueError(f"storage {path} cannot be used: it is no file of studies")


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError(
            "tuning needs the package optuna: pip install 'crawl-envs[tune]'"
        ) from None
    return optuna


def best_of(trials: list[Ended]) -> Ended | None:
    """Return the best complete trial, the earliest if tied."""
    whole = [trial for trial in trials if trial.whole]
    return max(whole, key=lambda trial: trial.value) if whole else None
