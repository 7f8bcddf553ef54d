"""A learned index of pages, from the outcomes of crawls; without torch.

Public modules: arguments, fitting, inputs, learning, policy, recording, stored, training.
"""

from __future__ import annotations

from agents.index.policy import LearnedIndex, load_index
from agents.index.stored import StoredIndex
from crawl_envs.system.own_packages import check_own

check_own("agents")

__all__ = ["LearnedIndex", "StoredIndex", "load_index"]
