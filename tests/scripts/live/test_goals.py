"""Goals: least budgets against independent optimisation, and schedules that keep promises."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import bisect, minimize

from crawl_envs.types import FloatArray
from policies import solvers
from policies.live.adapters import page_tables
from policies.live.logs import PageTable, hosts_of, read_page_table, write_page_table
from scripts import schedule as command
from scripts.live import goals, planning
from tests.scripts.commands import done, records, refused, run


def table(m: int = 6, seed: int = 0, **more: object) -> PageTable:
    """Return pages of two hosts and two groups; every third page sells."""
    rng = np.random.default_rng(seed)
    urls = np.array([f"https://h{k % 2}.example/{k}" for k in range(m)], np.object_)
    columns = {
        "importance": rng.uniform(0.5, 2.0, m),
        "change_rate": rng.uniform(0.1, 3.0, m),
        "cost": rng.uniform(0.5, 3.0, m),
        "group": np.array(["news" if k % 3 else "shop" for k in range(m)], np.object_),
        "last_crawl": np.zeros(m),
    }
    return PageTable(urls=urls, host=hosts_of(urls), **{**columns, **more})  # type: ignore[arg-type]


def least_budget(pages: PageTable, *texts: str) -> float:
    """Return the cost per day of the rates that keep goals."""
    rates = goals.joint_rates([goals.read_goal(text, pages) for text in texts], pages)
    return float(planning.costs_of(pages) @ rates)


def freshness(change_rate: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the share of time in which pages are fresh, from the mean over one interval."""
    times = (np.arange(2000) + 0.5) / 2000.0
    fresh: FloatArray = np.exp(-np.multiply.outer(change_rate / rates, times)).mean(axis=-1)
    return fresh


