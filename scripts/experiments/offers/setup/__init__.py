"""Shared parts of the experiments: runs, tables, charts."""
