"""What an explorer records is what the step loop sees."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from agents.generalist import recording
from agents.generalist.history import with_history
from agents.generalist.inputs import INPUTS
from crawl_envs.worlds.rollouts import play_form
from policies import bind
from policies.ncis.belief import BeliefNCIS
from tests.agents.generalist.belief_twin import Twin
from tests.agents.generalist.twins import further_inputs

SIZES = {"num_pages": 20, "bandwidth": 20.0, "horizon": 6.0}


@pytest.mark.parametrize("law", ["deploys", "bursty"])
def test_records_are_what_the_step_loop_sees(law):
    env = gymnasium.make("CrawlNCIS-v0", instance=law, **SIZES)
    env.reset(seed=3)
    core = env.unwrapped
    memory = with_history(BeliefNCIS().first_memory(core.problem), core.problem, np.zeros(0))
    form = recording.recording(memory, core.num_slots(), np.random.default_rng(1))
    played = play_form(form, core.instance, SIZES["horizon"], 3, requests=False)
    record = recording.recorded(form.memory)
    np.testing.assert_array_equal(
        record.crawls[:, recording.PAGE], played.crawls[: len(record.crawls)]
    )
    assert 0 < record.crawls[:, recording.FORCED].sum() < 20
    twin, belief, changed = Twin(env), bind(BeliefNCIS(), env), []
    env.reset(seed=3)
    for number, row in enumerate(record.crawls):
        twin.follow()
        page, values = int(row[recording.PAGE]), belief.update().scores(core.tracker())
        if number % 9 == 0:
            value = values[page] / core.problem.importance[page]
            expected = twin.inputs(page) + further_inputs(twin, page, value)
            found = record.crawl_inputs[number]
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
            assert row[recording.EVIDENCE] == pytest.approx(twin.read(page)[0], rel=1e-5)
            assert row[recording.RATE] == pytest.approx(twin.read(page)[2], rel=1e-5)
        env.step(page)
        changed.append(bool(core.last_log().changed[0]))
    np.testing.assert_array_equal(record.crawls[:, recording.CHANGED] > 0.5, changed)
    assert record.sample_inputs.shape == (len(record.samples), len(INPUTS))
    assert {*record.samples[:, recording.PAGE]} == {0.0, 4.0, 8.0, 12.0, 16.0}
