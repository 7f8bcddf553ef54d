"""The informed references: calibrated, better than formulas, and absent where no law is known."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.evaluation import evaluate, make_env
from crawl_envs.types.contents import Regions
from crawl_envs.worlds.fragments.regions import RegionPages
from policies.longevity.informed import InformedLongevity
from scripts.suite.informed import informed_policy

NCIS = {"num_pages": 30, "bandwidth": 30.0, "horizon": 15.0}


def crawls_of(law: str, seed: int) -> tuple[list[float], list[bool]]:
    """Return the believed probability of a change at each crawl of an episode, and the results."""
    env = make_env("CrawlNCIS-v0", instance=law, reveal="importance", **NCIS)
    observation, _ = env.reset(seed=seed)
    core, over = env.unwrapped, False
    policy = informed_policy(env)
    believed, results = [], []
    while not over:
        page, _ = policy.predict(observation)
        believed.append(1.0 - policy.of_lane().filter.fresh()[page])
        observation, _, _, over, _ = env.step(page)
        results += core.last_log().changed.tolist()
    return believed, results


@pytest.mark.parametrize("law", ["bursty", "shifting", "periodic", "deploys"])
def test_believed_changes_are_as_frequent_as_crawls_show(law: str) -> None:
    parts = [crawls_of(law, seed) for seed in (7_100_000, 7_100_001, 7_100_002)]
    believed, changed = (np.concatenate(part) for part in zip(*parts, strict=True))
    for half in (believed < np.median(believed), believed >= np.median(believed)):
        variance = (believed * (1.0 - believed))[half].mean()
        error = 3.0 * np.sqrt(variance / half.sum())
        assert changed[half].mean() == pytest.approx(believed[half].mean(), abs=error)


@pytest.mark.parametrize("costs", [0.0, 1.5])
@pytest.mark.parametrize("law", ["bursty", "periodic", "deploys", "corrupted", "late"])
def test_knowing_the_law_beats_the_revealed_parameters(law: str, costs: float) -> None:
    entrants = {"GreedyNCIS": partial(policies.make, "GreedyNCIS"), "informed": informed_policy}
    world = {**NCIS, "instance": law, "cost_spread": costs}
    rows = evaluate("CrawlNCIS-v0", entrants, range(7_200_000, 7_200_004), **world)
    freshness = {"GreedyNCIS": 0.0, "informed": 0.0}
    for row in rows:
        freshness[row.policy] += row.value * (row.metric == "freshness")
    assert freshness["informed"] > freshness["GreedyNCIS"]


FORMULAS = {
    "GreedyNCIS": ("CrawlNCIS-v0", {"instance": "cold"}),
    "GreedyNCISDelayed": ("CrawlNCIS-v0", {"instance": "delayed"}),
    "GreedyHarmonic": ("CrawlHarmonic-v0", {"action": "page"}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_poisson_laws_have_the_formula_of_the_true_parameters(name: str) -> None:
    id, arguments = FORMULAS[name]
    sizes = {"num_pages": 20, "bandwidth": 10.0, "horizon": 10.0, **arguments}
    entrants = {name: partial(policies.make, name), "informed": informed_policy}
    shown = list(evaluate(id, entrants, [3], **sizes))
    hidden = evaluate(id, {"informed": informed_policy}, [3], **sizes, reveal="importance")
    values = {row.value for row in [*shown, *hidden] if row.metric == "freshness"}
    assert len(values) == 1


@pytest.mark.parametrize(
    ("id", "arguments"),
    [
        ("CrawlOffers-v1", {"num_pages": 20, "horizon": 3.0}),
        ("CrawlTrace-v0", {"days_per_crawl": 90.0}),
        ("CrawlNCIS-v0", {"objective": "harmonic", "action": "rates", "reward": "freshness"}),
        ("CrawlNCIS-v0", {"instance": "bursty", "delay": {"kind": "constant", "mean": 1.0}}),
    ],
)
def test_there_is_no_reference_without_a_known_law(id: str, arguments: dict) -> None:
    env = gymnasium.make(id, **arguments)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="must have a"):
        informed_policy(env)


def test_fragments_without_signals_are_refreshed_by_known_curves() -> None:
    arguments = {"num_pages": 10, "horizon": 20.0}
    entrants = {
        "FragmentStatic": partial(policies.make, "FragmentStatic"),
        "informed": informed_policy,
    }
    rows = evaluate("CrawlLongevity-v0", entrants, [4], **arguments)
    assert len({row.value for row in rows if row.metric == "divergence"}) == 1


def test_utility_of_a_single_region_with_signals() -> None:
    """One churn region: fresh with P(N = 0), N = Poisson(.6 * .5 * 3) + Binomial(2, .2 / .5)."""
    pages = RegionPages([1.0], Regions([[1]], [[4]], [[0.5]]), [0.4], [0.3], bandwidth=1.0)
    policy = InformedLongevity(pages)
    tracker = SimpleNamespace(
        elapsed=np.array([3.0]), signals=np.array([2]), problem=pages.problem()
    )
    mean, fresh = 0.9 + 2 * 0.4, np.exp(-0.9) * 0.6**2
    expected = (1.0 - fresh - mean * fresh) / 0.5
    assert policy._urgency(tracker).utility[0] == pytest.approx(expected, rel=1e-12)
