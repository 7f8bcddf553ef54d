"""Find policies and agents by name, and check whether they can act in an environment.

All commands read these names:

* ``Name`` or ``Name:key=value``: a registered policy, with arguments;
* ``module:Class`` or ``module:Class:key=value``: a policy of the user;
* a folder with the file of an agent, or the name of a shipped agent. A folder may have several
  trainings of the agent, in ``seed-0``, ``seed-1`` and so on.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import reprlib
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import agents
import policies
from agents import catalog
from agents.runs import read_object
from crawl_envs.evaluation import PolicyFactory
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import CompilablePolicy
from scripts.cli.options import PREFIX, plain_value
from scripts.study.settings import env_with
from scripts.study.specs import spec

OF_FRAGMENTS, NAIVE = "CrawlLongevity-v0", "CurrentDivergence"
"""The environment of pages with fragments, and a policy there that is compared on request."""
ON_FRAGMENTS = (
    "RoundRobin",
    *(name for name in policies.names(family="fragments", oracle=False) if name != NAIVE),
)
"""Policies that are compared by default on pages with fragments."""
SIMPLE = ("RandomCrawl", "RoundRobin")
"""Policies without parameters, which any agent should beat."""
DEFAULT_POLICIES = (
    *(*SIMPLE, "LambdaCrawl", "Greedy", "GreedyCIS", "GreedyNCIS"),
    *("GreedyHarmonic", "LearningGreedyNCIS", "LambdaLearnAndCrawl"),
)
"""Default policies to compare with, if they can act in the environment."""


class Candidate(NamedTuple):
    """An agent or policy to evaluate.

    Attributes:
        label: name in rows and tables.
        factory: function of an environment that returns the policy.
        env_id: id of the training environment; empty if unknown.
        env_args: arguments of the training environment.
        learned: True for agents in folders, which run with one thread of torch.
        training_seconds: processor time of all trainings, NaN if unknown, 0 for analytic policies.
        trainings: folders of the trainings; none for policies.
        by_task: factories of an agent that is trained for each task, by task; None for others.
    """

    label: str
    factory: PolicyFactory
    env_id: str = ""
    env_args: Mapping[str, Any] = {}
    learned: bool = False
    training_seconds: float = 0.0
    trainings: tuple[Path, ...] = ()
    by_task: Mapping[str, PolicyFactory] | None = None

    @property
    def digest(self) -> str:
        """Hash of the file of an agent or of a user's policy; empty for registered policies."""
        return str(getattr(self.factory, "keywords", {}).get("file_digest", ""))

    def in_task(self, task: str) -> Candidate | None:
        """Return the candidate that plays a task; None if it was trained for other tasks only."""
        if self.by_task is None:
            return self
        return self._replace(factory=self.by_task[task]) if task in self.by_task else None


class UserCodeError(ValueError):
    """An error in code of the user; its traceback was printed."""


def candidate_of(name: str | Path) -> Candidate:
    """Return the agent or policy that a name stands for; ValueError if it is not valid."""
    text = str(name)
    folder = catalog.folder_of(text)
    if trainings := catalog.trainings(folder):
        label, shipped = folder.resolve().name, text in agents.names()
        return Candidate(
            f"agent {label}" if label in policies.names(fragments=True) else label,
            agent_factory(text if shipped else str(folder), trainings),
            *_trained_on(agents.agent_file(folder)),
            learned=not shipped,
            training_seconds=training_seconds(folder, trainings),
            trainings=trainings,
        )
    if not is_policy(text):
        names = (*policies.names(fragments=True), *agents.names())
        files = f"{' or '.join(catalog.AGENT_FILES)} in it, or in each of its {catalog.RUNS}"
        also = f"a folder with {files}, or module:Class"
        one_of("policy or agent", text, names, also)
    policy, pairs = _parts(text)
    kind = policies.find(policy)
    arguments = dict(_argument(text, pair) for pair in pairs)
    if ":" not in policy:
        return Candidate(text, partial(policies.make, policy, **arguments))
    digest = hash_of(Path(inspect.getfile(kind)).read_bytes())
    return Candidate(text, partial(user_policy, policy, file_digest=digest, arguments=arguments))


def candidates_of(names: Iterable[str]) -> dict[str, Candidate]:
    """Return a candidate by label for each name, in this order; ValueError for equal labels."""
    candidates: dict[str, Candidate] = {}
    for name in dict.fromkeys(names):
        candidate = candidate_of(name)
        if candidate.label in candidates:
            raise ValueError(f"entrants must have different names, got {candidate.label!r} twice")
        candidates[candidate.label] = candidate
    return candidates


