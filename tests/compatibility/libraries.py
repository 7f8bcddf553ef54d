"""An environment built and stepped with the wrapper of each library.

Each function takes an id and raises an error if its library cannot use it; imports of libraries are
in the functions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import crawl_envs
from scripts.data.recording import minari_folder

PRESETS = (
    "CrawlNCIS-Noisy-100-Dict-v0",
    "CrawlHarmonic-Mixed-100-Shares-v0",
    "CrawlOffers-100-Scores-v1",
    "CrawlLongevity-Quality-100-v0",
    "CrawlTrace-GardenHandbook-Dict-v0",
)
IDS = tuple(f"crawl_envs:{name}" for name in (*crawl_envs.FAMILIES, *PRESETS))
"""Every family, and a preset of each but CrawlSites-v0, which has none; together all forms of
observations and actions."""
STEPS, LANES = 8, 2


class Library(NamedTuple):
    """A library.

    Attributes:
        package: name on the package index.
        module: what is imported of it.
        about: what is done with each environment.
        play: does it, given an id.
        needs: other modules without which it cannot.
    """

    package: str
    module: str
    about: str
    play: Callable[[str], None]
    needs: tuple[str, ...] = ()


def _lanes(id: str, **arguments: Any) -> Any:
    return gymnasium.make_vec(id, num_envs=LANES, autoreset_mode="SameStep", **arguments)


def _step(env: Any) -> None:
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(env.action_space.sample())


def play_gymnasium(id: str) -> None:
    """Run Gymnasium's checker, and step the native vector environment."""
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make(id).unwrapped, skip_render_check=True)
    _step(_lanes(id))


def play_cleanrl(id: str) -> None:
    """Step as CleanRL's scripts do, to the statistics of the first episode that ends."""

    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.wrappers.FlattenObservation(gymnasium.make(id))
        return gymnasium.wrappers.RecordEpisodeStatistics(env)

    lanes: Any = SyncVectorEnv([make] * LANES, autoreset_mode=AutoresetMode.SAME_STEP)
    lanes.reset(seed=0)
    info: dict[str, Any] = {}
    while "final_info" not in info:
        *_, info = lanes.step(lanes.action_space.sample())
    final = info["final_info"]
    if np.min(final["episode"]["l"][final["_episode"]]) <= 0:  # of the lanes whose episode ended
        raise ValueError(f"episodes have no length: {final}")


def play_sb3(id: str) -> None:
    """Run Stable-Baselines3's checker, and learn with its PPO on the native lanes."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_checker import check_env

    check_env(gymnasium.make(id))
    _learn(PPO, id, "Input", "Mlp")


def play_sb3_contrib(id: str) -> None:
    """Learn with MaskablePPO where a page is chosen, else with RecurrentPPO."""
    from sb3_contrib import MaskablePPO, RecurrentPPO

    if isinstance(gymnasium.make(id).action_space, gymnasium.spaces.Discrete):
        _learn(MaskablePPO, id, "Input", "Mlp")
    else:
        _learn(RecurrentPPO, id, "InputLstm", "MlpLstm", policy_kwargs={"lstm_hidden_size": 16})


def _learn(algorithm: Any, id: str, dict_policy: str, box_policy: str, **arguments: Any) -> None:
    from agents.sb3.bridge import CrawlVecEnv
    from agents.sb3.torch_threads import threads

    lanes = CrawlVecEnv(_lanes(id))
    has_keys = isinstance(lanes.observation_space, gymnasium.spaces.Dict)
    policy = f"Multi{dict_policy}Policy" if has_keys else f"{box_policy}Policy"
    with threads(1):
        model = algorithm(policy, lanes, n_steps=STEPS, batch_size=STEPS, device="cpu", **arguments)
        model.learn(LANES * STEPS)


def play_torchrl(id: str) -> None:
    """Roll out TorchRL's GymEnv, and its GymWrapper around the native lanes."""
    from torchrl.envs import GymEnv, GymWrapper

    GymEnv(id, categorical_action_encoding=True).rollout(STEPS)
    GymWrapper(_lanes(id), categorical_action_encoding=True).rollout(STEPS)


