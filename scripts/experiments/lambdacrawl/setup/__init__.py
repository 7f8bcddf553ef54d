"""Shared parts of the experiments: costs, charts."""
