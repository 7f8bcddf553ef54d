"""Write an example of a crawl log: the included site, as a crawler would have seen it.

Every page is crawled now and then, and each crawl tells only whether the page changed since the
last one. Writes log.csv (url, time, changed, status) and signals.csv (url, time, source: the page
was named in the announcement of an update).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from crawl_envs.instances import traces
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command
from scripts.live.thinned_logs import SCHEDULES, thinned_log
from scripts.study.rows import check_folder, write_csv

SITE = "garden-handbook"
FIRST_DAY = np.datetime64("2026-01-01T00:00:00")


def main(
    trace: Annotated[str, Option(help="Folder of a trace, or name of a shipped one.")] = SITE,
    days: Annotated[float, Option(min=0.01, help="Mean days between crawls of a page.")] = 5.0,
    schedule: Annotated[str, Option(help="Times of crawls: regular or Poisson.")] = "regular",
    seed: Annotated[int, Option(min=0, help="Seed of the times.")] = 0,
    out: Annotated[Path, Option(help="Folder.")] = Path(),
) -> None:
    """Write the example."""
    one_of("schedule", schedule, SCHEDULES)
    record = traces.load(traces.find(trace))
    log, _ = thinned_log(record, days, schedule, np.random.default_rng(seed))
    check_folder(out)
    urls = [f"https://{record.name}.example/{d}/{k}" for k, d in enumerate(record.directory)]
    crawls = zip(log.page, log.time, log.changed, log.gone, strict=True)
    rows: Iterable[tuple[object, ...]] = (
        (urls[page], _date(time), int(changed), 404 if gone else 200)
        for page, time, changed, gone in crawls
    )
    write_csv(out / "log.csv", ("url", "time", "changed", "status"), rows)
    signals = zip(log.signal_page, log.signal_time, strict=True)
    rows = ((urls[page], _date(time), "mentions") for page, time in signals)
    write_csv(out / "signals.csv", ("url", "time", "source"), rows)
    print(f"{log.page.size} crawls, {log.signal_page.size} signals -> {out}/log.csv, signals.csv")


def _date(day: float) -> str:
    """Return a day of the record as a date and time."""
    return f"{FIRST_DAY + np.timedelta64(round(day * 86400.0), 's')}Z"


app = command(main, __doc__)

if __name__ == "__main__":
    app()
