"""Files of other versions, and with what is no call: an error, which makes nothing of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler
from policies.live.scheduler.files import Journal, Record, read_snapshot, write_records

RATES = {"change_rate": 1.0, "recall": 0.5, "false_signal_rate": 0.2}


def begun(folder: Path, policy: Any = "GreedyNCIS") -> Path:
    """Return the journal of a folder with a page and a refused call."""
    with DurableScheduler(folder, CrawlScheduler(policy, 10.0), policy=policy) as durable:
        durable.add(["a"], last_crawl=0.0, **RATES)
        with pytest.raises(ValueError, match="must be known"):
            durable.remove(["b"])
        return Path(durable.journal.path)


def append(path: Path, call: str, **values: Any) -> None:
    """Append a record as another version, or another hand, might."""
    journal = Journal(path)
    journal.append(Record({"call": call, "now": 1.0, **values}, {}))
    journal.close()


OTHER: dict[str, list[dict[str, Any]]] = {
    "call must be one of|call 'defer' is unknown": [{"call": "defer", "until": 3.0}],
    "call '__init__' is unknown": [{"call": "__init__", "policy": "planted:P", "bandwidth": 1.0}],
    "call 'from_state' is unknown": [{"call": "from_state", "state": [], "policy": "planted:P"}],
    "call 'describe' is unknown": [{"call": "describe", "page_id": "a"}],
    "call None is unknown": [{"call": None}],
    "argument of report must be one of changed, cost, ended, ids, .*, got 'price'": [
        {"call": "report", "ids": ["a"], "times": 2.0, "price": 1}
    ],
    "argument of hold must be one of host, until, got 'self'": [
        {"call": "hold", "self": 1, "host": "a", "until": 2.0}
    ],
    "argument of update 'age' ": [{"call": "update", "ids": ["a"], "age": 1.0}],
    r"the one before was made there, not here \(status must be one of ok": [
        {"call": "report", "ids": ["a"], "times": 2.0, "status": "moved"},
        {"call": "next", "time": 2.0},
    ],
    "the one before was refused there, not here": [
        {"call": "report", "ids": ["a"], "times": 2.0},
        {"call": "next", "time": 2.0, "refused": True},
    ],
}


@pytest.mark.parametrize("words", OTHER)
def test_what_a_journal_may_not_have_is_an_error_and_is_not_made(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('this ran')")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = begun(tmp_path / "folder")
    append(path, "next", time=1.0, refused=True)
    DurableScheduler(path.parent).close()
    for record in OTHER[words]:
        append(path, **record)
    match = rf"{path.name} is of another version, at call \d: ({words}).*with that version, or"
    with pytest.raises(ValueError, match=match):
        DurableScheduler(path.parent)
    assert "planted" not in sys.modules


def test_calls_that_were_refused_are_refused_again(tmp_path: Path) -> None:
    begun(tmp_path)
    for turn in range(2):  # the last call of a journal, and the first one after a start
        with DurableScheduler(tmp_path) as durable:
            assert durable.total == 2 + 2 * turn
            durable.next(1.0 + turn)
            with pytest.raises(ValueError, match="must be known"):
                durable.remove(["b"])
            if turn:
                durable.save()
                durable.next(3.0)
    with DurableScheduler(tmp_path) as durable:
        assert (durable.total, len(durable)) == (7, 1)


class Interrupted(CrawlScheduler):
    """One whose calls are interrupted, as by Ctrl-C."""

    def remove(self, ids: Any) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_is_no_refusal(tmp_path: Path) -> None:
    with DurableScheduler(tmp_path, Interrupted("GreedyNCIS", 10.0)) as durable:
        durable.add(["a", "b"], last_crawl=0.0, **RATES)
        with pytest.raises(KeyboardInterrupt):
            durable.remove(["a"])
        durable.next(1.0)
    with DurableScheduler(tmp_path) as durable:
        assert len(durable) == 1


@pytest.mark.parametrize("shards", [False, True])
def test_a_policy_that_a_file_names_is_not_imported(
    shards: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from policies import GreedyNCIS\nclass Mine(GreedyNCIS):\n    pass\n"
    (tmp_path / "own_policy_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    name, folder = "own_policy_module:Mine", tmp_path / "folder"
    if shards:
        ShardedScheduler(name, 10.0, shards=1, folder=folder).close()
        ShardedScheduler(name, 10.0, shards=1, folder=folder).close()
        folder = folder / "shard-000"
    else:
        begun(folder, name)
    sys.modules.pop("own_policy_module")
    with pytest.raises(ValueError, match=f"snapshot-0+ .*policy must be given where .*{name}"):
        DurableScheduler(folder)
    assert "own_policy_module" not in sys.modules
    DurableScheduler(folder, policy=name).close()
    sys.modules.pop("own_policy_module")


def test_the_policy_of_a_state_is_not_changed() -> None:
    state = CrawlScheduler("GreedyNCIS", 10.0).state()
    with pytest.raises(ValueError, match="policy must be 'GreedyNCIS' as in the state, got 'Gre"):
        CrawlScheduler.from_state(state, "Greedy")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outages", [1.0]),
        ("price", None),
        ("choices.mood", np.zeros(64)),
        ("choices.status", None),
        ("columns.age", np.zeros(64)),
        ("learner.learn", np.zeros(64)),
        ("ids.hosts", np.zeros(64)),
    ],
)
def test_a_snapshot_of_other_names_is_an_error(name: str, value: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    [path] = tmp_path.glob("snapshot-*")
    state = read_snapshot(path)
    group = state.arrays if "." in name else state.values
    if value is None:
        del group[name]
    else:
        group[name] = value
    write_records(path, [state])
    with pytest.raises(ValueError, match=rf"{path.name} .*version.*'{name}'"):
        DurableScheduler(tmp_path)
