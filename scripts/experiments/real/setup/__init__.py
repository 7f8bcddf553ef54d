"""Shared parts of the experiments: sites, assumptions, charts."""
