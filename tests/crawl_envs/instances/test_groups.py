"""Which pages belong together is public, and goes wherever instances go."""

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.instances import traces


def test_groups_are_always_revealed():
    instance = Instance([1.0, 2.0, 3.0], 1.0, bandwidth=1.0, group=[0, 1, 0])
    for reveal in ("parameters", "importance"):
        np.testing.assert_array_equal(instance.problem(reveal).group, [0, 1, 0])
    assert Instance(1.0, 1.0, bandwidth=1.0).problem().group is None
    with pytest.raises(ValueError, match="read-only"):
        instance.group[0] = 3


def test_groups_stay_where_sources_are_pooled():
    instance = Instance(1.0, 1.0, [[0.2, 0.3], [0.1, 0.4]], bandwidth=1.0, group=[4, 1])
    np.testing.assert_array_equal(instance.pooled().group, [4, 1])
    np.testing.assert_array_equal(instance.problem().pooled().group, [4, 1])


@pytest.mark.parametrize(
    "group", [[0, 1], [[0, 1, 2]], [0.0, 1.0, 2.0], [0, -1, 2], ["a", "b", "c"]]
)
def test_bad_groups(group):
    with pytest.raises(ValueError, match="group must be a whole number >= 0 for each of 3 pages"):
        Instance([1.0, 1.0, 1.0], 1.0, bandwidth=1.0, group=group)


def test_pages_of_a_trace_are_grouped_by_directory():
    env = gym.make("CrawlTrace-v0")
    env.reset(seed=0)
    trace = traces.load(traces.find("garden-handbook"))
    np.testing.assert_array_equal(env.unwrapped.tracker().problem.group, trace.directory)
