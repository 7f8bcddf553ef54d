"""Extraction of the page network from a model of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from torch import nn

from agents.networks.encoder import PageEncoder
from agents.networks.page_scorer import HEAD, LAYERS, PageScorer, ScorerTraits

NEEDED = "network must be 'pages', without memory, to act on any number of pages"


def page_network(model: BaseAlgorithm) -> tuple[PageEncoder, nn.Module]:
    """Return the encoder and the layer of scores of a model.

    Raises:
        ValueError: the model does not score pages, or not by their rows alone.
    """
    policy: Any = model.policy
    if hasattr(policy, "q_net"):
        encoder = policy.q_net.features_extractor
        head = getattr(policy.q_net.q_net, "heads", None)
    elif hasattr(policy, "actor"):
        encoder, head = policy.actor.features_extractor, policy.actor.mu
    else:
        encoder, head = policy.features_extractor, policy.mlp_extractor
    if not isinstance(encoder, PageEncoder) or hasattr(policy, "lstm_actor"):
        raise ValueError(f"{NEEDED}, got {type(policy).__name__} on {type(encoder).__name__}")
    assert head is not None  # a page encoder comes with heads for pages
    layer: nn.Module = head.score
    return encoder, layer


def _top(model: BaseAlgorithm) -> int | None:
    """Return the number of pages that a model draws in order, None for other actions."""
    batch: int | None = getattr(model.policy, "batch", None)
    return batch


def extract_scorer(model: BaseAlgorithm, name: str, features: tuple[str, ...]) -> PageScorer:
    """Return the page scorer inside a model.

    Args:
        model: of :func:`agents.sb3.building.build_model`, trained with the network ``pages``.
        name: name of the algorithm.
        features: names of the observation's columns.

    Raises:
        ValueError: another network, one with memory, or actions that are rates.
    """
    encoder, head = page_network(model)
    built: Any = model
    form = built.crawl_traits.action_form
    held = {**encoder.state_dict(), **{f"score.{k}": v for k, v in head.state_dict().items()}}
    assert model.observation_space.shape is not None
    traits = ScorerTraits(
        name=name,
        features=features,
        action_form=form,
        num_pages=model.observation_space.shape[0],
        cycle=encoder.scaling.cycle,
        draws=name not in ("dqn", "sac") and (form != "scores" or _top(model) is not None),
    )
    return PageScorer(traits, {key: held[key].cpu().numpy() for key in (*LAYERS, *HEAD)})
