"""Estimates from a log."""

from __future__ import annotations

import numpy as np
import pytest

from policies.estimators import empirical_bayes
from policies.live.logs import CrawlLog
from scripts.estimate import _late_text
from scripts.live.fitting import fit_log, intervals_until
from tests.naive.replayed_logs import make_log
from tests.policies.live.logs.test_imputation import simulated


def test_without_signals_it_is_empirical_bayes() -> None:
    log, _ = simulated(1, crawls=10, recall=0.0, false_rate=0.0)
    group = np.arange(100) % 3
    fitted = fit_log(log, group)
    known = log.intervals()
    expected = empirical_bayes(
        known.elapsed, None, known.changed, page=known.page, groups=group
    ).fit.unsignalled_rate
    np.testing.assert_array_equal(fitted.quality.change_rate, expected)
    assert fitted.crawls.tolist() == [10] * 100


def test_change_rates_and_signals_are_recovered() -> None:
    logs = [simulated(seed, crawls=25, recall=0.6, false_rate=0.05) for seed in range(4)]
    for log, true in logs:
        fitted = fit_log(log)
        true_rate = np.bincount(true.page, minlength=100) / 100.0
        assert fitted.quality.recall.shape == (1, 100)
        assert np.corrcoef(fitted.quality.change_rate, true_rate)[0, 1] > 0.8
        assert abs(fitted.quality.change_rate.mean() / true_rate.mean() - 1.0) < 0.15
        assert abs(fitted.quality.false_signal_rate.mean() / 0.05 - 1.0) < 0.3


