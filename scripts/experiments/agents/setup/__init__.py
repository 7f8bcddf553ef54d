"""Shared parts of the experiments: learned values, logs of recorded sites, trainings, charts.

Public modules: charts, checkpoints, from_logs, learned_values, trainings.
"""
