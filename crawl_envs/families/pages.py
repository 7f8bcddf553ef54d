"""The action forms of families of pages, and their arguments."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from crawl_envs.spaces.actions import BandwidthShares, CrawlRates, action_form
from crawl_envs.worlds.budgets import Overspend

EPOCH = 1.0
"""Default length of an epoch, in units of time."""

PageAction: TypeAlias = Literal["page", "scores", "refresh", "rates", "shares"]
PageReveal: TypeAlias = Literal["parameters", "importance"]


def round_epoch(action: str, epoch: float | None) -> float | None:
    """Return the length of an epoch of ``rates`` and ``shares``; None for forms of slots."""
    if action not in ("rates", "shares"):
        return None
    return EPOCH if epoch is None else epoch


def action_arguments(
    action: str,
    generator: Any,
    batch: int,
    epoch: float | None,
    overspend: Overspend | None,
    bucket: float | None,
) -> dict[str, Any]:
    """Return the lanes' arguments for an action form; the page of ``CrawlNCIS-v0`` has more.

    Args:
        action: name of the action form.
        generator: generator of instances.
        batch: slots per decision, for forms of slots.
        epoch: length of an epoch, for rates and shares; None for EPOCH.
        overspend: of :class:`crawl_envs.worlds.budgets.RateBudget`, for rates and shares.
        bucket: of :class:`crawl_envs.worlds.budgets.RateBudget`, for rates and shares.

    Raises:
        ValueError: an argument outside its range, or of another action form.
    """
    named = (("epoch", epoch), ("overspend", overspend), ("bucket", bucket))
    rate_arguments = {name: value for name, value in named if value is not None}
    least_cost = getattr(generator, "least_cost", None)
    if action in ("rates", "shares"):
        if batch != 1:
            raise ValueError(f"batch is for actions of slots, got {batch!r} with action {action!r}")
        pages, steps = generator.num_pages, generator.bandwidth_steps
        highest = max(generator.bandwidth, *(rate for _, rate in steps), 0.0)
        highest /= least_cost or 1.0
        rates = CrawlRates(pages, highest) if action == "rates" else BandwidthShares(pages)
        return {"form": rates, "epoch": EPOCH, **rate_arguments}
    form = action_form(action, generator.num_pages, batch, least_cost is not None)
    for name, value in rate_arguments.items():
        raise ValueError(
            f"{name} is for actions 'rates' and 'shares', got {value!r} with action {action!r}"
        )
    return {"form": form}