def least_cost(pages: PageTable, aims: list[tuple[list[int], float]], floor: float) -> float:
    """Minimise the cost of rates >= floor, with least mean freshness of some groups of pages."""
    assert pages.change_rate is not None
    change, cost = pages.change_rate, pages.cost

    def slack(rows: list[int], level: float, logs: FloatArray) -> float:
        weight = pages.importance[rows]
        fresh = freshness(change[rows], np.exp(logs[rows]))
        return float(weight @ fresh / weight.sum() - level)

    found = minimize(
        lambda logs: cost @ np.exp(logs),
        np.log(10.0 * change + floor),
        method="SLSQP",
        bounds=[(np.log(floor), None)] * pages.num_pages,
        constraints=[
            {"type": "ineq", "fun": lambda logs, aim=aim: slack(*aim, logs)} for aim in aims
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("texts", "news", "every", "floor"),
    [
        (["all: fresh 0.8"], 0.0, 0.8, 1e-9),
        (["all: fresh 0.7", "news: fresh 0.9"], 0.9, 0.7, 1e-9),
        (["all: fresh 0.9", "news: fresh 0.6"], 0.6, 0.9, 1e-9),
        (["all: fresh 0.7", "all: age 0.5", "news: fresh 0.9"], 0.9, 0.7, 2.0),
    ],
)
def test_the_least_budget_is_that_of_a_constrained_optimisation(
    seed: int, texts: list[str], news: float, every: float, floor: float
) -> None:
    pages = table(seed=seed)
    assert pages.group is not None
    some = np.flatnonzero(pages.group == "news").tolist()
    found = least_budget(pages, *texts)
    least = least_cost(pages, [(some, news), ([*range(6)], every)], floor)
    assert found == pytest.approx(least, rel=1e-5)


def test_the_cheapest_pages_have_the_share_of_importance() -> None:
    pages = table(9, seed=4)
    assert pages.change_rate is not None
    assert pages.cost is not None
    goal = goals.read_goal("all: fresh 0.85 of 0.7", pages)
    rate = np.array(
        [
            bisect(lambda r, d=d: freshness(np.array([d]), np.array([r]))[0] - 0.85, d, 99.0 * d)
            for d in pages.change_rate
        ]
    )
    rates = goal.least_rates(pages, np.zeros(9))
    np.testing.assert_allclose(rates[goal.rows], rate[goal.rows], rtol=1e-5)
    assert np.count_nonzero(rates) == goal.rows.size
    price, weight = pages.cost * rate, pages.importance / pages.importance.sum()
    assert weight[goal.rows].sum() >= 0.7
    optimum = min(
        price @ np.array(chosen)
        for chosen in itertools.product((0.0, 1.0), repeat=9)
        if weight @ np.array(chosen) >= 0.7
    )
    assert optimum - 1e-4 <= price[goal.rows].sum() <= optimum + price.max()


@pytest.mark.parametrize("text", ["shop: fresh 0.7", "h1.example: fresh 0.7 of 1", "all: age 3"])
def test_the_best_level_of_the_least_budget_is_the_goal(text: str) -> None:
    pages = table(7, seed=2, gone=np.arange(7) == 3)
    goal = goals.read_goal(text, pages)
    assert 3 not in goal.rows
    budget = least_budget(pages, goal.text)
    assert goal.best_level(pages, budget) == pytest.approx(goal.level, rel=1e-7)
    if text == "all: age 3":
        assert budget == pytest.approx(np.delete(pages.cost, 3).sum() / 3.0)  # type: ignore


def test_signals_make_the_mean_freshness_cheaper_and_no_interval_enforces_it(
    tmp_path: Path,
) -> None:
    recall, false = np.full((1, 6), 0.7), np.full((1, 6), 0.1)
    plain = table(cost=None, last_crawl=None)
    pages = table(
        cost=None, last_crawl=None, recall=recall, false_signal_rate=false, sources=("feed",)
    )
    goal = goals.read_goal("all: fresh 0.8", pages)
    budget = least_budget(pages, goal.text)
    assert budget < 0.9 * least_budget(plain, goal.text)
    columns = page_tables.columns_of(pages, np.arange(6))
    instance = planning.Instance(**{k: columns[k] for k in planning.OF_INSTANCE}, bandwidth=budget)
    assert solvers.ncis(instance).objective == pytest.approx(0.8, abs=1e-7)
    write_page_table(tmp_path / "pages.csv", pages)
    span = ["--bandwidth", 20, "--start", 0, "--goal", "all: fresh 0.8"]
    for policy, word, intervals in (("GreedyNCIS", "not enforced", 0), ("Greedy", "likely", 6)):
        wanted = [tmp_path / "pages.csv", *span, "--policy", policy]
        assert word in done(run(command.app, *wanted, out=tmp_path / policy)).output
        written = read_page_table(tmp_path / policy / "promised.csv").most_interval
        assert written is not None
        assert np.isfinite(written).sum() == intervals


def longest_ages(pages: PageTable, fetches: Iterable[tuple[str, float]]) -> FloatArray:
    """Return the largest age of each page's copies until day 20, with fetches in order of time."""
    times = {url: [0.0] for url in pages.urls}
    for url, time in fetches:
        times[url].append(time)
    return np.array([np.diff([*times[url], 20.0]).max() for url in pages.urls])


def test_a_schedule_keeps_ages_and_freshness_of_pages(tmp_path: Path) -> None:
    pages = table(30, seed=5, cost=None)
    write_page_table(tmp_path / "pages.csv", pages)
    wanted = ["shop: age 1.5", "news: fresh 0.6 of 0.5", "all: age 0.1"]
    options = [word for text in wanted for word in ("--goal", text)]
    result = done(
        run(
            command.app,
            tmp_path / "pages.csv",
            *("--bandwidth", 20, "--start", 0, "--until", 20, "--policy", "Greedy", *options),
            out=tmp_path / "out",
        )
    )
    assert pages.group is not None
    assert pages.change_rate is not None
    shop = np.flatnonzero(pages.group == "shop")
    limit = np.full(30, np.inf)
    limit[shop] = 1.5
    news = goals.read_goal(wanted[1], pages).rows
    limit[news] = [
        1.0 / bisect(lambda r, d=d: freshness(np.array([d]), np.array([r]))[0] - 0.6, d / 9, 99 * d)
        for d in pages.change_rate[news]
    ]
    fetches = records(tmp_path / "out" / "schedule.csv")
    with_goals = longest_ages(pages, [(row["url"], float(row["time"])) for row in fetches])
    assert (with_goals <= limit + 1e-5).all()
    plain = planning.Schedule(pages, "Greedy", 20.0, 0.0).scheduler(ids=np.arange(30))
    plan = planning.plan(plain, page_tables.copies_of(pages), 20.0)
    without = longest_ages(pages, zip(pages.urls[plan.page], plan.time, strict=True))
    assert (without > 2.0 * limit).any()
    cells = [line for line in result.output.splitlines() if ": age" in line or ": fresh" in line]
    assert [line.split("│")[4].strip() for line in cells] == ["likely", "likely", "no"]
    assert "0 fetches late" in result.output


def test_intervals_of_a_table_are_kept_beside_goals(tmp_path: Path) -> None:
    path = tmp_path / "pages.csv"
    path.write_text("url,most_interval\nhttps://a.example/,2\nhttps://b.example/,\n")
    wanted = [path, "--bandwidth", 3, "--start", 0, "--policy", "RoundRobin"]
    result = done(run(command.app, *wanted, "--goal", "all: age 4", out=tmp_path / "out"))
    [alone, together] = [x for x in result.output.splitlines() if ": age 4 " in x or "all goa" in x]
    assert " 0.7576 " in alone  # two pages every four days, one of them every two, and 1% audits
    assert " 0.7576 " in together
    written = read_page_table(tmp_path / "out" / "promised.csv").most_interval
    assert written is not None
    assert written.tolist() == [2.0, 4.0]
    path.write_text("url,most_interval\na,1\nb,0\n")
    with pytest.raises(ValueError, match=r"line 3, column 'most_interval': got '?0"):
        read_page_table(path)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("nobody: age 1", ("such as all, news, shop", "'nobody'")),
        ("news: fresh 1", ("GROUP: fresh LEVEL", "below 1", "'news: fresh 1'")),
        ("news: fresh 95", ("below 1",)),
        ("news: fresh 0.0", ("above 0",)),
        ("news: fresh 0.9 of 1.5", ("at most 1",)),
        ("news: age 0", ("above 0",)),
        ("news: age 1 of 0.5", ("GROUP: age DAYS",)),
        ("fresh 0.9", ("GROUP: fresh LEVEL",)),
        ("shop: fresh 0.9", ("'shop: fresh 0.9' needs a page that is not gone",)),
        ("idle: fresh 0.9", ("importance > 0", "'idle'")),
        ("news: age 1e3", ("decimal numbers",)),
    ],
)
def test_goals_that_cannot_be_are_refused(goal: str, words: tuple[str, ...]) -> None:
    pages = table(
        group=np.array(["news", "shop", "idle"] * 2, np.object_),
        gone=np.arange(6) % 3 == 1,
        importance=(np.arange(6) % 3 < 2).astype(np.float64),
    )
    with pytest.raises(ValueError, match="goal") as caught:
        goals.read_goal(goal, pages)
    assert all(word in str(caught.value) for word in words)


