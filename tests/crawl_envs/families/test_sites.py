"""CrawlSites-v0: windows and directories of recorded sites, as CrawlTrace-v0 replays them."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs import evaluation
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.instances import traces
from crawl_envs.instances.traces import collection, site_windows
from crawl_envs.instances.traces.instance import replay
from crawl_envs.sim.tape import CHANGE, CODE_STRIDE
from crawl_envs.spaces.rewards import Objective
from crawl_envs.worlds.lanes import Lanes
from scripts.data.fit_trace import fit
from tests.crawl_envs.instances.recorded import META, tiny_tables, write

HANDBOOK = "garden-handbook"
DAYS = 30.0


def made(**arguments):
    arguments = {"split": HANDBOOK, "num_pages": 20, "days": DAYS, **arguments}
    return gymnasium.make("CrawlSites-v0", **arguments).unwrapped


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A site of five pages and ten days, with its parameters; page 2 alone changes after day 5."""
    tables = tiny_tables()
    tables["changes"] = {name: [*x[:4], x[5], x[4]] for name, x in tables["changes"].items()}
    tables["changes"]["t"][-1] = 7.0
    write(tmp_path, tables, META)
    trace = traces.load(tmp_path)
    traces.save_parameters(
        traces.parameters_path(tmp_path, "both"), fit(trace, signals="both"), trace
    )
    return tmp_path


@pytest.mark.parametrize(("seed", "num_pages"), [(0, 20), (1, 20), (2, 70)])
def test_an_episode_is_the_replay_of_its_pages_and_window(seed, num_pages):
    env = made(num_pages=num_pages, days_per_crawl=(2.0, 20.0))
    observation, _ = env.reset(seed=seed)
    instance = env.instance
    pages, count = instance.pages, instance.pages.size
    assert count == 20 if num_pages == 20 else 50 < count < num_pages
    window = [instance.day, instance.day + DAYS]
    whole = gymnasium.make(
        "CrawlTrace-v0", signals="both", window=window, bandwidth=instance.bandwidth
    ).unwrapped
    expected, _ = whole.reset(seed=seed)
    rng, over, number = np.random.default_rng(seed), False, np.full(65, -1)
    number[pages] = np.arange(count)
    while not over:
        np.testing.assert_array_equal(observation[:count], expected[pages])
        assert not observation[count:, list(env.lanes.features).index("alive")].any()
        log, other = env.last_log(), whole.last_log()
        ours = np.isin(other.signal_page, pages)
        for name in ("signal_time", "signal_source"):
            assert getattr(log, name).tolist() == getattr(other, name)[ours].tolist()
        assert log.signal_page.tolist() == number[other.signal_page[ours]].tolist()
        assert (log.time.tolist(), log.changed.tolist()) == (
            other.time.tolist(),
            other.changed.tolist(),
        )
        np.testing.assert_array_equal(env.lanes.fresh(0)[:count], whole.lanes.fresh(0)[pages])
        page = int(rng.integers(count))
        observation, _, _, over, info = env.step(page)
        expected, _, _, over_there, _ = whole.step(int(pages[page]))
        assert info["action_mask"].tolist() == env.action_masks().tolist()
        assert over == over_there
    assert env.ledger().crawls == whole.ledger().crawls > 30


@pytest.mark.parametrize("action", ["page", "rates"])
def test_a_crawled_start_is_that_of_the_replay_of_the_days_before(action):
    env = made(action=action, start="crawled", days_per_crawl=4.0)
    record = traces.load(traces.find(HANDBOOK))
    fitted = traces.load_parameters(traces.parameters_path(record.folder, "both"), record)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        instance = env.instance
        pages, first = instance.pages, instance.day - instance.before
        living = ((record.created <= first) & (record.deleted > first))[pages].sum()
        assert living <= instance.before * instance.bandwidth + 1e-9 < living + 8
        window = record.window(first, instance.day + DAYS, "both").of_pages(pages)
        rate = instance.bandwidth
        more = {"pages": pages, "before": instance.before}
        generator = replay(record, window, fitted, bandwidth=rate, **more)
        more = {"tape": window, "penalty": "binary", "start": "crawled"}
        more |= {"epoch": 1.0} if action == "rates" else {}
        lanes = Lanes(1, generator, env.lanes.form, horizon=DAYS, **more)
        twin = CrawlEnv(lambda *_, **__: lanes, Objective())  # noqa: B023
        np.testing.assert_array_equal(observation, twin.reset(seed=seed)[0])
        over = False
        while not over:
            choice = 3 if action == "page" else np.full(20, rate / 25.0)
            observation, reward, _, over, _ = env.step(choice)
            expected, other, _, ended, _ = twin.step(choice)
            np.testing.assert_array_equal(observation, expected)
            assert (reward, over) == (other, ended)
    with pytest.raises(ValueError, match=r"cost_spread must be 0 with start='crawled'"):
        made(start="crawled", cost_spread=1.0)


