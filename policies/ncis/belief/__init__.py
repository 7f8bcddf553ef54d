"""Who is stale now: a belief per page that learns from crawls and signals, pooled over groups."""

from policies.ncis.belief.policy import BeliefNCIS
from policies.ncis.belief.warm_start import History

__all__ = ["BeliefNCIS", "History"]