def test_an_age_of_gone_pages_asks_for_no_importance() -> None:
    pages = table(group=np.array(["dead", "news"] * 3, np.object_), gone=np.arange(6) % 2 == 0)
    with pytest.raises(ValueError, match=r"'dead: age 3' needs a page that is not gone, got none"):
        goals.read_goal("dead: age 3", pages)


def kept(folder: Path, lines: str, *options: object) -> dict[str, list[str]]:
    """Return the cells of each goal of a schedule of a table from day 0 on, by goal."""
    (folder / "pages.csv").write_text(lines)
    wanted = [folder / "pages.csv", "--start", 0, "--policy", "RoundRobin", *options]
    output = done(run(command.app, *wanted, out=folder / "out")).output
    rows = [x.split("│")[1:-1] for x in output.splitlines() if x.startswith("│")]
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        ((), "yes"),
        (("b.example:2.1",), "no: limit of b.example"),  # three pages every 6 days: 2 days a fetch
        ((":2.1",), "no: limit of b.example"),
        ((":2.1", "b.example:1.9"), "likely"),
        (("b.example:2.1", ":1.9"), "likely"),  # the later limit holds
        (("a.example:5",), "likely"),
    ],
)
def test_limits_of_hosts_bound_what_can_be_kept(
    tmp_path: Path, limits: tuple[str, ...], word: str
) -> None:
    lines = "url\nhttps://a.example/\n" + "".join(f"https://b.example/{k}\n" for k in range(3))
    options = [x for limit in limits for x in ("--limit", limit)]
    cells = kept(tmp_path, lines, "--bandwidth", 9, "--goal", "all: age 6", *options)
    assert cells["all: age 6"][2] == cells["all goals"][2] == word


