"""Observations as tables, vectors and dictionaries with masks show the same."""

import numpy as np
import pytest

from tests.environments import EVERY_ID, assert_same, bare, batch

TRACE = "CrawlTrace-v0"


def parts_of(observation):
    """The rows and the mask of an observation of any form."""
    if isinstance(observation, dict):
        return observation["observation"], observation["action_mask"]
    return observation, None


@EVERY_ID
@pytest.mark.parametrize("form", ["flat", "dict", "flat_dict"])
@pytest.mark.parametrize("copy", [True, False])
def test_forms_show_the_same(name, form, copy):
    plain, shaped = batch(2, name), batch(2, name, observation=form, copy=copy)
    one = bare(name, observation=form)
    shapes = {"flat": (2, -1), "dict": (2, *plain.single_observation_space.shape)}
    shown = [env.reset(seed=5)[0] for env in (plain, shaped, one)]
    kept = []
    for action in [plain.action_space.sample() for _ in range(2)]:
        rows, mask = parts_of(shown[1])
        assert_same(rows, shown[0].reshape(shapes[form.removesuffix("_dict")]))
        assert shown[1] in shaped.observation_space
        assert shown[2] in one.observation_space
        assert_same(parts_of(shown[2])[0], rows[0])
        if mask is not None:
            assert_same(mask.astype(bool), shaped.action_masks())
        if copy:
            kept.append((rows, rows.copy()))
        shown = [env.step(action)[0] for env in (plain, shaped)] + [one.step(action[0])[0]]
    assert all(np.array_equal(*pair) for pair in kept)


@pytest.mark.parametrize("form", ["flat", "flat_dict"])
def test_last_observations_have_the_form(form):
    env = batch(2, autoreset_mode="SameStep", observation=form)
    env.reset(seed=0)
    over = np.zeros(2, bool)
    while not over.any():
        *_, over, info = env.step(np.zeros(2, int))
    assert info["final_obs"][0] in env.single_observation_space


def test_masks_show_which_pages_exist():
    env = bare(TRACE, observation="dict")
    observation, info = env.reset(seed=0)
    mask = observation["action_mask"]
    assert_same(mask, info["action_mask"])
    assert mask.shape == (env.action_space.n,)
    assert_same(mask, env.tracker().alive.astype(np.int8))
    assert 0 < mask.sum() < mask.size


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match=r"observation must be one of .* got 'array'"):
        bare(observation="array")
