"""Describe the entrants of a suite, and find the tasks in which each of them can act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import agents
import policies
from agents.catalog import CURVES, GENERALIST, PRIOR, SHIPPED, trainings
from agents.index.stored import INDEX
from agents.progress import tracked
from agents.runs import CONFIG, read_object
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.instances import traces
from policies.base import registry
from policies.base.promising import PromisingPolicy
from policies.ncis.belief import BeliefNCIS
from scripts.data.replays import past
from scripts.study.entrants import (
    Candidate,
    agent_factory,
    applicable,
    candidates_of,
    entered,
    num_trainings,
    per_task,
    training_of,
)
from scripts.study.settings import Setting
from scripts.study.specs import describe, spec
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_of
from scripts.suite.episodes import largest_age, least_served
from scripts.suite.tasks import (
    FIRST_DAY,
    FIRST_SEED,
    MEASURED,
    TRACE,
    WINDOW,
    WINDOWS,
    Task,
)

LEAST_SERVED, LARGEST_AGE = "least_served", "largest_age"
"""Metrics of an episode: mean freshness of the tenth of pages that are least fresh, in the task
``MEASURED``; largest age of any copy in units of m / R, in tasks with ``most_rounds``."""

TRAINED, COMPOSITE, YOURS = "trained agent", "composite", "yours"
KINDS: Mapping[str, str] = {
    **{kind: text for kind, text in registry.KINDS.items() if kind != "oracle"},
    TRAINED: "a network, trained before on pages and events that are not those of the tasks; after "
    "the colon: the method, and the training instances",
    COMPOSITE: "an agent of networks and formulas: networks, trained before, for the freshness of "
    "pages; formulas for the rest, where nothing was learned; after the colon as above",
}
"""The kinds of shipped entrants, and their descriptions."""
FIXED = ("formula", "baseline")
"""Kinds of entrants that learn nothing from crawls."""
METHODS = {
    "cloning": "Ross, Gordon and Bagnell 2011",
    "PPO": "Schulman et al. 2017",
}
"""Papers of the training methods, by method."""


class Entrant(NamedTuple):
    """The description of an entrant; fields that do not apply are empty.

    Attributes:
        kind: a key of ``KINDS``, or ``YOURS``.
        paper: short name and authors of its paper, or authors of its training method.
        page: page of the documentation on that paper, with its section.
        file: file of the repository with its code or configuration.
        by: training method of a trained agent.
        on: laws of its training instances; of the user's agents, what one agent is for.
        formula: how the entrant uses the formula that it is based on.
        command: the command that trained the agent, in backticks.
    """

    kind: str
    paper: str = ""
    page: str = ""
    file: str = ""
    by: str = ""
    on: str = ""
    formula: str = ""
    command: str = ""

    @property
    def words(self) -> str:
        """Kind of the entrant; for a trained agent also the method and the training instances."""
        if self.kind == YOURS:
            return ", ".join(filter(None, (self.by or YOURS, self.on)))
        kind = COMPOSITE if self.kind == COMPOSITE else "trained"
        return f"{kind}: {self.by}{self.on and f' on {self.on}'}" if self.by else self.kind


def entrant_of(label: str) -> Entrant:
    """Return the description of the entrant with a label; ValueError for a damaged file."""
    if label in agents.names():
        return trained_entrant(SHIPPED / label)
    if parts := [SHIPPED / name for name in agents.names() if name.startswith(f"{label}/")]:
        first, count = trained_entrant(parts[0]), len(trainings(parts[0]))
        origin = read_object(parts[0] / "score.json")["made"]
        by = f"{first.by} per task, {count} trainings"
        return first._replace(by=by, on="", command=f"`{origin['command']}`")
    if label not in registry.POLICIES:
        return Entrant(YOURS)
    tags = registry.TAGS[label]
    file = registry.POLICIES[label].__module__.replace(".", "/") + ".py"
    if not tags.paper:
        return Entrant(tags.kind, file=file)
    authors, section = registry.PAPERS[tags.paper]
    return Entrant(tags.kind, f"{tags.paper} ({authors})", f"docs/papers.md#{section}", file)


def trained_entrant(folder: Path) -> Entrant:
    """Return the description of the agent in a folder, from its first training's configuration.

    The last stage counts. A learned index has no algorithm. Raises ValueError if a file is missing
    or damaged, or does not name a method.
    """
    runs, label = trainings(folder) or (folder,), folder.name
    if folder.is_relative_to(SHIPPED):
        label = folder.relative_to(SHIPPED).as_posix()
    folder = runs[0]
    config, score = read_object(folder / CONFIG), folder / "score.json"
    last: dict[str, Any] = (config.get("stages") or [config])[-1]
    by, formula = str(last.get("algorithm", "")), ""
    composite = (folder / GENERALIST).exists() and last.get("formulas", True)
    if "clone" in last:
        by, formula = "cloning", f"imitates {last['clone']['teacher']}"
    elif by in agents.ALGORITHMS:
        by = by.upper()
    elif not by and (folder / INDEX).exists():
        by = "crawl outcomes"
    elif (folder / GENERALIST).exists():
        formula = f"corrects BeliefNCIS{', or is a formula' * composite}"
    elif (folder / PRIOR).exists():
        formula = "BeliefNCIS from another start"
    elif (folder / CURVES).exists():
        formula = "utility of a crawl, learned"
    if not by:
        raise ValueError(f"{folder / CONFIG} must name the algorithm of the training")
    law = last.get("instance") or last.get("env_args", {}).get("instance", "")
    laws, sites = [law] if isinstance(law, str) else list(law), last.get("sites", ())
    worlds = ", ".join(laws) if len(laws) < 4 else f"{len(laws)} laws"
    count = f"{len(runs)} trainings" * (len(runs) > 1)
    on = ", ".join(filter(None, (worlds, f"{len(sites)} sites" * bool(sites), count)))
    training = read_object(score)["made"] if score.exists() else {}
    command = f"`{training['command']}`" if "command" in training else ""
    if "stages" in training:
        command = f"{len(training['stages'])} stages, whose commands score.json has"
    file = (Path("agents/trained", label, *[folder.name] * (len(runs) > 1)) / CONFIG).as_posix()
    kind = COMPOSITE if composite else TRAINED
    return Entrant(kind, METHODS.get(by, ""), "docs/train.md", file, by, on, formula, command)


@spec("with-history")
def with_history(env: Any, *, factory: PolicyFactory) -> Any:
    """Return a policy that has read the events of a site before the first round, if it can.

    ``env`` is a ``CrawlTrace-v0`` with a ``window``.
    """
    bound = factory(env)
    policy = getattr(bound, "policy", None)
    if not isinstance(policy, BeliefNCIS):
        return bound
    site, lanes = env.spec.kwargs, env.unwrapped.lanes
    trace = traces.load(traces.find(site["trace"]))
    first_day = site["window"][0] - (lanes.tape.duration - lanes.horizon)
    return policies.bind(policy.after(past(trace, 0.0, first_day, site["signals"])), env)


@spec("with-promise")
def with_promise(env: Any, *, factory: PolicyFactory, most_rounds: float) -> Any:
    """Return a policy that promises the largest age if it can, or as it is."""
    bound = factory(env)
    policy = getattr(bound, "policy", None)
    if not isinstance(policy, PromisingPolicy):
        return bound
    return policies.bind(policy.promising(most_rounds), env)


def factory_in(task: Task, factory: PolicyFactory) -> PolicyFactory:
    """Return the factory of an entrant in a task, with the history and the promise it can use."""
    if task.history and factory not in POLICY_BOUNDS.values():
        factory = partial(with_history, factory=factory)
    if task.most_rounds is not None:
        factory = partial(with_promise, factory=factory, most_rounds=task.most_rounds)
    return factory


@dataclass(frozen=True)
class TaskSetting(Setting):
    """A task with its entrants; repetitions cycle through its windows, or play a variant each.

    Of V variants, repetition k plays number k mod V. With variants, the first V repetitions are of
    the first training of each agent, the next V of the second, and so on; policies play V.

    ``refused`` has by label the reason why an entrant cannot act; the rest is as in ``Task``.
    """

    first_seed: int = FIRST_SEED
    refused: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()
    most_rounds: float | None = None

    def seeds(self, count: int) -> Sequence[int]:
        """Return the numbers 0, 1, ... of ``count`` repetitions, or of all variants."""
        trainings = map(trainings_of, self.policies.values())
        return range(len(self.variants) * max(trainings, default=1) or count)

    def has_unit(self, label: str, seed: int) -> bool:
        """Return whether a label has a training for a repetition of a variant."""
        trainings = trainings_of(self.policies[label]) if label in self.policies else 1
        return not self.variants or seed < len(self.variants) * trainings

    def arguments_of(self, seed: int) -> dict[str, Any]:
        """Return the arguments of ``gymnasium.make`` for a repetition."""
        window = {"window": list(self.windows[seed % WINDOWS])} if self.windows else {}
        variant = self.variants[seed % len(self.variants)] if self.variants else {}
        return {**self.arguments, **window, **variant}

    def described(self) -> dict[str, Any]:
        """Return everything that determines the numbers, as plain values."""
        variants = {"variants": describe(self.variants)} if self.variants else {}
        return {**super().described(), **variants}

    def play(self, label: str, seed: int) -> list[Row]:
        """Simulate an entrant or the bound in repetition ``seed``; return rows without NaNs."""
        arguments = self.arguments_of(seed)
        plain = replace(self, arguments=arguments, windows=(), variants=())
        plain = replace(plain, budget_share="cost_spread" in self.arguments)
        training, event = divmod(seed, len(self.variants)) if self.variants else (seed, seed)
        if label in self.policies:
            plain = replace(plain, policies={label: training_of(self.policies[label], training)})
        rows = Setting.play(plain, label, event)
        measures = {LEAST_SERVED: least_served} if self.name == MEASURED else {}
        if self.most_rounds is not None:
            measures = {LARGEST_AGE: largest_age}
        for metric, measure in measures.items() if label in self.policies else ():
            episode = self.id, arguments, plain.policies[label], self.first_seed + event
            with self.threads(label):
                rows.append(Row(self.id, self.name, label, seed, metric, measure(*episode)))
        return [row._replace(seed=seed) for row in rows if row.value == row.value]


def trainings_of(factory: Any) -> int:
    """Return the number of trainings of the agent that a factory loads; 1 for policies."""
    return num_trainings(describe(factory)) or 1


def entrants(names: Sequence[str]) -> dict[str, Candidate]:
    """Return by label the shipped policies except oracles, the shipped agents, and named entrants.

    The shipped agents ``ppo-per-task/TASK`` are one entrant, and so on. Raises errors of
    :func:`scripts.study.entrants.candidates_of`.
    """
    of_tasks: dict[str, dict[str, Path]] = {}
    for name in agents.names():
        label, slash, task = name.partition("/")
        if slash:
            of_tasks.setdefault(label, {})[task] = SHIPPED / name
    shipped = [name for name in agents.names() if "/" not in name]
    formulas = [it for it in policies.names(fragments=True, oracle=False) if _is_own(it)]
    for_all = candidates_of((*formulas, *shipped, *names))
    return for_all | {it: per_task(it, parts, _shipped) for it, parts in of_tasks.items()}


def _is_own(name: str) -> bool:
    """Return whether a registered policy is of this package, and not of a module of the user."""
    return registry.POLICIES[name].__module__.startswith(f"{policies.__name__}.")


def _shipped(folder: str, trainings: Sequence[Path]) -> PolicyFactory:
    """Return a factory of the shipped agent in a folder, by its name."""
    return agent_factory(Path(folder).relative_to(SHIPPED).as_posix(), trainings)


def settings_of(
    tasks: Sequence[Task],
    candidates: Mapping[str, Candidate],
    yours: Sequence[str],
    console: Console,
) -> list[TaskSetting]:
    """Return each task with its entrants; print where the user's entrants cannot act, and why.

    Raises:
        ValueError: one of the labels ``yours`` cannot act in any task.
    """
    progress = tracked(tasks, "tasks: which entrants can act", console)
    settings = [setting_of(task, candidates) for task in progress]
    for label in yours:
        refused: dict[str, list[str]] = {}
        for setting in settings:
            if label in setting.refused:
                refused.setdefault(setting.refused[label], []).append(setting.name)
        for reason, names in refused.items():
            if all(label in setting.refused for setting in settings):
                raise ValueError(f"entrant {label} cannot act in any task of the suite: {reason}")
            text = f"{label} cannot act in {', '.join(names)}: {reason}"
            console.print(text, soft_wrap=True, markup=False)
    return settings


def setting_of(task: Task, candidates: Mapping[str, Candidate]) -> TaskSetting:
    """Return a task with the candidates that can act in it; raise errors of ``applicable``."""
    days = [FIRST_DAY + WINDOW * place for place in range(WINDOWS + 1)]
    recorded = tuple(pairwise(days)) if task.id == TRACE and not task.variants else ()
    first = {"window": list(recorded[0])} if recorded else dict(*task.variants[:1])
    where, arguments = f"task {task.name}, first choice: ", {**task.arguments, **first}
    in_task = [(label, candidate.in_task(task.name)) for label, candidate in candidates.items()]
    here = {label: candidate for label, candidate in in_task if candidate}
    able, refused = applicable(here, task.id, arguments, where)
    refused |= dict.fromkeys(candidates.keys() - here.keys(), "it was not trained for this task")
    for label in [*able] if "start" in task.arguments else ():  # crawl-v1 never changes
        tags = registry.TAGS.get(label.partition(":")[0])
        if tags is not None and not tags.acts:  # no slots
            able.pop(label)
            refused[label] = (
                "it chooses the times of its crawls, which exceed the bandwidth of a slot"
            )
    if task.bound in POLICY_BOUNDS:
        able[task.bound] = Candidate(task.bound, POLICY_BOUNDS[task.bound])
    for label, candidate in able.items():
        able[label] = candidate._replace(factory=factory_in(task, candidate.factory))
    return TaskSetting(
        task.name,
        task.id,
        task.arguments,
        **entered(able),
        bounds={BOUND: partial(bound_of, kind=task.bound, metric=task.metric)},
        windows=recorded,
        refused=refused,
        variants=task.variants,
        most_rounds=task.most_rounds,
    )