def per_task(
    label: str,
    folders: Mapping[str, Path],
    make: Callable[[str, Sequence[Path]], PolicyFactory],
) -> Candidate:
    """Return the agent that plays each task by the trainings in a folder of its own.

    Args:
        label: name of the agent.
        folders: folders by task.
        make: function of a folder and its trainings that returns a factory of the agent there.
    """
    runs = {task: catalog.trainings(folder) for task, folder in folders.items()}
    factories = {task: make(str(folder), runs[task]) for task, folder in folders.items()}
    return Candidate(
        label,
        next(iter(factories.values())),
        learned=True,
        training_seconds=sum(training_seconds(folders[task], runs[task]) for task in runs),
        trainings=tuple(run for group in runs.values() for run in group),
        by_task=factories,
    )


def entered(candidates: Mapping[str, Candidate]) -> dict[str, Any]:
    """Return arguments of :class:`scripts.study.settings.Setting` that enter the candidates."""
    return {
        "policies": {label: candidate.factory for label, candidate in candidates.items()},
        "learned": tuple(label for label, candidate in candidates.items() if candidate.learned),
        "budget_share": True,
    }


def is_user_policy(name: str) -> bool:
    """Return whether a name stands for a policy of the user, ``module:Class``."""
    return ":" in _parts(name)[0]


def is_policy(name: str) -> bool:
    """Return whether a name stands for a registered policy or a policy of the user."""
    return is_user_policy(name) or _parts(name)[0] in policies.names(fragments=True)


def is_oracle(label: str) -> bool:
    """Return whether the policy with this label reads the hidden state of the environment."""
    name, _ = _parts(label)
    if ":" in name:
        with suppress(ValueError):  # a label of something else
            return bool(getattr(policies.find(name), "oracle", False))
    return name in policies.names(fragments=True, oracle=True)


def _parts(name: str) -> tuple[str, list[str]]:
    """Split ``Name:key=value:...`` into the policy's name and a list of ``key=value`` texts."""
    policy, *rest = name.split(":")
    if rest and "=" not in rest[0] and policy not in policies.names(fragments=True):
        return f"{policy}:{rest[0]}", rest[1:]
    return policy, rest


def _argument(name: str, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key.isidentifier() and equals and value):
        raise ValueError(f"policy must be Name or Name:key=value, got {name!r}")
    return key, plain_value(value)


def hash_of(content: bytes) -> str:
    """Return the hash of the contents of files that identifies rows."""
    return hashlib.sha256(content).hexdigest()[:16]


def agent_factory(folder: str, trainings: Sequence[Path]) -> PolicyFactory:
    """Return a factory of the agent in a folder, or of a shipped agent by its name."""
    digests = [hash_of(agents.agent_file(training).read_bytes()) for training in trainings]
    if len(trainings) == 1:
        return partial(loaded, folder, file_digest=digests[0])
    names = [training.name for training in trainings]
    return partial(loaded, folder, file_digest=hash_of("".join(digests).encode()), trainings=names)


def num_trainings(description: Mapping[str, Any]) -> int:
    """Return the number of trainings of a described factory; 0 unless it has several."""
    if "factory" in description:
        return num_trainings(description["factory"])
    count = len(description.get("trainings", ()))
    return count if count > 1 else 0


def groups_of(repetitions: Iterable[int], trainings: int) -> tuple[int, ...]:
    """Return the number of the training that plays each repetition; empty without trainings."""
    return tuple(int(number) % trainings for number in repetitions) if trainings else ()


def training_of(factory: Any, repetition: int) -> PolicyFactory:
    """Return a factory of the training that a repetition plays: number k mod T in repetition k."""
    keywords = getattr(factory, "keywords", {})
    if "factory" in keywords:  # of a task with a history or a promise
        return partial(factory, factory=training_of(keywords["factory"], repetition))
    count = num_trainings(keywords)
    return partial(factory, training=repetition % count) if count else factory


def training_seconds(folder: Path, trainings: Sequence[Path]) -> float:
    """Return the seconds of processor time that all trainings took, NaN if unknown."""
    run, shipped = folder / "provenance.json", folder / "score.json"
    origin = read_object(run) if run.exists() else {}
    if not origin and shipped.exists():
        origin = read_object(shipped)["made"]
    if not origin and len(trainings) > 1:
        return sum(training_seconds(training, ()) for training in trainings)
    return float(origin.get("processor_seconds", math.nan))


def _trained_on(file: Path) -> tuple[str, dict[str, Any]]:
    """Return the id and arguments of an agent's training environment; empty if unknown."""
    if file.name == "model.zip":
        from agents.sb3.model_file import read_arguments

        arguments = read_arguments(file)
        return arguments.env_id, dict(arguments.env_args)
    if file.name == "index.json":
        from agents.index import StoredIndex

        settings = StoredIndex.read(file.parent).made
        names = ("instance", "num_pages", "bandwidth", "horizon")
        return "CrawlNCIS-v0", {name: settings[name] for name in names if name in settings}
    config = file.with_name("config.json")
    match read_object(config) if config.exists() else {}:  # of the last stage, if several
        case {"env_id": str(env_id), "env_args": dict(env_args)} | {
            "stages": [*_, {"env_id": str(env_id), "env_args": dict(env_args)}]
        }:
            return env_id.removeprefix(PREFIX), env_args
    return "", {}


