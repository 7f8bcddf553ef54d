"""Checks of the suite's contract for custom environments and policies.

A failed check raises AssertionError with the expected and the actual result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from crawl_envs.evaluation import PolicyFactory, simulate
from crawl_envs.spaces.observations import NO_BASE, without_source
from crawl_envs.types import Ledger, Tracker
from crawl_envs.types.compiled_policies import CompilablePolicy, CompiledIndex
from crawl_envs.worlds.lanes import Lanes

Maker = Callable[[], "gymnasium.Env[Any, Any]"]
STEPS = 50
WORLD_METRICS = ("time", "requests", "changes", "signals", "alive_time")
"""Fields of a ledger that do not depend on actions."""


def expect(condition: bool, message: str) -> None:
    """Raise AssertionError with the message unless the condition is true."""
    if not condition:
        raise AssertionError(message)


def _walk(env: gymnasium.Env[Any, Any], seed: int, action_seed: int) -> tuple[Ledger, list[float]]:
    """Take up to STEPS random actions after a seeded reset; return the ledger and rewards."""
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(action_seed)
    rewards = []
    for _ in range(STEPS):
        expect(
            env.observation_space.contains(observation),
            f"observation must lie in {env.observation_space}",
        )
        observation, reward, _, truncated, info = env.step(env.action_space.sample())
        terms = sum(info["reward_terms"].values())
        expect(
            abs(float(reward) - terms) < 1e-9,
            f"reward {reward} must be the sum of its terms {terms}",
        )
        rewards.append(float(reward))
        if truncated:
            break
    core: Any = env.unwrapped
    return core.ledger(), rewards


def check_tape(make: Maker, seed: int = 0) -> None:
    """Check that events do not depend on actions, and that episodes are reproducible."""
    first, rewards = _walk(make(), seed, action_seed=1)
    again, rewards_again = _walk(make(), seed, action_seed=1)
    expect(first == again, f"the same seed and actions must give the same ledger: {first}, {again}")
    expect(rewards == rewards_again, "the same seed and actions must give the same rewards")
    other, _ = _walk(make(), seed, action_seed=2)
    for name in WORLD_METRICS:
        one, two = getattr(first, name), getattr(other, name)
        expect(
            bool(np.isclose(one, two)), f"{name} must not depend on actions, got {one} and {two}"
        )


def _known(tracker: Tracker, feature: str) -> Any:
    """Return the tracker's data for a column, named with or without the number of a source."""
    offers = tracker.offers
    places = (
        *(tracker, tracker.problem, tracker.copies),
        *(offers, None if offers is None else offers.metadata),
    )
    for name, source in ((feature, None), without_source(feature)):
        for place in places:
            known = getattr(place, name, None)
            if known is not None:
                return known if source is None else known[source]
    raise AssertionError(f"column {feature} must be in the tracker")


def check_tracker(make: Maker, seed: int = 0) -> None:
    """Check that the tracker agrees with the observation, column by column."""
    env = make()
    observation, _ = env.reset(seed=seed)
    core: Any = env.unwrapped
    box: Any = env.observation_space
    env.action_space.seed(seed)
    for _ in range(STEPS):
        tracker = core.tracker()
        for column, feature in enumerate(core.features):
            highest = box.high[:, column]
            known = np.minimum(_known(tracker, feature), highest)
            known = np.nan_to_num(known, nan=NO_BASE)
            expect(
                bool(np.allclose(observation[:, column], known, rtol=1e-6)),
                f"column {feature} must be what the tracker knows",
            )
        observation, _, _, truncated, _ = env.step(env.action_space.sample())
        if truncated:
            break


def check_state(make: Maker, seed: int = 0) -> None:
    """Check that ``set_state`` restores a state in mid-episode."""
    env = make()
    env.reset(seed=seed)
    core: Any = env.unwrapped
    env.action_space.seed(seed)
    actions = [env.action_space.sample() for _ in range(6)]
    env.step(actions[0])
    state = core.get_state()
    first = []
    for action in actions[1:]:
        first.append(env.step(action))
        if first[-1][3]:
            break
    core.set_state(state)
    for action, (observation, reward, *_) in zip(actions[1:], first, strict=False):
        observation_again, reward_again, *_ = env.step(action)
        expect(bool(np.array_equal(observation, observation_again)), "set_state must restore all")
        expect(reward == reward_again, "set_state must restore all rewards")


def check_crawl_env(make: Maker, *, render: bool = False) -> None:
    """Run all checks of an environment, Gymnasium's and the suite's.

    Args:
        make: function that returns a new environment.
        render: whether to check rendering.

    Raises:
        AssertionError: a check failed.
    """
    with warnings.catch_warnings():
        # Rates have a unit, so their space is not normalised.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized space")
        check_env(make().unwrapped, skip_render_check=not render)
    check_tape(make)
    check_tracker(make)
    check_state(make)


def check_policy(factory: PolicyFactory, make: Maker, *, seed: int = 0) -> None:
    """Check a policy: valid actions, single and batched; reproducibility; equal compiled rollouts.

    Args:
        factory: function of an environment that returns a policy.
        make: function that returns a new environment.
        seed: seed of the episode.

    Raises:
        AssertionError: a check failed.
    """
    env = make()
    runs = []
    for _ in range(2):
        policy = factory(env)
        observation, _ = env.reset(seed=seed)
        actions = []
        for step in range(STEPS):
            action, _ = policy.predict(observation, episode_start=np.array([step == 0]))
            expect(
                env.action_space.contains(action), f"action must lie in the space, got {action!r}"
            )
            batch, _ = policy.predict(observation[None], episode_start=np.array([False]))
            expect(
                np.shape(batch) == (1, *np.shape(action)),
                f"a batch of one must give shape {(1, *np.shape(action))}, got {np.shape(batch)}",
            )
            actions.append(action)
            observation, _, _, truncated, _ = env.step(action)
            if truncated:
                break
        runs.append(np.array(actions))
    expect(bool(np.array_equal(runs[0], runs[1])), "the same seed must give the same actions")
    core: Any = env.unwrapped
    policy = factory(env)
    if (
        core.action_form == "page"
        and isinstance(policy, CompilablePolicy)
        and isinstance(core.lanes, Lanes)
    ):
        form = policy.compile(core.problem, core.num_slots(), core.rng())
        if isinstance(form, CompiledIndex) or not core.lanes.mortal:
            lanes = core.lanes
            rollout = simulate(
                core.instance, policy, lanes.horizon, seed, lanes.tape, requests=lanes.requests
            )
            expect(
                bool(np.array_equal(rollout.crawls[: len(runs[0])], runs[0])),
                "the compiled form must crawl the pages that predict chooses",
            )
