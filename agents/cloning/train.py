"""Train a network to imitate an analytic policy, before it learns from rewards.

The network maximises the log-likelihood of the teacher's actions: cross-entropy for a page,
Plackett and Luce's likelihood for the top pages in order. In the first round the teacher acts.
Later the student acts and the teacher labels its states (DAgger: Ross, Gordon and Bagnell 2011),
since a clone that errs reaches states that its teacher never does. The student learns from the
examples of all rounds together, and the critic from their returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import policies
from agents.progress import ProgressBar
from agents.runs import CONFIG, RunArguments, append_row, replace_text, write_rows
from agents.sb3.arguments import TrainArguments, step_size
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.lanes import make_lanes, pin
from agents.sb3.loading import MODEL, Agent, load
from agents.sb3.model_file import read_arguments, save_model
from agents.sb3.torch_threads import threads
from agents.sb3.training import can_resume, fresh_model, make_folder
from crawl_envs.spaces.actions import SLOT_FORMS
from crawl_envs.system.files import claiming
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of, whole

CLONE, ROUNDS = "clone.json", "rounds.csv"
ACTOR_CRITICS = ("a2c", "maskableppo", "ppo")
LAST_STEP_SHARE = 0.02
"""Share of the first step size to which the step size falls linearly."""
VALUE_WEIGHT = 0.5
"""Weight of the critic's squared error, in units of the deviation of returns."""


@dataclass(frozen=True, kw_only=True)
class CloneArguments(RunArguments):
    """Arguments of cloning, as plain JSON values.

    Raises:
        ValueError: a value outside its range.
    """

    teacher: str = "GreedyNCIS"
    """Name of a policy, or module:Class, for :func:`policies.make`."""
    rounds: int = 8
    """Episodes per lane, with updates after each."""
    every: int = 4
    """Decisions per example. When the student acts, the teacher sees the decisions of examples
    only; a teacher that must see every decision (with a delay window, say) needs 1."""
    updates: int = 800
    """Steps of the optimiser per round."""
    minibatch: int = 256
    """Decisions per step of the optimiser."""

    def __post_init__(self) -> None:
        if not (isinstance(self.teacher, str) and ":" in self.teacher):
            one_of("teacher", self.teacher, policies.names(fragments=True), "module:Class")
        policies.find(self.teacher)
        for name in ("rounds", "every", "updates", "minibatch"):
            whole(name, getattr(self, name), 1)


class Round(NamedTuple):
    """Measurements of a round.

    ``agreement`` is the share of this round's examples, before learning from them, in which the
    student's best action was the teacher's. ``loss`` is the mean of the last tenth of the updates,
    ``mean_reward`` that per step of the acting policy, ``seconds`` the wall time so far.
    """

    number: int
    agreement: float
    loss: float
    mean_reward: float
    seconds: float


@claiming()
def clone(
    arguments: TrainArguments,
    clone_arguments: CloneArguments,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = False,
) -> Agent:
    """Clone a policy, and write the clone to a folder that ``TrainArguments.start`` can name.

    The folder gets ``config.json`` as in a training run, ``clone.json``, ``rounds.csv``, and at the
    end ``model.zip``.

    Args:
        arguments: the environment, algorithm and network; ``steps`` and ``rollout`` are not used.
            The algorithm must have an actor and a critic: a2c, maskableppo or ppo.
        clone_arguments: the teacher, and how to clone it.
        out: the folder, created if necessary.
        resume: return the clone in ``out``, if it has the same arguments.
        progress: show a progress bar on standard error.

    Raises:
        ValueError: inconsistent arguments; a teacher that cannot act in the environment; ``out``
            has an agent and ``resume`` is False, or the agent of another run.
        OSError: ``out`` cannot be written.
    """
    out = Path(out)
    one_of("algorithm of a clone", arguments.algorithm, ACTOR_CRITICS)
    if arguments.belief:
        raise ValueError("belief must be False for a clone, got True")
    if can_resume(out, resume):
        return _finished(out, arguments, clone_arguments)
    env = make_lanes(arguments, arguments.lanes, training=True)
    one_of("action of a clone", env.action_form, SLOT_FORMS)
    teacher = policies.make(clone_arguments.teacher, env)
    make_folder(out)
    replace_text(out / CONFIG, arguments.to_json())
    replace_text(out / CLONE, clone_arguments.to_json())
    write_rows(out / ROUNDS, Round, ())
    with threads(arguments.threads):
        run = _Cloning(fresh_model(env, arguments), env, teacher, arguments, clone_arguments)
        run.go(out / ROUNDS, progress)
        save_model(run.model, arguments, out / MODEL)
    return Agent(run.model, arguments)


def _finished(out: Path, arguments: TrainArguments, clone_arguments: CloneArguments) -> Agent:
    """Return the finished clone in a folder; ValueError if its arguments differ."""
    if not (out / CLONE).exists():
        raise ValueError(f"{out} holds an agent that is no clone; name another folder")
    arguments.check_resumes(read_arguments(out / MODEL))
    clone_arguments.check_resumes(CloneArguments.from_json((out / CLONE).read_text()))
    return load(out / MODEL)


