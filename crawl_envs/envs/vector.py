"""The vector environment: a batch of lanes with Gymnasium's conventions and autoreset modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import new_class
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from crawl_envs.envs.lane import Lane
from crawl_envs.envs.lane_access import LaneAccess, check_limit
from crawl_envs.envs.overrides import overrides
from crawl_envs.envs.rendering import LANE_RENDERING, RenderMode
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.sim.state import NUM_OUTCOMES
from crawl_envs.spaces.observations import batched
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import flag, one_of
from crawl_envs.worlds.lanes import Lanes

NativeVectorEnv: TypeAlias = VectorEnv[Any, Any, FloatArray]
"""Gymnasium's class; also a direct base of families, since some libraries check direct bases."""


class CrawlVectorEnv(LaneAccess, NativeVectorEnv):
    """N crawling environments that step together.

    Args:
        lanes: the batch.
        objective: the reward.
        autoreset_mode: one of Gymnasium's three modes, or its value as a string.
        copy: return copies of the observations; False returns a read-only view of the buffer that
            the next step overwrites, which is faster, unless they are flat.
        render_mode: None, ``ansi`` (a text per lane) or ``rgb_array`` (a picture per lane).

    Raises:
        ValueError: an unknown autoreset mode or render mode.
    """

    # Gymnasium declares it as a plain attribute, so it cannot be a ClassVar here.
    metadata: dict[str, Any] = {  # noqa: RUF012  # as Gymnasium has it
        **LANE_RENDERING,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        lanes: Lanes,
        objective: Objective,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(lanes, objective, render_mode)
        self.copy = flag("copy", copy)
        if not isinstance(autoreset_mode, AutoresetMode):
            one_of("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs = lanes.num_lanes
        self._reported = [(name, f"_{name}", row) for name, row in lanes.reported]
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)
        self._nowhere = np.zeros(self.num_envs, np.bool_)
        self.single_action_space = lanes.form.space()
        self.single_observation_space = lanes.observation_space()
        self.observation_space = batched(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in all lanes, or in those of ``options["reset_mask"]``.

        A seed gives lane i the seed ``seed + i``, or the i-th of a list, and draws its instance.
        ``options["instance"]``, an Instance or one per lane, holds until the next seeded reset.
        A first reset without a seed uses a random one.

        Raises:
            ValueError: a negative seed, a list of the wrong length, an unknown option, an
                instance that does not fit.
        """
        lane_mask, seeds, instances = self._reset_arguments(seed, options)
        super().reset(seed=seeds[0])
        self.lanes.begin(lane_mask, seeds, instances, self.np_random)
        nothing = list(np.zeros((NUM_OUTCOMES, self.num_envs)))
        info = self._info(self.objective.terms(nothing), nothing, lane_mask.copy())
        return self.lanes.observations(self.copy), self._masked(info, lane_mask.copy())

    def step(self, actions: Any) -> tuple[Any, FloatArray, Any, Any, dict[str, Any]]:
        """Crawl the pages that each lane's action chooses, and play to the next decisions.

        Raises:
            ValueError: an action outside its space; nothing is changed in this case.
            gymnasium.error.ResetNeeded: before the first reset, or past the end of an episode
                with autoreset disabled.
        """
        lanes = self.lanes
        over = lanes.ended.copy() if lanes.any_ended else None
        if over is not None and self.autoreset_mode == AutoresetMode.DISABLED:
            raise ResetNeeded(f"call reset: the episode has ended in lanes {np.flatnonzero(over)}")
        outcomes = lanes.play(lanes.form.decode(actions, self.num_envs))
        terms = self.objective.terms(outcomes)
        rewards = self.objective.total(terms).copy()
        truncated = lanes.newly_ended()
        if truncated is not None and self.autoreset_mode == AutoresetMode.SAME_STEP:
            info = self._final(terms, outcomes, truncated)
            lanes.begin_next(truncated)
        else:
            info = self._info(terms, outcomes, self._everywhere)
        if over is not None:
            lanes.begin_next(over)
        if truncated is None:
            truncated = self._nowhere.copy()
        terminated = self._nowhere.copy()
        info = self._masked(info, self._everywhere)
        return lanes.observations(self.copy), rewards, terminated, truncated, info

    def _info(
        self, terms: dict[str, FloatArray], outcomes: Sequence[FloatArray], there: BoolArray
    ) -> dict[str, Any]:
        """Return the info of a step, with arrays over lanes; ``there`` masks the valid lanes.

        Lanes that are reset have the info of a step in which nothing happened.
        """
        info: dict[str, Any] = {}
        for name, values in terms.items():
            info[name], info["_" + name] = values.copy(), there
        for name, mask, row in self._reported:
            info[name], info[mask] = outcomes[row].copy(), there
        return info

    def _masked(self, info: dict[str, Any], there: BoolArray) -> dict[str, Any]:
        """Add the mask of existing pages to an info, if pages are born and die; return the info."""
        if self.lanes.mortal:
            info["action_mask"] = self.lanes.action_masks().astype(np.int8)
            info["_action_mask"] = there
        return info

    def _final(
        self, terms: dict[str, FloatArray], outcomes: Sequence[FloatArray], ended: BoolArray
    ) -> dict[str, Any]:
        """Return the info of a step in which episodes end and the next ones start at once.

        The last observation and info of the ended lanes go under ``final_obs`` and ``final_info``.
        """
        final: NDArray[np.object_] = np.full(self.num_envs, None, object)
        for lane in np.flatnonzero(ended):
            final[lane] = self.lanes.observation(int(lane))
        begun = [np.where(ended, 0.0, row) for row in outcomes]
        info = self._info(self.objective.terms(begun), begun, self._everywhere)
        info["final_obs"], info["_final_obs"] = final, ended
        info["final_info"] = self._masked(self._info(terms, outcomes, ended), ended)
        info["_final_info"] = ended
        return info

    def render(self) -> tuple[Any, ...] | None:
        """Return a text or a picture per lane; see :meth:`LaneAccess.frame`."""
        if self.render_mode is None:
            self.frame()  # warns
            return None
        return tuple(self.frame(lane) for lane in range(self.num_envs))

    # Read by policies, oracles and tests

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The true parameters of the pages of each lane."""
        return tuple(self.lanes.instance(lane) for lane in range(self.num_envs))

    def action_masks(self) -> BoolArray:
        """Return a new mask of the choices of each lane, as :meth:`CrawlEnv.action_masks`."""
        return self.lanes.choice_masks()

    @cached_property
    def views(self) -> list[Lane]:
        """The lanes as objects with the interface of a single environment."""
        return [Lane(self, number) for number in range(self.num_envs)]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return each lane's attribute, or the result of calling it, as SyncVectorEnv does.

        Raises:
            AttributeError: a lane has none of that name.
        """
        attributes = (getattr(lane, name) for lane in self.views)
        return tuple(one(*args, **kwargs) if callable(one) else one for one in attributes)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return the value of an attribute for each lane."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set a new attribute of each lane, to one value or to a list of N.

        Raises:
            ValueError: a list of another length.
            AttributeError: it is an attribute of the environment, which is given to ``make_vec``.
        """
        lane_values = list(values) if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(lane_values) != self.num_envs:
            raise ValueError(f"values must be one or {self.num_envs} of them, got {values!r}")
        for lane, value in zip(self.views, lane_values, strict=True):
            lane.assign(name, value)


class FamilyVectorEnv(CrawlVectorEnv):
    """Base class of the families' vector environments.

    A subclass sets ``single``, the class of the single environment, and accepts its keywords in
    addition to those below.

    Args:
        num_envs: number of lanes, N.
        autoreset_mode: of :class:`CrawlVectorEnv`: ``NextStep``, ``SameStep`` or ``Disabled``.
        copy: of :class:`CrawlVectorEnv`: False returns a view of the observation buffer.
        render_mode: of :class:`CrawlVectorEnv`: None, ``ansi`` or ``rgb_array``.
        max_episode_steps: steps after which an episode is truncated, at most those that it has;
            None or -1 for no limit. ``gymnasium.make_vec`` takes it from the specification of an
            id.
        **arguments: arguments of the single environment.

    Raises:
        ValueError: an argument outside its range, or ``single`` overrides methods of CrawlEnv.
        TypeError: an argument that does not exist.
    """

    single: type[CrawlEnv]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: RenderMode | None = None,
        max_episode_steps: int | None = None,
        **arguments: Any,
    ) -> None:
        one = self.single(**arguments)
        replaced = overrides(one)
        if replaced:
            raise ValueError(
                f"single must leave its steps to CrawlEnv, since lanes step together, got "
                f"{', '.join(replaced)}: make it without a vector entry point"
            )
        self.make_lanes, lanes = one.make_lanes, one.make_lanes(num_envs)
        lanes.most_steps = check_limit(max_episode_steps, lanes)
        modes: dict[str, Any] = {"autoreset_mode": autoreset_mode, "render_mode": render_mode}
        super().__init__(lanes, one.objective, copy=copy, **modes)


def vectorized(single: type[CrawlEnv]) -> type[FamilyVectorEnv]:
    """Return the class of a family's vector environments, with its keywords and accessors.

    The class has the name of the family's single class, with the suffix Vector.
    """
    access = [base for base in single.__bases__ if not issubclass(base, gymnasium.Env)]
    name = f"{single.__name__}Vector"
    doc = f"""``num_envs`` lanes of :class:`{single.__name__}` that step together.

    Its arguments are those of :class:`{single.__name__}` and :class:`FamilyVectorEnv`.
    """
    names = {"__module__": single.__module__, "__qualname__": name, "__doc__": doc}
    bases = (*access, FamilyVectorEnv, NativeVectorEnv)
    return new_class(name, bases, exec_body=lambda body: body.update(names, single=single))
