"""Play a month of a shopping search's full size: 1.3 million offers, in steps of two hours.

That is the size of Han et al. 2020, section 4, here without an environment: the market is drawn
day by day, and nothing is kept but what the tracker holds. Every policy has a process of
its own, which tells its time part by part and the most memory it ever had. Beside it stand the
time of ``env.step`` at the size of the paper's tables here, and of predictions for one day.
Written are ``scale.csv`` and ``provenance.json``.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, NamedTuple

import gymnasium
import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from agents.predictors import TASKS, load, names
from crawl_envs.instances.market import market
from crawl_envs.sim.streams import roots
from crawl_envs.types import FloatArray
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.features import features_of
from crawl_envs.worlds.offers.lane import OfferLane
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, Market
from policies.offers.lambdacrawl import discrete_rates
from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.tables import console

OUT, QUICK_OUT = Path("results/offers/scale"), Path("runs/offers/scale")
OFFERS, DAYS, QUICK_OFFERS, QUICK_DAYS = 1_300_000, 31, 20_000, 3
STEPPED_OFFERS, STEPPED_DAYS = 20_000, 7
CRAWLS_PER_OFFER = 0.1
UNIFORM, LAMBDA = "UniformCrawl", "DiscreteLambdaCrawl, history"
ONE_DAY, STEPS = "predictions of one day", "env.step"


class Figure(NamedTuple):
    """A number that was measured: of which run, on how many offers and days, what, and its unit."""

    run: str
    offers: int
    days: int
    what: str
    value: float
    unit: str


class Clock:
    """Adds up the wall time of parts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of the block for a part."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def uniform_rates(book: OfferFeatures, bandwidth: float) -> FloatArray:
    """Equal rates."""
    m = book.clicks_30.size
    return np.full(m, bandwidth / m)


def history_rates(book: OfferFeatures, bandwidth: float) -> FloatArray:
    """Rates of LambdaCrawl by the averages of the last 30 days."""
    change = np.minimum(book.change_frequency.astype(np.float64), 1.0)
    clicks = book.clicks_30.astype(np.float64)
    return discrete_rates(clicks, change, bandwidth, float(STEPS_PER_DAY), 1.0 / STEPS_PER_DAY)


STRATEGIES: dict[str, Callable[[OfferFeatures, float], FloatArray]] = {
    UNIFORM: uniform_rates,
    LAMBDA: history_rates,
}


def played(strategy: str, offers: int, days: int) -> list[Figure]:
    """Play a strategy for some days; the parts of its time, its memory, and how fresh it is."""
    clock, start = Clock(), time.perf_counter()
    with clock.part("market"):
        drawn = market(offers, seed=0, bandwidth=CRAWLS_PER_OFFER * offers)
    with clock.part("history, first day and book"):
        room = OfferLane(drawn, roots(0), 0, "log")
    for _ in range(days):
        with clock.part("solve"):
            rates = STRATEGIES[strategy](room.book, CRAWLS_PER_OFFER * offers)
        for step in range(STEPS_PER_DAY):
            with clock.part("choose"):
                chosen = room.world.choose(rates)
            ends = step == STEPS_PER_DAY - 1
            with clock.part("last steps of days, next day and book" if ends else "other steps"):
                room.play(chosen)
    total = time.perf_counter() - start
    ledger = room.ledger("clicks")
    told = partial(Figure, strategy, offers, days)
    return [
        *(told(name, seconds, "s") for name, seconds in clock.seconds.items()),
        told("total", total, "s"),
        told("peak memory", peak_memory(), "GB"),
        told("one book", book_seconds(drawn, room), "s"),
        told("clicks that saw the true price", ledger.hits / max(ledger.requests, 1), "share"),
        told("offers fresh at midnight", ledger.offer_freshness, "share"),
    ]


def book_seconds(drawn: Market, room: OfferLane) -> float:
    """How long it takes to write the book of a day, from a copy of what is known."""
    state = room.get_state()["state"]
    counts = (state.clicks, state.views, state.changes)
    start = time.perf_counter()
    features_of(drawn.metadata, room.book.day, room.book.day_of_week, counts, state.last_change)
    return time.perf_counter() - start


