"""Copies stay valid while anything of them is held, and serve again after."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from crawl_envs.spaces.observations import MOST_BUFFERS, Buffers


def test_what_is_held_is_never_overwritten():
    buffers, source = Buffers(), np.zeros((3, 5))
    held = []
    for step in range(3 * MOST_BUFFERS):
        source[:] = step
        one = buffers.copy(source)
        held.append([one, one.T, one[1:2], one.T[::2], memoryview(one), one][step % 6])
        del one
    for step, view in enumerate(held):
        assert (np.asarray(view) == step).all()


def test_what_nobody_holds_serves_again():
    buffers, source = Buffers(), np.arange(6.0)
    first = buffers.copy(source)
    address = first.ctypes.data
    del first
    assert buffers.copy(source).ctypes.data == address


def test_a_copied_pool_shares_nothing():
    buffers, source = Buffers(), np.arange(6.0)
    held = buffers.copy(source)
    for other in (copy.deepcopy(buffers), pickle.loads(pickle.dumps(buffers))):
        assert not np.shares_memory(held, other.copy(source))
