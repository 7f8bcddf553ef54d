"""The folder of a scheduler in shards: a file of its settings, and a folder of each shard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crawl_envs.system.files import replacing
from policies.live.scheduler.durable import SHARDS_FILE, DurableScheduler
from policies.live.scheduler.scheduler import CrawlScheduler

RESTORE = "restore it from a backup, or begin with another folder"
"""What to do when files of a folder are missing."""


def check_folder(folder: Path, shards: int, scheduler: CrawlScheduler) -> list[Path]:
    """Make the folder of shards with the settings of a scheduler; return the folders of shards.

    Raises:
        ValueError: it is of other settings or of another version, or they cannot be read; it holds
            one scheduler, or some of its shards are missing.
    """
    if DurableScheduler.holds(folder):
        raise ValueError(
            f"folder must be of shards, {folder} is of a DurableScheduler: open it with that, or "
            "give another folder"
        )
    path, parts = folder / SHARDS_FILE, [folder / f"shard-{k:03d}" for k in range(shards)]
    settings = {"shards": shards, **fixed_settings(scheduler)}
    if not path.exists():
        if held := [part.name for part in folder.glob("shard-*") if DurableScheduler.holds(part)]:
            raise ValueError(f"{path} must be there, as {held[0]} is: {RESTORE}")
        for part in parts:  # before the file, so that none is missing later
            part.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(settings) + "\n")
    try:
        held = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON, it cannot be read: {error}") from error
    if not isinstance(held, dict) or set(held) != set(settings):
        raise ValueError(f"{path} must hold {', '.join(settings)}; it is of another version")
    for name, value in settings.items():
        if value != held[name]:
            raise ValueError(f"{name} must be {held[name]} as in {folder}, got {value}")
    empty = [part for part in parts if not DurableScheduler.holds(part)]
    if len(empty) == len(parts):  # no pages yet, after a crash at the start
        empty = [part for part in parts if not part.exists()]
    if empty:
        raise ValueError(f"{empty[0]} must hold a shard, its pages are missing: {RESTORE}")
    return parts


def fixed_settings(scheduler: CrawlScheduler) -> dict[str, Any]:
    """Return the settings that a scheduler never changes, as plain values."""
    lines, slack = scheduler.pages.choices.lines[0], scheduler.pages.choices.slack
    return {
        "policy": type(scheduler.pages.values.policy).__name__,
        "num_sources": scheduler.num_sources,
        "new_share": float(lines["new_share"]),
        "skew": float(lines["skew"]),
        "resolution": (slack - lines["skew"]).tolist(),
    }
