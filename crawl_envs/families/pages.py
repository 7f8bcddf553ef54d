"""The arguments that families of pages have in common, and their wiring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.spaces.actions import BandwidthShares, CrawlRates, action_form
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.lanes import Lanes

EPOCH = 1.0
"""Default length of an epoch, in units of time."""

PageAction: TypeAlias = Literal["page", "scores", "refresh", "rates", "shares"]


class PageArguments(TypedDict, total=False):
    """Types of the keywords of :class:`PageFamily`, for ``**common`` of its subclasses."""

    batch: int
    epoch: float | None
    overspend: Overspend | None
    bucket: float | None
    crawl_cost: float
    observation: ObservationForm
    reveal: Literal["parameters", "importance"]
    resample: bool
    render_mode: RenderMode | None


class PageFamily(CrawlEnv):
    """Base class of families of pages; the page of ``CrawlNCIS-v0`` describes its keywords.

    The keywords that ``**common`` in the constructor of a subclass stands for appear in the
    signature of the subclass.

    Args:
        make: class of the lanes, with the arguments of the family bound.
        generator: generator of instances.
        term: name of the reward; see :class:`crawl_envs.spaces.rewards.Objective`.
        action: name of the action form.

    Raises:
        ValueError: an argument outside its range.
        TypeError: an argument that does not exist.
    """

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" not in vars(cls):
            return
        _, *own = inspect.signature(cls.__init__).parameters.values()
        if own and own[-1].kind == inspect.Parameter.VAR_KEYWORD:
            parent = next(base for base in cls.__mro__[1:] if "__init__" in vars(base))
            of_parent = inspect.signature(parent).parameters.values()
            common = [one for one in of_parent if one.kind == inspect.Parameter.KEYWORD_ONLY]
            names = {one.name for one in own}
            own[-1:] = [one for one in common if one.name not in names]
        cls.__signature__ = inspect.Signature(own)

    def __init__(
        self,
        make: Callable[..., Lanes],
        generator: Any,
        term: str,
        action: PageAction,
        /,
        *,
        batch: int = 1,
        epoch: float | None = None,
        overspend: Overspend | None = None,
        bucket: float | None = None,
        crawl_cost: float = 0.0,
        observation: ObservationForm = "table",
        reveal: Literal["parameters", "importance"] = "parameters",
        resample: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        epochs = {"epoch": epoch, "overspend": overspend, "bucket": bucket}
        make_lanes = partial(
            make,
            generator=generator,
            **_deciding(action, generator, batch, epochs),
            observation=observation,
            reveal=reveal,
            resample=resample,
        )
        super().__init__(make_lanes, Objective(term, crawl_cost), render_mode=render_mode)


def _deciding(action: str, generator: Any, batch: int, epochs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of lanes for an action form; those of epochs are None by default."""
    given = {name: value for name, value in epochs.items() if value is not None}
    if action in ("rates", "shares"):
        if batch != 1:
            raise ValueError(f"batch is for actions of slots, got {batch!r} with action {action!r}")
        pages, steps = generator.num_pages, generator.bandwidth_steps
        highest = max(generator.bandwidth, *(rate for _, rate in steps), 0.0)
        rates = CrawlRates(pages, highest) if action == "rates" else BandwidthShares(pages)
        return {"form": rates, "epoch": EPOCH, **given}
    form = action_form(action, generator.num_pages, batch)
    for name, value in given.items():
        raise ValueError(
            f"{name} is for actions 'rates' and 'shares', got {value!r} with action {action!r}"
        )
    return {"form": form}
