"""Networks on pages: free of units, of the order of pages and of their number."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary
from stable_baselines3 import DQN, SAC

import policies
from agents.networks.actor_critic import PageActorCritic
from agents.networks.dqn import PageDQN
from agents.networks.encoder import NEVER, PageEncoder, PageHeads
from agents.networks.gumbel import GumbelTop
from agents.networks.sac import PageSAC
from agents.networks.scaling import PageScaling
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.training import train

FEATURES = ("elapsed", "signals", "changed", "importance", "change_rate", "recall")
MORTAL = ("elapsed", "signals", "changed", "alive", "importance")
SOURCES = ("elapsed", "signals_0", "signals_1", "recall_0", "recall_1", "temper")


def rows_of(features, lanes=3, pages=5, seed=0):
    """Observations with some pages that do not exist where there is a column for it."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 5.0, (lanes, pages, len(features)))
    for k, name in enumerate(features):
        if name.startswith("recall"):
            rows[..., k] /= 5.0
        elif name == "changed":
            rows[..., k] = rng.integers(-1, 2, (lanes, pages))
        elif name == "alive":
            rows[..., k] = rng.random((lanes, pages)) < 0.6
            rows[:, 0, k] = 1.0
        elif name == "temper":
            rows[..., k] -= 2.5
    return torch.tensor(rows, dtype=torch.float32)


def space_of(features, pages=5):
    return Box(-10.0, 10.0, (pages, len(features)), np.float32)


def policy_of(features, actions, pages=5, width=8, batch=None, seed=0):
    torch.manual_seed(seed)
    extra = {} if batch is None else {"batch": batch}
    policy = PageActorCritic(
        space_of(features, pages),
        actions,
        lambda _: 1e-3,
        net_arch=[],
        features_extractor_class=PageEncoder,
        features_extractor_kwargs={"features": features, "cycle": 2.0, "width": width},
        **extra,
    )
    torch.nn.init.normal_(policy.mlp_extractor.score.weight)  # scores that differ
    return policy


def logits_of(policy, rows):
    with torch.no_grad():
        return policy.mlp_extractor.forward_actor(policy.extract_features(rows))


def test_scaling_is_what_the_table_says():
    features = (*FEATURES, "false_signal_rate", "temper", "age_0", "age_1")
    first = [3.0, 2.0, -1.0, 4.0, 0.5, 0.3, 0.2, -6.0, 5.0, -1.0]
    rows = torch.tensor([[first, [1.0, 0.0, 1.0, 2.0, 0.1, 1.0, 0.0, 0.5, 0.0, 0.0]]])
    expected = [
        np.log1p(150.0) - 3.0,
        np.log(3.0),
        -1.0,
        np.log1p(100.0 * 4.0 / 3.0) - 3.0,
        np.log1p(100.0) - 3.0,
        np.arctanh(-0.4 / 1.02),
        np.log1p(40.0) - 3.0,
        -np.log(7.0),
        np.log1p(250.0) - 3.0,
        -3.0,  # there is no such copy
    ]
    scaled = PageScaling(features, 2.0)(rows)
    torch.testing.assert_close(scaled[0, 0], torch.tensor(expected, dtype=torch.float32))
    assert scaled[0, 1, 6] == -3.0


def test_scaling_is_free_of_units():
    features = (*FEATURES, "age_0")
    rows = rows_of(features)
    in_hours = rows * torch.tensor([24.0, 1.0, 1.0, 7.0, 1.0 / 24.0, 1.0, 24.0])
    days, hours = PageScaling(features, 2.0), PageScaling(features, 48.0)
    torch.testing.assert_close(days(rows), hours(in_hours))
    assert not torch.allclose(days(rows), hours(rows))


@pytest.mark.parametrize("features", [FEATURES, MORTAL, SOURCES])
def test_scaling_stays_finite_at_the_ends_of_observations(features):
    scaling = PageScaling(features, 1e-3)
    for value in (0.0, 1.0, 1e6):
        rows = torch.full((1, 2, len(features)), value)
        for k, name in enumerate(features):
            if name.startswith("recall"):
                rows[..., k] = min(value, 1.0)
        assert torch.isfinite(scaling(rows)).all()


def test_columns_of_sources_are_scaled_as_that_of_one():
    rows = rows_of(SOURCES)
    scaled = PageScaling(SOURCES, 2.0)(rows)
    torch.testing.assert_close(scaled[..., 2], torch.log1p(rows[..., 2]))
    torch.testing.assert_close(scaled[..., 4], torch.atanh((2.0 * rows[..., 4] - 1.0) / 1.02))


