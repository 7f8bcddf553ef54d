from __future__ import annotations

import json

import numpy as np
import pytest

from agents.predictors import FEATURES, TASKS
from crawl_envs.instances.market import MarketShape, market
from crawl_envs.worlds.offers.log import record
from scripts.data import fit_market
from scripts.data.fit_market import (
    AUC_BAND,
    Figure,
    app,
    make_tables,
    shape_of,
    shares,
    table_of,
)
from scripts.data.offer_samples import split_days
from tests.scripts.commands import done, files_in, records, run


def test_quick_run(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_market, "QUICK", {"offers": 400, "days": 20, "per_day": 200})
    done(run(app, "--quick", "--set", "click_share=0.2", "--train-seed", 3, out=tmp_path))
    rows = records(tmp_path / "market.csv")
    assert [row["task"] for row in rows if row["what"] == "positives"] == list(TASKS)
    pairs = [(row["task"], row["features"]) for row in rows if row["what"] == "auc"]
    assert pairs == [(task, features) for task in TASKS for features in FEATURES]
    for row in rows:
        off = abs(float(row["measured"]) - float(row["paper"]))
        assert row["near"] == str(off <= float(row["band"]))
    provenance = json.loads((tmp_path / "provenance.json").read_text("utf-8"))
    assert provenance["shape"]["click_share"] == 0.2
    assert (provenance["seed"], provenance["train_seed"]) == (0, 3)


def test_shares_are_counted():
    log = record(market(200, seed=1), 6, 1)
    result = [figure.measured for figure in shares(log, range(2, 5))]
    for number, share in enumerate(result):
        events = [log.labels(day)[number][page] for day in (2, 3, 4) for page in range(200)]
        assert share == pytest.approx(sum(map(bool, events)) / 600)


def test_tables_are_of_one_market_or_of_two():
    shape = MarketShape(merchants=20)
    one = make_tables(shape, 100, 10, 100, 4, 4)
    two = make_tables(shape, 100, 10, 100, 4, 5)
    assert np.array_equal(one.test.columns.metadata, two.test.columns.metadata)
    assert not np.array_equal(one.train.columns.metadata, two.train.columns.metadata)
    assert one.train.day.max() < one.validation.day.min() < one.test.day.min()
    assert sorted(set(one.test.day.tolist())) == list(split_days(10).test)


def test_bands():
    def figure(measured):
        return Figure("auc", "price", "trees", "both", measured, 0.88, AUC_BAND)

    assert figure(0.86).near
    assert not figure(0.92).near
    table = table_of([figure(0.92), Figure("positives", "click", "", "", 1 / 61, 1 / 76, 0.1)])
    cells = [list(column.cells) for column in table.columns[4:7]]
    assert cells == [["0.920", "0.016"], ["0.880", "0.013"], ["0.030", "0.100"]]


def test_a_shape_by_words():
    shape = shape_of(["merchants=7", "drift=0.5"])
    assert shape == MarketShape(merchants=7, drift=0.5)


def interrupted(*arguments, **named):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("where", "message", "files"),
    [
        ("check_folder", "stopped; nothing was written", []),
        ("make_tables", "stopped; nothing was written", []),
        ("aucs", "stopped; nothing was written", []),
        (
            *("write_provenance", "stopped while writing; {} may lack files of this run"),
            ["market.csv"],
        ),
    ],
)
def test_an_interrupt_anywhere_ends_in_one_line(tmp_path, monkeypatch, where, message, files):
    monkeypatch.setattr(fit_market, "QUICK", {"offers": 400, "days": 20, "per_day": 200})
    monkeypatch.setattr(fit_market, where, interrupted)
    result = run(app, "--quick", out=tmp_path)
    assert result.exit_code == 130, result.output
    assert result.output.splitlines()[-1] == message.format(tmp_path)
    assert files_in(tmp_path) == {*files}
