"""Pages with fragments: what steps do, against sets of fragments that are compared as sets."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance, instances
from crawl_envs.instances import traces
from crawl_envs.instances.longevity import PAGE_LAWS, RegionPages, draw_regions
from crawl_envs.sim.streams import generator
from crawl_envs.sim.tape import CHANGE, KIND_MASK, SIGNAL, UPDATE, Tape
from crawl_envs.spaces.actions import RefreshSet
from crawl_envs.types.contents import Contents, Regions
from crawl_envs.types.copies import sketch_of
from crawl_envs.worlds.fragments.lanes import FragmentLanes
from crawl_envs.worlds.fragments.shingling import as_fragments, shingles_of
from crawl_envs.worlds.rollouts import ONE_LANE, Pinned
from tests.naive.fragments import distance, version_at, versions_of

NAME, TRACE = "CrawlLongevity-v0", "garden-handbook"


def mixed_regions(m=5, seed=0):
    rng = np.random.default_rng(seed)
    items = rng.integers(1, 5, (m, 3))
    size = rng.integers(0, 6, (m, 3))
    size[:, 0] += 1
    rate = rng.uniform(0.1, 1.5, (m, 3))
    rate[:, 0] = 0.0
    return Regions(items, size, rate)


def mixed_pages(m=5, seed=0, bandwidth=2.0):
    weights = np.random.default_rng(seed + 1).integers(1, 5, m).astype(float)
    return RegionPages(weights, mixed_regions(m, seed), 0.5, 0.25, bandwidth=bandwidth)


def started(instance, seed=3, **more):
    size = {"num_pages": instance.num_pages, "bandwidth": instance.bandwidth}
    env = gym.make(NAME, **size, horizon=20.0, **more).unwrapped
    env.reset(seed=seed)
    env.reset(options={"instance": instance})
    return env


def test_contents_are_those_of_the_events_of_the_episode():
    """They are drawn when they are asked for: at any time, in any episode, after a set_state."""
    env = started(mixed_pages())
    contents, state = env.contents(), env.get_state()
    assert env.contents().key.tolist() == contents.key.tolist()
    for restore in (False, True):
        env.reset()
        if restore:
            env.set_state(state)
        env.step(0)
        world = env.lanes.world.state
        tape = world.tape[0, : world.lanes["length"][0]]
        updates = tape["time"][tape["code"] & KIND_MASK == UPDATE]
        read = env.contents()
        assert np.sort(read.death[np.isfinite(read.death)]).tolist() == updates.tolist()
        assert np.array_equal(read.birth, contents.birth) == restore


def test_what_happens_does_not_depend_on_horizon_or_bandwidth():
    instance = mixed_pages()
    short, long = (instance.draw_contents(generator(7, 0), end) for end in (10.0, 40.0))
    kept = long.birth <= 10.0
    assert np.array_equal(short.birth, long.birth[kept])
    assert np.array_equal(short.death, np.where(long.death <= 10.0, long.death, np.inf)[kept])
    for name in ("divergence", "changes"):
        env = [
            gym.make(NAME, num_pages=50, bandwidth=b, action="refresh", horizon=8.0).unwrapped
            for b in (1.0, 2.0)
        ]
        for one, steps in zip(env, (7, 15), strict=True):
            one.reset(seed=5)
            for _ in range(steps):
                one.step(np.zeros(50, np.int8))
        assert getattr(env[0].ledger(), name) == pytest.approx(
            getattr(env[1].ledger(), name), rel=1e-12
        )


@pytest.mark.parametrize("name", list(PAGE_LAWS))
def test_sets_have_the_published_statistics(name):
    regions = draw_regions(PAGE_LAWS[name], 400_000, np.random.default_rng(0))
    fragments = regions.items * regions.size
    static, churn, scroll = fragments[:, 0], fragments[:, 1], fragments[:, 2]
    moving = churn.sum() + scroll.sum()
    fast = churn[regions.rate[:, 1] >= 1.0].sum() / fragments.sum()
    if name == "quality":
        assert np.mean(static == regions.fragments) == pytest.approx(0.5, abs=0.005)
        assert moving / fragments.sum() == pytest.approx(0.10, abs=0.002)
        assert churn.sum() / moving == pytest.approx(0.67, abs=0.01)
        assert fast == pytest.approx(0.03, abs=0.001)
    else:
        assert moving / fragments.sum() > 0.25
        assert fast > 0.08


def test_signals_are_of_updates_and_of_none():
    quiet = instances.make("quality", num_pages=2000, seed=1)
    instance = instances.make("quality", num_pages=2000, seed=1, signals="noisy")
    assert np.array_equal(quiet.regions.rate, instance.regions.rate)
    tape = instance.draw_tape(np.random.default_rng(2), 30.0)
    kind = tape.code & KIND_MASK
    signal_times = tape.time[kind == SIGNAL]
    true = np.isin(signal_times, tape.time[kind == CHANGE])
    expected = (instance.recall * instance.change_rate).sum() * 30.0
    assert true.sum() == pytest.approx(expected, abs=5 * np.sqrt(expected))
    lies = instance.false_signal_rate.sum() * 30.0
    assert (~true).sum() == pytest.approx(lies, abs=5 * np.sqrt(lies))


def test_instances_by_name():
    one = instances.make("quality", num_pages=7, seed=3)
    env = gym.make(NAME, num_pages=7).unwrapped
    env.reset(seed=3)
    assert np.array_equal(one.regions.rate, env.instance.regions.rate)
    assert env.problem.regions is env.instance.regions
    hidden = gym.make(NAME, num_pages=7, reveal="importance").unwrapped
    hidden.reset(seed=3)
    assert hidden.problem.regions is None


def test_pages_of_regions_are_asked_for_in_other_worlds():
    env = gym.make(
        "CrawlNCIS-v0", num_pages=20, bandwidth=20.0, instance="quality", reward="requests"
    ).unwrapped
    env.reset(seed=0)
    for step in range(150):
        env.step(step % 20)
    ledger = env.ledger()
    assert ledger.requests == pytest.approx(20 * ledger.time, abs=5 * np.sqrt(20 * ledger.time))
    assert 0 < ledger.hits < ledger.requests


def test_what_fits_no_lane_is_refused():
    fast = Regions(np.ones((5, 1), int), np.ones((5, 1), int), np.full((5, 1), 1e7))
    with pytest.raises(ValueError, match=r"at most 2e.07 events in an episode"):
        started(RegionPages(1.0, fast, bandwidth=2.0))
    with pytest.raises(ValueError, match=r"at most 2e.07 events in an episode"):
        gym.make(NAME, horizon=1e9).reset(seed=0)
    recorded = gym.make(NAME, instance=TRACE).unwrapped
    recorded.reset(seed=0)
    m = recorded.lanes.num_pages
    with pytest.raises(ValueError, match="must have fragments like the environment, recorded"):
        recorded.reset(options={"instance": mixed_pages(m)})
    env = started(mixed_pages())
    for read in (env.contents, env.true_divergence, env.first_sketch):
        with pytest.raises(ValueError, match="lane must be"):
            read(1)


def lanes_of(contents, num_pages=1, **more):
    """A lane of recorded contents, refreshed every day, at its first decision on day 1."""
    form = RefreshSet(num_pages)
    tape = Tape.of_events(num_pages)
    lanes = FragmentLanes(
        *(1, Pinned(num_pages), form), horizon=9.0, tape=tape, contents=contents, **more
    )
    lanes.begin(ONE_LANE, [0], [Instance(np.ones(num_pages), 0.0, bandwidth=1.0)])
    return lanes


def test_ones_own_text_has_the_sketches_of_the_environment():
    """Fragments of a text, as spells of recorded content, have the hashes of sketch_of."""
    text = "which page do I crawl now, with a budget and noisy hints?"
    fragments = as_fragments(shingles_of(text))
    m = fragments.size
    contents = Contents.of_spells(
        1, np.zeros(m, int), np.full(m, -np.inf), np.full(m, np.inf), key=fragments
    )
    held = lanes_of(contents, base_versions=0, sketch_size=4).first_sketch(0).row(0)
    assert np.array_equal(held, sketch_of(fragments, 4))


def test_a_copy_has_what_came_before_it_and_not_what_comes_with_it():
    """Crawls at the very time of a birth or a death are before it, and the loss is right."""
    contents = Contents.of_spells(
        1, page=[0, 0, 0, 0], birth=[-np.inf, -np.inf, 1.0, 2.0], death=[np.inf, 1.0, 2.0, np.inf]
    )
    lanes = lanes_of(contents, base_versions=1)
    versions = versions_of(contents)[0]
    for now in (1.0, 2.0):
        lanes.play(lanes.form.decode_one(np.ones(1, np.int8)))
        divergence = lanes.true_divergence(0).divergence[0]
        held = version_at(versions, now)
        assert divergence == distance(version_at(versions, now + 1.0), held)
        log = lanes.last_log(0)
        assert log.divergence[0, 0] == distance(held, version_at(versions, now - 1.0))
        assert log.sketch.row(0).size == len(held) == 2
    for _ in range(6):
        lanes.play(lanes.form.decode_one(np.zeros(1, np.int8)))
    assert lanes.true_divergence(0).divergence[0] == 2.0 / 3.0


# Recorded content


def test_only_pages_with_fragments_and_their_events():
    env = gym.make(NAME, instance=TRACE, signals="both", importance="zipf").unwrapped
    env.reset(seed=0)
    assert np.unique(env.instance.importance).size == env.lanes.num_pages
    record = traces.load(traces.find(TRACE))
    whole = gym.make("CrawlTrace-v0", trace=TRACE, signals="both").unwrapped
    pages = np.unique(record.fragments.page)
    kept = pages[record.deleted[pages] > record.days / 2]
    assert env.lanes.num_pages == kept.size < whole.lanes.num_pages
    whole.reset(seed=0)
    assert np.array_equal(env.instance.change_rate, whole.instance.change_rate[kept])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_pages": 5}, "num_pages must not be given for a trace"),
        ({"horizon": 5.0}, "horizon must not be given for a trace"),
        ({"pages": "test"}, "pages must not be given for a trace"),
        ({"window": [1.0]}, "window must be a first and a last day"),
        ({"sketch_size": 0}, "sketch_size must be an integer in"),
        ({"base_versions": -1}, "base_versions must be an integer in"),
        ({"objective": "binary"}, "objective must be one of"),
        ({"instance": "nowhere"}, "instance must be one of quality, random, garden"),
        ({"instance": None}, "instance must be one of"),
        ({"window": 5}, "window must be a first and a last day, got 5"),
        ({"window": ("a", "b")}, "window must be finite"),
        ({"instance": "quality", "window": [0, 1]}, "window must not be given for instance"),
        ({"instance": "quality", "signals": "directory"}, "signals must be one of"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        gym.make(NAME, **{"instance": TRACE, **arguments})
