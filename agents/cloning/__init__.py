"""Agents that imitate an analytic policy."""