@dataclass(eq=False)
class _Cloning:
    """A run of cloning, round by round.

    ``examples`` are observations (n, m, F), the teacher's actions (n, ...) and discounted returns
    (n,), in the scale of rewards of the first round, as in training from rewards.
    """

    model: Any
    env: CrawlVecEnv
    teacher: Policy
    arguments: TrainArguments
    clone_arguments: CloneArguments
    examples: tuple[NDArray[Any], ...] = ()

    def go(self, curve: Path, progress: bool) -> None:
        """Run all rounds, in each of which the agent acts and then learns; write the curve."""
        started = time.perf_counter()
        with ProgressBar("{task.fields[text]}", visible=progress) as bar:
            total = self.clone_arguments.rounds * (1 + self.clone_arguments.updates)
            task = bar.add_task("cloning", total=total, text="")
            for number in range(self.clone_arguments.rounds):
                agreement, mean_reward = self._play(number)
                text = f"round {number + 1}, agreement {agreement:.3f}, reward {mean_reward:.4f}"
                bar.update(task, advance=1, text=text)
                loss = self._learn(number, lambda: bar.advance(task))
                seconds = time.perf_counter() - started
                append_row(curve, Round(number, agreement, loss, mean_reward, seconds))

    def _seed(self, number: int, part: int) -> int:
        """Return the random seed of a part (0: acting, 1: learning) of round ``number``."""
        entropy = np.random.SeedSequence([self.arguments.seed, number, part])
        return int(entropy.generate_state(1)[0] >> 1)

    def _play(self, number: int) -> tuple[float, float]:
        """Act for an episode in all lanes; return the agreement and the mean reward."""
        env, every = self.env, self.clone_arguments.every
        player = self.model if number > 0 else self.teacher
        env.seed(self._seed(number, 0))
        pin(env, self.arguments)
        observations, done = env.reset(), np.zeros(env.num_envs, np.bool_)
        inputs, labels, steps, agreed = [], [], [], []
        rewards: list[NDArray[np.float32]] = []
        while not done.any():
            action, _ = player.predict(observations, deterministic=True)
            if len(rewards) % every == number % every:
                observer = self.teacher if number > 0 else self.model
                second, _ = observer.predict(observations, deterministic=True)
                inputs.append(np.ascontiguousarray(observations))
                labels.append(second if number > 0 else action)
                steps.append(len(rewards))
                agreed.append((second == action).reshape(env.num_envs, -1).all(1).mean())
            observations, reward, done, _ = env.step(action)
            rewards.append(reward)
        by_step = np.array(rewards)
        gamma, scale, sums = self.arguments.gamma, self.model.reward_scale, np.zeros(env.num_envs)
        for step in rewards if number == 0 else ():
            _, sums = scale.learn(step, sums, gamma)
        targets = returns(scale.scaled(by_step), gamma)[steps]
        new = np.concatenate(inputs), np.concatenate(labels), targets.reshape(-1)
        earlier = self.examples or tuple(column[:0] for column in new)
        self.examples = tuple(map(np.concatenate, zip(earlier, new, strict=True)))
        return float(np.mean(agreed)), float(by_step.mean())

    def _learn(self, number: int, tick: Callable[[], None]) -> float:
        """Learn from all examples so far; return the actor's loss at the end."""
        rng, policy = np.random.default_rng(self._seed(number, 1)), self.model.policy
        policy.set_training_mode(True)
        updates, losses = self.clone_arguments.updates, []
        size, _ = step_size(self.arguments.learning_rate)
        for update in range(updates):
            done = (number * updates + update) / (self.clone_arguments.rounds * updates)
            for group in policy.optimizer.param_groups:
                group["lr"] = size * (1.0 - (1.0 - LAST_STEP_SHARE) * done)
            drawn = rng.integers(len(self.examples[-1]), size=self.clone_arguments.minibatch)
            batch = (torch.from_numpy(column[drawn]) for column in self.examples)
            observations, actions, targets = batch
            values, log_prob, _ = policy.evaluate_actions(observations, actions)
            error = values.flatten() - targets
            policy.optimizer.zero_grad()
            (VALUE_WEIGHT * error.square().mean() - log_prob.mean()).backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), self.model.max_grad_norm)
            policy.optimizer.step()
            losses.append(-float(log_prob.detach().mean()))
            tick()
        policy.set_training_mode(False)
        return float(np.mean(losses[-max(1, updates // 10) :]))


def returns(rewards: NDArray[Any], gamma: float) -> NDArray[np.float32]:
    """Return the discounted sums of rewards from each step on, (steps, N).

    After the last step, the mean reward of the last 1 / (1 - gamma) steps is assumed.

    Args:
        rewards: (steps, N).
        gamma: the discount, in [0, 1).
    """
    reach = min(len(rewards), int(np.ceil(1.0 / (1.0 - gamma))))
    following = rewards[-reach:].astype(np.float64).mean(0) / (1.0 - gamma)
    sums = np.empty(rewards.shape)
    for step in range(len(rewards) - 1, -1, -1):
        following = sums[step] = rewards[step] + gamma * following
    return sums.astype(np.float32)
