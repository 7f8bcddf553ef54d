"""Make the environments of runs: lanes that step together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gymnasium as gym

import crawl_envs
from agents.sb3 import hyperparameters
from agents.sb3.algorithms import check_action
from agents.sb3.arguments import TrainArguments
from agents.sb3.bridge import CrawlVecEnv
from crawl_envs.envs.overrides import beyond_lanes
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.envs.vector import CrawlVectorEnv
from crawl_envs.evaluation import make_env
from crawl_envs.instances.traces.site_windows import SitePages
from crawl_envs.spaces.actions import SLOT_FORMS
from crawl_envs.types import Instance, Problem


def make_lanes(arguments: TrainArguments, lanes: int, *, training: bool) -> CrawlVecEnv:
    """Make the environment of a run, pinned to its instance if it has one.

    The instance is pinned from the next reset on, until one with a seed.

    Args:
        arguments: arguments of the run.
        lanes: number of lanes.
        training: use ``train_pages`` pages, and draw a new instance for every episode, of the
            stream ``pages``, except if ``env_args`` overrides it.

    Raises:
        ValueError: an unknown id, invalid arguments of the environment or the instance, or an
            action form that the algorithm does not support.
    """
    env_id = arguments.env_id
    table = {"observation": "table"} if env_id in crawl_envs.PRESETS else {}
    try:
        spec = make_env(env_id, **arguments.env_args).spec  # or ValueError
        env_args = {"resample": training, **table, **_env_args(arguments, training)}
        if spec is not None and spec.vector_entry_point is not None:
            vector = gym.make_vec(env_id, num_envs=lanes, autoreset_mode="SameStep", **env_args)
        else:
            vector = _vector(make_env(env_id, **env_args), lanes)
    except TypeError as error:
        raise ValueError(f"env_args must be arguments of {env_id}: {_first_line(error)}") from None
    env = CrawlVecEnv(vector)
    if training and "pages" not in arguments.env_args and env.lanes.pages == "any":
        env.lanes.pages = arguments.pages
    if training and arguments.train_pages not in (0, env.lanes.num_pages):
        raise ValueError(
            f"train_pages must be 0 because {env_id} fixes its pages, got {arguments.train_pages}"
        )
    if env.lanes.observation_form != "table":
        raise ValueError(f"env_args must have observation 'table', got {env_args['observation']!r}")
    if env.lanes.pays_by_waiting:
        raise ValueError(
            f"env_args must not have cost_spread with action {env.action_form!r}, since a step "
            "lasts as long as its crawl costs, and rewards per step favour large costs; use action "
            "'scores'"
        )
    check_action(arguments.algorithm, env.action_form)
    pin(env, arguments)
    return env


def first_problem(env: CrawlVecEnv) -> Problem:
    """Reset an environment, and return the public part of the first lane's instance."""
    env.reset()
    problem: Problem = env.get_attr("problem", 0)[0]
    return problem


def cycle_of(problem: Problem) -> float:
    """Return the time T = m / R in which every page can be crawled once."""
    return float(problem.num_pages / problem.bandwidth)


def pages_in_words(arguments: TrainArguments) -> str:
    """Return a sentence with the numbers of pages on which an agent is trained and ranked."""
    problem = first_problem(make_lanes(arguments, 1, training=False))
    pages, cycle = arguments.train_pages or problem.num_pages, cycle_of(problem)
    return f"trained on {pages} pages at m / R = {cycle:g}; ranked on {problem.num_pages}"


PAGES = 20
"""Default pages in training: an agent learns the value of a page faster on few pages."""


def recommended(
    algorithm: str = "ppo", env_id: str = hyperparameters.FALLBACK, **changes: Any
) -> TrainArguments:
    """Return the recommended arguments of a run, updated by ``changes``: the same rule for all ids.

    They are those of :mod:`agents.sb3.hyperparameters`, except two. ``train_pages`` is PAGES if the
    environment has more, and both it and the agent allow another number. ``gamma`` makes the time
    scale of rewards a cycle, in which every page can be crawled once: 1 - 1 / m with one crawl per
    step on m pages.

    Raises:
        ValueError: as :class:`TrainArguments` and :func:`make_lanes`.
    """
    defaults = hyperparameters.defaults(algorithm)
    arguments = TrainArguments(**{**defaults, "algorithm": algorithm, "env_id": env_id, **changes})
    env = make_lanes(arguments, 1, training="train_pages" in changes)
    free = arguments.any_size and arguments.instance is None and env.action_form in SLOT_FORMS
    recorded = env.lanes.tape is not None
    if "train_pages" not in changes and free and not recorded and env.lanes.num_pages > PAGES:
        arguments = replace(arguments, train_pages=PAGES)
        env = make_lanes(arguments, 1, training=True)
    if "gamma" in changes:
        return arguments
    problem = first_problem(env)
    spacing = env.batch / problem.bandwidth if math.isnan(env.epoch) else env.epoch
    return replace(arguments, gamma=round(max(1.0 - spacing / cycle_of(problem), 0.0), 6))


def _env_args(arguments: TrainArguments, training: bool) -> dict[str, Any]:
    """Return the arguments of the environment, with ``train_pages`` pages in training.

    Bandwidths and crawls per step are proportional to the pages.
    """
    env_args = dict(arguments.env_args)
    if not (training and arguments.train_pages):
        return env_args
    env = make_env(arguments.env_id, **env_args)
    env.reset(seed=0)
    core: Any = env.unwrapped
    problem, pages = core.problem, arguments.train_pages
    share = pages / problem.num_pages
    fixed = {**crawl_envs.PRESETS.get(arguments.env_id, ("", {}))[1], **env_args}
    env_args["num_pages"] = pages
    if not isinstance(core.instance, SitePages):  # whose bandwidth follows their number
        env_args["bandwidth"] = problem.bandwidth * share
    if "batch" in fixed:
        env_args["batch"] = max(1, round(fixed["batch"] * share))
    if "bandwidth_steps" in fixed:
        steps = [(time, rate * share) for time, rate in fixed["bandwidth_steps"]]
        env_args["bandwidth_steps"] = steps
    return env_args


def _vector(env: gym.Env[Any, Any], lanes: int) -> CrawlVectorEnv:
    """Return a vector of a single environment, for ids without a vector entry point.

    Its class has the accessors of the single one.

    Raises:
        ValueError: the environment has wrappers, a limit of steps or overridden methods, which the
            vector would lack.
    """
    core, beyond = env.unwrapped, beyond_lanes(env)
    assert isinstance(core, CrawlEnv)
    if beyond:
        raise ValueError(
            "env_id must have no wrappers or max_episode_steps, and leave step, reset and the like "
            f"to CrawlEnv, since lanes step together, got {env} with {', '.join(beyond)}: train it "
            "by make_vec_env of Stable-Baselines3, or change its objective"
        )
    accessors = [base for base in type(core).__mro__ if not issubclass(base, gym.Env)]
    bases = [base for base in accessors if base not in CrawlEnv.__mro__]
    batch = type("CrawlVector", (*bases, CrawlVectorEnv), {})
    vector: CrawlVectorEnv = batch(
        core.make_lanes(lanes), core.objective, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )
    vector.spec = env.spec
    return vector


def pin(env: CrawlVecEnv, arguments: TrainArguments) -> None:
    """Pin the instance of a run, if it has one, at the next reset."""
    if arguments.instance is not None:
        try:
            instance = Instance(**arguments.instance)
        except TypeError as error:
            raise ValueError(f"instance does not fit Instance: {_first_line(error)}") from None
        env.set_options({"instance": instance})


def _first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return str(error).splitlines()[0]
