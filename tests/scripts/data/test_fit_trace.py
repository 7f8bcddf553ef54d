from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import policies
from crawl_envs.evaluation import play
from crawl_envs.instances import traces
from crawl_envs.types import FloatArray
from scripts.data.fit_trace import RECALL_CAP, app, count_events, fit
from scripts.data.replays import Split, replayed
from tests.crawl_envs.instances.recorded import tiny_tables, tiny_trace, write
from tests.scripts.commands import done, refused, run


def drawn_trace(
    rates: FloatArray, recall: FloatArray, false_rates: FloatArray, days: float, seed: int
) -> traces.Trace:
    """A recorded trace of immortal pages whose mentions are NCIS signals with no delay."""
    rng = np.random.default_rng(seed)
    pages = np.arange(rates.size)
    changes = np.repeat(pages, rng.poisson(rates * days))
    change_time = rng.uniform(0.0, days, changes.size)
    signalled = rng.random(changes.size) < recall[changes]
    false = np.repeat(pages, rng.poisson(false_rates * days))
    mentions = np.concatenate([changes[signalled], false])
    mention_time = np.concatenate([change_time[signalled], rng.uniform(0.0, days, false.size)])
    first, second = np.argsort(change_time), np.argsort(mention_time)
    return traces.Trace(
        name="drawn",
        folder=Path("nowhere"),
        days=days,
        created=np.full(rates.size, -1.0),
        deleted=np.full(rates.size, np.inf),
        directory=np.zeros(rates.size, np.int64),
        change_page=changes[first],
        change_time=change_time[first],
        signal_directory=np.empty(0, np.int64),
        signal_time=np.empty(0),
        mention_page=mentions[second],
        mention_time=mention_time[second],
    )


