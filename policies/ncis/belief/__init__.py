"""Beliefs about which pages are stale, learned from crawls and signals and pooled over groups.

Public modules: activity, kernels, layout, policy, warm_start.
"""

from policies.ncis.belief.policy import BeliefNCIS
from policies.ncis.belief.warm_start import History

__all__ = ["BeliefNCIS", "History"]
