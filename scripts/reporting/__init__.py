"""Simulation runs, and their rows, tables and pictures.

Public modules: bounds, charts, clairvoyant, claims, claims_table, commands, comparisons,
equal_freshness, experiment, filled_tables, index, intervals, means, options, rows, runner,
settings, tables, verdicts, workers.
"""
