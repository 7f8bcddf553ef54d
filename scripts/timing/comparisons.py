"""Comparisons of speed with other implementations, as a table.

A comparison is a set of tasks with the same amount of work that are timed in turns. By default,
lanes use ``noisy`` instances with one crawl per page and unit time, of random pages, in episodes of
1000 steps with autoreset. Solvers and estimators have the baselines of
:mod:`scripts.timing.baselines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import policies
from crawl_envs import Instance, instances
from crawl_envs.evaluation import simulate
from policies import solvers
from policies.estimators.change_rates import fit_change_rates
from scripts.timing import baselines
from scripts.timing.stepped import CASES, LANES, NCIS, PAGES, Case, ncis, stepping
from scripts.timing.training_tasks import FRAMES, MANY_LANES, bridge_tasks, ppo_tasks
from scripts.timing.turns import Task, repeated

INSTANCE = "noisy"
ROLLOUT_PAGES, ROLLOUT_HORIZON = 1000, 10.0
PPO_PAGES = (20, 100)
CARTPOLE = Case("CartPole")
UNIFORM, NOT_COPIED = {**NCIS, "instance": "uniform"}, {"copy": False}
ONE = Case("CrawlNCIS", {"instance": INSTANCE}, lanes=None)


class Ratio(NamedTuple):
    """A task, its baseline, and the ratio of speeds that it should reach, if any."""

    task: str
    baseline: str
    floor: float | None = None


class Comparison(NamedTuple):
    """Tasks timed in turns; one execution of a task does ``amount`` units of work.

    Without an amount, speeds are left out. ``differences`` are of the seconds of two tasks: name,
    task that takes less, and more. ``most_turns`` limits the number of turns of long tasks.
    """

    name: str
    tasks: Callable[[], dict[str, Task]]
    amount: int = 0
    unit: str = ""
    ratios: tuple[Ratio, ...] = ()
    most_turns: int | None = None
    differences: tuple[tuple[str, str, str], ...] = ()


def stepping_tasks(cases: Mapping[str, Case]) -> dict[str, Task]:
    """Return the tasks of stepping, all as many steps per execution as the first case."""
    steps = next(iter(cases.values())).steps

    def executing(task: Task) -> Task:
        return lambda times: task(times * steps)

    return {name: executing(stepping(case)) for name, case in cases.items()}


def of_families(title: str, *names: str) -> Comparison:
    """Return the comparison of cases of the same numbers of steps with CartPole."""
    cases = {name: CASES[name] for name in names}
    return Comparison(
        f"{LANES} lanes of {title}",
        partial(stepping_tasks, {**cases, "cartpole": CARTPOLE}),
        LANES * CASES[names[0]].steps,
        "env-steps",
        tuple(Ratio(name, "cartpole") for name in names),
        most_turns=15,
    )


def of_training(pages: int) -> Comparison:
    """Return the comparison of PPO with CrawlVecEnv and with ``make_vec_env``."""
    many, theirs = f"PPO, CrawlVecEnv of {MANY_LANES} lanes", "PPO, make_vec_env"
    return Comparison(
        f"PPO, {LANES} lanes of {pages} pages",
        partial(ppo_tasks, LANES, ncis(pages)),
        FRAMES,
        "env-steps",
        (
            Ratio("PPO, CrawlVecEnv", theirs, 2.0),
            Ratio(many, theirs),
            Ratio(many, f"{theirs} of {MANY_LANES}"),
        ),
        most_turns=15,
    )


def rollout_tasks() -> dict[str, Task]:
    """Return rollouts of GREEDY with 10,000 crawls each."""
    bandwidth = float(ROLLOUT_PAGES)
    instance = instances.make(INSTANCE, num_pages=ROLLOUT_PAGES, bandwidth=bandwidth, seed=0)
    greedy: Any = policies.make("Greedy", features=("elapsed", "importance", "change_rate"))

    def simulating(times: int) -> None:
        for seed in range(times):
            simulate(instance, greedy, ROLLOUT_HORIZON, seed)

    return {"simulate": simulating}


COMPARISONS = (
    Comparison(
        f"{LANES} lanes of {PAGES} pages",
        partial(
            stepping_tasks,
            {
                "crawl, copied": Case("CrawlNCIS", NCIS),
                "crawl, not copied": Case("CrawlNCIS", {**NCIS, **NOT_COPIED}),
                "crawl of uniform, copied": Case("CrawlNCIS", UNIFORM),
                "crawl of uniform, not copied": Case("CrawlNCIS", {**UNIFORM, **NOT_COPIED}),
                "cartpole": CARTPOLE,
            },
        ),
        LANES,
        "env-steps",
        (
            Ratio("crawl, copied", "cartpole", 3.0),
            Ratio("crawl, not copied", "cartpole", 5.0),
            Ratio("crawl of uniform, copied", "cartpole", 3.0),
            Ratio("crawl of uniform, not copied", "cartpole", 5.0),
        ),
    ),
    of_families("other families", "harmonic, pages", "harmonic, rates", "trace"),
    of_families(f"{PAGES} pages with fragments, with resets", "longevity"),
    of_families(
        "1,000 offers, weeks with resets, and a year",
        *("offers", "offers, not copied", "offers, a year"),
    ),
    Comparison(
        f"single, {PAGES} pages",
        partial(
            stepping_tasks,
            {
                "crawl": ONE,
                "crawl, unwrapped": ONE._replace(wrapped=False),
                "cartpole": CARTPOLE._replace(lanes=None),
            },
        ),
        1,
        "env-steps",
        (Ratio("crawl", "cartpole", 2.0),),
    ),
    Comparison(
        f"GREEDY over {ROLLOUT_PAGES} pages",
        rollout_tasks,
        round(ROLLOUT_PAGES * ROLLOUT_HORIZON),
        "crawls",
    ),
    Comparison(
        f"Stable-Baselines3, {LANES} lanes of {PAGES} pages",
        partial(bridge_tasks, LANES, NCIS),
        LANES,
        "env-steps",
        (Ratio("CrawlVecEnv", "make_vec_env", 20.0),),
    ),
    *map(of_training, PPO_PAGES),
)


class Solved(NamedTuple):
    """Functions of the same drawn pages: the comparison over ``pages``, or fewer in a quick one.

    The name has a place for the number of pages; ``draw`` returns the arguments for so many pages.
    """

    name: str
    draw: Callable[[int], tuple[Any, ...]]
    calls: Mapping[str, Callable[..., Any]]
    pages: int
    quick_pages: int
    ratios: tuple[Ratio, ...] = ()
    most_turns: int | None = None

    def comparison(self, quick: bool) -> Comparison:
        """Return the comparison: calls of each function with the same pages."""
        count = self.quick_pages if quick else self.pages

        def tasks() -> dict[str, Task]:
            given = self.draw(count)
            return {name: repeated(call, *given) for name, call in self.calls.items()}

        name = self.name.format(count)
        return Comparison(name, tasks, count, "pages", self.ratios, self.most_turns)


def noisy_pages(count: int) -> tuple[Instance]:
    """Return pages of the law ``noisy``, of which a tenth is crawled per unit of time."""
    return (instances.make(INSTANCE, num_pages=count, bandwidth=count / 10.0),)


def periodic_of(pages: Instance) -> solvers.Allocation:
    """Return the optimum of pages without their signals."""
    return solvers.binary_periodic(pages.importance, pages.change_rate, pages.bandwidth)


SOLVED = (
    Solved(
        "optimum over {:,} pages, 10 per crawl and unit of time",
        noisy_pages,
        {"ncis, Theorem 1": solvers.ncis, "binary_periodic, eq. 5": periodic_of},
        100_000,
        100_000,
    ),
    Solved(
        "LambdaCrawl over {:,} pages",
        baselines.pages,
        {
            "harmonic": solvers.harmonic,
            "numpy and brentq": baselines.numpy_harmonic,
            "numpy in place and brentq": partial(baselines.numpy_harmonic, in_place=True),
        },
        18_532_314,
        400_000,
        (
            Ratio("harmonic", "numpy and brentq", 10.0),
            Ratio("harmonic", "numpy in place and brentq"),
        ),
        most_turns=9,
    ),
    Solved(
        "LambdaCrawl over {:,} pages, 4% with complete observation",
        baselines.mixed_pages,
        {"harmonic, mixed": solvers.harmonic},
        100_000,
        10_000,
    ),
    Solved(
        "even intervals over {:,} pages",
        baselines.pages,
        {
            "binary_periodic": solvers.binary_periodic,
            "lambertw and brentq": baselines.scipy_binary_periodic,
        },
        1_000_000,
        50_000,
        (Ratio("binary_periodic", "lambertw and brentq", 15.0),),
        most_turns=9,
    ),
    Solved(
        f"change rates of {{}} pages with {baselines.CRAWLS} crawls each",
        baselines.histories,
        {
            "fit_change_rates": partial(fit_change_rates, smoothing=baselines.SMOOTHING),
            "brentq per page": baselines.scipy_change_rates,
        },
        500,
        50,
        (Ratio("fit_change_rates", "brentq per page", 60.0),),
    ),
)
"""Comparisons of solvers and estimators; few turns where baselines take seconds."""


def comparisons(quick: bool) -> list[Comparison]:
    """Return all comparisons, those of SOLVED with fewer pages if ``quick``."""
    return [*COMPARISONS, *(each.comparison(quick) for each in SOLVED)]
