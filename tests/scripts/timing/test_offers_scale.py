"""The month at full size, on a small one: it plays what the environment plays."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import pytest

from agents.predictors import TASKS
from crawl_envs.evaluation import make_env, play
from crawl_envs.types import OfferLedger
from crawl_envs.types.offer_features import OfferFeatures
from policies import DiscreteLambdaCrawl, UniformCrawl
from scripts.timing import offers_scale
from scripts.timing.offers_scale import Figure

POLICIES = {
    offers_scale.UNIFORM: UniformCrawl,
    offers_scale.LAMBDA: DiscreteLambdaCrawl,
}


@pytest.mark.parametrize("label", offers_scale.STRATEGIES)
def test_same_as_in_the_environment(label: str) -> None:
    env = make_env("CrawlOffers-v1", num_pages=250, bandwidth=25.0, horizon=3.0)
    env.reset(seed=0)
    ledger = play(env, POLICIES[label](env), 0)
    assert isinstance(ledger, OfferLedger)
    values = {figure.what: figure.value for figure in offers_scale.played(label, 250, 3)}
    assert values["clicks that saw the true price"] == ledger.hits / ledger.requests
    assert values["offers fresh at midnight"] == ledger.offer_freshness
    parts = [value for name, value in values.items() if name in PARTS]
    assert len(parts) == len(PARTS)
    assert 0.0 < sum(parts) <= values["total"]
    assert 0.03 < values["peak memory"] < 100.0


PARTS = (
    "market",
    "history and first day",
    "features",
    "solve",
    "other steps",
    "last steps of days, and the next day",
)


def test_steps_of_the_environment() -> None:
    mean, median = offers_scale.stepped(200, 1)
    assert (mean.what, median.what, mean.unit) == ("mean step", "median step", "ms")
    assert 0.0 < median.value < 1000.0
    assert mean.days == 1


def test_predictions_of_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Predictor:
        def predict(self, features: OfferFeatures) -> None:
            asked.append((features.day, features.clicks_30.size))

    monkeypatch.setattr(offers_scale, "load", lambda name: dict.fromkeys(TASKS, Predictor()))
    *tasks, total, memory = offers_scale.predicted("some", 120)
    assert asked == 3 * [(0, 120)]
    assert tuple(figure.what for figure in tasks) == TASKS
    assert total.value == pytest.approx(sum(figure.value for figure in tasks))
    assert memory.unit == "GB"


def test_everything_is_measured_after_a_short_one_of_its_own() -> None:
    names = [*offers_scale.cases(quick=True)]
    short, long = names[: len(names) // 2], names[len(names) // 2 :]
    assert all(name.startswith("compiling: ") for name in short)
    parts = [name.removeprefix("compiling: ").split(", ")[0] for name in short]
    assert [name.split(", ")[0] for name in long[:-1]] == parts[:-1]


def pid() -> list[Figure]:
    return [Figure("", 0, 0, "", float(os.getpid()), "")]


def sleep(path: Path) -> list[Figure]:
    path.write_text(str(os.getpid()))
    time.sleep(60.0)
    return []


def test_tasks_have_processes_of_their_own() -> None:
    numbers = {offers_scale.run_in_process(pid)[0].value for _ in range(2)} | {float(os.getpid())}
    assert len(numbers) == 3


def refuse() -> list[Figure]:
    raise ValueError("offers must be more")


def die() -> list[Figure]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def test_errors_of_a_process_are_raised_here() -> None:
    with pytest.raises(ValueError, match="offers must be more"):
        offers_scale.run_in_process(refuse)
    with pytest.raises(BrokenProcessPool, match="terminated abruptly"):
        offers_scale.run_in_process(die)


def test_an_interrupt_ends_the_process_at_once(tmp_path: Path) -> None:
    """An interrupt of both processes: the child ignores it and is killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    note, start = tmp_path / "pid", time.monotonic()

    def interrupt() -> None:
        while not (note.exists() and note.read_text()):
            time.sleep(0.02)
        os.kill(int(note.read_text()), signal.SIGINT)
        time.sleep(0.2)
        os.kill(int(note.read_text()), 0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        offers_scale.run_in_process(partial(sleep, note))
    assert time.monotonic() - start < 30.0
    thread.join(1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
