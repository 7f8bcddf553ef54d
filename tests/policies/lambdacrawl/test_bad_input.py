"""Bad input of policies that learn crawl rates."""

import numpy as np
import pytest

import policies
from policies import ExploreThenCommit, LambdaLearnAndCrawl, LambdaLearnAndCrawlBinary
from tests.policies.small_world import SmallWorld


def world(form="rates", **more):
    return SmallWorld(np.ones(3), bandwidth=3.0, horizon=5.0, form=form, **more)


def learner(**settings):
    return lambda: LambdaLearnAndCrawl(**settings)


def explorer(**settings):
    return lambda: ExploreThenCommit(**settings)


BOUNDS = r"bounds must be \(least, largest\) .* got "
BAD = [
    (learner(epoch=0.0), "epoch must be finite and > 0, got 0.0"),
    (learner(initial=-1.0), "initial must be finite and > 0, got -1.0"),
    (learner(window=0.0), "window must be finite and > 0, got 0.0"),
    (learner(smoothing=np.nan), "smoothing must be finite and > 0, got nan"),
    (learner(bounds=(2.0, 1.0)), rf"{BOUNDS}\(2.0, 1.0\)"),
    (learner(bounds=3), f"{BOUNDS}3"),
    (learner(bounds=(1, 2, 3)), rf"{BOUNDS}\(1, 2, 3\)"),
    (learner(bounds=(0.0, "a")), rf"{BOUNDS}\(0.0, 'a'\)"),
    (learner(bounds=(0.0, np.nan)), rf"{BOUNDS}\(0.0, nan\)"),
    (
        lambda: policies.make("LambdaLearnAndCrawl", world()).of_lane(2),
        "lane must be one that predict was called for, got 2",
    ),
    (
        lambda: policies.make("LambdaLearnAndCrawl", world("scores")),
        "action_form of .* must be one of",
    ),
    (lambda: LambdaLearnAndCrawlBinary(floor=1.5), r"floor must lie in \[0, 1\], got 1.5"),
    (explorer(explore=-1.0), "explore must be finite and >= 0, got -1.0"),
    (explorer(objective="jaccard"), "objective must be one of .* got 'jaccard'"),
    (explorer(initial=0.0), "initial must be finite and > 0, got 0.0"),
    (explorer(smoothing=0.0), "smoothing must be finite and > 0, got 0.0"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
