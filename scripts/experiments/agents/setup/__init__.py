"""Shared parts of the experiments: learned values, logs of recorded sites, trainings, charts.

Public modules: charts, from_logs, learned_values, trainings.
"""