def test_pages_that_do_not_exist_do_not_matter():
    policy = policy_of(MORTAL, Discrete(5))
    rows = rows_of(MORTAL)
    alive = rows[..., 3] > 0.5
    other = rows.clone()
    other[..., [0, 1, 4]] = torch.where(alive[..., None], rows[..., [0, 1, 4]], 9.0)
    assert not torch.equal(rows, other)
    torch.testing.assert_close(logits_of(policy, rows), logits_of(policy, other))
    assert (logits_of(policy, rows)[~alive] == NEVER).all()
    with torch.no_grad():
        torch.testing.assert_close(policy.predict_values(rows), policy.predict_values(other))
        drawn = torch.stack([policy(rows)[0] for _ in range(50)])
        assert alive.gather(1, drawn.T).all()
        assert torch.isfinite(policy.evaluate_actions(rows, drawn[0])[1]).all()
        assert torch.isfinite(policy.evaluate_actions(rows, drawn[0])[2]).all()
    # and they count for nothing in T: with them taken away, T is that of those that are left
    kept = rows[:1, alive[0]]
    few = policy_of(MORTAL, Discrete(kept.shape[1]), pages=kept.shape[1])
    few.load_state_dict(policy.state_dict())
    few.features_extractor.scaling.gain *= torch.tensor(5 / kept.shape[1]) ** torch.tensor(
        [1.0, 0.0, 0.0, 0.0, 0.0]
    )
    torch.testing.assert_close(logits_of(few, kept), logits_of(policy, rows)[:1, alive[0]])


@pytest.mark.parametrize("features", [FEATURES, MORTAL])
def test_scores_move_with_the_pages(features):
    policy = policy_of(features, Discrete(5))
    rows, order = rows_of(features), torch.tensor([3, 0, 4, 2, 1])
    scores = logits_of(policy, rows)
    assert scores.std() > 0.01
    torch.testing.assert_close(logits_of(policy, rows[:, order]), scores[:, order])
    with torch.no_grad():
        value, moved = policy.predict_values(rows), policy.predict_values(rows[:, order])
    torch.testing.assert_close(moved, value)


def test_a_page_is_scored_by_the_others_too():
    policy = policy_of(FEATURES, Discrete(5))
    rows = rows_of(FEATURES)
    other = rows.clone()
    other[:, 1:, 0] *= 3.0
    assert (logits_of(policy, rows)[:, 0] != logits_of(policy, other)[:, 0]).all()


def test_every_page_twice_changes_no_score():
    small, large = policy_of(FEATURES, Discrete(5)), policy_of(FEATURES, Discrete(10), pages=10)
    large.load_state_dict(small.state_dict())
    rows = rows_of(FEATURES)
    twice = logits_of(large, torch.cat([rows, rows], 1))
    torch.testing.assert_close(twice[:, :5], logits_of(small, rows))
    torch.testing.assert_close(twice[:, 5:], logits_of(small, rows))


def test_the_time_of_a_cycle_is_not_among_the_weights():
    state = policy_of(FEATURES, Discrete(5)).state_dict()
    assert not [name for name in state if "scaling" in name]


def test_top_pages_need_scores_of_pages():
    with pytest.raises(ValueError, match="batch must be None with actions Discrete"):
        policy_of(FEATURES, Discrete(5), batch=2)
    with pytest.raises(ValueError, match=r"batch must lie in \[1, 5\], got 6"):
        policy_of(FEATURES, Box(-1, 1, (5,)), batch=6)


def test_actions_decide_what_is_drawn():
    rows = rows_of(MORTAL)
    drawing = policy_of(MORTAL, Box(-1.0, 1.0, (5,)), batch=2)
    assert isinstance(drawing.action_dist, GumbelTop)
    assert not hasattr(drawing, "log_std")
    actions, _, log_prob = drawing(rows)
    assert actions.shape == (3, 5)
    assert ((actions == 1.0).sum(1) == 1).all()
    assert ((actions == 0.5).sum(1) == 1).all()
    torch.testing.assert_close(drawing.evaluate_actions(rows, actions)[1], log_prob)
    around = policy_of(MORTAL, Box(-1.0, 1.0, (5,)))
    assert around.mlp_extractor.dead is None
    assert torch.isfinite(around(rows)[2]).all()
    bits, _, log_prob = policy_of(MORTAL, MultiBinary(5))(rows)
    assert torch.isfinite(log_prob).all()
    assert (bits[rows[..., 3] < 0.5] == 0.0).all()