@pytest.mark.parametrize(
    ("delay", "build", "silence"),
    [(0.2, 0.0, 0.0), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 7.0, 0.0), (0.5, 0.0, 25.0)],
)
def test_pages_and_audit_have_one_recall(delay: float, build: float, silence: float) -> None:
    """Late signals, builds that signal all pages, and a silence; crawls every two days.

    The recall of all pages is the expected changes with a signal over those expected.
    """
    hits, errors = [], []
    for seed in range(4):
        rng, pages, days = np.random.default_rng([3, seed]), 60, 80
        crawls, signals = [], []
        for page in range(pages):
            changes = np.sort(rng.random(rng.poisson(rng.gamma(1.5, 0.14) * 90)) * 90.0) - 10.0
            moments = np.append(0.0, np.arange(0, days, 2) + rng.uniform(0.01, 2.0, days // 2))
            found = np.append(0, np.diff(np.searchsorted(changes, moments))) > 0
            crawls += [(page, float(t), bool(c)) for t, c in zip(moments, found, strict=True)]
            sent = changes[rng.random(changes.size) < 0.65]
            sent = np.append(sent, rng.random(rng.poisson(5.4)) * 90.0 - 10.0)
            sent = sent + delay * rng.standard_exponential(sent.size)
            sent = sent[(sent < 30.0) | (sent > 30.0 + silence)]
            sent = np.append(sent, np.arange(3.0, days * min(build, 1.0), build or 1.0))
            signals += [(page, float(t), 0) for t in sent if 0.0 < t < days]
        log = make_log(crawls, signals, num_pages=pages, num_sources=1)
        fitted = fit_log(log)
        known, rate = intervals_until(log, np.inf), fitted.quality.change_rate
        weight = rate * np.bincount(known.page, known.elapsed, pages)
        recall = np.average(np.nan_to_num(fitted.quality.recall[0]), weights=weight)
        low, high = fitted.audit.recall_interval[0]
        hits.append(low <= recall <= high)
        errors.append(recall - 0.65)
        assert len(fitted.audit.silences[0]) == (silence > 0.0)
    assert all(hits)
    assert abs(np.mean(errors)) < 0.06


def test_crawls_after_a_day_are_left_out() -> None:
    crawls = [(0, 0.0, False), (0, 2.0, True), (0, 4.0, False), (0, 6.0, True)]
    log = make_log(crawls, num_pages=1)
    early = make_log(crawls[:3], num_pages=1)
    until = fit_log(log, until=4.0)
    assert until.crawls.tolist() == [2]
    np.testing.assert_array_equal(until.quality.change_rate, fit_log(early).quality.change_rate)
    assert fit_log(log).quality.change_rate[0] > until.quality.change_rate[0]


def test_a_group_without_crawls_is_like_the_others() -> None:
    crawls = [(page, float(t), t % 40 == 30) for page in range(10) for t in range(0, 200, 10)]
    crawls += [(10, 150.0, False), (10, 190.0, True)]
    log = make_log(crawls, num_pages=11)
    group = np.array([0] * 10 + [1])
    rate = fit_log(log, group, until=100.0).quality.change_rate
    assert rate[10] == pytest.approx(rate[:10].mean(), rel=0.5)


def growing_log(births: int) -> CrawlLog:
    """A log of 200 old pages and of new ones that change, and are signalled in vain, more often.

    Each page is crawled every 5 days; the last 10 new pages are crawled once.
    """
    rng = np.random.default_rng([6, births])
    crawls: list[tuple[int, float, bool]] = []
    signals: list[tuple[int, float, int]] = []
    for page in range(200 + births):
        new = page >= 200
        born = 30.0 + 165.0 * (page - 200) / births if new else 0.0
        if new and page >= 190 + births:
            born = 196.0
        moments = np.arange(born + rng.uniform(0.0, 5.0), 201.0, 5.0)
        times = np.sort(rng.uniform(0.0, 200.0, rng.poisson(200.0 * (0.15 if new else 0.03))))
        found = np.append(0, np.diff(np.searchsorted(times, moments))) > 0
        crawls += [(page, float(t), bool(c)) for t, c in zip(moments, found, strict=True)]
        false = rng.uniform(0.0, 200.0, rng.poisson(200.0 * (0.2 if new else 0.02)))
        sent = np.append(times[rng.random(times.size) < 0.5], false)
        signals += [(page, float(t), 0) for t in sent if t > moments[0]]
    return make_log(crawls, signals, num_pages=200 + births, num_sources=1)


def test_late_pages_without_a_second_crawl_get_the_values_of_late_pages() -> None:
    log = growing_log(80)
    fitted, pooled = fit_log(log), fit_log(log, newborn_prior=False)
    last = fitted.crawls == 0
    assert last.sum() >= 10
    assert fitted.late[200:].sum() == 80
    assert not fitted.late[:200].any()
    assert fitted.late_day == pytest.approx(15.0, abs=5.0)
    for name, new, old in (("change_rate", 0.15, 0.03), ("false_signal_rate", 0.2, 0.02)):
        value, before = (np.ravel(getattr(x.quality, name))[last] for x in (fitted, pooled))
        assert np.unique(value.round(9)) == pytest.approx([new], rel=0.25)
        assert before.max() < 0.6 * new
        assert np.ravel(getattr(fitted.quality, name))[:200].mean() == pytest.approx(old, rel=0.25)
    assert fitted.quality.recall[0, last].mean() == pytest.approx(0.5, abs=0.12)
    half = fit_log(log, until=100.0)
    assert half.quality.change_rate[last].mean() == pytest.approx(0.15, rel=0.3)


@pytest.mark.parametrize("births", [0, 25])
def test_a_log_with_few_late_pages_has_one_group(births: int) -> None:
    log = growing_log(births)  # of 25 late pages, 10 were crawled once
    fitted, pooled = fit_log(log), fit_log(log, newborn_prior=False)
    assert not fitted.late.any()
    for name in ("change_rate", "recall", "false_signal_rate", "change_rate_stderr"):
        np.testing.assert_array_equal(getattr(fitted.quality, name), getattr(pooled.quality, name))


def test_a_host_of_late_pages_alone_is_its_own_group() -> None:
    log = growing_log(80)
    fitted = fit_log(log, np.arange(280) >= 200)
    assert not fitted.late.any()
    assert fitted.group.max() == 1


def test_the_estimate_names_the_values_of_late_pages() -> None:
    log = growing_log(80)
    fitted = fit_log(log)
    text = _late_text(log, fitted)
    rate = fitted.quality.change_rate
    assert text.startswith(f"80 pages first crawled after day {fitted.late_day:g} are estimated as")
    assert f"{(fitted.crawls == 0).sum()} of them from others alone" in text
    assert f"mean {rate[200:].mean():.4g} changes per day" in text
    assert f"(other pages: {rate[:200].mean():.4g} changes per day)" in text


def test_what_the_crawls_of_each_page_tell() -> None:
    crawls = [(0, 0.0, False), (1, 0.0, False), (1, 2.0, False), (2, 0.0, False), (2, 2.0, True)]
    crawls += [(3, 0.0, False), (3, 2.0, True), (3, 6.0, False)]
    fitted = fit_log(make_log(crawls, num_pages=4))
    assert fitted.evidence.tolist() == [
        "crawled once",
        "never changed",
        "always changed",
        "some changed",
    ]
    assert fitted.low[[0, 1]].tolist() == [0.0, 0.0]
    assert fitted.high[[0, 2]].tolist() == [np.inf, np.inf]
    assert fitted.high[1] == pytest.approx(-np.log(0.05) / 2.0)
    assert fitted.low[2] == pytest.approx(-np.log(0.95) / 2.0)
    assert fitted.low[3] < np.log(1.5) / 2.0 < fitted.high[3]  # the estimate: 1 - exp(-2 r) = 1/3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (False, "got none in 3 intervals between crawls: rates are below 0.3 per day"),
        (True, "got a change in all 3 intervals between crawls: rates are above 0.15 per day"),
    ],
)
def test_a_log_that_tells_no_rate_is_refused(changed: bool, words: str) -> None:
    crawls = [(page, 0.0, False) for page in range(2)]
    crawls += [(0, 2.0, changed), (0, 6.0, changed), (1, 4.0, changed)]
    with pytest.raises(ValueError, match=words):
        fit_log(make_log(crawls, num_pages=2))


def test_a_fit_that_did_not_converge_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policies.estimators.gamma_prior.MAX_PASSES", 1)
    log, _ = simulated(1, crawls=10, recall=0.0, false_rate=0.0)
    with pytest.raises(ValueError, match="the fit of 1000 intervals in 1 group did not converge"):
        fit_log(log)


def test_a_log_without_a_second_crawl_is_refused() -> None:
    log = make_log([(0, 0.0, False), (1, 3.0, False)], num_pages=2)
    with pytest.raises(ValueError, match="log must have a page that was crawled twice, got none"):
        fit_log(log)
    with pytest.raises(ValueError, match="crawled twice until day 4, got none among 2 pages"):
        fit_log(log, until=4.0)
