"""Who is stale now: a belief per page that learns from crawls and signals, pooled over groups."""

from policies.staleness.policy import BeliefNCIS
from policies.staleness.rehearsal import History

__all__ = ["BeliefNCIS", "History"]
