"""When decisions are made, and of what form: pages in slots, or crawl rates for epochs."""

from __future__ import annotations

from typing import Any

from crawl_envs.spaces.actions import ACTION_FORMS, SLOT_FORMS, CrawlRates, action_form
from crawl_envs.worlds.budgets import Overspend

EPOCH = 1.0
"""Default length of an epoch, in units of time."""


def decisions(
    action: str,
    generator: Any,
    *,
    batch: int = 1,
    probe: bool = False,
    epoch: float | None = None,
    overspend: Overspend | None = None,
    bucket: float | None = None,
) -> dict[str, Any]:
    """Return the arguments of :class:`crawl_envs.worlds.lanes.Lanes` for an action form.

    Args:
        action: name of the form.
        generator: generator of instances, of a bandwidth.
        batch: slots per decision of ``scores``.
        probe: whether pages can be probed, with ``page``.
        epoch: length of an epoch of ``rates``; None for EPOCH.
        overspend: of ``rates``; see :class:`crawl_envs.worlds.budgets.RateBudget`.
        bucket: of ``rates``, likewise.

    Raises:
        ValueError: an unknown form, an argument out of its range, or one of another form.
    """
    epochs = {"epoch": epoch, "overspend": overspend, "bucket": bucket}
    given = {name: value for name, value in epochs.items() if value is not None}
    if action == "rates":
        if batch != 1 or probe:
            raise ValueError(
                "batch and probe are for actions of slots, got "
                f"{batch!r} and {probe!r} with action 'rates'"
            )
        highest = max(generator.bandwidth, *(rate for _, rate in generator.bandwidth_steps), 0.0)
        return {"form": CrawlRates(generator.num_pages, highest), "epoch": EPOCH, **given}
    if action not in SLOT_FORMS:
        raise ValueError(f"action must be one of {ACTION_FORMS}, got {action!r}")
    for name, value in given.items():
        raise ValueError(f"{name} is for action 'rates', got {value!r} with action {action!r}")
    return {"form": action_form(action, generator.num_pages, batch, probe)}
