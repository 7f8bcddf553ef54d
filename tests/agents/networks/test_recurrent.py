"""The memory of each page, beside an LSTM that is stepped page by page."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from agents.networks.encoder import PageEncoder

pytest.importorskip("sb3_contrib")
FEATURES, PAGES, HIDDEN = ("elapsed", "signals"), 3, 4


def made():
    from agents.networks.recurrent import PageRecurrent

    torch.manual_seed(0)
    return PageRecurrent(
        Box(-np.inf, np.inf, (PAGES, len(FEATURES)), np.float32),
        Discrete(PAGES),
        lambda _: 1e-3,
        net_arch=[],
        share_features_extractor=False,
        features_extractor_class=PageEncoder,
        features_extractor_kwargs={"features": FEATURES, "cycle": 1.0, "width": 5},
        lstm_hidden_size=HIDDEN,
    )


def test_memories_are_those_of_pages_one_by_one():
    policy, lanes, length = made(), 2, 6
    rng = np.random.default_rng(1)
    features = torch.tensor(rng.random((lanes * length, PAGES * 5)), dtype=torch.float32)
    starts = torch.zeros(lanes * length)
    starts[3] = starts[length + 1] = 1.0
    shape = 1, lanes, PAGES * HIDDEN
    states = tuple(torch.tensor(rng.normal(size=shape), dtype=torch.float32) for _ in range(2))
    memory = policy.lstm_actor
    with torch.no_grad():
        joined, (hidden, cell) = policy._process_sequence(features, states, starts, memory)
        for lane in range(lanes):
            for page in range(PAGES):
                at = slice(page * HIDDEN, (page + 1) * HIDDEN)
                h, c = (state[:, lane : lane + 1, at].contiguous() for state in states)
                for step in range(length):
                    row = lane * length + step
                    if starts[row]:
                        h, c = torch.zeros_like(h), torch.zeros_like(c)
                    vector = features[row, page * 5 : (page + 1) * 5].reshape(1, 1, 5)
                    out, (h, c) = memory.lstm(vector, (h, c))
                    first = PAGES * 5 + page * HIDDEN
                    torch.testing.assert_close(joined[row, first : first + HIDDEN], out[0, 0])
                torch.testing.assert_close(hidden[0, lane, at], h[0, 0])
                torch.testing.assert_close(cell[0, lane, at], c[0, 0])
    torch.testing.assert_close(joined[:, : PAGES * 5], features)


def test_scores_follow_the_pages():
    policy, order = made(), [2, 0, 1]
    rng = np.random.default_rng(2)
    vectors = torch.tensor(rng.random((4, PAGES, 5)), dtype=torch.float32)
    memories = torch.tensor(rng.random((4, PAGES, HIDDEN)), dtype=torch.float32)
    heads = policy.mlp_extractor

    def inputs(pages):
        return torch.cat([vectors[:, pages].flatten(1), memories[:, pages].flatten(1)], 1)

    with torch.no_grad():
        plain, turned = heads.forward_actor(inputs([0, 1, 2])), heads.forward_actor(inputs(order))
        values = heads.forward_critic(inputs([0, 1, 2])), heads.forward_critic(inputs(order))
    torch.testing.assert_close(plain[:, order], turned)
    torch.testing.assert_close(*values)
    assert plain.std() > 1e-4
