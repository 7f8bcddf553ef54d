"""Shared parts of the experiments: learned values, charts."""