def peak_memory() -> float:
    """Return the most memory that this process ever had, in GB."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def predicted(name: str, offers: int) -> list[Figure]:
    """Predict all that happens to offers on one day; the time of each task."""
    told = partial(Figure, f"{ONE_DAY}, {name}", offers, 1)
    drawn = market(offers, seed=0, bandwidth=CRAWLS_PER_OFFER * offers)
    book = OfferLane(drawn, roots(0), 0, "log").book
    predictors, clock = load(name), Clock()
    for task in TASKS:
        with clock.part(task):
            predictors[task].predict(book)
    seconds = clock.seconds
    return [
        *(told(task, value, "s") for task, value in seconds.items()),
        told("total", sum(seconds.values()), "s"),
        told("peak memory", peak_memory(), "GB"),
    ]


def stepped(offers: int, days: int) -> list[Figure]:
    """Step through the environment at even rates: the mean step, and that within days."""
    env = gymnasium.make("CrawlOffers-v0", num_pages=offers, horizon=float(days))
    env.reset(seed=0)
    rates = np.full(offers, CRAWLS_PER_OFFER)
    taken = []
    for _ in range(days * STEPS_PER_DAY):
        start = time.perf_counter()
        env.step(rates)
        taken.append(time.perf_counter() - start)
    env.close()
    told = partial(Figure, STEPS, offers, days)
    return [
        told("mean step", 1e3 * float(np.mean(taken)), "ms"),
        told("median step", 1e3 * float(np.median(taken)), "ms"),
    ]


def alone(task: Callable[[], list[Figure]]) -> list[Figure]:
    """Do a task in a fresh process, which hears no interrupt: it ends when this one hears it.

    Raises:
        BrokenProcessPool: it was killed.
    """
    context = multiprocessing.get_context("spawn")
    responses, end = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(task, end), daemon=True)
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process inherits it
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, heard)
    try:
        end.close()
        figures: list[Figure] | Exception = responses.recv()
    except EOFError:
        raise BrokenProcessPool("a process ended without an answer") from None
    finally:
        process.kill()
        process.join()
    if isinstance(figures, Exception):
        raise figures
    return figures


def answer(task: Callable[[], list[Figure]], end: Connection) -> None:
    """Send what comes of a task, or what went wrong."""
    try:
        end.send(task())
    except Exception as error:
        end.send(error)


def measure(quick: bool, bar: Progress) -> list[Figure]:
    """Measure everything, each in a fresh process, one after the other.

    Each is begun by a short one of its own in another process, which leaves compiled code behind.
    """
    offers, days = (QUICK_OFFERS, QUICK_DAYS) if quick else (OFFERS, DAYS)
    tasks = [partial(played, label, offers, days) for label in STRATEGIES]
    tasks += [partial(predicted, name, offers) for name in names()]
    tasks.append(partial(stepped, STEPPED_OFFERS, 1 if quick else STEPPED_DAYS))
    warm = [partial(played, label, 100, 1) for label in STRATEGIES]
    warm += [partial(predicted, name, 100) for name in names()]
    warm.append(partial(stepped, 100, 1))
    row, figures = bar.add_task("compiling", total=len(warm) + len(tasks)), []
    for task in warm:
        alone(task)
        bar.advance(row)
    for task in tasks:
        bar.update(row, description=", ".join(str(word) for word in task.args))
        figures += alone(task)
        bar.advance(row)
    return figures


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Quick = Annotated[bool, typer.Option("--quick", help="Few offers and days: to see that it works.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of results.", show_default=f"{OUT}; {QUICK_OUT} if --quick"),
]


@app.command(help=__doc__)
def main(quick: Quick = False, out: Out = None) -> None:
    """Measure, write and show."""
    folder = out or (QUICK_OUT if quick else OUT)
    start, load_at_start = time.perf_counter(), os.getloadavg()
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        check_folder(folder)
        with Progress(console=Console(stderr=True)) as bar:
            figures = measure(quick, bar)
    seconds = time.perf_counter() - start
    about = {"cores": os.cpu_count(), "load_at_start": load_at_start}
    with plain_interrupt(f"stopped while writing; {folder} may lack files of this run"):
        write_csv(folder / "scale.csv", Figure._fields, figures)
        write_provenance(
            folder / "provenance.json", "scripts.timing.offers_scale", seconds, **about
        )
        show(figures)
        typer.echo(f"-> {folder}")


def show(figures: list[Figure]) -> None:
    """Print the table of what was measured."""
    table = Table(title="A month of offers")
    for name in Figure._fields:
        table.add_column(name, justify="right" if name == "value" else "left")
    for run, offers, days, what, value, unit in figures:
        table.add_row(run, f"{offers:,}", str(days), what, f"{value:.3g}", unit)
    console().print(table)


if __name__ == "__main__":
    app()
