"""Timing: method of measurement, timed tasks, and baselines.

Public modules: comparisons, growth, solver_comparisons, turns.
"""
