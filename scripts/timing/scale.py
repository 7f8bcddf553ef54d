"""Define the cases that ``scripts.speed`` measures: tasks, numbers of pages, and baselines."""

from __future__ import annotations

from functools import partial

from crawl_envs import Instance
from policies import solvers
from policies.estimators.change_rates import fit_change_rates
from scripts.timing import baselines, environments, live_scheduler, offers
from scripts.timing.cases import Case, Ratio, calls
from scripts.timing.environments import CARTPOLE, beside_cartpole
from scripts.timing.stepped import CASES as STEPPED
from scripts.timing.stepped import LANES, PAGES


def stepped(*floors: tuple[str, float | None]) -> Case:
    """Return a case of named environments, with the least ratio of each one's speed to CartPole.

    All environments must have the family, lanes and pages of the first.
    """
    names = tuple(name for name, _ in floors)
    first = STEPPED[names[0]]
    return Case(
        f"{first.family}, {f'{first.lanes} lanes' if first.lanes else 'single'}",
        (first.pages,),
        partial(beside_cartpole, names),
        "env-steps",
        tuple(Ratio(name, CARTPOLE, floor) for name, floor in floors),
    )


def one_instance(pages: int) -> tuple[Instance]:
    """Return the arguments for solvers that take one instance: noisy pages."""
    return (live_scheduler.noisy_pages(pages),)


CASES = (
    stepped(("ncis", 3.0), ("ncis, not copied", 5.0)),
    stepped(("harmonic, pages", None), ("harmonic, rates", None)),
    stepped(("trace", None)),
    stepped(("longevity", None)),
    stepped(("offers", None), ("offers, a year", None)),
    stepped(("ncis, single", 2.0)),
    Case("rollouts of GREEDY", (1_000,), environments.rollout_tasks, "crawls"),
    Case(
        f"Stable-Baselines3, {LANES} lanes",
        (PAGES,),
        environments.bridge_tasks,
        "env-steps",
        (Ratio("CrawlVecEnv", "make_vec_env", 20.0),),
    ),
    Case(
        "optimum with signals",
        (100_000,),
        calls(one_instance, {"ncis": solvers.ncis}),
        quick_size=10_000,
    ),
    Case(
        "LambdaCrawl",
        (18_532_314,),
        calls(
            baselines.pages,
            {"harmonic": solvers.harmonic, "NumPy and brentq": baselines.numpy_harmonic},
        ),
        ratios=(Ratio("harmonic", "NumPy and brentq", 10.0),),
        max_turns=9,
        quick_size=400_000,
    ),
    Case(
        "even intervals",
        (1_000_000,),
        calls(
            baselines.pages,
            {
                "binary_periodic": solvers.binary_periodic,
                "lambertw and brentq": baselines.scipy_binary_periodic,
            },
        ),
        ratios=(Ratio("binary_periodic", "lambertw and brentq", 15.0),),
        max_turns=9,
        quick_size=50_000,
    ),
    Case(
        f"change rates of {baselines.CRAWLS} crawls each",
        (500,),
        calls(
            baselines.histories,
            {
                "fit_change_rates": partial(fit_change_rates, smoothing=baselines.SMOOTHING),
                "brentq per page": baselines.scipy_change_rates,
            },
        ),
        ratios=(Ratio("fit_change_rates", "brentq per page", 60.0),),
        quick_size=50,
    ),
    Case(
        "live scheduler, batches of 1,000",
        (100_000, 1_000_000, 10_000_000),
        live_scheduler.scheduler_tasks,
        "crawls",
        (Ratio("scheduler", "dense search"),),
        max_turns=9,
        values=live_scheduler.scheduler_sizes,
        quick_size=1_000,
    ),
    Case(
        "live scheduler, one page at a time",
        (100_000, 1_000_000),
        live_scheduler.fetch_tasks,
        "crawls",
        quick_size=1_000,
    ),
    Case(
        "pages with fragments",
        (100, 1_000, 10_000, 100_000),
        environments.fragment_tasks,
        "env-steps",
        (Ratio("CrawlLongevity", "CrawlNCIS"),),
        max_turns=15,
        values=environments.fragment_bytes,
    ),
    Case("a month of offers", (1_300_000,), values=offers.month, new_process=True, quick_size=2000),
)
