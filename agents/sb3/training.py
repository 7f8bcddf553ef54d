"""Train agents, and write folders that :func:`agents.load` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback, EveryNTimesteps
from stable_baselines3.common.vec_env import VecMonitor

from agents.runs import CONFIG, CURVE, replace_text
from agents.sb3.arguments import TrainArguments, step_size
from agents.sb3.belief_columns import COLUMNS, BeliefColumns
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.building import ModelTraits, build_model
from agents.sb3.curve import CurveCallback, rollout_steps
from agents.sb3.lanes import cycle_of, first_problem, make_lanes, pin
from agents.sb3.loading import MODEL, Agent, start_from
from agents.sb3.model_file import load_model, read_arguments, save_model
from agents.sb3.scaled_rewards import ScaledRewards
from agents.sb3.torch_threads import threads
from agents.sb3.validation import VALIDATION, ValidationCallback
from crawl_envs.system.files import claim, claiming


@claiming()
def train(
    arguments: TrainArguments,
    out: str | Path,
    *,
    resume: bool = False,
    until: int | None = None,
    progress: bool = False,
    beside: str = "",
    tensorboard: bool = False,
    validation: int = 0,
    callbacks: Sequence[BaseCallback] = (),
) -> Agent:
    """Train an agent, and write it to a folder.

    The folder gets ``model.zip``, ``config.json`` (the arguments) and ``curve.csv`` (steps, mean
    reward per step, wall seconds). The model is saved every ``checkpoint_steps`` and at the end,
    also on an interrupt. Files are replaced atomically, and curve rows are written immediately.

    A resumed run continues from the saved model, its optimiser, step count and scale of rewards.
    Episodes restart with seeds from the run's seed and the step count, and DQN and SAC refill their
    replay buffers. So it differs from an uninterrupted run, but it is reproducible.

    Args:
        arguments: arguments of the run.
        out: the folder, created if necessary.
        resume: continue the run in ``out``, if it has a saved model.
        until: number of steps after which to stop, to resume later; None: ``arguments.steps``.
        progress: show a progress bar on standard error.
        beside: text after the mean reward in the bar, for example a level to reach.
        tensorboard: also write the logs of Stable-Baselines3 to ``tensorboard`` in the folder.
        validation: episodes of each of about 20 validations on held-out seeds
            (``validation.csv``); 0 for no validation.
        callbacks: further callbacks of Stable-Baselines3.

    Returns:
        The agent.

    Raises:
        ValueError: inconsistent arguments; ``out`` has an agent and ``resume`` is False, or an
            agent of another run; another process writes to ``out``.
        OSError: ``out`` cannot be written.
    """
    out, until = Path(out), arguments.steps if until is None else until
    path = out / MODEL
    resuming = can_resume(out, resume)
    if resuming:
        arguments.check_resumes(read_arguments(path))
    env = make_lanes(arguments, arguments.lanes, training=True)
    make_folder(out)
    with threads(arguments.threads):
        model = _resumed(path, env, arguments) if resuming else fresh_model(env, arguments)
        replace_text(out / CONFIG, arguments.to_json())
        model.tensorboard_log = str(out / "tensorboard") if tensorboard else None
        every = max(1, arguments.steps // arguments.curve_rows)
        curve = CurveCallback(out / CURVE, every, until, progress=progress, beside=beside)
        save = partial(save_model, model, arguments, path)
        saving = ConvertCallback(lambda *_: save() is None)
        saves = EveryNTimesteps(arguments.checkpoint_steps, saving)
        validations = [ValidationCallback(out / VALIDATION, arguments, validation)]
        every_step = [curve, saves, *callbacks, *validations[: validation > 0]]
        size, falls = step_size(arguments.learning_rate)
        if falls:
            part, last = until / arguments.steps, rollout_steps(model) / arguments.steps
            model.lr_schedule = partial(falling, size, part, last)
        remaining = until - model.num_timesteps
        try:
            if remaining > 0:
                model.learn(remaining, callback=every_step, reset_num_timesteps=False)
                save()
        except KeyboardInterrupt:
            save()
            raise
        finally:
            curve.finish()
    return Agent(model, arguments)


def can_resume(out: Path, resume: bool) -> bool:
    """Return whether a folder has an agent to resume; ValueError if ``resume`` is False."""
    exists = (out / MODEL).exists()
    if exists and not resume:
        raise ValueError(f"{out} holds an agent already; resume it, or name another folder")
    return exists


def make_folder(out: Path) -> None:
    """Make a folder, claim it, and check that it is writable before any work."""
    out.mkdir(parents=True, exist_ok=True)
    trial = out / ".writable.partial"
    trial.touch()
    trial.unlink()
    claim(out)


def fresh_model(env: CrawlVecEnv, arguments: TrainArguments) -> BaseAlgorithm:
    """Build an untrained model, or one with the weights of the agent ``arguments.start``.

    Raises:
        ValueError: the weights of this agent do not fit.
    """
    env.seed(arguments.seed)
    traits = ModelTraits.read(env, cycle_of(first_problem(env)))
    pin(env, arguments)
    if arguments.belief:
        traits = replace(traits, features=(*traits.features, *COLUMNS))
    model = build_model(arguments, traits, _scaled(env, arguments))
    if arguments.start is not None:
        start_from(model, arguments.start)
    return model


def _scaled(env: CrawlVecEnv, arguments: TrainArguments) -> ScaledRewards:
    venv = VecMonitor(env)
    return ScaledRewards(BeliefColumns(venv) if arguments.belief else venv, arguments.gamma)


def _resumed(path: Path, env: CrawlVecEnv, arguments: TrainArguments) -> BaseAlgorithm:
    """Load a model to continue training, in new episodes."""
    model, _ = load_model(path, _scaled(env, arguments))
    entropy = np.random.SeedSequence([arguments.seed, model.num_timesteps])
    model.set_random_seed(int(entropy.generate_state(1)[0] >> 1))
    return model


def falling(size: float, part: float, last: float, remaining: float) -> float:
    """Return a step size that falls from ``size`` to 0 at the end of a run.

    The present call trains the first share ``part`` of the run, of which the share ``remaining``
    remains. A rollout is the share ``last`` of the run. An update has the step size of the start of
    its rollout, so a run of one update learns, too.
    """
    return size * min(max(1.0 - (1.0 - remaining) * part + last, 0.0), 1.0)