@pytest.mark.parametrize(
    ("bandwidth", "equal", "word"),
    [(30, "yes", "yes"), (18, "yes", "likely"), (10.2, "likely", "likely"), (10, "no", "no")],
)
def test_yes_is_said_only_where_there_is_a_proof(
    tmp_path: Path, bandwidth: float, equal: str, word: str
) -> None:
    """Twenty pages of age 2 need 10 a day; so do ten of age 1.25 and ten of age 5."""
    hosts = [f"https://{host}.example/{k}" for host in "ab" for k in range(10)]
    lines, options = "\n".join(["url", *hosts]), ("--bandwidth", bandwidth, "--goal")
    cells = kept(tmp_path, lines, *options, "all: age 2")
    assert cells["all: age 2"][2] == equal
    goal = "a.example: age 1.25", "--goal", "b.example: age 5"
    cells = kept(tmp_path, lines, *options, *goal)
    assert cells["all goals"][:1] == ["10.1"]
    assert cells["all goals"][2] == word
    alone = word.replace("no", "yes")  # a goal that is not kept takes nothing from the first one
    assert cells["a.example: age 1.25"][2] == alone


def test_the_least_budget_is_kept_with_audits_and_counts_the_pages_of_the_goal(
    tmp_path: Path,
) -> None:
    lines = "url,group,most_interval\na,x,\nb,x,inf\nc,,1.4\nd,,inf\n"
    goal = ["--goal", "x: age 4"]
    cells = kept(tmp_path, lines, "--bandwidth", 3, *goal)
    assert cells["x: age 4"][0] == "0.5051"  # two pages every 4 days, and 1% audits
    assert cells["all goals"][0] == "1.227"
    least = (0.5 + 1.0 / 1.4) / 0.99
    assert kept(tmp_path, lines, "--bandwidth", 0.9999 * least, *goal)["x: age 4"][2] == "no"
    assert kept(tmp_path, lines, "--bandwidth", least, *goal)["x: age 4"][2] == "likely"
    promised = read_page_table(tmp_path / "out" / "promised.csv")
    assert promised.most_interval is not None
    np.testing.assert_allclose(promised.most_interval, [4.0, 4.0, 1.4, np.inf])
    live = planning.Schedule(promised, "RoundRobin", least, 0.0, (), {"audit_share": 0.01})
    assert live.scheduler().overview()["promised_share"] == pytest.approx(1.0)
    cells = kept(tmp_path, lines, "--bandwidth", 3, *goal, "--most-interval", 2)
    assert cells["all goals"][0] == "1.479"  # a every 2 days, b every 4, and c; d has none


def test_a_goal_of_freshness_needs_rates_and_no_live_scheduler(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_text("url\nhttps://a.example/\n")
    wanted = [tmp_path / "pages.csv", "--bandwidth", 1, "--goal", "all: fresh 0.9"]
    refused(run(command.app, *wanted, out=tmp_path / "out"), "needs change rates")
    refused(run(command.app, *wanted, "--live"), "goal must be left out with --live")
