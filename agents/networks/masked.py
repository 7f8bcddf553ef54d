"""The policy of MaskablePPO that scores pages; it needs the package sb3-contrib."""

from __future__ import annotations

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.networks.actor_critic import PageScores


class MaskablePageActorCritic(PageScores, MaskableActorCriticPolicy):
    """The policy of MaskablePPO with an actor and a critic on a vector per page."""