def test_the_pages_are_whole_directories_that_exist_in_the_window_and_one_that_is_cut():
    env, record = made(), traces.load(traces.find(HANDBOOK))
    drawn = set()
    for seed in range(20):
        env.reset(seed=seed)
        start, pages = env.instance.day, env.instance.pages
        assert record.days / 2.0 <= start <= record.days - DAYS
        exists = (record.created <= start + DAYS) & (record.deleted > start)
        assert exists[pages].all()
        directories, counts = np.unique(record.directory[pages], return_counts=True)
        sizes = np.bincount(record.directory[exists])[directories]
        assert (counts < sizes).sum() <= 1
        assert counts.sum() == 20
        drawn |= set(directories.tolist())
    assert drawn == set(record.directory.tolist())


def test_parameters_are_those_of_the_pages_and_the_bandwidth_of_the_living_ones():
    record = traces.load(traces.find(HANDBOOK))
    fitted = traces.load_parameters(traces.parameters_path(record.folder, "both"), record)
    env = made(num_pages=70, days_per_crawl=5.0)
    env.reset(seed=4)
    instance, count = env.instance, env.instance.pages.size
    np.testing.assert_array_equal(instance.recall[:, :count], fitted.recall[:, instance.pages])
    np.testing.assert_array_equal(instance.change_rate[:count], fitted.change_rate[instance.pages])
    assert not instance.change_rate[count:].any()
    alive = record.alive_days(instance.day, instance.day + DAYS).sum() / DAYS
    assert instance.bandwidth == pytest.approx(alive / 5.0, rel=1e-12)


def test_days_per_crawl_are_log_uniform_in_the_range():
    env = made(days_per_crawl=(2.0, 16.0))
    record, drawn = traces.load(traces.find(HANDBOOK)), []
    for seed in range(200):
        env.reset(seed=seed)
        instance = env.instance
        alive = record.alive_days(instance.day, instance.day + DAYS)[instance.pages].sum()
        drawn.append(np.log2(alive / DAYS / instance.bandwidth))
    assert 1.0 <= min(drawn) < 1.3
    assert 3.7 < max(drawn) <= 4.0
    assert abs(np.mean(drawn) - 2.5) < 4.0 * (3.0 / np.sqrt(12.0)) / np.sqrt(200)


def test_sites_are_drawn_at_every_reset_with_resample_and_kept_without(tiny):
    for resample, count in ((True, 2), (False, 1)):
        both = {"split": [HANDBOOK, str(tiny)], "num_pages": 3, "days": 4.0}
        env = made(**both, days_per_crawl=1.0, resample=resample)
        env.reset(seed=1)
        sites = set()
        for _ in range(12):
            env.reset()
            sites.add(env.instance.site)
        assert len(sites) == count


def test_lanes_have_their_own_pages_births_and_deaths():
    arguments = {"split": HANDBOOK, "num_pages": 70, "days": DAYS}
    batch = gymnasium.make_vec("CrawlSites-v0", 3, **arguments)
    observation, _ = batch.reset(seed=0)
    singles = [made(**arguments) for _ in range(3)]
    alone = [env.reset(seed=lane)[0] for lane, env in enumerate(singles)]
    np.testing.assert_array_equal(observation, alone)
    masks = []
    for step in range(60):
        actions = np.full(3, step % 60)
        observation, rewards, _, _, info = batch.step(actions)
        for lane, env in enumerate(singles):
            row, reward, _, _, more = env.step(step % 60)
            np.testing.assert_array_equal(observation[lane], row)
            assert rewards[lane] == reward
            np.testing.assert_array_equal(info["action_mask"][lane], more["action_mask"])
        masks.append(info["action_mask"].copy())
    assert len({mask.tobytes() for mask in masks[0]}) > 1
    assert (masks[0] != masks[-1]).any()


@pytest.mark.parametrize("name", ["GreedyNCIS", "RoundRobin"])
def test_compiled_rollouts_are_the_steps(name):
    env = made(num_pages=70)
    env.reset(seed=3)
    policy = policies.make(name, env)
    compiled = evaluation.play(env, policy, 3)
    assert compiled == evaluation.play(env, policies.make(name, env), 3, compiled=False)
    if name == "GreedyNCIS":
        rollout = evaluation.simulate(env.instance, policies.GreedyNCIS(), DAYS, 3)
        assert rollout.ledger.freshness == compiled.freshness
        with pytest.raises(ValueError, match=r"horizon must be at most 30, the days of the window"):
            evaluation.simulate(env.instance, policies.GreedyNCIS(), 31.0, 3)


