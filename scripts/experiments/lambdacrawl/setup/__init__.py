"""Shared parts of the experiments: costs, charts.

Public modules: charts, costs, long_run.
"""
