"""Weights of fragments, against weighted Jaccard distances of plain sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies import bind
from policies.longevity.offline import FragmentStatic
from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity.measures.plays import ledgers, ticking
from scripts.experiments.longevity.weights import ALIKE, Weighted, Weights, weighted

PAGES, SEED = 6, 4


def drawn(name: str = "random") -> Any:
    """An environment after its reset."""
    env: Any = ticking(name, PAGES, reveal="parameters")
    env.reset(seed=SEED)
    return env


def spells(core: Any, page: int) -> list[tuple[int, float, float, int]]:
    """Key, birth, death and size of the spells of a page, in order of birth and death."""
    contents = core.contents()
    rows = range(contents.start[page], contents.start[page + 1])
    columns = (contents.key, contents.birth, contents.death, contents.size)
    return [tuple(column[row].item() for column in columns) for row in rows]  # type: ignore[misc]


@pytest.mark.parametrize("weights", [ALIKE, Weights(2, 1, 5), Weights(1, 7, 3)])
def test_the_distance_is_the_weighted_one(weights: Weights) -> None:
    env, other = drawn(), drawn()
    other.reset(seed=SEED, options={"instance": weighted(env.unwrapped.instance, weights)})
    regions = env.unwrapped.instance.regions
    while not env.unwrapped.tracker(0).time >= 30.0:
        none = np.zeros(PAGES, np.int8)
        env.step(none)
        other.step(none)
    now, found = env.unwrapped.tracker(0).time, other.unwrapped.true_divergence(0).divergence
    for page in range(PAGES):
        plain, heavy = spells(env.unwrapped, page), spells(other.unwrapped, page)
        assert [spell[1:3] for spell in plain] == [spell[1:3] for spell in heavy]
        of_size = {}
        for column, weight in enumerate(weights):
            each = int(regions.size[page, column])
            each *= 1 if column else int(regions.items[page, 0])
            of_size[each] = weight if of_size.get(each, weight) == weight else None
        total = common = 0.0
        for _, birth, death, size in plain:
            then, live = birth <= 0.0 < death, birth < now <= death
            weight = of_size[size]
            assert weight is not None
            total += weight * size * (then or live)
            common += weight * size * (then and live)
        assert found[page] == pytest.approx(1.0 - common / total, abs=1e-12)
    assert found.max() > 0.1


def test_curves_of_weighted_pages_are_means_of_divergence() -> None:
    weights, count = Weights(1, 1, 16), 400
    env: Any = ticking("quality", count)
    env.reset(seed=0)
    pages = weighted(env.unwrapped.instance, weights)
    env.reset(seed=0, options={"instance": pages})
    while not env.unwrapped.tracker(0).time >= 20.0:
        env.step(np.zeros(count, np.int8))
    found = env.unwrapped.true_divergence(0).divergence
    expected = RegionCurves(pages.regions).divergence(np.full(count, 20.0))
    error = 4.0 * np.std(found - expected) / np.sqrt(count)
    assert abs(np.mean(found - expected)) < error < 0.03


def test_observed_weights_change_only_the_crawls() -> None:
    true = Weights(1, 16, 1)
    envs = [ticking("quality", 40, reveal="parameters") for _ in range(2)]

    def make(env: Any) -> Any:
        return bind(FragmentStatic(threshold=0.3), env)

    def played(seen: Weights, true: Weights) -> list[Any]:
        env = Weighted(*envs, seen, true)
        return ledgers(env, make, 2, env.ledger)[0]

    alike, told, same = played(ALIKE, true), played(true, true), played(ALIKE, ALIKE)
    own, _ = ledgers(envs[0], make, 2)
    assert alike[-1].crawls == own[-1].crawls != told[-1].crawls
    assert alike[-1].divergence != own[-1].divergence
    assert alike[-1].fresh_time == pytest.approx(own[-1].fresh_time)
    assert [record.divergence for record in same] == [record.divergence for record in own]