def test_a_plain_instance_has_pages_that_never_die():
    env = made(num_pages=70)
    env.reset(seed=3)
    assert not env.action_masks().all()
    env.reset(options={"instance": traces_like(env.instance)})
    assert env.action_masks().all()


def traces_like(instance):
    from crawl_envs import Instance

    ones = np.ones(instance.num_pages)
    return Instance(ones, ones, 0.2 * np.ones((2, 70)), bandwidth=instance.bandwidth)


def test_every_window_has_a_change_of_its_pages(tiny):
    env = made(split=str(tiny), num_pages=5, days=1.0, days_per_crawl=0.5)
    days = []
    for seed in range(40):
        env.reset(seed=seed)
        days.append(env.instance.day)
        changes = env.instance.tape.code % CODE_STRIDE == CHANGE
        assert env.instance.tape.time[changes] + days[-1] == pytest.approx(7.0)
    assert 6.0 <= min(days) < 6.2 < 6.8 < max(days) < 7.0


def test_a_site_without_changes_is_refused(tiny):
    write(tiny, tiny_tables(), META)
    env = made(split=str(tiny), num_pages=5, days=1.0, days_per_crawl=0.5)
    with pytest.raises(ValueError, match=r"site 'tiny' must have a window of 1 days .* a change"):
        env.reset(seed=0)


def test_splits_are_those_of_the_collection(monkeypatch, tmp_path, tiny):
    rows = ["site,kind,split", f"{HANDBOOK},garden,train"]
    (tmp_path / "sites.csv").write_text("\n".join(rows) + "\n", "utf-8")
    monkeypatch.setattr(collection.site_table, "__defaults__", (tmp_path,))
    env = made(split="train", days=None)
    env.reset(seed=0)
    assert env.instance.site == HANDBOOK
    assert env.lanes.horizon == 100.0
    with pytest.raises(ValueError, match=r"train, dev or test with sites, or .*, got 'test'"):
        made(split="test")


def test_a_site_is_read_once_until_a_file_changes(tiny, monkeypatch):
    arguments = {"split": str(tiny), "num_pages": 3, "days": 4.0, "days_per_crawl": 2.0}
    made(**arguments).reset(seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(site_windows, "load", None)
        made(**arguments).reset(seed=0)
    (tiny / "pages.parquet").unlink()
    with pytest.raises(ValueError, match="no such file"):
        made(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"split": "Train"},
            r"^split must be train, dev or test .* a list of sites .* got 'Train'$",
        ),
        (
            {"split": ["train", "dev"]},
            r"^split must be .* as crawl_envs\.instances\.traces\.sites\(split\) lists, "
            r"got 'train' in \['train', 'dev'\]$",
        ),
        ({"split": [HANDBOOK, "nowhere"]}, r"^split must be .*, got 'nowhere' in \['garden-handb"),
        ({"split": ()}, r"split must be .* a list of sites .*, got \(\)"),
        ({"num_pages": 0}, r"num_pages must be an integer >= 1, got 0"),
        ({"days": 101.0}, r"at most 100, the second half of site 'garden-handbook', got 101.0"),
        ({"days": 5.0}, r"days must be at least 10, the days per crawl, got 5.0"),
        ({"days_per_crawl": (5.0, 2.0)}, r"a pair \(low, high\), got \(5\.0, 2\.0\)"),
        ({"days_per_crawl": (1.0, 2.0, 3.0)}, r"a number or a pair \(low, high\), got"),
        ({"days_per_crawl": 0.0}, r"days_per_crawl must be .*> 0"),
        ({"signals": "all"}, r"signals must be one of .*'all'"),
        ({"importance": "equal"}, r"importance must be one of .*'equal'"),
        ({"reward": "requests"}, r"reward must be freshness or penalty, since recorded sites"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        made(**arguments)


def test_a_round_needs_pages_and_instances_keep_their_start():
    """The first pages of the site are born on day 0.4: a round that begins earlier crawls none."""
    place = {"trace": "genai-prices", "start": "crawled", "days_per_crawl": 10.0}
    with pytest.raises(ValueError, match="window must leave the days"):
        gymnasium.make("CrawlTrace-v0", window=(5.0, 100.0), **place)
    site = {"split": "genai-prices", "num_pages": 20, "days": 50.0}
    crawled = made(start="crawled", **site)
    crawled.reset(seed=0)
    with pytest.raises(ValueError, match="instance must be drawn with start='fresh'"):
        made(**site).reset(seed=0, options={"instance": crawled.instance})


@pytest.mark.parametrize("split", ["tests", ["tests"]])
def test_a_folder_without_a_record_is_not_a_site(tmp_path, monkeypatch, split):
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^split must be train, dev or test .* got 'tests'"):
        made(split=split)
