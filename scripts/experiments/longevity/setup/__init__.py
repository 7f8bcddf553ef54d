"""Shared parts of the experiments: curves, policies, sites, charts."""
