"""Simulation runs, and their rows, tables and pictures.

Public modules: bounds, charts, claims, commands, comparisons, experiment, intervals, means,
options, rows, runner, settings, tables, verdicts, workers.
"""
