"""The page-scoring policy for MaskablePPO; importing it needs the package sb3-contrib."""

from __future__ import annotations

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.networks.actor_critic import PageScores


class MaskablePageActorCritic(PageScores, MaskableActorCriticPolicy):
    """For MaskablePPO: an actor and a critic on vectors per page."""