def play_tianshou(id: str) -> None:
    """Step Tianshou's DummyVectorEnv."""
    from tianshou.env import DummyVectorEnv

    lanes = DummyVectorEnv([lambda: gymnasium.make(id)] * LANES)
    lanes.reset(seed=0)
    for _ in range(STEPS):
        lanes.step([space.sample() for space in lanes.action_space])


def play_minari(id: str) -> None:
    """Record a data set with Minari, load it, and recover the environment from it."""
    import minari

    name = "crawl/compatibility-v0"
    with tempfile.TemporaryDirectory() as folder, minari_folder(folder):
        env = minari.DataCollector(gymnasium.make(id), record_infos=True)
        _step(env)
        env.create_dataset(name)
        data = minari.load_dataset(name)
        data.recover_environment().reset(seed=0)
        if data.total_steps != STEPS:
            raise ValueError(f"{data.total_steps} steps were recorded, not {STEPS}")


def play_skrl(id: str) -> None:
    """Step skrl's wrapper of one environment, and of the native lanes."""
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.utils.spaces.torch import sample_space

    for env in (gymnasium.make(id), _lanes(id)):
        wrapped = wrap_env(env, verbose=False)
        wrapped.reset()
        for _ in range(STEPS):
            space, count = wrapped.action_space, wrapped.num_envs
            wrapped.step(sample_space(space, batch_size=count, backend="native"))


def play_pufferlib(id: str) -> None:
    """Step PufferLib's emulation in its serial vector environment."""
    import pufferlib.emulation
    import pufferlib.vector

    def make(buf: Any = None, seed: int = 0) -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(
            env_creator=gymnasium.make, env_args=[id], buf=buf, seed=seed
        )

    _step(pufferlib.vector.make(make, num_envs=LANES, backend=pufferlib.vector.Serial))


def play_rllib(id: str, **connected: Any) -> None:
    """Sample with an environment runner of RLlib, and its default network."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    config = PPOConfig().environment(id).env_runners(rollout_fragment_length=STEPS, **connected)
    runner = SingleAgentEnvRunner(config=config)
    runner.sample(num_timesteps=STEPS)
    runner.stop()


def play_rllib_flat(id: str) -> None:
    """Do so with RLlib's connector that makes a vector of the observation."""
    from ray.rllib.connectors.env_to_module import FlattenObservations

    play_rllib(id, env_to_module_connector=lambda *_, **__: FlattenObservations())


LIBRARIES: Mapping[str, Library] = {
    "Gymnasium": Library("gymnasium", "gymnasium", "`check_env`, `make_vec`", play_gymnasium),
    "Stable-Baselines3": Library(
        "stable-baselines3", "stable_baselines3", "`check_env`; PPO on `CrawlVecEnv`", play_sb3
    ),
    "sb3-contrib": Library(
        "sb3-contrib",
        "sb3_contrib",
        "MaskablePPO where a page is chosen, else RecurrentPPO, on `CrawlVecEnv`",
        play_sb3_contrib,
    ),
    "CleanRL's loop": Library(
        "gymnasium",
        "gymnasium",
        "`SyncVectorEnv` of `RecordEpisodeStatistics` and `FlattenObservation`",
        play_cleanrl,
    ),
    "TorchRL": Library(
        "torchrl", "torchrl", "`GymEnv`; `GymWrapper` around `make_vec`", play_torchrl
    ),
    "Tianshou": Library("tianshou", "tianshou", "`DummyVectorEnv`", play_tianshou),
    "Minari": Library(
        "minari", "minari", "`DataCollector`, `recover_environment`", play_minari, ("jax",)
    ),
    "skrl": Library("skrl", "skrl", "`wrap_env` of `make` and of `make_vec`", play_skrl),
    "PufferLib": Library(
        "pufferlib-core", "pufferlib", "`GymnasiumPufferEnv`, serial", play_pufferlib
    ),
    "RLlib": Library(
        "ray", "ray", "`SingleAgentEnvRunner`, default network", play_rllib, ("tree", "lz4")
    ),
    "RLlib flattened": Library(
        "ray", "ray", "the same with `FlattenObservations`", play_rllib_flat, ("tree", "lz4")
    ),
}
