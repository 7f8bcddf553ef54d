"""Shared parts of the experiments: learned values, charts.

Public modules: charts, learned_values.
"""
