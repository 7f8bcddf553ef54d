"""Make the suite's vector environments vector environments of Stable-Baselines3.

Stable-Baselines3 does not accept Gymnasium vector environments; its DummyVecEnv steps single
environments one after the other. :class:`CrawlVecEnv` wraps a native vector environment, with the
same results as DummyVecEnv of single environments on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorRewardWrapper, VectorWrapper
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from crawl_envs.envs.lane import Lane
from crawl_envs.envs.rendering import PictureArray
from crawl_envs.envs.vector import CrawlVectorEnv
from crawl_envs.types import BoolArray

Indices = int | Iterable[int] | None
"""Type of a choice of lanes: one, several, or all (None)."""
ALLOWED_WRAPPERS = (VectorRewardWrapper, NormalizeReward, RecordEpisodeStatistics)
"""Vector wrappers allowed inside a CrawlVecEnv: of rewards, and of statistics of episodes."""


def _inner(vector: Any) -> CrawlVectorEnv:
    """Return the environment inside ALLOWED_WRAPPERS; ValueError for another wrapper."""
    core = vector
    while isinstance(core, VectorWrapper):
        if not isinstance(core, ALLOWED_WRAPPERS):
            raise ValueError(
                "vector must have no wrappers except of rewards and RecordEpisodeStatistics, got "
                f"{type(core).__name__}: wrap the CrawlVecEnv in a VecEnvWrapper instead"
            )
        core = core.env
    if not isinstance(core, CrawlVectorEnv):
        raise ValueError(
            f"vector must be made by gymnasium.make_vec with an id of crawl_envs, got {vector}"
        )
    if core.autoreset_mode != AutoresetMode.SAME_STEP:
        mode = core.autoreset_mode.value
        raise ValueError(f"vector must be made with autoreset_mode='SameStep', got {mode!r}")
    if not core.copy:
        raise ValueError("vector must be made with copy=True, got copy=False")
    return core


class CrawlVecEnv(VecEnv):
    """A native vector environment as a Stable-Baselines3 VecEnv of N lanes.

    Observations are (N, m, F) float32, or in the form of ``observation=``; rewards (N,) float32,
    dones (N,) bool. All are new arrays. The info of a lane that ends has ``terminal_observation``,
    ``TimeLimit.truncated`` and the environment's info of the step; other infos are
    ``{"TimeLimit.truncated": False}``. Use VecMonitor for episode statistics. Policies of the suite
    bind to the bridge as to any environment: ``policies.make("GreedyNCIS", bridge)``. The bridge
    has the attributes of ``vector`` that they read, such as ``tracker``.

    ``seed`` and ``set_options`` act at the next reset; ``{"instance": Instance}`` pins one.

    Attributes:
        vector: the native vector environment inside.

    Args:
        vector: made with ``autoreset_mode="SameStep"`` and ``copy=True``, its default; optionally
            in :data:`ALLOWED_WRAPPERS`, whose statistics enter the infos of lanes that end.
        full_infos: return a full info for every lane at every step, like DummyVecEnv; slower.

    Raises:
        ValueError: ``vector`` is not a vector environment of this suite, has another wrapper,
            resets in another mode, or returns observations without copying.
    """

    def __init__(self, vector: gym.vector.VectorEnv[Any, Any, Any], *, full_infos: bool = False):
        core = _inner(vector)
        self.vector, self._stepped, self.full_infos = core, vector, full_infos
        self._actions: Any = None
        super().__init__(core.num_envs, core.single_observation_space, core.single_action_space)
        self.metadata = core.metadata  # for recorders, as DummyVecEnv has it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "vector":
            raise AttributeError(name)
        return getattr(self.vector, name)

    def reset(self) -> Any:
        """Start an episode in all lanes and return the observations of N lanes.

        Raises:
            ValueError: an unknown option, an instance that does not fit, or an option for some
                lanes only.
        """
        seeds: Any = self._seeds if any(seed is not None for seed in self._seeds) else None
        names = {name: None for options in self._options for name in options}
        for name in names:
            if not all(name in options for options in self._options):
                raise ValueError(f"option {name!r} must be set for all lanes or for none")
        options = {name: [options[name] for options in self._options] for name in names}
        self._reset_seeds()
        self._reset_options()
        observations, info = self._stepped.reset(seed=seeds, options=options or None)
        self.reset_infos = [lane_info(info, lane) for lane in range(self.num_envs)]
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Set the actions of all lanes, (N, ...)."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Any, NDArray[np.float32], BoolArray, list[dict[str, Any]]]:
        """Step all lanes; those that end start their next episode.

        Raises:
            ValueError: an action outside its space; then nothing changes.
        """
        observations, rewards, terminated, truncated, info = self._stepped.step(self._actions)
        dones, cut = terminated | truncated, truncated & ~terminated
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        if self.full_infos:
            infos = [lane_info(info, lane) | infos[lane] for lane in range(self.num_envs)]
        for lane in map(int, np.flatnonzero(dones)):
            infos[lane] = {
                **lane_info(info["final_info"], lane),
                "TimeLimit.truncated": bool(cut[lane]),
                "terminal_observation": info["final_obs"][lane],
                **statistics(info, lane),
            }
            self.reset_infos[lane] = lane_info(info, lane)
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the vector environment."""
        self.vector.close()

    def get_images(self) -> Sequence[PictureArray | None]:
        """Return a picture (H, W, 3) uint8 of each lane, with the render mode ``rgb_array``.

        ``render`` combines them into one picture, which VecVideoRecorder records. In other modes,
        warn and return None for each lane.
        """
        if self.render_mode != "rgb_array":
            gym.logger.warn(f"render_mode must be 'rgb_array' for images, got {self.render_mode!r}")
            return [None] * self.num_envs
        return list(self.vector.render() or ())

    # Stable-Baselines3's access to single environments

    def _lanes(self, indices: Indices) -> list[Lane]:
        return [self.vector.views[number] for number in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of each lane; AttributeError if there is none."""
        return [getattr(lane, attr_name) for lane in self._lanes(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of each lane; AttributeError if it is one of the environment."""
        for lane in self._lanes(indices):
            lane.assign(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each lane, such as ``action_masks``; AttributeError if there is none."""
        if method_name == "action_masks" and indices is None:
            return list(self.vector.action_masks())
        methods = self.get_attr(method_name, indices)
        return [method(*method_args, **method_kwargs) for method in methods]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Return False for each lane: single lanes have no wrappers."""
        return [False for _ in self._lanes(indices)]


def lane_info(info: Mapping[str, Any], lane: int) -> dict[str, Any]:
    """Return one lane's part of a vector environment's info, as a single environment has it."""
    return {
        name: values[lane]
        for name, values in info.items()
        if not name.startswith("_") and name != "final_obs" and not isinstance(values, Mapping)
    }


def statistics(info: Mapping[str, Any], lane: int) -> dict[str, Any]:
    """Return the statistics that wrappers add to the info of a lane that ends, by name."""
    return {
        name: {key: values[lane].item() for key, values in added.items()}
        for name, added in info.items()
        if isinstance(added, Mapping) and name != "final_info"
    }
