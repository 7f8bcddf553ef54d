r"""Networks for observations of pages, (m, F).

Pages are exchangeable: what to do with a page depends on its row, and on the others as a whole. So
``pages`` scores all rows with the same small network, which has the size that it has for one page
and acts on any number of them; ``mlp`` is Stable-Baselines3's perceptron on the scaled, flattened
observation. Both see columns that :class:`PageScaling` has made free of units.
"""

from agents.networks.actor_critic import PageActorCritic, PageScores
from agents.networks.dqn import PageDQN, PageValues
from agents.networks.encoder import PageEncoder, PageHeads
from agents.networks.gumbel import GumbelTop
from agents.networks.sac import PageSAC
from agents.networks.scaling import PageScaling, ScaledRows

__all__ = [
    "GumbelTop",
    "PageActorCritic",
    "PageDQN",
    "PageEncoder",
    "PageHeads",
    "PageSAC",
    "PageScaling",
    "PageScores",
    "PageValues",
    "ScaledRows",
]
