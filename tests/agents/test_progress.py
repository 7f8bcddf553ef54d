from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from agents import progress
from agents.progress import COUNT, ProgressBar, tracked

TEXTS = (COUNT, "mean reward {task.fields[reward]}", "{task.fields[beside]}")


def played(terminal: bool, visible: bool = True) -> str:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=terminal)
    with ProgressBar(*TEXTS, console=console, visible=visible) as bar:
        what = "uniform LearningGreedyNCIS, only importance known"
        task = bar.add_task(what, total=60_000, reward="-", beside="[best] of all: " + 30 * "x")
        for done in range(0, 60_001, 20_000):
            bar.update(task, completed=done, reward=f"{done / 1e5:.4f}")
        bar.advance(task, 0)
    return file.getvalue()


def test_without_a_terminal_the_end_is_one_plain_line() -> None:
    [line] = played(terminal=False).splitlines()
    assert line.startswith("uniform LearningGreedyNCIS, only importance known 60,000/60,000 mean")
    assert line.endswith("mean reward 0.6000 [best] of all: " + 30 * "x")


def test_without_a_terminal_there_is_a_line_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    counts = [line.split(" known ")[1].split()[0] for line in played(False).splitlines()]
    in_order = ["0/60,000", "20,000/60,000", "40,000/60,000", "60,000/60,000"]
    assert [*dict.fromkeys(counts)] == in_order  # a thread may repeat the line of a long step


@pytest.mark.parametrize("timed", [False, True])
def test_a_long_step_is_told_of_while_it_lasts(
    timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a thread, with the time left at the speed of this run; 5 of 9 were there before."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    console = Console(file=io.StringIO(), width=80)
    bar = ProgressBar(COUNT, console=console, timed=timed)
    task = bar.add_task("plays", total=9, completed=5)
    bar.tasks[0].start_time, bar.tasks[0]._get_time = 0.0, lambda: 7_200.0
    bar.update(task, completed=6)
    with bar:
        time.sleep(0.5)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    if timed:
        assert lines == []
    else:  # one play took two hours, and three are left
        assert len(lines) > 2
        assert set(lines) == {"plays 6/9, 6:00:00 left at this speed"}


def test_a_long_description_is_cut_before_what_follows_in_80_columns() -> None:
    texts = (COUNT, "reward {task.fields[reward]}")
    console = Console(file=io.StringIO(), width=80, color_system=None)
    bar = ProgressBar(*texts, console=console)
    bar.add_task("uniform LearningGreedyNCIS, only importance known", total=60_000, reward="0.5")
    console.print(bar)
    [line] = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert line.startswith("uniform LearningGreedyNCIS,… ")
    assert line.rstrip().endswith("0/60,000 reward 0.5 -:--:--")


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_shown_unless_asked(terminal: bool) -> None:
    assert played(terminal, visible=False) == ""


@pytest.mark.parametrize("timed", [False, True])
def test_items_are_counted(timed: bool) -> None:
    for terminal, ending in ((False, "replayed 3/3\n"), (True, "3/3 0:00:00")):
        console = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None)
        assert [*tracked("abc", "replayed", console, timed)] == ["a", "b", "c"]
        written = console.file.getvalue()  # type: ignore[attr-defined]
        assert ending in written
        assert [*ProgressBar(COUNT, console=console, timed=timed).track("ab")] == ["a", "b"]
        written = console.file.getvalue()  # type: ignore[attr-defined]
        assert [*tracked("", "replayed", console)] == []
        assert console.file.getvalue() == written  # type: ignore[attr-defined]


def test_what_is_timed_is_not_disturbed() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    for timed in (False, True):
        assert ProgressBar(console=console, timed=timed).live.auto_refresh is not timed