def test_a_policy_comes_back_from_disk_with_its_batch(tmp_path):
    policy = policy_of(FEATURES, Box(-1.0, 1.0, (5,)), batch=2)
    policy.save(tmp_path / "policy.zip")
    loaded = PageActorCritic.load(tmp_path / "policy.zip")
    assert loaded.batch == 2
    torch.testing.assert_close(
        loaded(rows_of(FEATURES), deterministic=True)[0],
        policy(rows_of(FEATURES), deterministic=True)[0],
    )


class Rows(gym.Env):
    """A stand-in with the spaces that a model is built on."""

    def __init__(self, features, actions):
        self.observation_space, self.action_space = space_of(features), actions


def page_model(kind, policy, features, actions, **extra):
    kwargs = {
        "features_extractor_class": PageEncoder,
        "features_extractor_kwargs": {"features": features, "cycle": 2.0, "width": 8},
        "net_arch": [1],
    }
    env = Rows(features, actions)
    return kind(policy, env, policy_kwargs=kwargs, seed=0, device="cpu", **extra)


@pytest.mark.parametrize("features", [FEATURES, MORTAL])
def test_action_values_move_with_the_pages(features):
    network = page_model(DQN, PageDQN, features, Discrete(5), buffer_size=10).q_net
    rows, order = rows_of(features), torch.tensor([3, 0, 4, 2, 1])
    with torch.no_grad():
        values = network(rows)
        torch.testing.assert_close(network(rows[:, order]), values[:, order])
    if features == MORTAL:
        alive = rows[..., 3] > 0.5
        assert alive.gather(1, values.argmax(1, keepdim=True)).all()
        least = torch.where(alive, values, torch.inf).amin(1)
        assert (values[~alive] < least.repeat(5, 1).T[~alive]).all()


@pytest.mark.parametrize("features", [FEATURES, MORTAL])
def test_sac_sees_pages(features):
    model = page_model(SAC, PageSAC, features, Box(-1.0, 1.0, (5,)), buffer_size=10)
    rows, order = rows_of(features), torch.tensor([3, 0, 4, 2, 1])
    policy = model.policy
    with torch.no_grad():
        scores = policy.actor(rows, deterministic=True)
        torch.testing.assert_close(
            policy.actor(rows[:, order], deterministic=True), scores[:, order]
        )
        values = policy.critic(rows, scores)
        assert len(values) == 2
        for value, moved in zip(
            values, policy.critic(rows[:, order], scores[:, order]), strict=True
        ):
            assert value.shape == (3, 1)
            torch.testing.assert_close(moved, value)
        # a score counts together with the page that it is given to
        assert not torch.allclose(policy.critic(rows, scores.flip(1))[0], values[0])
    if features == MORTAL:
        assert (scores[rows[..., 3] < 0.5] < -0.999).all()
    assert sum(p.numel() for p in policy.actor.parameters()) < 500
    for critic in (policy.critic, policy.critic_target):
        assert {type(network).__name__ for network in critic.q_networks} == {"PageQ"}
        assert critic.qf0 is critic.q_networks[0]
    trained = {id(p) for group in policy.critic.optimizer.param_groups for p in group["params"]}
    assert {id(p) for p in policy.critic.parameters()} == trained


def test_heads_score_with_one_layer():
    encoder = PageEncoder(space_of(FEATURES), FEATURES, 2.0, 8)
    heads = PageHeads(encoder)
    vectors = torch.randn(2, 5, 8)
    scores = heads.forward_actor(vectors.flatten(1))
    expected = vectors @ heads.score.weight[0] + heads.score.bias
    torch.testing.assert_close(scores, expected)


@pytest.mark.parametrize("cycle", [0.0, -1.0, np.inf, np.nan])
def test_a_cycle_is_positive(cycle):
    with pytest.raises(ValueError, match=r"cycle must be finite and > 0, got"):
        PageScaling(FEATURES, cycle)


def test_ppo_learns_through_the_top_pages(tmp_path):
    """Two of six pages deserve every crawl; the agent learns to choose these two."""
    importance = [1.0, 18.0, 1.0, 1.0, 18.0, 1.0]
    arguments = TrainArguments(
        env_args={"num_pages": 6, "bandwidth": 6.0, "horizon": 10.0}
        | {"action": "scores", "batch": 2},
        instance={"importance": importance, "change_rate": 2.0, "bandwidth": 6.0},
        steps=20_000,
        width=16,
    )
    agent = train(arguments, tmp_path)
    assert isinstance(agent.model.policy.action_dist, GumbelTop)
    learned = mean_rewards(lambda env: agent, arguments)
    random = mean_rewards(lambda env: policies.make("RandomCrawl", env), arguments)
    best = mean_rewards(lambda env: policies.make("Greedy", env), arguments)
    assert learned.mean() > random.mean() + 0.8 * (best.mean() - random.mean())
