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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from agents.sb3 import hyperparameters
from agents.sb3.algorithms import OFF_POLICY, algorithm_class, rules_of
from agents.sb3.arguments import FALLING
from agents.sb3.comparison import mean_rewards
from agents.sb3.validation import VALIDATION_SEED
from crawl_envs.types.arguments import whole
from scripts.cli.options import PREFIX, named_values, read_instance, without_none
from scripts.training.jobs import Job, job_of
from scripts.training.options import TuneOptions
from scripts.training.requests import PAGES, Request, import_user_classes

STAGES = 4
"""Stages of a trial; after each it is validated, and may be pruned."""
STARTUP = 8
"""Number of trials with random hyperparameters before TPE draws them."""
STUDY = "crawl-envs"
WITH_MINIBATCHES = ("maskableppo", "ppo", "recurrentppo")


def suggested(trial: Any, algorithm: str) -> dict[str, Any]:
    """Draw the hyperparameters of one of Optuna's trials; return them by name, with three digits.

    A user class has the hyperparameters of the algorithm whose rules it follows.
    """
    algorithm, drawn = rules_of(algorithm), dict[str, Any]()

    def within(name: str, low: float, high: float, log: bool = True) -> None:
        drawn[name] = rounded(trial.suggest_float(name, low, high, log=log))

    def among(name: str, *values: float) -> None:
        drawn[name] = trial.suggest_categorical(name, values)

    within("learning_rate", 1e-4, 1e-2)
    among("gamma", 0.8, 0.9, 0.95, 0.98, 0.99)
    among("lanes", 16, 32, 64, 128)
    among("width", 16, 32, 64)
    if algorithm in OFF_POLICY:
        among("batch_size", 64, 128, 256, 512)
        among("gradient_steps", 2, 4, 8, 16)
    else:
        among("rollout", *((4, 8) if algorithm == "a2c" else (16, 32, 64, 128)))
    if algorithm == "dqn":
        within("exploration_fraction", 0.05, 0.5, log=False)
    if algorithm in (*WITH_MINIBATCHES, "a2c"):
        within("ent_coef", 1e-5, 0.03)
    if algorithm in WITH_MINIBATCHES:
        among("minibatches", 1, 2, 4, 8)
        among("n_epochs", 1, 2, 4, 8)
    return drawn


def rounded(value: Any) -> Any:
    """Round a float hyperparameter to three significant digits; return other values as they are."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def settings_of(parameters: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return a trial's hyperparameters as settings of a run, with a batch size for minibatches.

    Args:
        parameters: hyperparameters of a trial.
        steps: length of the trial, over all lanes; a rollout is no longer than a stage.
    """
    settings = {**parameters, "learning_rate": f"{FALLING}{parameters['learning_rate']}"}
    if "rollout" in settings:
        max_rollout = math.ceil(steps / STAGES) // settings["lanes"]
        settings["rollout"] = max(min(settings["rollout"], max_rollout), 2)
    if "minibatches" in settings:
        size, count = settings["lanes"] * settings["rollout"], settings.pop("minibatches")
        settings["batch_size"] = size // count if size % count == 0 else size
    return settings


class Tuning(NamedTuple):
    """A search: its trials' request without hyperparameters, and number of validation seeds."""

    request: Request
    episodes: int

    def described(self) -> dict[str, Any]:
        """Return everything that determines the trials, as plain values."""
        of_run = self.request.options
        return {
            "algorithm": self.request.kind,
            **{name: getattr(self.request, name) for name in ("env_id", "env_args", "instance")},
            **{name: of_run.get(name) for name in ("steps", "seed", "train_pages")},
            "episodes": self.episodes,
        }

    def job(self, parameters: Mapping[str, Any]) -> Job:
        """Return the training run with given hyperparameters."""
        settings = PAGES | settings_of(parameters, self.request.options["steps"])
        return job_of(replace(self.request, settings=settings))

    def score(self, parameters: Mapping[str, Any], stage: int, folder: Path) -> float:
        """Train up to a stage in a folder, resuming the previous stage; return the mean reward.

        The reward is that of the best actions, over the validation seeds.
        """
        job, steps = self.job(parameters), self.request.options["steps"]
        job.run(folder, progress=False, until=math.ceil(steps * stage / STAGES))
        rewards = mean_rewards(
            job.load(folder), job.environment, episodes=self.episodes, seed=VALIDATION_SEED
        )
        return float(rewards.mean())


def tuning_of(options: TuneOptions) -> Tuning:
    """Return the search that the options of a command ask for.

    Raises:
        ValueError: a value outside its range, an unknown algorithm, or arguments that the
            environment rejects.
    """
    if options.algorithm is None or options.env_id is None:
        raise ValueError("ALGORITHM and ENV_ID must be given")
    kind, env_id = options.algorithm, options.env_id.removeprefix(PREFIX)
    import_user_classes(kind, {})
    algorithm_class(kind)
    for name, minimum in (("steps", STAGES), ("episodes", 1), ("seed", 0)):
        whole(name, getattr(options, name), minimum)
    network = hyperparameters.network(kind)
    of_run = {"seed": options.seed, "steps": options.steps, "validation": 0, "network": network}
    request = Request(
        kind=kind,
        env_id=env_id,
        env_args=named_values(options.env_arg or []),
        instance=read_instance(options.instance),
        options=without_none({**of_run, "train_pages": options.train_pages}),
    )
    tuning = Tuning(request, options.episodes)
    tuning.job({"learning_rate": 0.1}).check(None)
    return tuning


