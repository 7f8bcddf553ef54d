"""Shared parts of the experiments: sweeps, series, charts."""
