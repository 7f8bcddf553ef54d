"""The same events for all policies and budgets, in every process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs
from tests.environments import DELAYED, FORMS, arguments, bare

# Common random numbers


@pytest.mark.parametrize("delay", [None, DELAYED])
@pytest.mark.parametrize("form", list(FORMS))
def test_bandwidths_and_action_forms_have_the_same_events(delay, form):
    """After the same time, whatever was crawled how often, the same has happened."""
    slow = bare(bandwidth=3.0, delay=delay, horizon=10.0)
    fast = bare(bandwidth=12.0, delay=delay, horizon=10.0, **FORMS[form])
    slow.reset(seed=3)
    fast.reset(seed=3)
    signals = [[], []]

    def collect(which, env):
        log = env.last_log()
        signals[which] += zip(log.signal_time.tolist(), log.signal_page.tolist(), strict=True)

    collect(0, slow)
    collect(1, fast)
    for _ in range(slow.num_slots() - 1):
        slow.step(0)
        collect(0, slow)
        while fast.tracker().time < slow.tracker().time:
            fast.step(fast.action_space.sample())
            collect(1, fast)
        mine, yours = slow.ledger(), fast.ledger()
        for name in ("time", "requests", "changes", "signals"):
            assert getattr(mine, name) == getattr(yours, name)
    assert signals[0] == signals[1]
    assert signals[0]
    assert mine.crawls != yours.crawls


# Other processes


DIGEST = """
import hashlib, json
import gymnasium, numpy as np
import crawl_envs

digest = hashlib.sha256()
for name, more in json.loads({given!r}).items():
    env = gymnasium.make(name, **more)
    observation, _ = env.reset(seed=12)
    env.action_space.seed(3)
    for _ in range(8):
        digest.update(observation.tobytes())
        observation, reward, *_ = env.step(env.action_space.sample())
        digest.update(np.float64(reward).tobytes())
print(digest.hexdigest())
"""


def run(program, hash_seed="0"):
    """Return the output of a program run in a new Python process."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_seed_gives_the_same_bytes_in_every_process():
    settings_of = {name: arguments(name) for name in crawl_envs.FAMILIES}
    program = DIGEST.replace("{given!r}", repr(json.dumps(settings_of)))
    digest = hashlib.sha256()
    for name, more in settings_of.items():
        env = gym.make(name, **more)
        observation, _ = env.reset(seed=12)
        env.action_space.seed(3)
        for _ in range(8):
            digest.update(observation.tobytes())
            observation, reward, *_ = env.step(env.action_space.sample())
            digest.update(np.float64(reward).tobytes())
    assert run(program, "1") == run(program, "2") == digest.hexdigest()


def test_import_loads_nothing_heavy():
    program = (
        "import sys, crawl_envs, policies; "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('torch', 'matplotlib', 'stable_baselines3', 'pandas', 'pyarrow') "
        "or name.startswith(('scipy.stats', 'scipy.optimize'))])"
    )
    assert run(program) == "[]"
