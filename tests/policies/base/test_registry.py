"""The registry: decorated classes are built by name, and all are attributes of the package."""

from __future__ import annotations

import gymnasium
import pytest

import policies
from policies.base.registry import KINDS, PAPERS, POLICIES, TAGS, registered
from policies.baselines.heuristics import RoundRobin


def test_a_decorated_class_is_built_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards(RoundRobin):
        """Round robin under another name."""

    for kept in (POLICIES, TAGS):  # restored afterwards
        monkeypatch.setitem(kept, "Backwards", None)
    assert registered()(Backwards) is Backwards
    assert "Backwards" in policies.names("page")
    env = gymnasium.make("crawl_envs:CrawlNCIS-v0", num_pages=3, bandwidth=3.0)
    assert type(policies.make("Backwards", env).policy) is Backwards
    assert type(policies.make("Backwards")) is Backwards


def test_every_registered_class_is_an_attribute() -> None:
    assert {*POLICIES} == {*policies.names(fragments=True)}
    for name, policy in POLICIES.items():
        assert getattr(policies, name) is policy
        assert policy.__name__ == name
        assert policy.__module__.split(".")[1] in policies.FOLDERS


@pytest.mark.parametrize("form", [None, "page", "scores", "refresh", "rates"])
def test_names_leave_out_policies_for_fragments(form: str | None) -> None:
    of_fragments = policies.names(family="fragments")
    assert {"CurveFitting", "FragmentDynamic", "FragmentStatic", "UniformRefresh"} <= {
        *of_fragments
    }
    usual, everyone = policies.names(form), policies.names(form, fragments=True)
    assert not {*usual} & {*of_fragments}
    assert everyone == tuple(sorted((*usual, *(() if form == "rates" else of_fragments))))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Nobody", "policy 'Nobody' is unknown"),
        ("CurveFiting", r"did you mean CurveFitting\?"),
        (3, "policy must be a name or module:Class, got 3"),
        ("json:loads", "policy 'json:loads' must be a class of policies"),
        ("json:Nobody", "policy 'json:Nobody' cannot be imported"),
    ],
)
def test_names_of_nobody(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        policies.make(name)


def test_kinds_and_papers_are_those_that_are_listed() -> None:
    assert {tags.kind for tags in TAGS.values()} == {*KINDS}
    assert {tags.paper for tags in TAGS.values()} == {"", *PAPERS}
    for name, tags in TAGS.items():
        assert (tags.kind == "oracle") == tags.oracle, name
        assert (tags.kind not in ("formula", "baseline", "oracle")) == tags.learns, name


def test_names_by_kind() -> None:
    crawlers = "FixedTiers NutchAdaptive SoftwareHeritageLag StormCrawlerAdaptive"
    assert " ".join(policies.names(kind="crawler's rule")) == crawlers
    assert "BeliefNCIS" in policies.names(kind="learning formula")
    assert policies.names(kind="formula", paper="Lagrangian index") == ("LagrangianIndex",)
    assert policies.names(oracle=True, fragments=True) == ("FragmentDynamic", "HolisticDynamic")