def test_counts_of_the_tiny_trace(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    counts = count_events(trace, 0.0, 8.0, "directory")
    assert counts.days.tolist() == [8.0, 6.0, 8.0, 6.0, 4.0]
    assert counts.changes.tolist() == [2, 0, 1, 0, 0]
    assert counts.signalled.tolist() == [2, 0, 1, 0, 0]
    assert counts.false_signals.tolist() == [2, 3, 1, 1, 1]
    counts = count_events(trace, 0.0, 8.0, "mentions")
    assert counts.signalled.tolist() == [1, 0, 1, 0, 0]
    assert counts.false_signals.tolist() == [0, 0, 1, 0, 0]
    both = count_events(trace, 0.0, 8.0, "both")
    # Mentions tell of one change of page 0 and of page 2; the directory of the other of page 0.
    assert both.signalled.tolist() == [[1, 0, 0, 0, 0], [1, 0, 1, 0, 0]]
    assert both.false_signals.tolist() == [[3, 3, 2, 1, 1], [0, 0, 1, 0, 0]]
    none = count_events(trace, 0.0, 8.0, "none")
    assert none.changes.tolist() == [2, 0, 1, 0, 0]
    assert not none.signalled.any()
    assert not none.false_signals.any()


@pytest.mark.parametrize("signals", ["directory", "mentions", "both"])
def test_counts_agree_with_the_naive_twin(signals: traces.Signals) -> None:
    trace = traces.load(traces.find("garden-handbook"))
    start, end = 20.0, 90.0
    changes = set(zip(trace.change_page.tolist(), trace.change_time.tolist(), strict=True))
    sources: list[list[tuple[int, float]]] = []
    if signals != "mentions":
        sources.append([])
        for place, t in zip(trace.signal_directory, trace.signal_time, strict=True):
            members = np.flatnonzero(trace.directory == place)
            sources[0] += [(int(page), float(t)) for page in members]
    if signals != "directory":
        named = zip(trace.mention_page.tolist(), trace.mention_time.tolist(), strict=True)
        sources.append(list(named))
    counts = count_events(trace, start, end, signals)
    signalled = np.atleast_2d(counts.signalled)
    false = np.atleast_2d(counts.false_signals)
    for page in range(trace.num_pages):
        own = {(p, t) for p, t in changes if p == page and start < t <= end}
        assert counts.changes[page] == len(own)
        for source in reversed(range(len(sources))):
            inside = [(p, t) for p, t in sources[source]
                      if p == page and start < t <= end
                      and trace.created[p] < t < trace.deleted[p]]  # fmt: skip
            credited = own & set(inside)
            assert signalled[source, page] == len(credited)
            assert false[source, page] == sum(event not in credited for event in inside)
            own -= credited


def test_parameters_are_recovered_from_a_long_record() -> None:
    rng = np.random.default_rng(3)
    rates, false = rng.gamma(2.0, 0.25, 60), rng.gamma(3.0, 0.1, 60)
    recall = rng.beta(4.0, 2.0, 60)
    result = fit(drawn_trace(rates, recall, false, 4000.0, 4), 0.0, 4000.0, "mentions")
    seen = rates > 0.05
    np.testing.assert_allclose(result.change_rate[seen], rates[seen], rtol=0.3)
    np.testing.assert_allclose(result.recall[seen], recall[seen], atol=0.12)
    np.testing.assert_allclose(result.false_signal_rate, false, rtol=0.3)
    assert result.pooled_change_rate == pytest.approx(rates.mean(), rel=0.02)
    assert result.pooled_false_signal_rate == pytest.approx(false.mean(), rel=0.02)
    assert result.pooled_recall == pytest.approx(np.average(recall, weights=rates), abs=0.02)


def test_shrinkage_beats_plain_rates_on_a_short_record() -> None:
    rng = np.random.default_rng(5)
    rates = rng.gamma(2.0, 0.02, 400)
    nothing = np.zeros(400)
    trace = drawn_trace(rates, nothing, nothing, 60.0, 6)
    result = fit(trace, 0.0, 60.0, "none")
    plain = np.bincount(trace.change_page, minlength=400) / 60.0
    assert np.sum((result.change_rate - rates) ** 2) < 0.6 * np.sum((plain - rates) ** 2)
    assert result.change_rate.min() > 0.0


def test_recall_of_directory_signals_is_capped() -> None:
    trace = traces.load(traces.find("garden-handbook"))
    result = fit(trace, signals="directory")
    assert result.recall.max() == RECALL_CAP
    assert result.pooled_recall == RECALL_CAP
    assert np.all(result.recall < 1.0)


def test_of_both_kinds_mentions_keep_their_quality_and_directories_take_the_rest() -> None:
    trace = traces.load(traces.find("garden-handbook"))
    alone, both = fit(trace, signals="mentions"), fit(trace, signals="both")
    assert np.array_equal(both.recall[1], alone.recall)
    assert np.array_equal(both.false_signal_rate[1], alone.false_signal_rate)
    assert both.pooled_recall[1] == alone.pooled_recall
    total = both.recall.sum(0)
    assert total.max() <= RECALL_CAP + 1e-15
    assert both.pooled_recall[0] + both.pooled_recall[1] == pytest.approx(RECALL_CAP)
    # As many signals of directories as were received: false ones, and those that tell of a change.
    counts = count_events(trace, 0.0, trace.days / 2.0, "both")
    directory = count_events(trace, 0.0, trace.days / 2.0, "directory")
    received = directory.signalled + directory.false_signals
    assert np.array_equal(counts.signalled[0] + counts.false_signals[0], received)
    assert np.array_equal(both.change_rate, alone.change_rate)


def test_recall_of_two_sources_is_recovered_from_a_long_record() -> None:
    """Changes signalled by mentions, by the directory or by none; each page has its directory."""
    rng = np.random.default_rng(13)
    rates, days = rng.gamma(2.0, 0.25, 40), 4000.0
    recall = np.array([rng.uniform(0.2, 0.5, 40), rng.uniform(0.1, 0.4, 40)])
    false = rng.gamma(3.0, 0.1, (2, 40))
    one = drawn_trace(rates, recall.sum(0), np.zeros(40), days, 14)
    by_mention = rng.random(one.mention_page.size) < (recall[1] / recall.sum(0))[one.mention_page]
    pages, times = [], []
    for source, kept in enumerate((~by_mention, by_mention)):
        extra = np.repeat(np.arange(40), rng.poisson(false[source] * days))
        page = np.concatenate([one.mention_page[kept], extra])
        time = np.concatenate([one.mention_time[kept], rng.uniform(0.0, days, extra.size)])
        order = np.argsort(time)
        pages.append(page[order])
        times.append(time[order])
    trace = dataclasses.replace(
        one,
        directory=np.arange(40),
        signal_directory=pages[0],
        signal_time=times[0],
        mention_page=pages[1],
        mention_time=times[1],
    )
    result = fit(trace, 0.0, days, "both")
    seen = rates > 0.05
    np.testing.assert_allclose(result.recall[:, seen], recall[:, seen], atol=0.12)
    np.testing.assert_allclose(result.false_signal_rate, false, rtol=0.3)
    share = np.average(recall, axis=1, weights=rates)
    np.testing.assert_allclose(result.pooled_recall, share, atol=0.02)
    np.testing.assert_allclose(result.pooled_false_signal_rate, false.mean(1), rtol=0.03)


def test_without_signals_there_is_no_signal_quality() -> None:
    result = fit(traces.load(traces.find("garden-handbook")), signals="none")
    assert not result.recall.any()
    assert not result.false_signal_rate.any()
    assert (result.pooled_recall, result.pooled_false_signal_rate) == (0.0, 0.0)


def test_pages_that_did_not_exist_get_the_pooled_values(tmp_path: Path) -> None:
    result = fit(tiny_trace(tmp_path), 0.0, 1.5, "directory")
    unseen = result.observed_days == 0.0
    assert unseen.tolist() == [False, False, False, True, True]
    assert result.change_rate[unseen] == pytest.approx(result.pooled_change_rate)
    assert result.recall[unseen] == pytest.approx(result.pooled_recall)
    assert result.false_signal_rate[unseen] == pytest.approx(result.pooled_false_signal_rate)


def growing_trace(births_per_day: float = 0.3) -> traces.Trace:
    """300 old pages that change every 50 days, and pages born all the time that do every 10."""
    days, rng = 400.0, np.random.default_rng(21)
    born = np.arange(0.5, days, 1.0 / births_per_day) if births_per_day else np.empty(0)
    rates = np.append(np.full(300, 0.02), np.full(born.size, 0.1))
    recall, false = np.full(rates.size, 0.5), np.append(np.zeros(300), np.full(born.size, 0.05))
    trace = drawn_trace(rates, recall, false, days, 22)
    created = np.append(np.full(300, -1.0), born)
    change, mention = (
        time > created[page]
        for page, time in (
            (trace.change_page, trace.change_time),
            (trace.mention_page, trace.mention_time),
        )
    )
    return dataclasses.replace(
        trace,
        created=created,
        directory=rng.integers(0, 5, rates.size),
        change_page=trace.change_page[change],
        change_time=trace.change_time[change],
        mention_page=trace.mention_page[mention],
        mention_time=trace.mention_time[mention],
    )


def test_pages_born_later_get_the_values_of_pages_born_in_the_window() -> None:
    trace = growing_trace()
    later = trace.created > 200.0
    result = fit(trace, signals="mentions")
    for values, truth in ((result.change_rate, 0.1), (result.false_signal_rate, 0.05)):
        assert np.unique(values[later]) == pytest.approx([truth], rel=0.1)
    assert np.unique(result.recall[later]) == pytest.approx([0.5], abs=0.05)
    pooled = fit(trace, signals="mentions", newborn_prior=False)
    assert np.unique(pooled.change_rate[later]) == pytest.approx([pooled.pooled_change_rate])
    assert pooled.pooled_change_rate < 0.04
    assert np.array_equal(pooled.change_rate[~later], result.change_rate[~later])
    assert np.array_equal(pooled.recall[~later], result.recall[~later])
    both = fit(trace, signals="both")
    assert both.recall.sum(0).max() <= RECALL_CAP
    assert np.unique(both.false_signal_rate[1, later]) == pytest.approx([0.05], rel=0.1)


def test_greedy_crawling_of_a_growing_site_is_fresher_with_the_prior_of_new_pages() -> None:
    trace = growing_trace()
    freshness = []
    for newborn_prior in (False, True):
        env = replayed(
            trace,
            Split(0.0, 200.0, 200.0, 400.0),
            signals="mentions",
            days_per_crawl=30.0,
            importance="uniform",
            newborn_prior=newborn_prior,
        )
        env.reset(seed=0)
        freshness.append(play(env, policies.make("GreedyNCIS", env), 0).freshness)
    assert freshness[1] > freshness[0] + 0.01


@pytest.mark.parametrize("signals", traces.SIGNALS)
def test_without_births_in_the_window_nothing_depends_on_newborn_pages(
    signals: traces.Signals,
) -> None:
    still, growing = growing_trace(0.0), growing_trace()
    late = dataclasses.replace(growing, created=np.where(growing.created < 0.0, -1.0, 300.0))
    for trace in (still, late):
        results = [fit(trace, signals=signals, newborn_prior=prior) for prior in (True, False)]
        for field in dataclasses.fields(traces.Parameters):
            assert np.array_equal(*(getattr(result, field.name) for result in results))


def test_the_command_names_the_values_of_pages_born_later(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny", tiny_tables())
    text = done(run(app, folder, "--end", 3)).stdout
    rate = fit(traces.load(folder), 0.0, 3.0).change_rate[4]
    assert f"1 page born later, as the 1 born in the window: change rate {rate:.4g}" in text
    assert "2 pages born later, as all pages: " in done(run(app, folder, "--end", 1.5)).stdout
    assert "born later" not in done(run(app, folder, "--end", 8)).stdout


@pytest.mark.parametrize("signals", traces.SIGNALS)
def test_nothing_after_the_window_is_looked_at(signals: traces.Signals) -> None:
    trace = traces.load(traces.find("garden-handbook"))
    end = 100.0
    before, received = trace.change_time <= end, trace.signal_time <= end
    named = trace.mention_time <= end
    blind = dataclasses.replace(
        trace,
        deleted=np.where(trace.deleted > end, np.inf, trace.deleted),
        change_page=trace.change_page[before],
        change_time=trace.change_time[before],
        signal_directory=trace.signal_directory[received],
        signal_time=trace.signal_time[received],
        mention_page=trace.mention_page[named],
        mention_time=trace.mention_time[named],
    )
    full, cut = fit(trace, 0.0, end, signals), fit(blind, 0.0, end, signals)
    for field in dataclasses.fields(full):
        assert np.array_equal(getattr(full, field.name), getattr(cut, field.name)), field.name


def test_by_default_the_first_half_is_fitted(tmp_path: Path) -> None:
    result = fit(tiny_trace(tmp_path))
    assert (result.start, result.end, result.signals) == (0.0, 5.0, "directory")


def test_the_command_writes_beside_the_trace(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny", tiny_tables())
    trace = traces.load(folder)
    done(run(app, folder, "--signals", "mentions", "--end", 8))
    path = traces.parameters_path(folder, "mentions")
    result = traces.load_parameters(path, trace)
    expected = fit(trace, 0.0, 8.0, "mentions")
    for field in dataclasses.fields(result):
        assert np.array_equal(getattr(result, field.name), getattr(expected, field.name))
    elsewhere = tmp_path / "mine.parquet"
    assert str(elsewhere) in done(run(app, folder, out=elsewhere)).stdout
    assert traces.load_parameters(elsewhere, trace).signals == "directory"


def test_bad_input_is_one_clear_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny", tiny_tables())
    for arguments, message in (
        ((tmp_path / "none",), "folder or one of"),
        ((tmp_path,), "meta.json: no such file"),
        ((folder, "--signals", "smoke"), "signals must be one of"),
        ((folder, "--start", 5, "--end", 5), "end must lie in"),
        ((folder, "--end", 11), "end must lie in"),
        ((folder, "--out", tmp_path / "no" / "such" / "file"), "cannot read or write"),
    ):
        refused(run(app, *arguments), message, code=1 if "read or" in message else 2)
    assert not list(folder.glob("parameters*"))
