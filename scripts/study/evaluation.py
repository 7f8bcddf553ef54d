"""The setting in which an agent or a policy is evaluated beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.sb3.comparison import FIRST_SEED
from scripts.cli.options import PREFIX
from scripts.study.entrants import Candidate, applicable, candidates_of, chosen_names, entered
from scripts.study.settings import Setting


def evaluation_of(
    candidate: Candidate, env_id: str, env_args: Mapping[str, Any], specs: Sequence[str]
) -> Setting:
    """Return the checked setting that compares a candidate with other policies.

    Args:
        candidate: the agent or policy to evaluate. In the environment of its training, arguments
            default to those of its training.
        env_id: id of the environment.
        env_args: arguments of the environment.
        specs: policies and agents as of :func:`candidate_of`, or ``all`` policies but oracles; the
            default policies if empty.

    Raises:
        ValueError: arguments that the environment rejects, an unknown policy, a named policy that
            cannot act there, an agent of another environment, or two agents of one name.
    """
    name = env_id.removeprefix(PREFIX)
    arguments = {**(candidate.env_args if candidate.env_id == name else {}), **env_args}
    named = [] if list(specs) == ["all"] else specs
    others = candidates_of(named or chosen_names(name, specs))
    if others.get(candidate.label, candidate).digest != candidate.digest:
        raise ValueError(f"entrants must have different names, got {candidate.label!r} twice")
    able, refused = applicable({candidate.label: candidate} | others, name, arguments)
    for label, reason in refused.items():
        if named or label == candidate.label:
            raise ValueError(f"{label} cannot act here: {reason}")
    return Setting(name, name, arguments, **entered(able), first_seed=FIRST_SEED)
