"""Shared parts of the experiments: learned values, logs of recorded sites, charts.

Public modules: charts, from_logs, learned_values.
"""
