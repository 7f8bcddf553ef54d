from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import policies
from crawl_envs.evaluation import Row, play, simulate
from scripts.study.entrants import Candidate
from scripts.suite import episodes
from scripts.suite.bounds import BOUND, BUDGET
from scripts.suite.costs import COSTS
from scripts.suite.entrants import TRAINED, YOURS, Entrant, entrant_of
from scripts.suite.report import page
from scripts.suite.report.page import gains_of, write_page
from scripts.suite.scores import FRESHNESS, LATE, Leaderboard, scores_of, standings
from scripts.suite.tasks import FIRST_SEED, NCIS, PERFECT, Task
from tests.browser import emulate, wait

NASTY = "<img src=x onerror=\"console.error('ran')\">&'</script>"
PLAYERS = ("GreedyNCIS", "Greedy", "RoundRobin")
PAGES = {"num_pages": 100, "instance": "noisy"}
TASKS = (
    *(
        Task(f"noisy{word}", "known", NCIS, {**PAGES, "bandwidth": budget}, bound=PERFECT)
        for word, budget in (("-tight", 25.0), ("", 100.0), ("-ample", 400.0))
    ),
    Task("other <b>", "second & last", NCIS, {"num_pages": 5}, bound=PERFECT),
)
DETAILS = pd.DataFrame.from_dict(
    {
        **dict.fromkeys(PLAYERS, (0.8, 0.5, 50.0, 2.0, 0.0)),
        "RandomCrawl": (np.nan,) * 4 + (0.0,),
        NASTY: (np.nan,) * 4 + (12.0,),
    },
    orient="index",
    columns=[*FRESHNESS, *COSTS],
)
ENTRANTS = {
    **{label: entrant_of(label) for label in PLAYERS},
    "RandomCrawl": Entrant(
        TRAINED, "Ours & theirs 2020", "docs/train.md", by="luck", on="sand", command="`a < b`"
    ),
    NASTY: Entrant(YOURS),
}


def rows_of(seeds: int) -> list[Row]:
    """Return rows of made-up scores; the policy with the nasty name plays in the first task."""
    rng = np.random.default_rng(0)
    levels = {"GreedyNCIS": 0.8, "Greedy": 0.6, "RoundRobin": 0.4, "RandomCrawl": 0.2, NASTY: 0.7}
    rows = []
    for task in TASKS:
        for label, level in {BOUND: 1.0, **levels}.items():
            if label == NASTY and task is not TASKS[0]:
                continue
            for seed in range(seeds):
                rate = BUDGET if label == BOUND else "crawl_rate"
                spent = float(task.arguments.get("bandwidth", 10.0))
                value = level if label == BOUND else level + 0.02 * float(rng.normal())
                rows.append(Row(NCIS, task.name, label, seed, "freshness", value))
                rows.append(Row(NCIS, task.name, label, seed, rate, spent))
    return rows


def leaderboard(seeds: int = 4, rows: list[Row] | None = None) -> Leaderboard:
    rows = rows_of(seeds) if rows is None else rows
    scores = scores_of(TASKS, rows, {})
    board, places = standings(scores)
    board = board.join(DETAILS, on="policy")
    return Leaderboard("made <up>", TASKS, rows, scores, board, places, ENTRANTS, [NASTY])


def page_of(board: Leaderboard, folder: Path) -> str:
    write_page(board, folder)
    return (folder / "README.md").read_text("utf-8")


def candidates() -> dict[str, Candidate]:
    named = {label: Candidate(label, partial(policies.make, label)) for label in PLAYERS}
    return {**named, NASTY: Candidate(NASTY, partial(policies.make, "GreedyCIS"))}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    told = {"command": "a < b", "date": "today", "commit": None, "cpu": "none", "python": "3"}
    (folder / "provenance.json").write_text(json.dumps(told))
    page.write_report(path, leaderboard(), candidates())
    return path


