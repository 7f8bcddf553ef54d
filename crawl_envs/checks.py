"""Checks of the suite's contract for custom environments and policies.

A failed check raises AssertionError with the expected and the actual result.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import flatten, flatten_space
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from crawl_envs.evaluation import PolicyFactory
from crawl_envs.spaces.observations import NO_BASE, without_source
from crawl_envs.types import Policy, Tracker
from crawl_envs.types.compiled_policies import CompilablePolicy, CompiledIndex
from crawl_envs.worlds.rollouts import ONE_LANE, roll

Maker = Callable[[], "gymnasium.Env[Any, Any]"]
STEPS = 50
WORLD_METRICS = ("time", "requests", "changes", "signals", "alive_time")
"""Fields of a ledger that do not depend on actions."""


def expect(condition: Any, message: str) -> None:
    """Raise AssertionError with a message unless a condition is true."""
    if not condition:
        raise AssertionError(message)


def _play(
    env: gymnasium.Env[Any, Any], seed: int, choose: Callable[[Any, int], Any] | None = None
) -> list[tuple[Any, float]]:
    """Return the actions and rewards of up to STEPS steps after a seeded reset.

    Actions come from ``choose(observation, step)``, or are random. Observations must lie in their
    space, and rewards must be the sums of their terms.
    """
    observation, _ = env.reset(seed=seed)
    space, steps = env.observation_space, []
    for step in range(STEPS):
        expect(space.contains(observation), f"observation must lie in {space}")
        action = env.action_space.sample() if choose is None else choose(observation, step)
        observation, reward, _, truncated, info = env.step(action)
        steps.append((action, float(reward)))
        terms = sum(value for name, value in info.items() if name.startswith("reward_"))
        expect(abs(float(reward) - terms) < 1e-9, f"reward {reward} must be the sum {terms}")
        if truncated:
            break
    return steps


def check_tape(make: Maker, seed: int = 0) -> None:
    """Check that episodes are reproducible, and that events do not depend on actions.

    Events are not compared where the time of a decision depends on costs of crawls.
    """
    ledgers, rewards = [], []
    for action_seed in (1, 1, 2):
        env = make()
        env.action_space.seed(action_seed)
        rewards.append([reward for _, reward in _play(env, seed)])
        core: Any = env.unwrapped
        ledgers.append(core.ledger())
    first, same, varied = ledgers
    expect(first == same, f"the same seed and actions must give the same ledger: {first}, {same}")
    expect(rewards[0] == rewards[1], "the same seed and actions must give the same rewards")
    for name in () if core.lanes.pays_by_waiting else WORLD_METRICS:
        one, two = getattr(first, name), getattr(varied, name)
        expect(np.isclose(one, two), f"{name} must not depend on actions, got {one} and {two}")


def _flat(env: gymnasium.Env[Any, Any], observation: Any) -> NDArray[Any]:
    """Return an observation of any form as a vector that ends with the rows of the pages."""
    return np.asarray(flatten(env.observation_space, observation))


def _tracker_values(tracker: Tracker, feature: str) -> Any:
    """Return the tracker's data for a column, whose name may end in the number of a source."""
    places = (tracker, tracker.problem, tracker.copies, tracker.offers)
    metadata = getattr(tracker.offers, "metadata", None)
    for name, source in ((feature, None), without_source(feature)):
        for place in (*places, metadata):
            values = getattr(place, name, None)
            if values is not None:
                return values if source is None else values[source]
    raise AssertionError(f"column {feature} must be in the tracker")


def check_tracker(make: Maker, seed: int = 0) -> None:
    """Check that the tracker agrees with the observation, column by column."""
    env = make()
    core: Any = env.unwrapped
    env.action_space.seed(seed)

    shape = core.lanes.num_pages, len(core.features)
    size = math.prod(shape)
    box: Any = flatten_space(env.observation_space)
    highest = box.high[-size:].reshape(shape)

    def compare(observation: Any, step: int) -> Any:
        tracker, rows = core.tracker(), _flat(env, observation)[-size:].reshape(shape)
        for column, feature in enumerate(core.features):
            if feature == "cost" and not core.lanes.reveal_cost:
                continue
            expected = np.minimum(_tracker_values(tracker, feature), highest[:, column])
            same = np.allclose(rows[:, column], np.nan_to_num(expected, nan=NO_BASE), rtol=1e-6)
            expect(same, f"column {feature} must be what the tracker knows")
        return env.action_space.sample()

    _play(env, seed, compare)


def check_state(make: Maker, seed: int = 0) -> None:
    """Check that ``set_state`` restores an environment's state in the middle of an episode."""
    env = make()
    env.reset(seed=seed)
    core: Any = env.unwrapped
    env.action_space.seed(seed)
    env.step(env.action_space.sample())
    actions = [env.action_space.sample() for _ in range(5)]
    state = core.get_state()
    runs: list[list[Any]] = []
    for _ in range(2):
        runs.append([])
        for action in actions:
            observation, reward, _, truncated, _ = env.step(action)
            runs[-1].append((_flat(env, observation).tolist(), reward))
            if truncated:
                break
        core.set_state(state)
    expect(runs[0] == runs[1], "set_state must restore all observations and rewards")


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
    env.reset(seed=seed)
    _check_index(factory(env), env.unwrapped)

    runs = []
    for _ in range(2):
        new = factory(env)

        def choose(observation: Any, step: int, policy: Policy = new) -> Any:
            action, _ = policy.predict(observation, episode_start=np.array([step == 0]))
            batch, _ = policy.predict(observation[None], episode_start=np.array([False]))
            space, shape = env.action_space, (1, *np.shape(action))
            expect(space.contains(action), f"action must lie in {space}, got {action!r}")
            expect(
                np.shape(batch) == shape,
                f"a batch of one must give shape {shape}, got {np.shape(batch)}",
            )
            return action

        runs.append([action for action, _ in _play(env, seed, choose)])
    expect(np.array_equal(runs[0], runs[1]), "the same seed must give the same actions")
    _check_compiled(factory(env), env.unwrapped, runs[0], seed)


def _check_index(policy: Policy, core: Any) -> None:
    """Check that the index of a policy, if it has one, is a number for every page."""
    if core.action_form != "page" or not isinstance(policy, CompilablePolicy):
        return
    form = policy.compile(core.problem, core.num_slots(), core.rng())
    if not isinstance(form, CompiledIndex):
        return
    times = np.linspace(0.0, core.lanes.horizon, 9)
    for page in range(core.instance.num_pages):
        for signals in (0.0, 1.0, 3.0):
            values = [form.value(form.parameters, page, float(time), signals) for time in times]
            expect(
                not np.isnan(values).any(),
                f"the index must be a number, got {values} for page {page} at {times} with "
                f"{signals:g} signals",
            )


def _check_compiled(policy: Policy, core: Any, pages: list[Any], seed: int) -> None:
    """Check that a policy's compiled form, if any, crawls the same pages as its steps."""
    if core.action_form != "page" or not isinstance(policy, CompilablePolicy):
        return
    lanes = core.lanes
    form = policy.compile(core.problem, core.num_slots(), core.rng())
    if (not isinstance(form, CompiledIndex) and lanes.mortal) or not lanes.reveal_cost:
        return
    copy = core.make_lanes(1, observed=False)
    copy.begin(ONE_LANE, [seed], [core.instance], play=False)
    rollout = roll(copy, form)
    expect(
        np.array_equal(rollout.crawls[: len(pages)], pages),
        "the compiled form must crawl the pages that predict chooses",
    )
