"""Small environments of every family in every form of its actions."""

from __future__ import annotations

import gymnasium as gym
import pytest

from tests.environments import FORMS, HARMONIC, NCIS, SMALL

OFFERS = "CrawlOffers-v1"
OFFER_ARGUMENTS = {"num_pages": 30, "bandwidth": 24.0, "horizon": 3.0}
PLACES = (
    *((name, form) for name in (NCIS, HARMONIC, "CrawlTrace-v0") for form in FORMS),
    (HARMONIC, "rates"),
    (OFFERS, "scores"),
    (OFFERS, "rates"),
)
EVERY_PLACE = pytest.mark.parametrize(("name", "form"), PLACES)


def keywords(name, form):
    if name == OFFERS:
        return {**OFFER_ARGUMENTS, "action": form}
    return {**SMALL.get(name, {}), **FORMS.get(form, {"action": form})}


def place(name, form, **more):
    return gym.make(name, **{**keywords(name, form), **more})


def places(num_envs, name, form, **more):
    return gym.make_vec(name, num_envs=num_envs, **{**keywords(name, form), **more})
