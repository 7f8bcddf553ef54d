"""PPO of TorchRL: its GymWrapper around the native vector environment, its collector and its loss.

python docs/examples/torchrl_ppo.py --seed 1
"""

from __future__ import annotations

import gymnasium
import torch
from network import Best, PageNetwork
from task import ARGUMENTS, ID, report, run
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

LANES, STEPS, EPOCHS, MINIBATCH, RATE = 64, 32, 2, 256, 3e-3


class Head(torch.nn.Module):
    """One of the two outputs of a network."""

    def __init__(self, network: PageNetwork, place: int) -> None:
        super().__init__()
        self.network, self.place = network, place

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the logits, or the values in a last dimension of one."""
        found = self.network(observation)[self.place]
        return found.unsqueeze(-1) if self.place else found


def train(steps: int, seed: int) -> PageNetwork:
    """Return a network after about ``steps`` decisions in all lanes together."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # small networks are fastest on one thread
    lanes = gymnasium.make_vec(ID, num_envs=LANES, autoreset_mode="SameStep", **ARGUMENTS)
    env = GymWrapper(lanes, categorical_action_encoding=True)
    env.set_seed(1000 * seed)
    network = PageNetwork(env.observation_spec["observation"].shape[-1])
    scored = TensorDictModule(Head(network, 0), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        scored, in_keys=["logits"], distribution_class=Categorical, return_log_prob=True
    )
    critic = TensorDictModule(Head(network, 1), ["observation"], ["state_value"])
    gains = GAE(gamma=0.95, lmbda=0.9, value_network=critic)
    loss = ClipPPOLoss(
        actor,
        critic,
        entropy_coeff=0.003,
        critic_coeff=0.5,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    batch = LANES * STEPS
    updates = max(steps // batch, 1)
    collector = Collector(
        env,
        actor,
        frames_per_batch=batch,
        total_frames=updates * batch,
        auto_register_policy_transforms=False,
    )
    for update, data in enumerate(collector):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - update / updates)
        with torch.no_grad():
            gains(data)
        flat = data.reshape(-1)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(batch).split(MINIBATCH):
                terms = loss(flat[chosen])
                optimizer.zero_grad()
                parts = [value for name, value in terms.items() if name.startswith("loss_")]
                sum(parts).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()
    collector.shutdown()
    return network


def main(steps: int, seed: int, episodes: int) -> float:
    """Train, print the scores, and return the score."""
    network = train(steps, seed)
    return report("TorchRL PPO", lambda env: Best(network), episodes)


if __name__ == "__main__":
    run(main, __doc__, steps=500_000)
