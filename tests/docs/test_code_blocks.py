"""The code of the README and of each page of the site runs, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, named

EXTRAS = {"torch", "stable_baselines3", "sb3_contrib", "sklearn", "yaml"}
"""Modules of extras; without them a page that imports one is skipped."""

Names = Mapping[str, Any]


def _quickstart(names: Names) -> None:
    assert 0.0 < names["rollout"].accuracy < 1.0
    assert names["mean"] > 0.8 * names["policy"].core.num_slots()


def _environments(names: Names) -> None:
    assert names["crawl"].core.ledger().cost > 0.0
    assert names["strategy"].core.ledger().accuracy > 0.9
    assert 0.0 < names["spent"].divergence < 0.2
    assert names["picture"].shape == (600, 800, 3)
    assert names["larger"].shape == (900, 1200, 3)


def _data(names: Names) -> None:
    assert names["rollout"].crawl_counts.sum() == 150
    assert (names["observation"][:, names["env"].unwrapped.features.index("elapsed")] > 0).all()


def _crawlers(names: Names) -> None:
    assert len(names["batch"]) == 40


def _four_calls(names: Names) -> None:
    assert names["url"] == "https://a.example/news"
    assert names["scheduler"].describe(names["url"])["copy"] == 0.51


def _operations(names: Names) -> None:
    assert list(names["lost"]) == ["https://a.example/"]
    assert names["scheduler"].describe("https://a.example/news")["state"] == "sent"
    assert names["state"]["copy"] is not None
    assert len(names["loop"]) == 29
    assert names["loop"].describe("https://b.example/7")["failures"] == 1


def _promises(names: Names) -> None:
    assert names["overview"]["late_fetches"] == names["overview"]["overdue"] == 0
    measured = names["measured"]
    assert measured.low < measured.estimate < measured.high < 1.0
    shown = f"{measured.estimate:.2f} [{measured.low:.2f}, {measured.high:.2f}]"
    assert f"  # {shown}\n" in (ROOT / "docs" / "promises.md").read_text("utf-8")


def _recorded(names: Names) -> None:
    instance = names["env"].unwrapped.instance
    assert instance.site in names["traces"].sites("train")
    assert instance.num_pages == 100


def _two_indices(names: Names) -> None:
    observation, _ = names["env"].reset(seed=0)
    pages = [names[name].predict(observation)[0] for name in ("whittle", "lagrangian")]
    assert pages[0] == pages[1]


def _estimators(names: Names) -> None:
    assert names["quality"].recall == pytest.approx(0.42, abs=0.005)
    assert names["quality"].precision == pytest.approx(0.52, abs=0.005)


RESULTS: dict[str, Callable[[Names], None]] = {
    "README.md": lambda names: _between(names["env"].unwrapped.ledger().accuracy, 0.8, 1.0),
    "docs/costs.md": lambda names: _between(names["scheduler"].describe("a")["cost"], 1.25, 1.25),
    "docs/crawlers.md": _crawlers,
    "docs/data.md": _data,
    "docs/ecosystem.md": lambda names: _between(*names["env"].observation_space.shape, 700, 700),
    "docs/environments.md": _environments,
    "docs/estimators.md": _estimators,
    "docs/index.md": lambda names: _between(names["env"].unwrapped.ledger().accuracy, 0.8, 1.0),
    "docs/operations.md": _operations,
    "docs/policies.md": lambda names: _between(names["chosen"][0], 0, 99),
    "docs/promises.md": _promises,
    "docs/quickstart.md": _quickstart,
    "docs/recorded.md": _recorded,
    "docs/restless.md": _two_indices,
    "docs/train.md": lambda names: _between(names["fresh"], 0.9, 1.0),
    "docs/values.md": lambda names: _between(names["best"].rates.sum(), 99.9, 100.1),
    "policies/live/README.md": _four_calls,
}
"""What holds after the code of a page; all pages with code are here, except RECIPES."""
RECIPES = "docs/recipes.md"
"""Its code needs files of other programs: tests/docs/test_recipes.py runs it."""


def _between(value: float, low: float, high: float) -> None:
    assert low <= value <= high, value


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


WITH_CODE = [page for page in PAGES if _blocks(page) and named(page) != RECIPES]


def test_the_pages_with_code_are_known():
    assert sorted(RESULTS) == sorted(map(named, WITH_CODE))


@pytest.mark.parametrize("page", WITH_CODE, ids=named)
def test_code_runs_from_top_to_bottom(page):
    names: dict[str, Any] = {}
    for block in _blocks(page):
        try:
            exec(compile(block, named(page), "exec"), names)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            pytest.skip(f"needs {error.name}")
    RESULTS[named(page)](names)
