"""Find changes of an environment that its lanes and compiled rollouts do not have."""

from __future__ import annotations

from typing import Any

from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from crawl_envs.envs.single import CrawlEnv

CHECKS = (OrderEnforcing, PassiveEnvChecker)
"""Wrappers of ``gymnasium.make`` that change nothing."""


def overrides(core: CrawlEnv) -> tuple[str, ...]:
    """Return the names of what a subclass of :class:`CrawlEnv` redefines: methods and spaces.

    Other changes, such as those of arguments, lanes or the objective, act in batches too.
    """
    kind, lanes = type(core), core.lanes
    below = kind.__mro__[: kind.__mro__.index(CrawlEnv)]
    defined = {name for place in (*map(vars, below), vars(core)) for name in place}
    names = [name for name in sorted(defined) if not name.startswith("__") and _is_method(name)]
    spaces = {"action_space": lanes.form.space(), "observation_space": lanes.observation_space()}
    names += [name for name, space in spaces.items() if getattr(core, name) != space]
    return tuple(f"{kind.__name__}.{name}" for name in names)


def _is_method(name: str) -> bool:
    """Return whether the class CrawlEnv has a method or a property called ``name``."""
    attribute = getattr(CrawlEnv, name, None)
    return callable(attribute) or isinstance(attribute, property)


def beyond_lanes(env: Any) -> tuple[str, ...]:
    """Return the names of wrappers and overrides that lanes do not have, outermost first.

    Limits of steps count if they are shorter than the horizon, and wrappers that only check do not.
    """
    names, core = [], env.unwrapped
    while env is not core:
        steps = core.lanes.steps_per_episode()
        late = isinstance(env, TimeLimit) and steps is not None and env._max_episode_steps >= steps
        if not late and not isinstance(env, CHECKS):
            names.append(type(env).__name__)
        env = env.env
    return (*names, *overrides(core))