@spec("own-policy")
def user_policy(name: str, env: Any, *, file_digest: str, arguments: Mapping[str, Any]) -> Any:
    """Return a policy of the user for an environment; ``file_digest`` identifies its rows."""
    return policies.make(name, env, **arguments)


@spec("agent")
def loaded(
    folder: str,
    env: Any,
    *,
    file_digest: str = "",
    trainings: Sequence[str] = (),
    training: int = 0,
) -> Policy:
    """Load an agent for an environment, from a folder or by the name of a shipped agent.

    The folder or name, and ``file_digest``, a hash of the agent's files, identify its rows. Of
    several ``trainings``, subfolders, number ``training`` is loaded.
    """
    run = catalog.folder_of(folder) / trainings[training] if trainings else folder
    agent: Policy = agents.load(run, env)
    return agent


def try_choosing(env: gymnasium.Env[Any, Any], factory: PolicyFactory) -> None:
    """Let a policy choose and play its first action; raise ValueError if it cannot act.

    Many policies detect missing information only at this point. A TypeError says that ``predict``
    does not return an action of the environment and a state.
    """
    core: Any = env.unwrapped
    try:
        policy = factory(env)
    except TypeError as error:  # an unknown argument
        raise ValueError(str(error)) from error
    if core.action_form in ("page", "rates") and isinstance(policy, CompilablePolicy):
        policy.compile(core.problem, core.num_slots(), core.rng())
        return
    observation, _ = env.reset(seed=0)
    if learn := getattr(policy, "observe", None):
        learn(core.last_log())
    answer = policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise TypeError(f"predict must return an action and a state, got {reprlib.repr(answer)}")
    try:
        env.step(answer[0])
    except ValueError as error:
        text = f"an action in {env.action_space}, got {reprlib.repr(answer[0])}: {error}"
        raise TypeError(f"predict must return {text}") from error


def place_of(error: BaseException, factory: Any) -> str:
    """Return file and line of an error in a policy or agent of the user; empty for all others.

    It is the last line of the traceback in the folder of its module. Without such a line, it is
    the line of ``predict``.
    """
    factory = getattr(factory, "keywords", {}).get("factory", factory)  # inside another
    declared = getattr(getattr(factory, "func", None), "spec", {})
    if declared.get("spec") not in ("own-policy", "own-agent"):
        return ""
    module, _, name = factory.args[0].partition(":")
    kind = getattr(import_module(module), name)
    file = Path(inspect.getfile(kind))
    line = inspect.getsourcelines(vars(kind).get("predict", kind))[1]
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).parent == file.parent:
            file, line = Path(frame.filename), frame.lineno or line
    return f" ({file.name}, line {line})"


def failure(where: str, error: BaseException, factory: Any) -> Exception:
    """Return an error about a failed policy: ValueError if it is the user's, else RuntimeError."""
    if isinstance(error, UserCodeError):
        return error
    place = place_of(error, factory)
    kind = ValueError if place else RuntimeError
    return kind(f"{where} failed: {type(error).__name__}: {error}{place}")


def names_to_compare(env_id: str, specs: Sequence[str]) -> list[str]:
    """Return the names of the policies to compare with, the simple ones first.

    ``specs`` are names, ``all`` for all policies except oracles, or empty for the default ones.
    """
    fragments = env_id == OF_FRAGMENTS
    names = specs or [*DEFAULT_POLICIES, *(ON_FRAGMENTS if fragments else ())]
    if list(specs) == ["all"]:
        names = [name for name in policies.names(fragments=fragments) if not is_oracle(name)]
    return list(dict.fromkeys((*SIMPLE, *names)))


def applicable(
    candidates: Mapping[str, Candidate], env_id: str, env_args: Mapping[str, Any], task: str = ""
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """Return by label the candidates that can act in an environment, and reasons of the refused.

    Raises:
        ValueError: an argument is unknown to the environment or invalid, or a policy of the user
            raises anything except ValueError.
        RuntimeError: another policy does so. The message begins with ``task``.
    """
    env = env_with(env_id, env_args)
    env.reset(seed=0)
    able, refused = {}, {}
    for label, candidate in candidates.items():
        try:
            try_choosing(env, candidate.factory)
            able[label] = candidate
        except UserCodeError:
            raise
        except ValueError as error:
            refused[label] = f"{error}{place_of(error, candidate.factory)}"
        except (Exception, SystemExit) as error:
            raise failure(f"{task}{label} in {env_id}", error, candidate.factory) from error
    env.close()
    return able, refused
