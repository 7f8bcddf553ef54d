"""Indices learned from the outcomes of crawls, and evolved corrections of a belief.

Nothing here needs torch.

Public modules: arguments, corrected_belief, outcome_training, stored, train.
"""

from __future__ import annotations

from agents.evolution.policy import LearnedIndex, load_index
from agents.evolution.stored import StoredIndex, read_index, save_index
from crawl_envs.types.own_packages import check_own

check_own("agents")

__all__ = ["LearnedIndex", "StoredIndex", "load_index", "read_index", "save_index"]