class Ended(NamedTuple):
    """A finished trial; ``value`` is the last mean reward that was measured, or NaN."""

    number: int
    value: float
    stages: int
    parameters: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether the trial completed all stages."""
        return self.stages == STAGES


@contextmanager
def open_study(tuning: Tuning, storage: Path, *, fresh: bool = False) -> Iterator[Any]:
    """Open the study of a search in a SQLite file, created if missing.

    Args:
        tuning: arguments of the search.
        storage: path of the file.
        fresh: whether to discard an existing study; False resumes it.

    Raises:
        ValueError: Optuna is missing, or the file has a study with other arguments or no study.
    """
    try:
        import optuna
    except ImportError:
        needed = "pip install 'crawl-envs[tune]'"
        raise ValueError(f"tuning needs the package optuna: {needed}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _check_storage(storage)
    if fresh:
        storage.unlink(missing_ok=True)
    try:
        file = optuna.storages.RDBStorage(f"sqlite:///{storage.resolve()}")
        pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1)
        study = optuna.create_study(
            storage=file, study_name=STUDY, direction="maximize", load_if_exists=True, pruner=pruner
        )
        stored = study.user_attrs
    except Exception as error:  # many kinds, from SQLAlchemy
        first = str(error).splitlines()[0]
        raise ValueError(f"storage {storage} cannot be used: {first}") from None
    try:
        for name, value in tuning.described().items():
            if stored.get(name, value) != value:
                raise ValueError(
                    f"{name} must be {stored[name]!r} as in {storage}, got {value!r}; name another "
                    "--out, or start over with --fresh"
                )
            study.set_user_attr(name, value)
        yield study
    finally:
        file.remove_session()
        file.engine.dispose()


def _check_storage(path: Path) -> None:
    """Raise ValueError if ``path`` exists and is no file of studies; leave it unchanged."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            tables = {name for (name,) in file.execute("select name from sqlite_master")}
    except sqlite3.Error as error:
        raise ValueError(f"storage {path} cannot be used: {error}") from None
    if tables and "studies" not in tables:
        raise ValueError(f"storage must be a file of studies, got {path} with other tables")


def run(study: Any, tuning: Tuning, count: int) -> Iterator[list[Ended]]:
    """Run trials until ``count`` have finished; yield the list of finished trials after each.

    The first list has trials of earlier runs. Lists are in order, without interrupted trials.
    """
    from optuna.samplers import TPESampler

    yield (ended := _ended(study))
    for number in range(len(ended), count):
        state = np.random.SeedSequence([tuning.request.options["seed"], number]).generate_state(1)
        study.sampler = TPESampler(n_startup_trials=STARTUP, seed=int(state[0]))
        study.optimize(partial(_objective, tuning), n_trials=1)
        yield _ended(study)


def _ended(study: Any) -> list[Ended]:
    trials = study.get_trials(deepcopy=False)
    finished = [trial for trial in trials if trial.state.name in ("COMPLETE", "PRUNED")]
    return [
        Ended(
            number,
            math.nan if trial.value is None else trial.value,
            len(trial.intermediate_values),
            {name: rounded(value) for name, value in trial.params.items()},
        )
        for number, trial in enumerate(finished)
    ]


def _objective(tuning: Tuning, trial: Any) -> float:
    """Run one trial and return the score of its last stage; prune it if its weights diverge."""
    from optuna import TrialPruned

    parameters, value = suggested(trial, tuning.request.kind), math.nan
    with tempfile.TemporaryDirectory() as folder:
        for stage in range(1, STAGES + 1):
            try:
                value = tuning.score(parameters, stage, Path(folder))
            except ValueError as error:
                if "nan" not in str(error).lower():
                    raise
                raise TrialPruned from None
            trial.report(value, stage)
            if stage < STAGES and trial.should_prune():
                raise TrialPruned
    return value


def best_of(trials: Sequence[Ended]) -> Ended | None:
    """Return the complete trial with the largest mean reward, the earliest if tied, or None."""
    complete = [trial for trial in trials if trial.complete]
    return max(complete, key=lambda trial: trial.value) if complete else None


def importances_of(study: Any, trials: Sequence[Ended]) -> dict[str, float]:
    """Return the share of the variance explained by each hyperparameter, by Optuna's fANOVA.

    The result is empty with too few complete trials.
    """
    values = [trial.value for trial in trials if trial.complete]
    if len(values) < STARTUP or len({*values}) < 2:
        return {}
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    return dict(
        get_param_importances(
            study, evaluator=FanovaImportanceEvaluator(seed=study.user_attrs["seed"])
        )
    )
