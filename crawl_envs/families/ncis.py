"""``CrawlNCIS-v0``: noisy change-indicating signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium.vector import AutoresetMode

from crawl_envs.actions import action_form
from crawl_envs.instances import generator_of
from crawl_envs.lanes import Lanes
from crawl_envs.objectives import Objective
from crawl_envs.single import CrawlEnv
from crawl_envs.types import Reveal
from crawl_envs.vector import CrawlVectorEnv


def _lanes(
    num_lanes: int,
    *,
    num_pages: int = 100,
    bandwidth: float = 100.0,
    bandwidth_steps: Sequence[Sequence[float]] = (),
    horizon: float = 10.0,
    instance: str = "uniform",
    action: str = "page",
    batch: int = 1,
    reveal: Reveal = "parameters",
    delay: Mapping[str, Any] | None = None,
    resample: bool = False,
) -> Lanes:
    """Wire the family's lanes; the arguments are those of :class:`CrawlNCIS`."""
    generator = generator_of(
        instance,
        num_pages=num_pages,
        bandwidth=bandwidth,
        bandwidth_steps=bandwidth_steps,
        delay=delay,
    )
    form = action_form(action, num_pages, batch)
    return Lanes(num_lanes, generator, form, horizon=horizon, reveal=reveal, resample=resample)


class CrawlNCIS(CrawlEnv):
    """DOC."""

    def __init__(
        self,
        *,
        objective: str = "binary",
        reward: str = "freshness",
        crawl_cost: float = 0.0,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(
            _lanes(1, **arguments),
            Objective(reward, crawl_cost, objective),
            render_mode=render_mode,
        )


class CrawlNCISVector(CrawlVectorEnv):
    """``num_envs`` lanes of :class:`CrawlNCIS` that step together, with the same arguments.

    Besides: ``autoreset_mode`` (``NextStep`` by default, ``SameStep``, ``Disabled``) and ``copy``
    (False returns the observation buffer itself, which the next step overwrites).
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        objective: str = "binary",
        reward: str = "freshness",
        crawl_cost: float = 0.0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **arguments: Any,
    ) -> None:
        super().__init__(
            _lanes(num_envs, **arguments),
            Objective(reward, crawl_cost, objective),
            autoreset_mode=autoreset_mode,
            copy=copy,
        )