class Reader(HTMLParser):
    """Collects the tags with their attributes, and the texts of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1][0] if self.tags else "", data))

    def values(self, tag: str, attribute: str) -> list[str | None]:
        return [found[attribute] for name, found in self.tags if name == tag and attribute in found]


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    reader.close()
    return reader


def data_of(path: Path) -> dict[str, Any]:
    reader = read(path)
    place = next(i for i, (tag, found) in enumerate(reader.tags) if found.get("id") == "data")
    assert reader.tags[place][1]["type"] == "application/json"
    text = path.read_text("utf-8").split('<script type="application/json" id="data">', 1)[1]
    found: dict[str, Any] = json.loads(text.split("</script>", 1)[0])
    return found


def test_every_policy_and_task_is_there_and_names_are_escaped(report: Path) -> None:
    reader = read(report)
    names = {*PLAYERS, "RandomCrawl", NASTY}
    assert {*reader.values("tr", "data-policy")} == names
    assert {*reader.values("input", "value")} >= names
    assert reader.values("details", "data-task") == [task.name for task in TASKS]
    assert "img" not in {tag for tag, _ in reader.tags}
    assert "b" not in {tag for tag, found in reader.tags if found}
    assert all(word in "".join(text for _, text in reader.texts) for word in (NASTY, "a < b"))


def test_the_best_by_track_come_first_and_ones_own_is_marked(report: Path) -> None:
    text = report.read_text("utf-8")
    body = text[text.index("<body>") :]
    places = [body.index(f'id="{name}"') for name in ("tracks", "leaderboard", "tasks")]
    assert places == sorted(places)
    assert body[: places[1]].count('<th scope="row">') == 2
    assert re.search(r"<b>GreedyNCIS 0\.7\d\d \[0\.7\d\d, 0\.\d{3}\] \(formula\)</b>", body)
    row = next(found for tag, found in read(report).tags if found.get("data-policy") == NASTY)
    assert row["class"] == "own"
    assert "→ &lt;img" in body[places[1] :]


def test_entrants_say_their_kind_and_paper_and_how_they_were_trained(
    report: Path, tmp_path: Path
) -> None:
    lines = page_of(leaderboard(), tmp_path).splitlines()
    paper, code = (
        Path(os.path.relpath(place, tmp_path)).as_posix()
        for place in (page.ROOT / "docs/papers.md", page.ROOT / "policies")
    )
    board = next(x for x in lines if x.startswith(f"| 1 | [GreedyNCIS]({code}/ncis/greedy.py)"))
    ncis = f"[NCIS (Busa-Fekete et al. 2025)]({paper}#ncis-busa-fekete-et-al-2025)"
    assert f"| formula | {ncis} | 0." in board
    assert "| baseline |  |" in next(x for x in lines if "[RoundRobin](" in x)
    assert "| trained: luck on sand | [Ours & theirs 2020](" in "\n".join(lines)
    assert "| RandomCrawl | luck | sand |  | 0 | `a < b` |" in lines
    assert sum(line.startswith("- crawler's rule: ") for line in lines) == 1
    text = report.read_text("utf-8")
    assert "<td>luck</td><td>sand</td><td></td><td>0</td><td><code>a &lt; b</code></td>" in text
    assert "Ours &amp; theirs 2020</a>" in text
    places = [place for place in read(report).values("a", "href") if place and place[0] != "#"]
    assert places
    assert all((report.parent / place.partition("#")[0]).is_file() for place in places)


def test_scores_above_1_are_told_by_task(tmp_path: Path) -> None:
    high = (TASKS[0].name, "GreedyNCIS", "freshness")
    rows = [
        row._replace(value=row.value + 0.3 * ((*row[1:3], row.metric) == high))
        for row in rows_of(4)
    ]
    above = leaderboard(rows=rows)
    scores = above.scores
    mine = scores[(scores.task == TASKS[0].name) & (scores.policy == "GreedyNCIS")]
    assert f"above 1 in 1 of 4 tasks, most in noisy-tight ({mine.score.mean():.2f} with" in (
        page_of(above, tmp_path)
    )
    assert "No score of a task is above 1." in page_of(leaderboard(), tmp_path)


def test_what_can_be_gained_is_of_rows_and_of_entrants_that_do_not_learn() -> None:
    mine = [row for row in rows_of(4) if (row.setting, row.metric) == ("noisy", "freshness")]
    values = {(row.policy, row.seed): row.value for row in mine}
    learning = {**ENTRANTS, "GreedyNCIS": Entrant("learning formula")}
    gain = gains_of(leaderboard()._replace(entrants=learning))["noisy"]
    assert gain.random == pytest.approx(np.mean([values["RandomCrawl", seed] for seed in range(4)]))
    assert gain.bound == 1.0
    assert (gain.fixed[0], gain.best[0]) == ("Greedy", "GreedyNCIS")
    span = 1.0 - gain.random
    best = np.mean([values["GreedyNCIS", seed] for seed in range(4)])
    assert gain.best[1] == pytest.approx((best - gain.random) / span)
    timed = [replace(task, arguments={**task.arguments, "horizon": 3.0}) for task in TASKS]
    longer = gains_of(leaderboard()._replace(tasks=timed))
    assert [longer[task.name].crawls for task in TASKS[:3]] == [0.75, 3.0, 12.0]
    drawn = [replace(task, arguments={"days_per_crawl": (3.0, 30.0)}) for task in TASKS]
    assert np.isnan(gains_of(leaderboard()._replace(tasks=drawn))["noisy"].crawls)


def test_promises_and_who_breaks_them_are_shown(tmp_path: Path) -> None:
    board = leaderboard()
    assert "copy" not in page_of(board, tmp_path)
    late = (board.scores.task == "noisy") & (board.scores.policy == "Greedy")
    scores = board.scores.assign(state=board.scores.state.where(~late, LATE))
    tasks = [replace(task, most_rounds=3.0) for task in TASKS]
    board = board._replace(scores=scores, tasks=tasks)
    text = page_of(board, tmp_path)
    assert text.count("no copy older than 3 m / R |") == len(tasks)
    assert "older than a task allows, by more than a slot, score 0 there: Greedy." in text
    page.write_report(tmp_path / "report.html", board, candidates())
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "No copy may get older than 3 m / R, by more than a slot, or the score is 0." in html
    assert "Promise broken: Greedy." in html


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    reader = read(report)
    for tag, found in reader.tags:
        if tag == "a":  # which loads nothing before it is pressed
            continue
        for name in ("src", "href", "srcset", "action", "data", "poster", "formaction"):
            assert not found.get(name) or found[name][0] == "#" or found[name] == "data:,", tag
    style = "".join(text for tag, text in reader.texts if tag == "style")
    assert style
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in json.dumps(data_of(report))
    assert report.stat().st_size < 5_000_000


def test_dots_of_a_task_have_students_intervals_and_those_that_play(report: Path) -> None:
    charts = data_of(report)["charts"]
    scores = leaderboard().scores
    for number, task in enumerate(TASKS):
        values = {each["policy"]: each for each in charts[f"task-{number}"]["data"]["values"]}
        assert (NASTY in values) == (task is TASKS[0])
        for label in PLAYERS:
            mine = scores[(scores.task == task.name) & (scores.policy == label)].score
            low, high = stats.t.interval(0.95, mine.size - 1, mine.mean(), stats.sem(mine))
            found = [values[label][name] for name in ("score", "low", "high")]
            assert found == pytest.approx([mine.mean(), low, high], abs=1e-4)


def test_a_profile_falls_from_all_to_none_and_counts_scores_above(report: Path) -> None:
    charts = data_of(report)["charts"]
    points = [each for each in charts["profiles"]["data"]["values"] if each["policy"] == "Greedy"]
    scores = leaderboard().scores
    mine = scores[scores.policy == "Greedy"].score
    assert [each["y"] for each in points] == pytest.approx(
        [(mine > each["x"]).mean() for each in points], abs=1e-4
    )


def test_budgets_are_those_of_tasks_that_differ_in_them_only(report: Path) -> None:
    charts = data_of(report)["charts"]
    assert "budget-1" not in charts
    points = charts["budget-0"]["data"]["values"]
    assert [each["x"] for each in points if each["policy"] == "Greedy"] == [0.25, 1.0, 4.0]
    assert {each["y"] for each in points if each["policy"] == "bound"} == {1.0}
    for task, each in zip(TASKS, [p for p in points if p["policy"] == "Greedy"], strict=False):
        values = [
            row.value
            for row in rows_of(4)
            if row[1:3] == (task.name, "Greedy") and row.metric == "freshness"
        ]
        low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
        assert (each["low"], each["high"]) == pytest.approx((low, high), abs=1e-4)


def test_one_seed_has_no_intervals(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page.write_report(path, leaderboard(1), candidates())
    ids = {found["id"] for _, found in read(path).tags if found.get("id")}
    assert {"tracks", "leaderboard", "tasks", "budgets", "episode"} <= ids
    values = data_of(path)["charts"]["task-0"]["data"]["values"]
    assert {each["low"] for each in values} == {None}
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.fixture(scope="module")
def recorder() -> episodes.Recorder:
    return episodes.recorder(NCIS, episodes.ARGUMENTS, FIRST_SEED)


def test_recorded_events_are_those_of_the_environment(recorder: episodes.Recorder) -> None:
    tape = episodes.tape_of(recorder, FIRST_SEED + 3)
    policy = policies.make("GreedyNCIS", recorder)
    horizon = float(episodes.ARGUMENTS["horizon"])
    taped = simulate(recorder.instance, policy, horizon, seed=0, tape=tape)
    drawn = simulate(recorder.instance, policy, horizon, seed=FIRST_SEED + 3)
    assert taped.crawls.tolist() == drawn.crawls.tolist()
    assert taped.ledger.hits == drawn.ledger.hits
    assert taped.ledger.freshness == drawn.ledger.freshness


@pytest.mark.parametrize("label", PLAYERS)
def test_stale_times_add_up_to_the_freshness_of_the_ledger(
    recorder: episodes.Recorder, label: str
) -> None:
    recorder.reset(seed=FIRST_SEED)
    ledger = play(recorder, policies.make(label, recorder), FIRST_SEED, compiled=False)
    crawls = recorder.crawls()
    assert crawls.time.size == ledger.crawls
    assert recorder.end == pytest.approx(ledger.time)
    spells = episodes.stale_spells(episodes.tape_of(recorder, FIRST_SEED), crawls, recorder.end)
    fresh = episodes.page_freshness(spells, recorder.instance.num_pages, recorder.end)
    weighted = np.average(fresh, weights=recorder.instance.importance)
    assert weighted == pytest.approx(ledger.freshness, abs=1e-12)
    found_stale = {(spell.page, spell.end) for spell in spells if spell.end < recorder.end}
    assert crawls.changed.sum() == len(found_stale)


# In a browser


@pytest.fixture
def opened(driver: Any, report: Path) -> Any:
    """Open the report, 1200 pixels wide and light."""
    emulate(driver, width=1200)
    driver.get("about:blank")
    for name in ("browser", "performance"):  # of pages before
        driver.get_log(name)
    driver.get(report.as_uri())
    wait(driver, "document.documentElement.dataset.ready === 'yes'")
    return driver


def shown(driver: Any) -> list[str]:
    """Return the policies of the leaderboard that are shown, from top to bottom."""
    script = "return [...document.querySelectorAll('#board tbody tr:not([hidden])')]"
    names: list[str] = driver.execute_script(f"{script}.map((row) => row.dataset.policy)")
    return names


def press(driver: Any, title: str) -> None:
    for button in driver.find_elements("css selector", "#board thead button"):
        if button.text.strip().startswith(title):
            driver.execute_script("arguments[0].click()", button)
            return
    raise AssertionError(title)


def write(driver: Any, css: str, value: str, event: str) -> None:
    script = "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
    script += "e.dispatchEvent(new Event(arguments[2]))"
    driver.execute_script(script, css, value, event)


def test_charts_are_drawn_and_nothing_is_logged_or_asked_for(opened: Any) -> None:
    opened.find_element("id", "open-all").click()
    script = "[...document.querySelectorAll('{}')].every((each) => {})"
    wait(opened, script.format(".chart", "each.dataset.drawn || each.clientWidth === 0"))
    wait(opened, script.format("#tasks .chart", "each.querySelectorAll('svg path').length > 4"))
    assert opened.get_log("browser") == []
    messages = [json.loads(each["message"])["message"] for each in opened.get_log("performance")]
    asked = [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    browser = {"chrome", "chrome-untrusted"}  # its own pages
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", *browser}


def test_a_column_sorts_up_and_down(opened: Any) -> None:
    ranked = shown(opened)
    assert ranked == leaderboard().standings.policy.tolist()
    press(opened, "policy")
    assert shown(opened) == sorted(ranked, key=str.lower)
    press(opened, "policy")
    assert shown(opened) == sorted(ranked, key=str.lower)[::-1]
    press(opened, "gap")
    gaps = {item.policy: item.gap for item in leaderboard().standings.itertuples() if item.rank}
    order = sorted(gaps, key=lambda policy: gaps[policy])
    assert shown(opened) == [*order, NASTY]  # which has none
    press(opened, "gap")
    assert shown(opened) == [*order[::-1], NASTY]
    press(opened, "us")
    assert {*shown(opened)[-2:]} == {"RandomCrawl", NASTY}  # without a time
    press(opened, "us")
    assert {*shown(opened)[-2:]} == {"RandomCrawl", NASTY}


def test_text_and_track_filter(opened: Any) -> None:
    write(opened, "#text", "greedyn", "input")
    assert shown(opened) == ["GreedyNCIS"]
    assert opened.find_element("id", "shown").text == "1 of 5"
    write(opened, "#text", "", "input")
    assert NASTY in shown(opened)
    write(opened, "#track", "second & last", "change")
    assert shown(opened) == [*PLAYERS, "RandomCrawl"]  # by the score of the track
    tasks = opened.find_elements("css selector", "details.task")
    assert [each.is_displayed() for each in tasks] == [False, False, False, True]
    write(opened, "#track", "", "change")
    assert len(shown(opened)) == 5


def test_a_tick_adds_a_policy_to_the_charts(opened: Any) -> None:
    legend = "[...document.querySelectorAll('[data-chart=profiles] .role-legend-label text')]"
    names = f"{legend}.map((each) => each.textContent)"
    assert opened.execute_script(f"return {names}.length") == 4
    script = "document.querySelector('input[value=RandomCrawl]').click()"
    opened.execute_script(script)
    wait(opened, f"{names}.includes('RandomCrawl')")
    opened.execute_script(script)
    wait(opened, f"{names}.length === 4")


def test_scrubbing_moves_both_policies(opened: Any) -> None:
    told = data_of(Path(opened.current_url.removeprefix("file://")))["episode"]
    captions = "figure.episode figcaption output"
    bars = "document.querySelectorAll('[data-episode=\"0\"] .layer_0_marks path').length"
    wait(opened, f"{bars} > 0")
    whole = opened.execute_script(f"return {bars}")
    write(opened, "#time", "4", "input")
    wait(opened, f"{bars} < {whole}")
    begun = sum(spell["start"] < 4.0 for spell in told["played"][0]["spells"])
    assert opened.execute_script(f"return {bars}") == begun
    for place, each in enumerate(opened.find_elements("css selector", captions)):
        crawls = [crawl for crawl in told["played"][place]["crawls"] if crawl["time"] <= 4.0001]
        useful = sum(crawl["changed"] for crawl in crawls)
        stale = sum(
            told["weights"][str(spell["page"])] * max(0.0, min(spell["end"], 4.0) - spell["start"])
            for spell in told["played"][place]["spells"]
        )
        assert f"{useful} of {len(crawls)} crawls found a change" in each.text
        assert f"fresh {100 * (1 - stale / 4.0):.1f}% so far" in each.text
    assert opened.find_element("id", "now").text == "time 4.0"


def test_play_goes_on_by_itself_and_pauses(opened: Any) -> None:
    button = opened.find_element("id", "play")
    button.click()
    wait(opened, "Number(document.getElementById('time').value) > 0.3")
    button.click()
    stopped = "return document.getElementById('time').value"
    assert 0.0 < float(opened.execute_script(stopped)) < 16.0
    assert button.text == "▶"


def test_it_fits_a_phone_and_follows_the_dark_and_print(opened: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert opened.execute_script(ground) == "rgb(255, 255, 255)"
    emulate(opened, width=360, scheme="dark")
    opened.refresh()
    wait(opened, "document.documentElement.dataset.ready === 'yes'")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 360
    wide = "Math.max(...[...document.querySelectorAll('.chart svg')].map((e) => e.clientWidth))"
    assert 200 < opened.execute_script(f"return {wide}") <= 360
    assert opened.execute_script(ground) == "rgb(20, 23, 26)"
    emulate(opened, width=794, scheme="dark", media="print")
    assert opened.execute_script(ground) == "rgb(255, 255, 255)"
    assert not opened.find_element("css selector", "nav").is_displayed()
    assert opened.find_element("id", "board").is_displayed()
