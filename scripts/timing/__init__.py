"""Timing: method of measurement, timed tasks, and baselines.

Public modules: checkouts, comparisons, growth, solver_comparisons, stepped, turns.
"""
